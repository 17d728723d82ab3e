"""Figures 1, 4 and 5 (left) and tables 1, 4 and 5 of "Efficient and generalizable tuning strategies for stochastic
gradient MCMC" (Coullon, South & Nemeth, 2023): the logistic regression.

Ten coefficients and 10⁶ data (10⁵ with --quick), of which one in five is held out. Six samplers, SGLD, SGHMC and SGNHT
with and without control variates, are tuned by successive halving on two Stein discrepancies (MAMBA), by a grid search
for the least held-out log-loss, and by γ = 1/N. Everything starts at the mode, the grid search 0.2 N(0, I) off it.
SGHMC is the explicit scheme, with a new momentum and one sample every L steps, as in the paper's experiments. The
reference is the Laplace approximation, corrected by importance sampling.

What is reproduced: KSD with mini-batch scores ranks steps and batches as that with exact scores does. MAMBA finds a KSD
as small as grid search and 1/N or smaller, and takes smaller batches. Explicit SGHMC with γ = 1/N is unstable, γ times
the largest curvature being above 0.063; the semi-implicit and the splitting scheme are not.

What should be known beside it: KSD here is nearly the length of the mean score, as the posterior is much narrower than
the kernel. It tells how well the mean is known, not whether the standard deviations are right. In coordinates in which
the posterior's covariance is the identity KSD follows their error ξ closely; that is the fifth tuner.

    python examples/papers/logistic_mamba.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, pictures and what was found, and ends with exit code 1 if a criterion fails. Time: about a minute with
--quick, half an hour without, on two processors.
"""

import functools
import math
import sys
import warnings

import _common as common
import _mamba as mamba
import numpy as np
from _common import Row
from _mamba import BUDGETS, NAMES, at
from scipy import linalg, stats

import pdmp
from pdmp.diagnostics import accuracy, ksd, log_loss, scores, sd_error

TUNERS = ("M-KSD", "M-FSSD", "M-KSD, whitened", "grid", "1/N")
BANDITS = TUNERS[:2]
STEPS = np.arange(-1.0, -7.6, -0.5)  #: log10 of the steps of the paper's grid, for its 10⁶ data
SIZES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
#: Table 4's log10 γ, in the order of `NAMES`.
PUBLISHED = {
    "M-KSD": (-6.0, -5.0, -7.0, -6.5, -7.5, -5.5),
    "M-FSSD": (-5.5, -5.0, -6.0, -6.0, -6.0, -5.0),
    "grid": (-6.0, -5.0, -7.0, -6.5, -7.5, -4.5),
}
DIFFERENT = (
    "which of many similar steps and batches wins depends on the budget in data passes, not seconds, and the seed"
)


def generated(n, seed):
    """Features and labels: correlation u^|i-j|, u uniform in ±0.4, coefficients N(0, 10 I)."""
    rng = np.random.default_rng(seed)
    truth = math.sqrt(10.0) * rng.standard_normal(10)
    factor = np.linalg.cholesky(linalg.toeplitz(rng.uniform(-0.4, 0.4) ** np.arange(10)))
    X = rng.standard_normal((n, 10)) @ factor.T
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ truth))).astype(float)
    return X, y


class Logistic(mamba.Problem):
    """The posterior and what is known of it."""

    def __init__(self, s):
        n = s["n"]
        X, y = generated(n, s["seed"])
        train = 8 * n // 10
        model = pdmp.models.LogisticRegression(X[:train], y[:train], prior_scale=math.sqrt(10.0), dtype=np.float32)
        self.X_test, self.y_test, self.settings = X[train:], y[train:], s
        steps = (STEPS + math.log10(1e6 / n))[s["every"] // 2 :: s["every"]]  # the posterior's width goes with 1/√N
        super().__init__(model, model.mode(), steps, s["shares"], 0.2)
        hessian = model.hessian(self.start)
        self.laplace, self.largest = np.linalg.inv(hessian), float(np.linalg.eigvalsh(hessian)[-1])
        self.root = np.linalg.cholesky(self.laplace)
        self.sd = self.posterior_sd(hessian)

    def posterior_sd(self, hessian, pairs=100):
        """By importance sampling from the Laplace approximation, whose own variance is known: only the difference is
        estimated."""
        z = np.random.default_rng(0).standard_normal((pairs, 10)) @ self.root.T
        x = np.concatenate([self.start + z, self.start - z])
        log_normal = -0.5 * np.einsum("ij,jk,ik->i", x - self.start, hessian, x - self.start)
        logs = -np.array([self.model.potential(one) for one in x]) - log_normal
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        centred = x - weights @ x
        return np.sqrt(np.diag(self.laplace) + weights @ centred**2 - np.mean((x - self.start) ** 2, axis=0))

    def whitened(self, x, model, s=None):
        """KSD in coordinates in which the posterior's covariance is the identity."""
        s = scores(model, x) if s is None else s
        if not np.all(np.isfinite(s)):
            return math.inf
        return ksd(linalg.solve_triangular(self.root, (x - self.start).T, lower=True).T, s @ self.root, threads=1)

    def held_out(self, x, model):
        """Log-loss of the mean prediction on the data that the posterior does not know."""
        return log_loss(self.y_test, model.predict(x, self.X_test).mean(axis=0))

    def choose(self, tuner, name):
        s, seed = self.settings, 100 * TUNERS.index(tuner) + NAMES.index(name)
        if tuner == "1/N":
            return self.heuristic()
        if tuner == "grid":
            return self.grid(name, self.held_out, s["grid passes"], seed, 30)
        metric = {"M-KSD": "ksd", "M-FSSD": "fssd"}.get(tuner, self.whitened)
        return self.mamba(name, metric, s["budget"], seed, s["scored"])

    def evaluate(self, name, arm, seed, **options):
        """A run with these hyper-parameters."""
        s = self.settings
        run = self.run(self.make(name, **arm, **options), seed, data_passes=s["passes"])
        measures = "ksd", "ksd whitened", "mean score", "xi"
        if run is None:
            return dict.fromkeys(measures, math.inf) | {"accuracy": 0.0, "samples": 0, "curve": [math.inf] * BUDGETS}
        x = run.trajectories[0].positions[1:]
        if name.startswith("SGHMC"):
            x = x[min(arm["leaps"], len(x)) - 1 :: arm["leaps"]]  # one sample for each momentum
        kept = mamba.evenly(x, s["kept"])
        score = scores(self.model, kept)
        ends = np.maximum(len(kept) * np.arange(1, BUDGETS + 1) // BUDGETS, 1)
        curve = [ksd(kept[:end], score[:end], threads=1) for end in ends]
        p = self.model.predict(mamba.evenly(x, 30), self.X_test).mean(axis=0)
        found = curve[-1], self.whitened(kept, self.model, score), np.linalg.norm(score.mean(axis=0))
        xi = sd_error(x, self.sd, stretches=2).value
        return dict(zip(measures, (*found, xi), strict=True)) | {
            "accuracy": accuracy(self.y_test, p),
            "samples": len(x),
            "curve": curve,
        }


@functools.cache
def problem(items):
    return Logistic(dict(items))


def pieces(s):
    def of(s):
        warnings.simplefilter("ignore", UserWarning)  # of schemes and steps that are known to be biased; of few draws
        return problem(tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in s.items()))

    def f4(table, work):
        tasks = [(log_step, 0.01, 10 * k) for k, log_step in enumerate(STEPS + math.log10(1e6 / s["n"]))]
        found = mamba.everywhere(lambda *task: mamba.estimates(of(s), *task, steps=s["steps F4"]), tasks)
        mamba.add_estimates(table, "F4", [task[0] for task in tasks], found)

    def f5(table, work):
        log_step = -4.5 + math.log10(1e6 / s["n"])
        tasks = [(log_step, share, 10 * k) for k, share in enumerate(SIZES)]
        found = mamba.everywhere(lambda *task: mamba.estimates(of(s), *task, data_passes=s["passes F5"]), tasks)
        mamba.add_estimates(table, "F5", 100.0 * SIZES, found)

    def about(table, work):
        its = of(s)
        off = np.abs(its.sd / np.sqrt(np.diag(its.laplace)) - 1.0).max()
        table.add("posterior", "sd and Laplace's apart [%]", 0, 100.0 * off)
        table.add("posterior", "largest curvature", 0, its.largest)
        table.add("posterior", "n", 0, its.model.n_data)

    def tuned(tuner, name):
        def piece(table, work):
            its = of(s)
            arm = its.choose(tuner, name)
            mamba.add_choice(table, tuner, name, arm)
            runs = mamba.everywhere(its.evaluate, [(name, arm, seed) for seed in range(s["runs"])])
            mamba.add_measures(table, tuner, name, runs)
            places = s["passes"] * np.arange(1, BUDGETS + 1) / BUDGETS
            mamba.add_curve(table, tuner, name, places, [run["curve"] for run in runs])

        return piece

    def schemes(table, work):
        its = of(s)
        for scheme in ("semi_implicit", "splitting"):
            table.add("xi of 1/N", scheme, 0, its.evaluate("SGHMC", its.heuristic(), 0, scheme=scheme)["xi"])

    found = {"posterior": about, "F4": f4, "F5": f5, "schemes": schemes}
    return found | {f"{tuner} {name}": tuned(tuner, name) for tuner in TUNERS for name in NAMES}


def criteria(table, s):
    rows = mamba.agreement(table, "F4", Row) + mamba.agreement(table, "F5", Row)
    best = {name: min(at(table, "ksd", t, name) for t in BANDITS) for name in NAMES}
    rest = {name: min(at(table, "ksd", t, name) for t in ("grid", "1/N")) for name in NAMES}
    good = [name for name in NAMES if best[name] <= 1.1 * rest[name]]
    what = "T1 samplers with the least KSD by M-KSD or M-FSSD (within 10 %)"
    rows.append(Row(what, f"{len(good)} of 6", ">= 5", len(good) >= 5, DIFFERENT))
    for tuner in BANDITS:
        pairs = [(at(table, "ksd", tuner, k + "-CV"), at(table, "ksd", tuner, k)) for k in mamba.SAMPLERS]
        text = ", ".join(f"{a:.3g} {b:.3g}" for a, b in pairs)
        row = Row(f"T1 {tuner}: KSD of CV, not CV", text, "CV <= not", all(a <= b for a, b in pairs), DIFFERENT)
        rows.append(row)
    for tuner in TUNERS[:3]:
        xi = at(table, "xi", tuner, "SGLD-CV")
        rows.append(Row(f"T1 {tuner}: ξ of SGLD-CV", f"{xi:.3f}", "< 0.15", xi < 0.15, DIFFERENT))
    slopes = [slope(*table.get(f"curve of {name}", tuner)[:2]) for tuner in BANDITS for name in NAMES]
    middle = float(np.nanmedian(slopes))
    what = "F1 M-KSD and M-FSSD: slope of log KSD in log budget, median"
    rows.append(Row(what, f"{middle:.2f}", "in [-0.6, -0.3]", -0.6 <= middle <= -0.3))
    product = table.value("posterior", "largest curvature") * 10.0 ** at(table, "chosen log10 step", "1/N", "SGHMC")
    rows.append(Row("F1 SGHMC with 1/N: γ × largest curvature", f"{product:.3f}", "> 0.063 is unstable"))
    curve = table.y("curve of SGHMC", "1/N")
    text = f"{curve[0]:.3g}, {curve[-1]:.3g}"
    rows.append(Row("F1 SGHMC with 1/N, explicit: KSD after 1/5 and all", text, "grows", curve[-1] > curve[0]))
    xi = at(table, "xi", "1/N", "SGHMC")
    rows.append(Row("T1 SGHMC with 1/N, explicit: ξ", f"{xi:.2f}", "> 1", xi > 1.0))
    for scheme in ("semi_implicit", "splitting"):
        xi = table.value("xi of 1/N", scheme)
        rows.append(Row(f"T1 SGHMC with 1/N, {scheme}: ξ", f"{xi:.2f}", "< 1", xi < 1.0))
    rows += mamba.choices(table, TUNERS, Row)
    grid = (STEPS + math.log10(1e6 / s["n"]))[s["every"] // 2 :: s["every"]]
    for tuner in TUNERS[:4]:
        steps = table.y("chosen log10 step", tuner)
        if tuner in BANDITS:
            small = int(np.sum(table.y("chosen batch [%]", tuner) <= 1.0 + 1e-9))
            what = f"T4 {tuner}: batches of at most 1 %"
            rows.append(Row(what, f"{small} of 6", ">= 4", small >= 4, DIFFERENT))
        if tuner in PUBLISHED:
            apart = np.abs(steps - math.log10(1e6 / s["n"]) - PUBLISHED[tuner])
            what = f"T4 {tuner}: log10 γ and the published one (of 10⁶ data), furthest apart"
            close = apart.max() <= 1.5 + 1e-6
            rows.append(Row(what, f"{apart.max():.1f}", *(("<= 1.5", close, DIFFERENT) if tuner == "M-KSD" else ())))
        edge = np.isclose(steps[:, None], grid[[0, -1]], atol=1e-6).any(axis=1)
        rows.append(Row(f"T4 {tuner}: steps at an edge of the grid", f"{int(edge.sum())} of 6"))
    keys = [(tuner, name) for tuner in TUNERS for name in NAMES if math.isfinite(at(table, "ksd", tuner, name))]
    accuracies = [at(table, "accuracy", *key) for key in keys if (key[0], key[1][:5]) != ("1/N", "SGHMC")]
    spread = 100.0 * (max(accuracies) - min(accuracies))
    what = "T5 accuracies [%]: largest less least, without SGHMC by 1/N"
    rows.append(Row(what, f"{spread:.2f}", "< 0.5", spread < 0.5, DIFFERENT))
    for what, one, other in (
        ("KSD and |mean of the scores|", "ksd", "mean score"),
        ("KSD and ξ", "ksd", "xi"),
        ("whitened KSD and ξ", "ksd whitened", "xi"),
    ):
        rank = stats.spearmanr(*([at(table, m, *key) for key in keys] for m in (one, other))).statistic
        rows.append(Row(f"T1 rank correlation of {what}", f"{rank:.3f}"))
    rows += mamba.measured(table, "ksd", TUNERS, Row)
    rows += mamba.measured(table, "xi", TUNERS, Row, unit=100.0)
    return rows + mamba.measured(table, "samples", TUNERS, Row, digits=6)


def slope(places, curve):
    """Of log KSD against log budget; NaN if a run diverged."""
    return float(np.polyfit(np.log(places), np.log(curve), 1)[0]) if np.all(np.isfinite(curve)) else math.nan


def curves(table, s):
    return mamba.draw_curves(table, TUNERS, "KSD", f"mean of {s['runs']} runs and two standard deviations")


def estimators(table, s):
    return mamba.draw_estimates(table, f"SGLD on {0.8 * s['n']:,.0f} data; left: batches of 1 %; right: log₁₀ γ = -4.5")


def measures(table, s):
    return mamba.draw_measures(table, TUNERS, [("ksd", "KSD", 1.0), ("xi", "ξ of the standard deviations [%]", 100.0)])


STUDY = common.Study(
    name="logistic_mamba",
    quick={
        "seed": 4, "n": 100_000, "runs": 2, "budget": 10, "grid passes": 10, "passes": 20, "kept": 200, "every": 3,
        "shares": [0.1, 0.01, 0.001], "scored": 50, "steps F4": 300, "passes F5": 2,
    },
    full={
        "seed": 4, "n": 1_000_000, "runs": 10, "budget": 40, "grid passes": 100, "passes": 100, "kept": 500, "every": 1,
        "shares": [1.0, 0.1, 0.01, 0.001], "scored": 50, "steps F4": 1_000, "passes F5": 10,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"": curves, "f4_f5": estimators, "t1": measures},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
