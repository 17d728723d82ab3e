"""Bugs in what happens when something fails: a gradient, a checkpoint, a file, a worker."""

from tests.mutations.bugs import Bug

FUNCTION, GRID, MAXIMA = "pdmp/models/adapters/function.py", "pdmp/thinning/grid.py", "pdmp/thinning/maxima.py"
CHAIN, CHECKPOINT = "pdmp/engine/chain.py", "pdmp/engine/checkpoint.py"
GRADIENTS, CHECKPOINTS = "tests/faults/test_failing_gradients.py", "tests/faults/test_checkpoints.py"
EXTEND = "tests/faults/test_extend.py"
WORKERS = "tests/faults/test_workers.py"
VALUES = "tests/faults/test_bad_values.py"
KINETIC = "tests/discrete/test_automatic_kinetic_steps.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "failing gradient: a potential is used although its gradient is not finite",
            FUNCTION,
            "        elif math.isfinite(potential) and not np.isfinite(gradient).all():\n            return math.nan",
            "        elif math.isnan(potential):\n            return math.nan",
            GRADIENTS,
        ),
        (
            "failing gradient: the end of a grid's cell may fail",
            GRID,
            "            if not defined and not known and not process.beyond(state, now + width):\n"
            "                return False\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: a search for the maximum passes over it",
            MAXIMA,
            "            if math.isnan(found):\n                return found\n",
            "",
            "tests/thinning/test_bounds.py",
        ),
        (
            "failing gradient: counts of a loop that raised are left behind",
            CHAIN,
            "        self.state.counts[EVENTS] = self.state.counts[KINDS:].sum()\n",
            "",
            GRADIENTS,
        ),
        (
            "not a number: a level that is none is a clock that never proposes",
            "pdmp/thinning/conserved.py",
            "            if math.isnan(level + rates[j]):\n                return math.nan, CERTAIN\n",
            "",
            f"{GRADIENTS}::test_what_is_not_a_number_is_no_waiting_time",
        ),
        (
            "checkpoint: a write that fails ends the run",
            CHECKPOINT,
            "        except (OSError, MemoryError) as error:\n            if last",
            "        except MemoryError as error:\n            if last",
            CHECKPOINTS,
        ),
        (
            "checkpoint: locks of one process do not count",
            CHECKPOINT,
            "            if path in _held:\n                raise refused\n",
            "",
            CHECKPOINTS,
        ),
        (
            "checkpoint: a link in the way is followed",
            "pdmp/engine/storage.py",
            '        with contextlib.suppress(FileNotFoundError):\n            os.unlink(part)\n        with open(part, "xb") as file:',
            '        with open(part, "wb") as file:',
            CHECKPOINTS,
        ),
        (
            "automatic step: the curvature of the mode is taken for all",
            "discrete/kinetic.py",
            "        if process.schedule.step(0) > most:\n            process.schedule = Constant(most)\n",
            "",
            KINETIC,
        ),
        (
            "bad values: constructors do not look",
            "pdmp/native/representation.py",
            "for place, value in enumerate(args):",
            "for place, value in ():",
            VALUES,
        ),
        (
            "extend: a loaded run forgets its path",
            "pdmp/engine/run.py",
            "        chain.blocks = [(record.times, record.kinds, record.which, record.xs, record.vs)]\n",
            "",
            EXTEND,
        ),
        (
            "gradient check: blocks are summed up",
            "pdmp/models/verification.py",
            "        gradient[:] = 0.0\n        model.add_block",
            "        model.add_block",
            "tests/models/test_verification.py",
        ),
        (
            "propriety: of many directions those that bend most",
            "pdmp/models/propriety.py",
            "strict=True)][-COORDINATES:]",
            "strict=True)][:COORDINATES]",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: necks are looked for near the start alone",
            "pdmp/models/propriety.py",
            "enumerate(np.diag(np.abs(p) + NECK[-1])):",
            "enumerate(np.diag(0.0 * p + 2.0)):",
            "tests/models/test_propriety.py",
        ),
    )
]


RUN, NEEDS = "pdmp/engine/run.py", "pdmp/engine/requirements.py"
REQUIREMENTS = "tests/engine/test_requirements.py"

BUGS += [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("clusters: a closed client is waited for", "pdmp/engine/executors.py", "    if client.status in CLOSED:\n        raise RuntimeError(LOST_SCHEDULER)\n    raise", "    raise", WORKERS),
        ("workers: another potential does the work", "pdmp/engine/executors.py", "            requirements.check_potential(required, template.process, template.first)\n", "", REQUIREMENTS),
    ]
]  # fmt: skip


BUGS += [
    Bug(f"workers: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
    ]
]  # fmt: skip

PREFLIGHT = "tests/engine/test_preflight.py"
BUGS += [
    Bug(f"unsaid: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("lengths of time are numbers", "pdmp/native/arguments.py", ', "m": ("numbers", "lengths of time")}', "}", f"{VALUES}::test_masked_entries_complex_numbers_and_dates_are_errors"),
        ("a model that changes between runs", RUN, "contents(process, of_ours=True)", "contents(process)", "tests/faults/test_extend.py::test_a_model_or_a_process_that_has_changed_in_place_is_not_continued"),
        ("an array that is written to late", RUN, "        if found is not None:\n            warn(found)\n        return run\n", "        return run\n", f"{PREFLIGHT}::test_an_array_in_a_field_that_is_written_to_late_is_said_after_the_run"),
    ]
]  # fmt: skip

PREFLIGHT, USERS = "pdmp/engine/preflight.py", "tests/engine/test_users_parts.py"

BUGS += [
    Bug(f"users' parts: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("times and heap may be written to", PREFLIGHT, 'for field in State._fields if field != "memory"}', 'for field in ("x", "v")}', USERS),
        ("methods of Python draw from anywhere", PREFLIGHT, "        for name, method in _drawing(type(part)).items():\n            _check_random(f\"`{name}` of {type(part).__name__}\", method, set())\n", "", USERS),
        ("processes of the package are not watched with a user's bound", PREFLIGHT, "    return replay if users_parts(process) else None", "    return None if is_trusted(type(process).__module__) else replay", USERS),
        ("a program that is to end goes on after the warm-up", "pdmp/automatic/windows.py", "        if not isinstance(error, Exception):\n            raise error\n", "        pass\n", "tests/automatic/test_metric.py::test_what_a_gradient_raises_in_a_window_is_said"),
        ("a checkpoint does not know attributes", "pdmp/engine/checkpoint.py", "and isinstance(item, PLAIN)", "and item is None", USERS),
        ("nor methods that Python runs", "pdmp/engine/checkpoint.py", "    for name in BEGIN:", "    for name in ():", USERS),
        ("work arrays are looked for at the start alone", "pdmp/models/adapters/function.py", "            self._evaluated(self.initial + fresh * np.maximum(1.0, np.abs(self.initial)))\n", "", "tests/faults/test_concurrent_runs.py"),
    ]
]  # fmt: skip
