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
            '    return (UNIQUE if unique else "") + total.hexdigest()',
            "    return total.hexdigest()",
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
            "gradient check: the wrong coordinates",
            FUNCTION,
            "np.flatnonzero(~(np.abs(slopes - gradient)",
            "np.flatnonzero((np.abs(slopes - gradient)",
            "tests/models/test_models.py",
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
