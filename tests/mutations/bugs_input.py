"""Bugs in what is done with input of every kind: tables, sizes, seeds, arguments that do not fit, damage."""

from tests.mutations.bugs import Bug

FORMATS, TABLES, ARCHIVES = "pdmp/data/formats.py", "pdmp/data/tables.py", "pdmp/data/archives.py"
EXPLANATIONS, STORAGE = "pdmp/native/explanations.py", "pdmp/engine/storage.py"
READ, VALUES, ANY = "tests/data/test_tables.py", "tests/faults/test_bad_values.py", "tests/faults/test_any_argument.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "input: the index of the rows is a feature",
            FORMATS,
            "index = (names[0],) if names[0] in UNNAMED and len(names) > 1 else ()",
            "index = ()",
            READ,
        ),
        (
            "input: a separator need not divide evenly",
            FORMATS,
            "same = set(widths) <= {width} and width - header in (0, 1)",
            "same = True",
            READ,
        ),
        (
            "input: rows are counted without those that were left out",
            FORMATS,
            "k = k if self.kept is None else int(self.kept[k])",
            "k = int(k)",
            READ,
        ),
        (
            "input: a cell that is no number is not told from text",
            FORMATS,
            "mostly = 2 * sum(numbers) > len(present)",
            "mostly = False",
            READ,
        ),
        ("input: label 1 is at least the number", TABLES, "values > kind.above", "values >= kind.above", READ),
        ("input: no size is too large", "pdmp/data/memory.py", "if size > limit:", "if limit < 0:", f"{READ} {VALUES}"),
        (
            "input: the header of an array is believed",
            ARCHIVES,
            "any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize > size - file.tell()",
            "any(n < 0 for n in shape)",
            READ,
        ),
        (
            "input: a child of a seed stands for its parent",
            "pdmp/native/arguments.py",
            "and not value.spawn_key and fresh",
            "and fresh",
            VALUES,
        ),
        (
            "input: a generator is not used up",
            "pdmp/native/arguments.py",
            'return int.from_bytes(value.bytes(16), "little")',
            "return value.bit_generator.seed_seq.entropy",
            VALUES,
        ),
        (
            "input: columns with numbers for names",
            "pdmp/models/regressions/design.py",
            "or len(set(names)) < len(names) or not all(isinstance(column, str) for column in columns)",
            "or len(set(names)) < len(names)",
            VALUES,
        ),
        (
            "input: damage is what the last reader raised",
            STORAGE,
            "except (Pickled, AttributeError, LookupError, TypeError, ValueError) as error:",
            "except (Pickled, LookupError) as error:",
            VALUES,
        ),
        (
            "input: arguments are not compared with their annotations",
            EXPLANATIONS,
            "wanted = _wanted(signature.parameters[name].annotation, value) if name in signature.parameters else None",
            "wanted = None",
            ANY,
        ),
        (
            "input: an error that nobody raised is ours",
            EXPLANATIONS,
            'return dis.opname[code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")',
            "return True",
            ANY,
        ),
        (
            "input: a message of several lines",
            EXPLANATIONS,
            "return type(error)(one_line) if one_line != said and isinstance(error, (TypeError, ValueError)) else None",
            "return None",
            ANY,
        ),
        (
            "input: numbers that overflow are not named",
            EXPLANATIONS,
            "return _extreme(given, error) or _of_arrays(",
            "return _of_arrays(",
            ANY,
        ),
        (
            "input: lists that contain themselves",
            "pdmp/native/arguments.py",
            "refuse_unreal(name, item, (*within, id(value)))",
            "refuse_unreal(name, item)",
            VALUES,
        ),
        (
            "input: the size of a part is blamed",
            EXPLANATIONS,
            "found = _too_large(given) if sizes else",
            "found = None if sizes else",
            VALUES,
        ),
        (
            "input: errors of a user's function are explained",
            EXPLANATIONS,
            "return trace is not None",
            "return False",
            VALUES,
        ),
        (
            "input: values are called as within",
            EXPLANATIONS,
            "if len(names) == 1:",
            "if False:",
            VALUES,
        ),
        (
            "input: a path that stands still",
            "pdmp/processes/sbps.py",
            'if self.cap != "auto" and self.cap < LEAST_CAP:',
            "if False:",
            "tests/processes/test_bad_input.py",
        ),
        (
            "input: more data without replacement than there are",
            "pdmp/gradients/minibatch.py",
            'if draw != "iid" and self.size > model.n_data:',
            "if False:",
            "tests/processes/test_bad_input.py",
        ),
        (
            "input: a step that is no number to compute with",
            "discrete/schedules.py",
            "if 0.0 < value < LEAST_STEP:",
            "if False:",
            "tests/processes/test_bad_input.py",
        ),
        (
            "input: rates of another form",
            "pdmp/thinning/hessian.py",
            "if form is None:",
            "if False:",
            "tests/processes/test_bad_input.py",
        ),
        (
            "input: bounds of rows that are not finite",
            "pdmp/processes/regression_zigzag.py",
            "if not all(np.all(np.isfinite(part)) for part in sums):",
            "if False:",
            "tests/processes/test_regression_boomerang.py",
        ),
        (
            "input: a gradient that is not finite at the start",
            "pdmp/engine/checks.py",
            "if not np.all(np.isfinite(gradient)):",
            "if False:",
            "tests/engine/test_run.py::test_where_chains_start",
        ),
        ("input: a grid of a hundred", "pdmp/engine/run.py", "GRID_DRAWS = 1_000", "GRID_DRAWS = 100", VALUES),
        (
            "input: the command has no R-hat",
            "pdmp/cli.py",
            '"gradients": gradients, "ess": ess, "rhat": rhat}',
            '"gradients": gradients, "ess": ess}',
            "tests/test_cli.py",
        ),
        (
            "faults: a checkpoint is written in its place",
            STORAGE,
            'part = f"{path}.part"',
            "part = path",
            "tests/faults/test_injected.py",
        ),
    )
]
