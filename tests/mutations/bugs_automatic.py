"""Planted bugs of `pdmp.automatic`: starts, metric, and a model in the place of a process."""

from __future__ import annotations

from tests.mutations.bugs import Bug

START = ("tests/automatic/test_start.py",)
METRIC = ("tests/automatic/test_metric.py",)

BUGS = [
    Bug(
        "metric: few directions of the wrong sign",
        "pdmp/automatic/metric.py",
        "np.sqrt(values[kept]) - 1.0)\n\n\ndef mean_hessian",
        "1.0 - np.sqrt(values[kept]))\n\n\ndef mean_hessian",
        METRIC,
    ),
    Bug(
        "kinks: curvature over a kink is as large as differences are small",
        "pdmp/metric.py",
        "        curvature = wider\n    return curvature",
        "        break\n    return curvature",
        ("tests/processes/test_kinks.py",),
    ),
]

MODES, START_FILE, AUTO_FILE = "pdmp/automatic/modes.py", "pdmp/automatic/start.py", "pdmp/automatic/preparing.py"
BUGS += [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("modes: directions of coordinates as wide as their margins", MODES, "np.diag(1.0 / np.sqrt((inverse**2).sum(axis=0)))", "np.diag(metric.widths())", ("tests/automatic/test_modes.py",)),
        ("start: a neck is not in the summary", AUTO_FILE, "cautions = [] if said_improper else list(filter(None, [starts.warning(names)]))\n    for text in cautions:\n        warn(text)\n", "cautions = []\n", ("tests/automatic/test_modes.py",)),
        ("start: the neck of any path is said", START_FILE, "neck = path.neck\n        if neck is None", "neck = max((path.neck for path in self.paths if path.neck), default=None)\n        if neck is None", START),
        ("start: chains go down a neck", START_FILE, "wide = np.array([path.elbo if path.neck is None else -math.inf for path in paths])", "wide = elbos", START),
        ("start: the Gaussian is down the neck", START_FILE, "best = paths[int(np.argmax(usable))].gaussian", "best = paths[int(np.argmax(elbos))].gaussian", START),
        ("metric: chains at a narrow mode are moved", "pdmp/automatic/metric.py", "np.median(steps)) & ~starts.converged", "np.median(steps))", METRIC),
        ("metric: the metric is learnt down the neck", "pdmp/automatic/metric.py", "spaced_points(model, run, moved, out)", "spaced_points(model, run, moved)", METRIC),
    ]
]  # fmt: skip
