"""Bugs in what happens when something fails: a gradient, a checkpoint, a file, a worker."""

from tests.mutations.bugs import Bug

FUNCTION, GRID, MAXIMA = "pdmp/models/adapters/function.py", "pdmp/thinning/grid.py", "pdmp/thinning/maxima.py"
CHAIN, CHECKPOINT = "pdmp/engine/chain.py", "pdmp/engine/checkpoint.py"
GRADIENTS, CHECKPOINTS = "tests/faults/test_failing_gradients.py", "tests/faults/test_checkpoints.py"
EXTEND = "tests/faults/test_extend.py"
WORKERS = "tests/faults/test_workers.py"
POINT = "tests/faults/test_where_warnings_point.py"
VALUES = "tests/faults/test_bad_values.py"
KINETIC = "tests/discrete/test_automatic_kinetic_steps.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "failing gradient: after an exception the function is called again",
            FUNCTION,
            "        if self.failure is None:\n            try:",
            "        if True:\n            try:",
            GRADIENTS,
        ),
        (
            "failing gradient: a potential is used although its gradient is not finite",
            FUNCTION,
            "        elif math.isfinite(potential) and not np.isfinite(gradient).all():\n            return math.nan",
            "        elif math.isnan(potential):\n            return math.nan",
            GRADIENTS,
        ),
        (
            "failing gradient: complex numbers lose their imaginary part",
            FUNCTION,
            'if gradient.dtype.kind == "c" or isinstance(potential, complex):',
            "if isinstance(potential, complex):",
            GRADIENTS,
        ),
        (
            "failing gradient: the inner point of a grid's cell may fail",
            GRID,
            "                if not process.beyond(state, now + PART * width):\n                    return False\n",
            "",
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
            GRADIENTS,
        ),
        (
            "failing gradient: minus infinity is a rate of zero",
            "pdmp/native/decorators.py",
            "return 0.0 if -math.inf < x < 0.0 else x",
            "return 0.0 if x < 0.0 else x",
            GRADIENTS,
        ),
        (
            "failing gradient: a Metropolised step rejects what is not a number",
            "discrete/metropolis.py",
            "        if there == math.inf:  # where",
            "        if not math.isfinite(there):  # where",
            GRADIENTS,
        ),
        (
            "failing gradient: proposals outside the support are not counted",
            "discrete/metropolis.py",
            "            memory.outside[0] += 1\n",
            "            pass\n",
            GRADIENTS,
        ),
        (
            "failing gradient: a refreshment in SBPS goes on without a slope",
            "pdmp/processes/sbps.py",
            "            if not math.isfinite(g):\n                return -1\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: counts of a loop that raised are left behind",
            CHAIN,
            "        state.counts[EVENTS] = state.counts[KINDS:].sum()\n",
            "",
            GRADIENTS,
        ),
        (
            "checkpoint: values of the model are not compared",
            CHECKPOINT,
            "    return len(found) == len(saved) and np.allclose(",
            "    return len(found) == len(saved) or np.allclose(",
            CHECKPOINTS,
        ),
        (
            "checkpoint: what cannot be identified is resumed",
            CHECKPOINT,
            "if unique else total.hexdigest()",
            "if False else total.hexdigest()",
            CHECKPOINTS,
        ),
        (
            "checkpoint: a write that fails ends the run",
            CHECKPOINT,
            "        except (OSError, MemoryError) as error:\n            if not self._warned:",
            "        except MemoryError as error:\n            if not self._warned:",
            CHECKPOINTS,
        ),
        (
            "checkpoint: no lock",
            CHECKPOINT,
            "                        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "                        pass",
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
            "checkpoint: signals do nothing",
            CHECKPOINT,
            "            signal.signal(number, lambda *_: stop.set())",
            "            pass",
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
            "checkpoint: a smaller budget is no error",
            CHECKPOINT,
            ".spent(chain) > 1.0:",
            ".spent(chain) > 10.0:",
            CHECKPOINTS,
        ),
        (
            "automatic step: begins at the stability limit",
            "discrete/kinetic.py",
            "limit = 1.0 / math.sqrt(curvature[-1])",
            "limit = 2.0 / math.sqrt(curvature[-1])",
            KINETIC,
        ),
        (
            "automatic step: the curvature of the mode is taken for all",
            "discrete/kinetic.py",
            "        if process.schedule.step(0) > most:\n            process.schedule = Constant(most)\n",
            "",
            KINETIC,
        ),
        (
            "automatic step: no warning of rejections",
            "pdmp/diagnostics/summary.py",
            "if found is None or not found[0] < REJECTED * found[1]:",
            "if found is None or not found[0] < REJECTED * found[1] - 1.0:",
            KINETIC,
        ),
        (
            "automatic step: the energy before the step without its momentum",
            "discrete/kinetic.py",
            "energy = model.potential(start) + 0.5 * p @ p - model.potential(there)",
            "energy = model.potential(start) - model.potential(there)",
            KINETIC,
        ),
        (
            "bad values: masks are ignored",
            "pdmp/native/arguments.py",
            "        if np.ma.is_masked(value):",
            "        if False:",
            VALUES,
        ),
        (
            "bad values: constructors do not look",
            "pdmp/native/classes.py",
            "            if isinstance(value, (int, float, str)):\n                continue",
            "            if value is not None:\n                continue",
            VALUES,
        ),
        (
            "bad values: underscores in numbers",
            "pdmp/data/formats.py",
            'if "_" in value and not missing[k]:',
            'if "__" in value and not missing[k]:',
            VALUES,
        ),
        (
            "bad values: a variance that overflows divides by infinity",
            "pdmp/data/dataset.py",
            "    if len(large):\n        raise ValueError(",
            "    if len(large) > 1:\n        raise ValueError(",
            VALUES,
        ),
        (
            "bad values: nobody waits for a warm-up",
            "pdmp/engine/run.py",
            "if warmup == 0.0 and (option",
            "if warmup < 0.0 and (option",
            VALUES,
        ),
        (
            "bad values: a bound on the distance that says nothing is stated",
            "pdmp/diagnostics/summary.py",
            "if distance >= 0.5:",
            "if distance > 1.0:",
            VALUES,
        ),
        (
            "workers: one that dies ends the run",
            "pdmp/engine/executors.py",
            "            if not self._recovers(error):\n                raise\n",
            "            raise\n",
            WORKERS,
        ),
        (
            "workers: what a broken pool refuses ends the run",
            "pdmp/engine/executors.py",
            "        except concurrent.futures.BrokenExecutor as error:\n            self._give_up(error)",
            "        except EOFError as error:\n            self._give_up(error)",
            WORKERS,
        ),
        (
            "workers: every error counts as a death",
            "pdmp/engine/executors.py",
            "LOST_WORKERS = (concurrent.futures.BrokenExecutor, MemoryError,",
            "LOST_WORKERS = (Exception, MemoryError,",
            WORKERS,
        ),
        (
            "extend: a loaded run goes on with any process",
            "pdmp/engine/run.py",
            'if identity != states["process"] or not same_values',
            "if identity == UNIQUE or not same_values",
            EXTEND,
        ),
        (
            "extend: a loaded run forgets its path",
            "pdmp/engine/run.py",
            "        chain.blocks = [(record.times, record.kinds, record.which, record.xs, record.vs)]\n",
            "",
            EXTEND,
        ),
        (
            "extend: a loaded run that is saved loses its chains",
            "pdmp/engine/result.py",
            '            header["states"] = self._states[0]\n',
            "            pass\n",
            EXTEND,
        ),
        (
            "extend: no checkpoint",
            "pdmp/engine/run.py",
            "    file = _checkpoint(checkpoint, info, chains[0].process, starts)\n",
            "    file = None\n",
            EXTEND,
        ),
        ("warnings: a frame too few", "pdmp/errors.py", "level, frame = 2, sys", "level, frame = 1, sys", POINT),
        ("warnings: a frame too many", "pdmp/errors.py", "level, frame = level + 1", "level, frame = level + 2", POINT),
        (
            "warnings: discrete is the caller",
            "discrete/tick.py",
            'OURS.add("discrete")',
            "pass",
            POINT,
        ),
        (
            "warnings: all are of one category",
            "pdmp/errors.py",
            "warnings.warn(text, category,",
            "warnings.warn(text,",
            POINT,
        ),
        (
            "walls: the mode is looked for outside",
            "pdmp/processes/bounded.py",
            "self.model.quick_mode() if self.model.everywhere else None",
            "self.model.quick_mode()",
            "tests/processes/test_bounded.py",
        ),
        (
            "gradient check: of a group one half",
            "pdmp/models/verification.py",
            "return first_wrong(differs, group[:half]) or first_wrong(differs, group[half:])",
            "return first_wrong(differs, group[:half])",
            "tests/models/test_models.py::test_no_wrong_partial_derivative_of_a_function_hides",
        ),
        (
            "gradient check: at zeros",
            FUNCTION,
            "x = self.initial + size * scale * rng.choice",
            "x = self.initial + 0.0 * size * scale * rng.choice",
            "tests/models/test_models.py::test_no_wrong_partial_derivative_of_a_function_hides",
        ),
        (
            "gradient check: noise of U is a mistake",
            FUNCTION,
            "for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):",
            "for h in (1e-5, 1e-6):",
            "tests/models/test_models.py::test_a_function_of_few_digits_fits_its_gradient",
        ),
        (
            "gradient check: not over all data",
            "pdmp/models/verification.py",
            "        for x in found[:2]:\n            _compare_sum",
            "        for x in found[:0]:\n            _compare_sum",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: the datum with the least error",
            "pdmp/models/verification.py",
            "return int(np.argmax(off)) if off.max() > 0.0 else None",
            "return int(np.argmin(off)) if off.max() > 0.0 else None",
            "tests/models/test_verification.py::test_a_few_wrong_data_of_many_are_found_before_a_run",
        ),
        (
            "propriety: a ray through `initial` itself",
            "pdmp/models/propriety.py",
            "y = self.x + size * away",
            "y = self.x + 0.0 * away",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: shells are those of a line",
            "pdmp/models/propriety.py",
            "yield v, d, EXACT",
            "yield v, 1, EXACT",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: underflow is a fall",
            "pdmp/models/propriety.py",
            'Ray("falls", certain=certain and bool(slopes)) if falls and (slopes or u == u)',
            'Ray("falls", certain=certain and bool(slopes)) if (slopes or u == u)',
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: a fall ends where it is followed no further",
            "pdmp/models/propriety.py",
            "if t >= last and not (falls or fell):",
            "if t >= last:",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: walls are not seen",
            "pdmp/models/propriety.py",
            "if self.inside is not None and not self.inside(x):",
            "if self.inside is None and not self.inside(x):",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: a spread with a proper prior is improper",
            "pdmp/models/propriety.py",
            "if np.all(np.abs(np.diff(levels)) < LEVEL * np.diff(NECK)):",
            "if np.all(np.diff(levels) < 2.0 * np.diff(NECK)):",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: an integrable spike is not",
            "pdmp/models/propriety.py",
            "math.log(1e3) >= limit / MARGIN:",
            "math.log(1e3) >= 0.5 * limit:",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: flat directions are those that bend most",
            "pdmp/models/propriety.py",
            "if value <= 1e-9 * values[0]:",
            "if value >= 1e-9 * values[0]:",
            "tests/models/test_propriety.py",
        ),
    )
]

BUGS += [
    Bug(
        "clusters: contents that are lost are sent on",
        "pdmp/engine/executors.py",
        "self._whole, self._losses = None, self._losses - 1",
        "self._losses = self._losses - 1",
        ("tests/faults/test_clusters.py::test_contents_that_every_worker_has_lost",),
    )
]

RUN, NEEDS, PARTS = "pdmp/engine/run.py", "pdmp/engine/requirements.py", "pdmp/native/fingerprints.py"
CONCURRENT, REQUIREMENTS = "tests/faults/test_concurrent_runs.py", "tests/engine/test_requirements.py"

BUGS += [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("failures: those of all threads are one", FUNCTION, "self._kept = function, dim, threading.local()", "self._kept = function, dim, self", CONCURRENT),
        ("failures: one at the start of a chain is forgotten", CHAIN, "        self.cause, process.failure = process.failure, None  #", "        self.cause, process.failure = None, None  #", CONCURRENT),
        ("failures: one that a thread had before is the chain's", CHAIN, "        self.process.failure = self.cause  #", "        pass  #", CONCURRENT),
        ("failures: that of a helper thread is lost", "discrete/threads.py", "        self._failure = self._process.failure\n", "", CONCURRENT),
        ("coordinator: an error beside the chains is raised as it is", RUN, "    raise SamplingError(text, run=run) from error\n", "    raise error\n", WORKERS),
        ("coordinator: what was sampled is not on a worker's refusal", RUN, "        error.run = run\n        raise error\n", "        raise error\n", REQUIREMENTS),
        ("coordinator: SystemExit is an error of the run", RUN, "if broken is not None and not isinstance(broken, Exception):", "if False:", WORKERS),
        ("coordinator: what does not compile has a run", RUN, "    if compiling:  # nothing has run\n        raise broken\n", "", WORKERS),
        ("tuning: a lost executor is a bad setting", "pdmp/tuning/competition.py", "            if error.chain is None:  # not this setting has failed: where it ran has\n                raise\n", "", WORKERS),
        ("clusters: a closed client is waited for", "pdmp/engine/executors.py", "    if client.status in CLOSED:\n        raise RuntimeError(LOST_SCHEDULER)\n    raise", "    raise", WORKERS),
        ("checkpoints: of a model what cannot be resumed is known after the warm-up", RUN, "    if model is not None and checkpoint is not None:\n", "    if False:\n", CHECKPOINTS),
        ("checkpoints: what cannot be resumed is written", CHECKPOINT, "    if found.startswith(UNIQUE):\n", "    if False:\n", CHECKPOINTS),
        ("checkpoints: a potential that changes is written", CHECKPOINT, "        if not same_values(process.model, self.call[\"values\"], model_values(process.model, x)):", "        if False:", CHECKPOINTS),
        ("workers: other versions do the work", "pdmp/engine/executors.py", "                requirements.check_versions(required)\n", "", REQUIREMENTS),
        ("workers: other functions do the work", "pdmp/engine/executors.py", "            requirements.check_code(required, [template.process])\n", "", REQUIREMENTS),
        ("workers: another potential does the work", "pdmp/engine/executors.py", "            requirements.check_potential(required, template.process, template.first)\n", "", REQUIREMENTS),
        ("workers: the potential is compared at the start alone", NEEDS, "POINTS = (0.0, 0.1)", "POINTS = (0.0,)", REQUIREMENTS),
        ("workers: files of the package in any order", NEEDS, "        digest.update(f\"{file.relative_to(_FOLDER).as_posix()}\\0\".encode() + file.read_bytes())\n", "        digest.update(file.name.encode())\n", REQUIREMENTS),
        ("workers: passes over rows are not compared", NEEDS, "        check_code(required, values, tables=True)\n", "", REQUIREMENTS),
        ("workers: what a function counts is part of it", PARTS, "lambda name: _MISSING if name in stored else resolve(name)", "resolve", REQUIREMENTS),
        ("workers: arrays of a module are part of its functions", PARTS, "        if self.strict:\n            super().array(array)\n", "        super().array(array)\n", REQUIREMENTS),
        ("workers: what a compiled function names is no part of it", PARTS, "self.strict = self.strict, strict or self.tables", "self.strict = self.strict, self.tables", REQUIREMENTS),
        ("workers: the script has another name there", PARTS, "if isinstance(part, str) and part in _MAINS else part", "if False else part", REQUIREMENTS),
        ("workers: a formula's attributes of modules are not compared", "pdmp/formulas/batches.py", "read = [text for text in ATTRIBUTE.findall(formula) if", "read = [text for text in () if", REQUIREMENTS),
    ]
]  # fmt: skip
