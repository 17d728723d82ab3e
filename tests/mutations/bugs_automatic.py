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
        "if _is_typical(z) and abs(ratio - path.elbo) <= NATS:",
        "if _is_typical(z):",
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
        "spent = starts.evaluations + learnt.gradients",
        "spent = learnt.gradients",
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
]
