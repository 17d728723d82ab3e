"""Bugs in Monte Carlo errors, event rates, bounds, summaries, reports and Stein sums."""

from tests.mutations.bugs import Bug

ERRORS = ("tests/diagnostics/test_monte_carlo_error.py",)
EVENTS = ("tests/diagnostics/test_diagnostic_events.py",)
STEIN = ("tests/diagnostics/test_stein.py",)
PREDICTIVE = ("tests/diagnostics/test_predictive.py",)
E, V = "pdmp/diagnostics/monte_carlo_error.py", "pdmp/diagnostics/events.py"
P = "pdmp/diagnostics/predictive.py"

BUGS = [
    Bug(f"diagnostics: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("too short a path is many draws", "pdmp/diagnostics/summary.py", "np.where(ess < 0.0, math.inf, np.where(ess > 0.0, ess, 0.0))", "np.where(ess > 0.0, ess, math.inf)", ("tests/diagnostics/test_summary.py",)),
        ("between chains: not divided", E, "between = apart * np.sum(weights**2) / (1.0 - np.sum(weights**2))", "between = apart", ERRORS),
        ("rates: the warm-up counts", V, "np.histogram(times[times > path.warmup], ends)[0]", "np.histogram(np.maximum(times, path.warmup), ends)[0]", EVENTS),
        ("acf: lags in draws", V, 'spacing = float(np.mean(run.end - run.warmup)) / draws', "spacing = 1.0", EVENTS),
        ("fssd: padding counts", "pdmp/diagnostics/stein/finite_set.py", "return along * self.is_draw, square * self.is_draw", "return along, square + 1.0 - self.is_draw", STEIN),
        ("predictions that are NaN on the way", P, "if not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)):", "if np.any(p < 0.0):", PREDICTIVE),
    ]
]  # fmt: skip
