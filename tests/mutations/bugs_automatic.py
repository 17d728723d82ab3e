"""Planted bugs of `pdmp.automatic`: starts, metric, choice, and a model in the place of a process."""

from __future__ import annotations

from tests.mutations.bugs import Bug

START = ("tests/automatic/test_start.py",)
METRIC = ("tests/automatic/test_metric.py",)
CHOICE = ("tests/automatic/test_choice.py",)
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
        "metric: the first window's change can end the warm-up",
        "pdmp/automatic/metric.py",
        "if k > 0 and change <= TOLERANCE:",
        "if change <= TOLERANCE:",
        METRIC,
    ),
    Bug(
        "choice: no margin for the Boomerang",
        "pdmp/automatic/choice.py",
        "wins = by_boomerang > MARGIN * by_chain",
        "wins = by_boomerang > by_chain",
        CHOICE,
    ),
    Bug(
        "choice: the Boomerang in heavy tails",
        "pdmp/automatic/choice.py",
        "if not metric.residual <= FAR:",
        "if metric.residual <= -FAR:",
        CHOICE,
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
        "process.preparation_gradients = starts.evaluations + metric.gradients + chosen.gradients",
        "process.preparation_gradients = metric.gradients + chosen.gradients",
        AUTO,
    ),
]
