"""Bugs in what happens when something fails: a gradient, a checkpoint, a file, a worker."""

from tests.mutations.bugs import Bug

FUNCTION, GRID, MAXIMA = "pdmp/models/adapters/function.py", "pdmp/thinning/grid.py", "pdmp/thinning/maxima.py"
CHAIN, CHECKPOINT, PARTS = "pdmp/engine/chain.py", "pdmp/engine/checkpoint.py", "pdmp/native/fingerprints.py"
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
            "not a number: a level that is none is a clock that never proposes",
            "pdmp/thinning/conserved.py",
            "            if math.isnan(level + rates[j]):\n                return math.nan, CERTAIN\n",
            "",
            f"{GRADIENTS}::test_what_is_not_a_number_is_no_waiting_time",
        ),
        (
            "not a number: sinusoids of it are flat",
            "pdmp/thinning/sinusoid.py",
            "if math.isnan(a + b + c + d):",
            "if False:",
            f"{GRADIENTS}::test_what_is_not_a_number_is_no_waiting_time",
        ),
        (
            "not a number: velocities turn in it",
            "pdmp/processes/boomerang.py",
            "if math.isnan(dot + square):",
            "if False:",
            f"{GRADIENTS}::test_what_is_not_a_number_is_no_waiting_time",
        ),
        (
            "not a number: velocities of those that move turn in it",
            "pdmp/processes/boomerang.py",
            "if math.isnan(along + square):",
            "if False:",
            f"{GRADIENTS}::test_what_is_not_a_number_is_no_waiting_time",
        ),
        (
            "extend: a checkpoint is not gone on from",
            "pdmp/engine/run.py",
            "            file.resume(chains, *saved)\n",
            "            pass\n",
            EXTEND,
        ),
        (
            "extend: a goal is not looked at after a checkpoint",
            "pdmp/engine/run.py",
            "                goal.resume(chains)\n",
            "                pass\n",
            EXTEND,
        ),
        (
            "extend: failed runs of a file go on",
            "pdmp/engine/run.py",
            'if chain.stopped == "failed":\n            raise ValueError("a run',
            'if False:\n            raise ValueError("a run',
            EXTEND,
        ),
        (
            "checkpoint: one that was never written is promised",
            "pdmp/engine/run.py",
            "if file is None or not os.path.exists(file.path) else",
            "if file is None else",
            WORKERS,
        ),
        (
            "checkpoint: laws of SciPy are another each time",
            PARTS,
            "if value is _GLOBAL_STATE:",
            "if False:",
            CHECKPOINTS,
        ),
        (
            "checkpoint: what copyreg pickles is not known",
            PARTS,
            "registered = copyreg.dispatch_table.get(kind)",
            "registered = None",
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
            "        except (OSError, MemoryError) as error:\n            if last or not self._warned:",
            "        except MemoryError as error:\n            if last or not self._warned:",
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
            "i = first + int(np.argmax(excess(",
            "i = first + int(np.argmin(excess(",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: the last block is left out",
            "pdmp/models/verification.py",
            "starts = np.arange(0, n, BLOCK * (",
            "starts = np.arange(0, n - BLOCK, BLOCK * (",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: blocks are summed up",
            "pdmp/models/verification.py",
            "        gradient[:] = 0.0\n        model.add_block",
            "        model.add_block",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: a kink is a mistake",
            "pdmp/models/verification.py",
            "slack = np.abs(near - far) + kink + rounding",
            "slack = np.abs(near - far) + rounding",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: a smooth bend is a kink",
            "pdmp/models/verification.py",
            "ends[0]) / (2.0 * h) - 2.0 * (ends[3]",
            "ends[0]) / (2.0 * h) - (ends[3]",
            "tests/models/test_verification.py",
        ),
        (
            "gradient check: one step alone",
            "pdmp/models/verification.py",
            "for h in (resolution ** (1.0 / 3.0), resolution ** (1.0 / 5.0)):",
            "for h in (resolution ** (1.0 / 3.0),):",
            "tests/models/test_models.py",
        ),
        (
            "gradient check: never blind",
            "pdmp/models/verification.py",
            "hides = rounding > max(BLIND * abs(slope), BLIND_CHANGE)",
            "hides = False",
            "tests/models/test_models.py",
        ),
        (
            "gradient check: what is not finite is taken for blind",
            "pdmp/models/adapters/function.py",
            "np.zeros(self.dim, np.int8)",
            "np.ones(self.dim, np.int8)",
            "tests/models/test_descent.py",
        ),
        (
            "gradient check: always blind",
            "pdmp/models/verification.py",
            "hides = rounding > max(BLIND * abs(slope), BLIND_CHANGE)",
            "hides = True",
            "tests/models/test_models.py",
        ),
        (
            "gradient check: weak coordinates keep their steps",
            "pdmp/models/verification.py",
            "return np.array_split(order, min(len(x), most)), scale * times",
            "return np.array_split(order, min(len(x), most)), scale",
            "tests/models/test_models.py",
        ),
        (
            "gradient check: not where the run went",
            "pdmp/engine/run.py",
            'texts += info["wrong_gradient"]',
            "texts += []",
            "tests/engine/test_visited.py",
        ),
        (
            "gradient check: a summary does not know what it found",
            "pdmp/diagnostics/summary.py",
            'found += run.info.get("wrong_gradient", [])',
            "found += []",
            "tests/engine/test_visited.py",
        ),
        (
            "checkpoint: of other speeds",
            "pdmp/processes/zigzag.py",
            "return (self.speed,)  # only",
            "return ()  # only",
            "tests/engine/test_run.py::test_a_checkpoint_of_other_speeds",
        ),
        (
            "jumps: of a potential nobody is told",
            "pdmp/engine/run.py",
            "jump_warning(run) or gradient_warning",
            "gradient_warning",
            "tests/engine/test_visited.py",
        ),
        (
            "jumps: poles are jumps",
            "pdmp/engine/visited.py",
            "if slope < 0.01 * abs(rise):",
            "if True:",
            "tests/engine/test_visited.py",
        ),
        (
            "jumps: smooth lines come first",
            "pdmp/engine/visited.py",
            "-excess * 4.0**halved",
            "-excess",
            "tests/engine/test_visited.py",
        ),
        (
            "jumps: a Metropolis test does not help",
            "pdmp/engine/visited.py",
            'or hasattr(run.process, "target_acceptance")',
            "",
            "tests/engine/test_visited.py",
        ),
        (
            "law: that of a user's process is not looked at",
            "pdmp/engine/run.py",
            "gradient_warning(run) or law_warning(run)",
            "gradient_warning(run)",
            "tests/engine/test_visited.py",
        ),
        (
            "law: of single coordinates alone",
            "pdmp/engine/visited.py",
            "if i == j or d <= PAIRS",
            "if i == j",
            "tests/engine/test_visited.py",
        ),
        (
            "law: of paths that are too short",
            "pdmp/engine/visited.py",
            "(draws > SETTLED) &",
            "(draws > 0.0) &",
            "tests/engine/test_visited.py",
        ),
        (
            "law: whatever its mean",
            "pdmp/engine/visited.py",
            "np.concatenate([slopes, 1.35",
            "np.concatenate([0.0 * slopes, 1.35",
            "tests/engine/test_visited.py",
        ),
        (
            "law: of the package's own",
            "pdmp/engine/visited.py",
            "if not users_parts(process) or not isinstance",
            "if not isinstance",
            "tests/engine/test_visited.py",
        ),
        (
            "named: what methods name may change",
            "pdmp/native/classes.py",
            "if now.get(name, before) != before:",
            "if False:",
            "tests/native/test_classes.py",
        ),
        (
            "named: with what libraries overload",
            "pdmp/native/classes.py",
            "fingerprint([method], overloaded=False)",
            "fingerprint([method])",
            "tests/native/test_classes.py",
        ),
        (
            "again: the gradient may change",
            "pdmp/models/adapters/function.py",
            "        if not other:\n            j = int(np.argmax(np.abs(second",
            "        if False:\n            j = int(np.argmax(np.abs(second",
            "tests/models/test_models.py",
        ),
        (
            "again: U may change by a little",
            "pdmp/models/adapters/function.py",
            "SAME, LEAST = 1e4, 1e-6",
            "SAME, LEAST = 1e4, 1e-2",
            "tests/models/test_models.py",
        ),
        (
            "bounds: added to earlier ones",
            "pdmp/engine/preflight.py",
            '        _check_written(model, "partial_curvature_bounds")\n',
            "",
            "tests/engine/test_preflight.py",
        ),
        (
            "gradient check: no extremes of a run",
            "pdmp/engine/visited.py",
            "[: 3 * n // 8]",
            "[: n // 16]",
            "tests/engine/test_visited.py",
        ),
        (
            "gradient check: the largest alone",
            "pdmp/engine/visited.py",
            "(int(np.argmax(far[:, j])), int(np.argmin(far[:, j])))",
            "(int(np.argmax(far[:, j])), int(np.argmax(far[:, j])))",
            "tests/engine/test_visited.py",
        ),
        (
            "gradient check: without a share of the run",
            "pdmp/engine/visited.py",
            'int(run.stats["data_passes"]) // SHARE',
            'int(run.stats["data_passes"])',
            "tests/engine/test_visited.py",
        ),
        (
            "gradient check: models that others differentiate",
            "pdmp/engine/preflight.py",
            "        return model.is_compared\n",
            "        return True\n",
            "tests/engine/test_visited.py",
        ),
        (
            "gradient check: the event after",
            "pdmp/engine/visited.py",
            'time, side="right"))',
            'time, side="right")) + 1',
            "tests/engine/test_visited.py",
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
            "if not abs(change) < LEVEL * (NECK[2] - NECK[1]):",
            "if not change < 2.0 * (NECK[2] - NECK[1]):",
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
        (
            "propriety: flat directions and necks of few coordinates alone",
            "pdmp/models/propriety.py",
            "self.dense = self.dim <= DENSE and",
            "self.dense = self.dim <= COORDINATES and",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: of many directions those that bend most",
            "pdmp/models/propriety.py",
            "zip(left.T[-COORDINATES:], values[-COORDINATES:], strict=True)",
            "zip(left.T[:COORDINATES], values[:COORDINATES], strict=True)",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: what gets no narrower is a neck as well",
            "pdmp/models/propriety.py",
            "np.flatnonzero(bends > NARROWER)))",
            "np.delete(np.arange(self.dim), j)))",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: of what is normal a Hessian after each step",
            "pdmp/models/propriety.py",
            "if values[0] > 0.0 and gradient @ inverse @ gradient <= NORMAL * max(1.0, decrement):",
            "if values[0] > 0.0 and decrement <= NORMAL:",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: necks are looked for near the start alone",
            "pdmp/models/propriety.py",
            "enumerate(np.diag(np.abs(p) + NECK[-1])):",
            "enumerate(np.diag(0.0 * p + 2.0)):",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: a neck without the places on the way",
            "pdmp/models/propriety.py",
            "x[j] = side * (max(side * self.x[j], 0.0) + t)",
            "x[:], x[j] = self.x, side * (max(side * self.x[j], 0.0) + t)",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: Newton's method without its smaller steps",
            "pdmp/models/propriety.py",
            "if below <= here + NORMAL:",
            "if True:",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: a search for modes that costs what it will",
            "pdmp/models/propriety.py",
            "if self.count > self.last or not np.all(np.isfinite(hessian)):",
            "if not np.all(np.isfinite(hessian)):",
            "tests/models/test_propriety.py",
        ),
        (
            "propriety: what is steep is a spike",
            "pdmp/models/propriety.py",
            "return rates[-1] if rates[-1] < 2.0 * rates[-2] else 0.0",
            "return rates[-1]",
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

RUN, NEEDS = "pdmp/engine/run.py", "pdmp/engine/requirements.py"
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
        ("workers: the potential is compared at the start alone", NEEDS, "POINTS = (0.0, 0.1, 3.0, -10.0, 30.0)", "POINTS = (0.0,)", REQUIREMENTS),
        ("workers: files of the package in any order", NEEDS, "        digest.update(f\"{file.relative_to(_FOLDER).as_posix()}\\0\".encode() + file.read_bytes())\n", "        digest.update(file.name.encode())\n", REQUIREMENTS),
        ("workers: passes over rows are not compared", NEEDS, "        check_code(required, values, tables=True)\n", "", REQUIREMENTS),
        ("workers: what a function counts is part of it", PARTS, "lambda name: _MISSING if name in stored else resolve(name)", "resolve", REQUIREMENTS),
        ("workers: arrays of a module are part of its functions", PARTS, "        if self.strict:\n            super().array(array)\n", "        super().array(array)\n", REQUIREMENTS),
        ("workers: what a compiled function names is no part of it", PARTS, "self.strict = self.strict, strict or self.tables", "self.strict = self.strict, self.tables", REQUIREMENTS),
        ("workers: the script has another name there", PARTS, "if isinstance(part, str) and part in _MAINS else part", "if False else part", REQUIREMENTS),
        ("workers: a formula's attributes of modules are not compared", "pdmp/formulas/batches.py", "read = [text for text in ATTRIBUTE.findall(formula) if", "read = [text for text in () if", REQUIREMENTS),
    ]
]  # fmt: skip

EQUATIONS = "tests/models/test_verification.py::test_no_run_starts_with_what_is_another_law"
BUGS += [
    Bug(f"equations: {name}", file, old, new, (EQUATIONS,))
    for name, file, old, new in [
        ("are not looked at before a run", "pdmp/engine/preflight.py", "            check_equations(model, REHEARSED_DATA)\n", "            pass\n"),
        ("bounds are tried, too", "pdmp/models/verification.py", 'if relation == "="]', 'if relation != "-"]'),
        ("factors of any number of data", "pdmp/models/verification.py", "    if model.n_data > most_data or ", "    if "),
        ("factors of none", "pdmp/models/verification.py", "    if model.n_data > most_data or ", "    if True or "),
    ]
]  # fmt: skip

NATIVE, HASHES = "pdmp/native/fingerprints.py", "tests/native/test_fingerprints.py"
UNSEEN = f"{REQUIREMENTS}::test_what_no_value_shows_is_compared_where_a_call_leaves_it_as_it_is"
REMEMBERED = f"{REQUIREMENTS}::test_what_a_function_remembers_of_each_point_is_its_own"
BUGS += [
    Bug(f"workers: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("tables are not compared", NEEDS, "if other is not None:", "if False:", UNSEEN),
        ("tables that a call changes are compared", NEEDS, "if before.get(name) == hashes}", "}", REMEMBERED),
        ("tables are looked at where the function has been", NEEDS, "x + 1e-3 * np.random.default_rng()", "x + 0.0 * np.random.default_rng()", REMEMBERED),
        ("values are compared near the start", NEEDS, "0.1, 3.0, -10.0, 30.0)", "0.1, 0.2, 0.3, 0.4)", f"{REQUIREMENTS}::test_values_are_compared_far_from_the_start"),
        ("keywords' defaults are tables", NATIVE, "self.value(tuple((function.__kwdefaults__ or {}).items()))", "self.value(function.__kwdefaults__)", UNSEEN),
        ("fractions are tables", NATIVE, "*(fractions.Fraction, decimal.Decimal,", "*(decimal.Decimal,", UNSEEN),
        ("what dispatches is not followed", NATIVE, "if is_standard(root) else ():", "if False else ():", UNSEEN),
        ("types of a jitted function", NATIVE, "self.add(*map(str, value.nopython_signatures))", "pass", HASHES),
        ("an overload that is inlined", NATIVE, '"inline": inline}', '"inline": None}', HASHES),
    ]
]  # fmt: skip

PREFLIGHT, FLIGHT, CLASSES = "tests/engine/test_preflight.py", "pdmp/engine/preflight.py", "pdmp/native/classes.py"
PROPRIETY, PROPER = "tests/models/test_propriety.py", "pdmp/models/propriety.py"
QUADRATIC = f"{PROPRIETY}::test_a_quadratic_of_any_axes_that_is_not_positive_definite"
ROUNDED = f"{PREFLIGHT}::test_fields_that_are_not_what_they_are_declared_as_are_not_rounded"
SIZES = f"{PREFLIGHT}::test_sizes_are_whole_numbers"
BUGS += [
    Bug(f"unsaid: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("a field is rounded", CLASSES, '(annotation != "float" and member != value)', "False", ROUNDED),
        ("text is a number", CLASSES, "isinstance(value, (str, bytes)) or (annotation", "(annotation", ROUNDED),
        ("half a dimension", "pdmp/process.py", 'self.dim = count("dim", dim)', "self.dim = int(dim)", SIZES),
        ("half a clock", "pdmp/process.py", 'self.clocks = count("clocks", clocks)', "self.clocks = int(clocks)", SIZES),
        ("half a dimension of a model", "pdmp/models/base.py", 'self.dim = count("dim", dim)', "self.dim = int(dim)", SIZES),
        ("half a datum", "pdmp/models/base.py", 'count("n_data", n_data, 0)', "int(n_data)", SIZES),
        ("an array that is written to late", RUN, "        if found is not None:\n            warn(found)\n        return run\n", "        return run\n", f"{PREFLIGHT}::test_an_array_in_a_field_that_is_written_to_late_is_said_after_the_run"),
        ("the direction of negative curvature", PROPER, "if curvatures[0] < -1e-9 * np.abs(columns).max():", "if False:", QUADRATIC),
        ("rounding is growth", PROPER, "if not abs(again - u) < 0.1 * abs(u - before):", "if False:", QUADRATIC),
        ("all growth is rounding", PROPER, "if not abs(again - u) < 0.1 * abs(u - before):", "if True:", f"{PROPRIETY}::test_what_is_improper_is_named"),
    ]
]  # fmt: skip

TERMS_MODEL, FUNCTIONALS = "pdmp/models/sums_of_terms.py", "pdmp/expressions/functionals.py"
SIGN = f"{PROPRIETY}::test_the_sign_of_data_is_seen_whatever_priors_add"
BESIDE = f"{PROPRIETY}::test_the_sign_of_data_beside_other_terms"
TENDS = f"{PROPRIETY}::test_a_limit_is_seen_in_spite_of_rounding"
BEYOND = f"{PROPRIETY}::test_what_falls_beyond_a_barrier_is_named"
LATER = f"{PREFLIGHT}::test_what_changes_the_path_later_ends_the_run_there_whatever_the_chunks"
MESSAGES = "tests/models/test_sums_of_terms.py::test_messages"
BUGS += [
    Bug(f"silent: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the sign of data along a line", PROPER, "SIGNED_DIRECTIONS, SIGNED_PLACES = 1_000, 16,", "SIGNED_DIRECTIONS, SIGNED_PLACES = 1_000, 1,", BESIDE),
        ("the sign of data with priors", TERMS_MODEL, "        other.kinds = np.full_like(self.kinds, Flat().coded()[0])\n", "", SIGN),
        ("the sign of terms without data", TERMS_MODEL, "            if self.own_data[k]:\n", "            if True:\n", BESIDE),
        ("the sign of data is not looked at before a run", FLIGHT, "find_wrong_sign(model, start) if isinstance(model, SumOfTerms) else None", "None", BESIDE),
        ("a barrier hides a fall", PROPER, 'if ray.kind == "grows" and last == EXACT and not self.few else ray', 'if False else ray', BEYOND),
        ("a plateau of rounding is flat", PROPER, "        if u > start + HEIGHT:\n            return Ray(\"\")\n", "", PROPRIETY),
        ("heavy tails along no axis", PROPER, "for far in (0.0, 1e8):", "for far in (0.0,):", f"{PROPRIETY}::test_heavy_tails_along_no_axis"),
        ("limits are not looked for", PROPER, "return self.spike() or self.neck() or self.limit()", "return self.spike() or self.neck()", TENDS),
        ("limits of coordinates with priors", PROPER, "            if self.flat is None or self.flat[j]:\n                if all(", "            if True:\n                if all(", TENDS),
        ("necks of coordinates with priors", PROPER, "            if self.flat is not None and not self.flat[j]:\n                continue\n", "", TENDS),
        ("rounding keeps a limit from being seen", PROPER, "                    break  # rounding\n", "                    return False\n", TENDS),
        ("a fall of rounding before what cannot be computed", PROPER, "if all(b < a - LEVEL for a, b in itertools.pairwise(between)):", "if True:", TENDS),
        ("clocks that write late", "pdmp/engine/chain.py", "if done and done % (16 * step) == 0:", "if False:", f"{LATER}[clock-False]"),
        ("rates that write late", FLIGHT, '    rate = _unchanged(process, state, "rate", state, i, time, rng)', '    rate = _call(process, "rate", state, i, time, rng)', f"{LATER}[rate-False]"),
        ("a replay moves the run", FLIGHT, "    state, rng, stood = copied(state), copy.deepcopy(rng), 0\n", "    rng, stood = copy.deepcopy(rng), 0\n", PREFLIGHT),
        ("a replay draws from the run's generator", FLIGHT, "    state, rng, stood = copied(state), copy.deepcopy(rng), 0\n", "    state, stood = copied(state), 0\n", PREFLIGHT),
        ("a sum over a block is called otherwise", FUNCTIONALS, '        if method != "__call__":\n            return self @ None\n', "", MESSAGES),
        ("a masked array is a functional", FUNCTIONALS, 'if caller.startswith("numpy.ma"):', "if False:", MESSAGES),
        ("NaN for Stan in a file", "pdmp/models/adapters/stan_model.py", "            _check_numbers(json.loads(text) if \"nan\" in text.lower() else {})\n", "", "tests/models/test_stan_programs.py::test_data_that_are_no_numbers_are_refused"),
        ("truth values as words and numbers", "pdmp/formulas/design.py", '        if held == "string":\n            _check_written_alike', '        if False:\n            _check_written_alike', "tests/formulas/test_batches.py::test_files_that_are_no_tables_and_truth_values_in_two_ways"),
        ("projections stop at the wall behind", "pdmp/processes/bounded.py", "max(a @ x[places] - b, 0.0)", "(a @ x[places] - b)", "tests/processes/test_bounded.py::test_a_start_inside_of_half_spaces_is_found"),
        ("one projection", "pdmp/processes/bounded.py", "SWEEPS, RELAXED = 500, 1.5", "SWEEPS, RELAXED = 1, 1.5", "tests/processes/test_bounded.py::test_a_start_inside_of_half_spaces_is_found"),
        ("the last write of a checkpoint is tried again", RUN, "file.write(last=True)", "file.write()", CHECKPOINTS),
    ]
]  # fmt: skip
