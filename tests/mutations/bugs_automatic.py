"""Planted bugs of `pdmp.automatic`: starts, metric, and a model in the place of a process."""

from __future__ import annotations

from tests.mutations.bugs import Bug

START = ("tests/automatic/test_start.py",)
METRIC = ("tests/automatic/test_metric.py",)
AUTO = ("tests/automatic/test_auto.py",)

BUGS = [
    Bug(
        "start: ELBO without the volume of the Gaussian",
        "pdmp/automatic/start.py",
        "return float(ratios.mean()) - 2.0 * float(error) + gaussian.log_volume()",
        "return float(ratios.mean()) - 2.0 * float(error)",
        START,
    ),
    Bug(
        "start: signed eigenvalues of the Hessian",
        "pdmp/automatic/start.py",
        "root = scale[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), 1e-8))",
        "root = scale[:, None] * vectors / np.sqrt(np.maximum(values, 1e-8))",
        START,
    ),
    Bug(
        "start: a saddle ends a path",
        "pdmp/automatic/start.py",
        "return gradient, root @ whitened, gaussian, not concave.any()",
        "return gradient, root @ whitened, gaussian, True",
        START,
    ),
    Bug(
        "start: paths that are behind start chains all the same",
        "pdmp/automatic/start.py",
        "return ~(elbos >= elbos.max() - NATS)",
        "return ~(elbos >= elbos.min() - NATS)",
        START,
    ),
    Bug(
        "start: a path enters an earlier one whose Gaussian is wrong there",
        "pdmp/automatic/start.py",
        "if is_typical(z) and abs(ratio - path.elbo) <= NATS:",
        "if is_typical(z):",
        START,
    ),
    Bug(
        "start: all chains from the best path's Gaussian's centre",
        "pdmp/automatic/start.py",
        "points.append(draw_by_importance(target, path.gaussian, rng))",
        "points.append(path.gaussian.centre)",
        START,
    ),
    Bug(
        "metric: covariance of the gradients instead of its inverse",
        "pdmp/automatic/metric.py",
        "root = lower(spread @ vectors.T * _limited(values) ** -0.5)",
        "root = lower(spread @ vectors.T * _limited(values) ** 0.5)",
        METRIC,
    ),
    Bug(
        "metric: the mean is not shifted by the mean gradient",
        "pdmp/automatic/metric.py",
        "return Gaussian(mean - root @ (root.T @ slope), root)",
        "return Gaussian(mean, root)",
        METRIC,
    ),
    Bug(
        "metric: gradients are not projected on the span of few points",
        "pdmp/automatic/metric.py",
        "x, gradients = x @ basis.T, gradients @ basis.T",
        "x, gradients = x @ basis.T, gradients[:, : len(basis)]",
        METRIC,
    ),
    Bug(
        "metric: the span is that of the points alone",
        "pdmp/automatic/metric.py",
        "np.concatenate([x, gradients]).T)",
        "np.concatenate([x, x]).T)",
        METRIC,
    ),
    Bug(
        "metric: fits take all threads",
        "pdmp/automatic/metric.py",
        "            with one_thread():\n",
        "            with contextlib.nullcontext():\n",
        METRIC,
    ),
    Bug(
        "metric: BLAS has its threads again while another fit runs",
        "pdmp/automatic/metric.py",
        "_fits.pop().restore_original_limits()",
        "_fits.pop(0).restore_original_limits()",
        METRIC,
    ),
    Bug(
        "metric: nothing settles",
        "pdmp/automatic/metric.py",
        "settled = change <= TOLERANCE\n",
        "settled = change <= 0.0\n",
        METRIC,
    ),
    Bug(
        "metric: the largest of the chains' steps",
        "pdmp/automatic/metric.py",
        "step = math.exp(np.mean([",
        "step = math.exp(np.max([",
        METRIC,
    ),
    Bug(
        "metric: a window without a move",
        "pdmp/automatic/metric.py",
        "if len(np.unique(x, axis=0)) > (model.dim if dense else min(model.dim, FEW)):",
        "if True:",
        METRIC,
    ),
    Bug(
        "metric: the window's adaptation is part of what is learnt from",
        "pdmp/automatic/windows.py",
        "budget=budget, warmup=WARMUP, store",
        "budget=budget, warmup=0.01, store",
        METRIC,
    ),
    Bug(
        "metric: the step of the shorter paths for the longer",
        "pdmp/automatic/metric.py",
        "if settled and far == was_far:",
        "if settled:",
        METRIC,
    ),
    Bug(
        "metric: long paths for what is near normal",
        "pdmp/automatic/metric.py",
        "duration=FAR_DURATION if far else DURATION,",
        "duration=DURATION if far else FAR_DURATION,",
        METRIC,
    ),
    Bug(
        "metric: windows of the same length",
        "pdmp/automatic/metric.py",
        "        length *= 2\n",
        "",
        METRIC,
    ),
    Bug(
        "auto: the warm-up does not follow the seed",
        "pdmp/automatic/preparing.py",
        "root = np.random.SeedSequence(check_seed(seed, None), spawn_key=(SPAWN_KEY,))",
        "root = np.random.SeedSequence(None, spawn_key=(SPAWN_KEY,))",
        AUTO,
    ),
    Bug(
        "auto: the start is not counted",
        "pdmp/automatic/preparing.py",
        "spent += starts.evaluations + learnt.gradients",
        "spent += learnt.gradients",
        AUTO,
    ),
    Bug(
        "metric: few directions of the wrong sign",
        "pdmp/automatic/metric.py",
        "np.sqrt(values[kept]) - 1.0)\n\n\ndef combined",
        "1.0 - np.sqrt(values[kept]))\n\n\ndef combined",
        METRIC,
    ),
    Bug(
        "metric: combined in the wrong order",
        "pdmp/automatic/metric.py",
        "for part in (further, mass):",
        "for part in (mass, further):",
        METRIC,
    ),
    Bug(
        "metric: directions that are still missing end the warm-up",
        "pdmp/automatic/metric.py",
        "settled, mass = isinstance(further, Diagonal), combined(mass, further)",
        "mass = combined(mass, further)",
        METRIC,
    ),
    Bug(
        "start: no derivatives over the width of the density",
        "pdmp/automatic/start.py",
        "for wide in (False, True) if dense else (False,):",
        "for wide in (False, False) if dense else (False,):",
        START,
    ),
    Bug(
        "start: the mean of both sides of a kink that is far",
        "pdmp/automatic/start.py",
        "if w * (high[j] - low[j]) <= 8.0 else gradient[j]",
        "if w * (high[j] - low[j]) <= 8e9 else gradient[j]",
        START,
    ),
    Bug(
        "kinks: curvature over a kink is as large as differences are small",
        "pdmp/processes/mass.py",
        "        curvature = wider\n    return curvature",
        "        break\n    return curvature",
        ("tests/processes/test_kinks.py",),
    ),
    Bug(
        "kinks: the gradient where U is straight",
        "pdmp/processes/exact.py",
        "curvature = float(gradient @ gradient) / model.dim",
        "curvature = 100.0 * float(gradient @ gradient) / model.dim",
        ("tests/processes/test_kinks.py",),
    ),
]

MODES, START_FILE, AUTO_FILE = "pdmp/automatic/modes.py", "pdmp/automatic/start.py", "pdmp/automatic/preparing.py"
SUMMARY, RUN, TAILS = "pdmp/diagnostics/summary.py", "pdmp/engine/run.py", "pdmp/diagnostics/tails.py"
OF_TAILS = ("tests/diagnostics/test_tails.py",)
SAID = ("tests/diagnostics/test_summary.py",)
BUGS += [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("modes: a mode far behind is one", MODES, "if path.elbo < best - TIE or is_visited(path.mode, seen):", "if is_visited(path.mode, seen):", ("tests/automatic/test_modes.py",)),
        ("modes: chains that have been there do not count", MODES, "if path.elbo < best - TIE or is_visited(path.mode, seen):", "if path.elbo < best - TIE:", ("tests/automatic/test_modes.py",)),
        ("modes: the end of a neck is one", MODES, "if is_visited(path.gaussian, seen) and elbo(target, path.mode, draws) < best - TIE:", "if False:", ("tests/automatic/test_modes.py",)),
        ("modes: an end is judged by its own width alone", MODES, "if is_visited(path.gaussian, seen) and elbo(target, path.mode, draws) < best - TIE:", "if elbo(target, path.mode, draws) < best - TIE:", ("tests/automatic/test_modes.py",)),
        ("modes: barriers as seen from the nearest", MODES, "if all(barrier(target, path.mode.centre, x) > BARRIER for x in used):", "if all(barrier(target, path.mode.centre, x) > 0.0 for x in used):", ("tests/automatic/test_modes.py",)),
        ("modes: Gaussians without chains part nothing", MODES, "if path.elbo >= best - TIE and is_visited(path.gaussian, seen)]", "if path.elbo >= best - TIE]", ("tests/automatic/test_modes.py",)),
        ("modes: where chains go from there is not asked", MODES, "if not comes_to(run, learnt.gaussian, seen):", "if True:", ("tests/automatic/test_modes.py",)),
        ("modes: all paths whatever they take", MODES, "if target.count > most:", "if False:", ("tests/automatic/test_modes.py",)),
        ("modes: shares upside down", MODES, "share = math.exp(-np.clip(", "share = math.exp(np.clip(", ("tests/automatic/test_modes.py",)),
        ("modes: what is found is not said", AUTO_FILE, "    if said is not None:\n        warn(said)\n        cautions", "    if said is not None:\n        cautions", ("tests/automatic/test_modes.py",)),
        ("modes: paths on one side alone", MODES, "yield other if target.potential(other) < math.inf else dispersed(target, centre, rng, width)", "yield dispersed(target, centre, rng, width)", ("tests/automatic/test_modes.py",)),
        ("modes: paths begin behind a wall", MODES, "yield other if target.potential(other) < math.inf else dispersed(target, centre, rng, width)", "yield other", ("tests/automatic/test_modes.py",)),
        ("modes: as far out for all posteriors", MODES, "cycle((WIDTH, np.maximum(FAR_OUT, far)))", "cycle((WIDTH, FAR_OUT))", ("tests/automatic/test_modes.py",)),
        ("modes: no farther out than the mean", MODES, "BEYOND * np.abs(metric.centre - centre)", "BEYOND * (metric.centre - centre)", ("tests/automatic/test_modes.py",)),
        ("modes: a first step leaps over a mode", MODES, "moved = None if pairs else first_valley(", "moved = None if True else first_valley(", ("tests/automatic/test_modes.py",)),
        ("modes: a first step beyond its end", MODES, "t = min(4.0 * t, 1.0)", "t = 4.0 * t", ("tests/automatic/test_modes.py",)),
        ("modes: dips on one side alone", MODES, "for side in (1.0, -1.0):", "for side in (1.0,):", ("tests/automatic/test_modes.py",)),
        ("modes: no path from where U dips", MODES, "end = further[k]", "end = None", ("tests/automatic/test_modes.py",)),
        ("modes: a chain that passes by has come", MODES, "<= among) >= NEAR", "<= among) >= 1", ("tests/automatic/test_modes.py",)),
        ("modes: directions of coordinates as wide as their margins", MODES, "np.diag(1.0 / np.sqrt((inverse**2).sum(axis=0)))", "np.diag(metric.widths())", ("tests/automatic/test_modes.py",)),
        ("modes: a summary does not know of them", SUMMARY, "found, d, stats = list(run.info.get(\"cautions\", [])), run.dim", "found, d, stats = [], run.dim", ("tests/automatic/test_modes.py",)),
        ("modes: a summary says all again", RUN, "for text in [*texts, *info.get(\"cautions\", [])])", "for text in texts)", ("tests/automatic/test_modes.py",)),
        ("modes: the note knows of none", AUTO_FILE, "describe(process, learnt, len(found))", "describe(process, learnt)", ("tests/automatic/test_modes.py",)),
        ("start: a neck is not in the summary", AUTO_FILE, "cautions = list(filter(None, [starts.warning(names)]))\n    for text in cautions:\n        warn(text)\n", "cautions = []\n", ("tests/automatic/test_modes.py",)),
        ("start: a mode of many data is a neck", START_FILE, "fall > FALL and lost > 0.5 * fall and shrinkage", "fall > FALL and shrinkage", START),
        ("start: a path that converged was down a neck", START_FILE, "converged=True, steps=k, mode=gaussian, neck=None)", "converged=True, steps=k, mode=gaussian)", START),
        ("start: the neck of any path is said", START_FILE, "neck = path.neck\n        if neck is None", "neck = max((path.neck for path in self.paths if path.neck), default=None)\n        if neck is None", START),
        ("start: chains go down a neck", START_FILE, "wide = np.array([path.elbo if path.neck is None else -math.inf for path in paths])", "wide = elbos", START),
        ("start: nowhere, if all lead down a neck", START_FILE, "return wide if np.any(wide > -math.inf) else elbos", "return wide", START),
        ("start: the Gaussian is down the neck", START_FILE, "paths[int(np.argmax(usable))].gaussian, paths, centre", "paths[int(np.argmax(elbos))].gaussian, paths, centre", START),
        ("start: chains are said to be in a neck that they are not in", START_FILE, "away = path.gaussian is not self.gaussian", "away = False", START),
        ("metric: far from normal around a Gaussian", "pdmp/automatic/metric.py", "around=None if far else around", "around=around", METRIC),
        ("metric: near normal not around the Gaussian", "pdmp/automatic/metric.py", "around = None if was_far else around", "around = None", METRIC),
        ("metric: variances around the Gaussian of the covariance", "pdmp/automatic/metric.py", "step=None, around=None)", "step=None)", METRIC),
        ("metric: an acceptance that is given goes up", "pdmp/automatic/metric.py", "            if target_acceptance is None:\n                aim =", "            if True:\n                aim =", METRIC),
        ("metric: no window of the new acceptance", "pdmp/automatic/metric.py", "if settled and far == was_far and aim == aimed:", "if settled and far == was_far:", METRIC),
        ("metric: the acceptance of a window that never was", "pdmp/automatic/metric.py", "spent, x, aimed, around)", "spent, x, aim, around)", METRIC),
        ("metric: any curvature raises the acceptance", "pdmp/automatic/metric.py", "if residual <= CURVED or len(lost)", "if len(lost)", METRIC),
        ("metric: any lost path raises the acceptance", "pdmp/automatic/metric.py", "lost.mean() <= LOST_PATHS", "lost.mean() <= 0.0", METRIC),
        ("metric: from 0.9 to 0.98 at once", "pdmp/automatic/metric.py", "if aim is None or rung > aim), aim)", "if rung > (aim or 0.95)), aim)", METRIC),
        ("auto: windows do not know the target acceptance", AUTO_FILE, "learn_metric(target, starts, for_metric, target_acceptance)", "learn_metric(target, starts, for_metric)", AUTO),
        ("sample: a process takes a target acceptance in silence", RUN, "        if target_acceptance is not None:\n            raise TypeError(", "        if False:\n            raise TypeError(", AUTO),
        ("short runs: of a goal for R-hat alone nothing is said", RUN, "(goal is None or goal.ess is None) and", "goal is None and", SAID),
        ("short runs: a chain that never moved is passed over", SUMMARY, "    if any(still) and not rests:", "    if all(still) and not rests:", SAID),
        ("short runs: all those after one", "pdmp/errors.py", "        are_short.reset(token)", "        pass", SAID),
        ("short runs: the first portion alone", SUMMARY, "if least < SCARCE or read > LOOKED:", "if True:", SAID),
        ("tails: of coordinates with a variance as well", TAILS, "            if k > NO_VARIANCE:\n", "            if True:\n", OF_TAILS),
        ("tails: a ray grows in all dimensions, and counts as one", TAILS, "for ray in rays) - d", "for ray in rays) - 1.0", OF_TAILS),
        ("tails: any power far out, also one that still grows", TAILS, "return far if abs(far - near) <= AGREEMENT * abs(far) else math.inf", "return far", OF_TAILS),
        ("tails: what is improper has no variance", TAILS, "if 0.0 < alpha <= VARIANCE", "if alpha <= VARIANCE", OF_TAILS),
        ("tails: nothing at the end of a run", RUN, "            texts += tail_warning(run)\n", "", OF_TAILS),
        ("tails: effective draws of what has no variance", SUMMARY, "    light[list(heavy)] = False", "    light[[]] = False", SAID),
        ("summary: what was warned of is said again", SUMMARY, "[w for w in found if w.rstrip(\".\") in run.said]", "[]", SAID),
    ]
]  # fmt: skip

SINGLE, OF_SINGLE = "pdmp/automatic/subsampling.py", ("tests/automatic/test_subsampling.py",)
BUGS += [
    Bug(f"single rows: {name}", SINGLE, old, new, OF_SINGLE)
    for name, old, new in [
        (
            "bounds may end where paths go",
            "if reach < math.sqrt(model.dim) + ROOM:",
            "if reach < math.sqrt(model.dim):",
        ),
        ("whatever they cost", "if not share <= SHARE:", "if share <= 0.0:"),
        ("starts are all at the mode", "process.starts = mode + rng", "process.starts = mode + 0.0 * rng"),
        ("starts with the transposed root", "@ process.reference.root.T\n", "@ process.reference.root\n"),
    ]
]

SPREAD = "tests/automatic/test_metric.py::test_a_coordinate_that_stands_still_is_a_failure_in_words"
ENDLESS = "tests/automatic/test_metric.py::test_chains_that_go_without_end_are_a_failure_in_words"
BUGS += [
    Bug("metric: coordinates that stand still", "pdmp/automatic/metric.py", "(spread > 0.0) & (spread < np.inf)", "(spread < np.inf)", (SPREAD,)),
    Bug("metric: coordinates beyond floats", "pdmp/automatic/metric.py", "(spread > 0.0) & (spread < np.inf)", "(spread != 0.0)", (ENDLESS,)),
    Bug("metric: another coordinate is named", "pdmp/automatic/metric.py", "coordinate_names(model.variables, model.transforms)[j]", "coordinate_names(model.variables, model.transforms)[-1]", (SPREAD,)),
]  # fmt: skip
