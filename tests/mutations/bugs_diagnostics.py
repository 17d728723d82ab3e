"""Bugs in Monte Carlo errors, event rates, bounds, summaries, reports and Stein sums."""

from tests.mutations.bugs import Bug

POOLED = ("tests/engine/test_pooling.py",)
EVENTS = ("tests/diagnostics/test_diagnostic_events.py",)
STEIN = ("tests/diagnostics/test_stein.py",)
PREDICTIVE = ("tests/diagnostics/test_predictive.py",)
V = "pdmp/diagnostics/events.py"
P = "pdmp/diagnostics/predictive.py"

BUGS = [
    Bug(f"diagnostics: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("too short a path is many draws", "pdmp/diagnostics/summary.py", "np.where(ess < 0.0, math.inf, np.where(ess > 0.0, ess, 0.0))", "np.where(ess > 0.0, ess, math.inf)", ("tests/diagnostics/test_summary.py",)),
        ("rates: chains count alike", V, "np.average([c.mean() for c in counts], weights=lengths)", "np.mean([c.mean() for c in counts])", POOLED),
        ("rates: the warm-up counts", V, "np.histogram(times[times > path.warmup], ends)[0]", "np.histogram(np.maximum(times, path.warmup), ends)[0]", EVENTS),
        ("acf: around the mean of each chain", V, "x - x.mean(axis=(0, 1))", "x - x.mean(axis=1, keepdims=True)", POOLED),
        ("fssd: padding counts", "pdmp/diagnostics/stein/finite_set.py", "return along * self.is_draw, square * self.is_draw", "return along, square + 1.0 - self.is_draw", STEIN),
        ("predictions that are NaN on the way", P, "if not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)):", "if np.any(p < 0.0):", PREDICTIVE),
    ]
]  # fmt: skip
