"""Figures 1, 4 and 5 and tables 1, 4 and 5 of "Efficient and generalizable tuning strategies for stochastic gradient
MCMC" (Coullon, South & Nemeth, 2023), for the logistic regression.

Ten coefficients and 10⁶ data (10⁵ with --quick), of which one in five is held out. Six samplers, SGLD, SGHMC and SGNHT
with and without control variates, are tuned by successive halving on two Stein discrepancies (MAMBA), by a grid search
for the least held-out log-loss, and by the rule γ = 1/N. Everything starts at the mode, the grid search 0.2 N(0, I) off
it. SGHMC is the explicit scheme, with a new momentum and one sample every L steps, as in the paper's experiments.

- Steps are γ in θ - γ∇Û + √(2γ) ξ, and h = γ in SGHMC and SGNHT: that is what the tables have, not equation 1.
- Budgets are data passes in place of seconds, so that every number can be repeated: 40 (20 with --quick) for an arm
  that is never dropped, 100 for each arm of the grid search and for each final run. A step costs what its batch does.
- An arm is scored by at most 50 draws of its last round, with exact scores, a final run by 500. A batch of all the data
  is too slow to be scored in the first round, here as in the paper.
- The reference is the Laplace approximation, corrected by importance sampling.

What is reproduced (means of three runs): KSD with mini-batch scores ranks steps and batches as that with exact scores
does. MAMBA finds a KSD as small as grid search and 1/N or smaller, with control variates up to four times smaller
(10⁶ data; eight times with 10⁵), and takes smaller batches; M-KSD's steps are within 1.5 decades of the published ones.
Explicit SGHMC with γ = 1/N is unstable, γ times the largest curvature being above 0.063: standard deviations are 44
times too large (12 times with 10⁵). The semi-implicit and the splitting scheme are not.

What should be known beside it:

- KSD here is nearly the length of the mean score, |Σ s| / P (rank correlation 0.98): the posterior is much narrower
  than the kernel, which is then constant to first order, and what it says about a covariance Σ is ‖Σ H - I‖, of order
  one, beside 3 to 100. It tells how well the mean is known, not whether the standard deviations are right: with
  hyper-parameters by M-KSD SGHMC and SGNHT have ξ near 60 % and SGLD 24 % (published: 108, 56 and 28 %). KSD in
  coordinates in which the posterior's covariance is the identity follows ξ closely (rank correlation 0.95 in place of
  0.76). That is the fifth tuner; with 50 draws to go by, its choices have ξ no smaller in the median.
- Which step is chosen varies: those of M-FSSD are up to 2 decades from the published ones, those of grid search up to
  3 decades with 10⁵ data, at little cost in KSD to the first, much to the second.
- With 10⁵ data SGNHT with what M-FSSD chose diverged in a longer run: a good score in a short run is no promise. The
  paper had the same with SGNHT on its neural network.

    python examples/mamba.py [--quick] [--output FOLDER] [--only f4 f5 tables]

Writes pictures, prints tables, and ends with exit code 1 if a criterion fails. Time: about a minute with --quick, about
ten minutes without, and a minute more the first time for compilation, on two processors.
"""

import argparse
import concurrent.futures
import math
import pathlib
import sys
import time
import warnings
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker
from scipy import linalg, stats

import discrete
import pdmp
from pdmp import tuning
from pdmp.diagnostics import accuracy, ksd, log_loss, scores, sd_error

SEED = 4  #: of the data: accuracy as published, and one of those with a largest curvature above 0.07 N
ALPHA = 0.01  #: friction of SGHMC and diffusion of SGNHT, as in the paper
STEPS = np.arange(-1.0, -7.6, -0.5)  #: log10 of the steps of the paper's grid, for its 10⁶ data
SHARES = (1.0, 0.1, 0.01, 0.001)  #: of the data in a batch
SCORED = 50  #: draws, at most, by which an arm is judged
RUNS = 3  #: with each choice
BUDGETS = 5  #: points of a curve

MEASURES = "ksd", "whitened", "mean_score", "xi", "accuracy"
SAMPLERS = {
    "SGLD": lambda provider, step, leaps: discrete.SGLD(provider, step),
    "SGHMC": lambda provider, step, leaps, scheme="explicit": discrete.SGHMC.from_h(
        provider, step, ALPHA, scheme=scheme, refresh_every=leaps
    ),
    "SGNHT": lambda provider, step, leaps: discrete.SGNHT.from_h(provider, step, ALPHA),
}
NAMES = [name + end for name in SAMPLERS for end in ("", "-CV")]
#: Colour and marker of each tuner; larger markers first, where two have chosen the same.
TUNERS = {
    "M-KSD": ("#12508f", "o", 7),
    "M-FSSD": ("#7fb0dd", "s", 5),
    "M-KSD, whitened": ("#2e8b57", "^", 4),
    "grid": ("#e0912b", "D", 4),
    "1/N": ("#a32814", "v", 5),
}
#: Table 4's log10 γ, in the order of `NAMES`.
PUBLISHED = {
    "M-KSD": (-6.0, -5.0, -7.0, -6.5, -7.5, -5.5),
    "M-FSSD": (-5.5, -5.0, -6.0, -6.0, -6.0, -5.0),
    "grid": (-6.0, -5.0, -7.0, -6.5, -7.5, -4.5),
}


class Row(NamedTuple):
    """A line of the table; `passed` is None where there is nothing to pass."""

    what: str
    measured: str
    criterion: str = ""
    passed: bool | None = None


class Result:
    """What runs with chosen hyper-parameters were worth: means over them, and standard errors of these."""

    def __init__(self, arm, runs):
        self.arm = arm
        self.curve = np.mean([run["curve"] for run in runs], axis=0)  #: KSD after a fifth, two fifths, … of the run
        self.samples = runs[0]["samples"]
        self.error = {}
        for name in MEASURES:
            values = np.array([run[name] for run in runs])
            setattr(self, name, float(np.mean(values)))
            finite = np.all(np.isfinite(values))
            self.error[name] = float(np.std(values, ddof=1) / math.sqrt(len(runs))) if finite else 0.0


def generated(n, seed=SEED):
    """Features, labels and true coefficients: correlation u^|i-j|, u uniform in ±0.4, coefficients N(0, 10 I)."""
    rng = np.random.default_rng(seed)
    truth = math.sqrt(10.0) * rng.standard_normal(10)
    factor = np.linalg.cholesky(linalg.toeplitz(rng.uniform(-0.4, 0.4) ** np.arange(10)))
    X = rng.standard_normal((n, 10)) @ factor.T
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ truth))).astype(float)
    return X, y


class Problem:
    """The posterior, what is known about it, and its samplers."""

    def __init__(self, quick):
        self.quick, self.n = quick, 100_000 if quick else 1_000_000
        X, y = generated(self.n)
        train = 8 * self.n // 10
        self.model = pdmp.models.LogisticRegression(X[:train], y[:train], prior_scale=math.sqrt(10.0), dtype=np.float32)
        self.X_test, self.y_test = X[train:], y[train:]
        self.mode = self.model.mode()
        self.hessian = self.model.hessian(self.mode)
        self.laplace = np.linalg.inv(self.hessian)
        self.largest = float(np.linalg.eigvalsh(self.hessian)[-1])
        self.sd = self.posterior_sd()
        self.log_steps = STEPS + math.log10(1e6 / self.n)  # the posterior's width goes with 1/√N
        self.providers = {}

    def posterior_sd(self, pairs=100):
        """By importance sampling from the Laplace approximation, whose own variance is known: only the difference is
        estimated."""
        z = np.random.default_rng(0).standard_normal((pairs, 10)) @ np.linalg.cholesky(self.laplace).T
        x = np.concatenate([self.mode + z, self.mode - z])
        log_normal = -0.5 * np.einsum("ij,jk,ik->i", x - self.mode, self.hessian, x - self.mode)
        logs = -np.array([self.model.potential(one) for one in x]) - log_normal
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        centred = x - weights @ x
        return np.sqrt(np.diag(self.laplace) + weights @ centred**2 - np.mean((x - self.mode) ** 2, axis=0))

    def provider(self, controlled, share):
        key = controlled, share
        if key not in self.providers:
            size = round(share * self.model.n_data)
            if controlled:
                self.providers[key] = pdmp.gradients.ControlVariate(self.model, size, anchor=self.mode)
            else:
                self.providers[key] = pdmp.gradients.Minibatch(self.model, size)
        return self.providers[key]

    def make(self, name, log_step, share, leaps=10, **options):
        """The process of an arm."""
        kind, _, controlled = name.partition("-")
        return SAMPLERS[kind](self.provider(bool(controlled), share), 10.0**log_step, leaps, **options)

    def held_out(self, x, model):
        """Log-loss of the mean prediction on the data that the posterior does not know."""
        return log_loss(self.y_test, model.predict(x, self.X_test).mean(axis=0))

    def run(self, process, seed, **budget):
        """Positions after each step; None if the chain diverged."""
        try:
            run = pdmp.sample(process, initial=self.mode, seed=seed, progress=False, **budget)
        except pdmp.SamplingError:
            return None
        return run.trajectories[0].positions[1:]


def everywhere(function, tasks):
    """function(*task) for all of them, side by side."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(lambda task: function(*task), tasks))


def evenly(x, most):
    """At most so many rows."""
    return x if len(x) <= most else x[np.linspace(0, len(x) - 1, most).round().astype(int)]


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.png", dpi=130, bbox_inches="tight")
    plt.close(figure)


# ---------------------------------------------------------------------------------------------------------------
# Figures 4 and 5: what the discrepancy is measured with


ESTIMATORS = {
    "all data, every sample": ("#12508f", "-", "o"),
    "all data, every fifth": ("#7fb0dd", "-", "s"),
    "batch, every sample": ("#a32814", "--", "o"),
    "batch, every fifth": ("#e08a78", "--", "s"),
    "batch, every sample, no diagonal": ("#2e8b57", ":", "^"),
}


def estimates(problem, log_step, share, seed, **budget):
    """KSD of a run of SGLD by each estimator."""
    process = problem.make("SGLD", log_step, share)
    x = problem.run(process, seed, **budget)
    exact, noisy = scores(problem.model, x), scores(problem.provider(False, share), x, seed=seed + 1)
    unbiased = ksd(x, noisy, statistic="u", threads=1) if len(x) > 1 else math.nan
    return [
        ksd(x, exact, threads=1),
        ksd(x[::5], exact[::5], threads=1),
        ksd(x, noisy, threads=1),
        ksd(x[::5], noisy[::5], threads=1),
        math.sqrt(max(unbiased, 0.0)),
    ]


def curves(axes, x, found, **labels):
    for values, (name, (colour, line, shape)) in zip(found.T, ESTIMATORS.items(), strict=True):
        shown = np.where(values > 0.0, values, np.nan)
        axes.plot(x, shown, line, marker=shape, color=colour, ms=4, lw=1.2, label=name)
    axes.set(yscale="log", **labels)
    decimal(axes.yaxis)


def agreement(title, found, least):
    """Rows on how the estimators agree with the first one."""
    rows = []
    for k, name in list(enumerate(ESTIMATORS))[1:]:
        rank = stats.spearmanr(found[:, 0], found[:, k]).statistic
        apart = abs(int(np.argmin(found[:, 0])) - int(np.argmin(found[:, k])))
        what = f"{title} {name}: rank correlation with all data"
        if name == "batch, every sample":
            rows.append(Row(what, f"{rank:.3f}", f">= {least:g}", rank >= least))
            rows.append(Row(f"{title} {name}: minimum, steps of the grid apart", f"{apart}", "<= 1", apart <= 1))
        else:
            rows.append(Row(what + "; minimum apart", f"{rank:.3f}; {apart}"))
    return rows


def f4(folder, problem):
    """Figure 4: KSD of SGLD against the step, batches of 1 %."""
    steps = 1_000
    tasks = [(log_step, 0.01, 10 * k) for k, log_step in enumerate(problem.log_steps)]
    found = np.array(everywhere(lambda *task: estimates(problem, *task, steps=steps), tasks))
    figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    title = f"SGLD, batches of 1 %, {steps:,} samples"
    curves(axes, problem.log_steps, found, xlabel="log₁₀ γ", ylabel="KSD", title=title)
    axes.axvline(math.log10(2.0 / problem.largest), color="0.7", lw=0.8, zorder=0, label="2 / largest curvature")
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder, "mamba_f4")
    return agreement("F4", found, 0.9)


def f5(folder, problem):
    """Figure 5: KSD of SGLD against the size of the batch, at a step of 10^-4.5 (for 10⁶ data)."""
    shares = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    log_step, passes = -4.5 + math.log10(1e6 / problem.n), 10
    tasks = [(log_step, share, 10 * k) for k, share in enumerate(shares)]
    found = np.array(everywhere(lambda *task: estimates(problem, *task, data_passes=passes), tasks))
    figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    title = f"SGLD, log₁₀ γ = {log_step:g}, {passes} data passes"
    curves(axes, 100.0 * shares, found, xlabel="batch [% of the data]", ylabel="KSD", title=title, xscale="log")
    decimal(axes.xaxis)
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder, "mamba_f5")
    return agreement("F5", found, 0.9)


# ---------------------------------------------------------------------------------------------------------------
# Figure 1 and tables 1, 4 and 5: the tuners


class Tuned:
    """Hyper-parameters by each tuner for each sampler, and runs with them."""

    def __init__(self, problem):
        self.problem = problem
        self.budget = 20 if problem.quick else 40  #: data passes of the arm that is never dropped
        self.grid_passes = 100
        self.passes, self.kept = 100, 500
        self.log_steps = problem.log_steps[1::2] if problem.quick else problem.log_steps
        self.shares = SHARES[1:] if problem.quick else SHARES

    def arms(self, name, shares):
        return tuning.grid(
            log_step=[float(s) for s in self.log_steps],
            share=list(shares),
            **({"leaps": [5, 10]} if name.startswith("SGHMC") else {}),
        )

    def whitened(self, x, model):
        """KSD in coordinates in which the posterior's covariance is the identity."""
        return whitened_ksd(self.problem, x, scores(model, x))

    def choose(self, tuner, name, seed):
        """The arm that a tuner chooses."""
        problem = self.problem

        def make(**arm):
            return problem.make(name, **arm)

        if tuner == "1/N":
            return {"log_step": math.log10(tuning.heuristic_step(problem.model)), "share": 0.1, "leaps": 10}
        if tuner == "grid":
            start = problem.mode + 0.2 * np.random.default_rng(seed).standard_normal(10)
            arms, options = self.arms(name, [0.1]), {"clock": "data", "seed": seed, "initial": start, "draws": 30}
            return tuning.grid_search(make, arms, self.grid_passes, problem.held_out, **options).best
        metric = {"M-KSD": "ksd", "M-FSSD": "fssd"}.get(tuner, self.whitened)
        options = {"clock": "data", "seed": seed, "initial": problem.mode, "draws": SCORED}
        return tuning.mamba(make, self.arms(name, self.shares), self.budget, metric, **options).best

    def evaluate(self, name, arm, seed, **options):
        """A run with these hyper-parameters."""
        problem = self.problem
        x = problem.run(problem.make(name, **arm, **options), seed, data_passes=self.passes)
        if x is None:
            return dict.fromkeys(MEASURES, math.inf) | {"curve": [math.inf] * BUDGETS, "accuracy": 0.0, "samples": 0}
        if name.startswith("SGHMC"):
            x = x[arm["leaps"] - 1 :: arm["leaps"]]  # one sample for each momentum
        kept = evenly(x, self.kept)
        s = scores(problem.model, kept)
        curve = [ksd(kept[:end], s[:end], threads=1) for end in len(kept) * np.arange(1, BUDGETS + 1) // BUDGETS]
        p = problem.model.predict(evenly(kept, 30), problem.X_test).mean(axis=0)
        return {
            "curve": curve,
            "ksd": curve[-1],
            "whitened": whitened_ksd(problem, kept, s),
            "mean_score": np.linalg.norm(s.mean(axis=0)),
            "xi": sd_error(x, problem.sd, stretches=2).value,
            "accuracy": accuracy(problem.y_test, p),
            "samples": len(x),
        }


def whitened_ksd(problem, x, s):
    root = np.linalg.cholesky(problem.laplace)
    return ksd(linalg.solve_triangular(root, (x - problem.mode).T, lower=True).T, s @ root, threads=1)


def setting(arm, name):
    leaps = f"/{arm['leaps']}" if name.startswith("SGHMC") else ""
    return f"{arm['log_step']:.1f}/{100.0 * arm['share']:g}{leaps}"


def value(result, name, unit=1.0):
    if math.isinf(result.ksd):
        return "diverged"
    return f"{unit * getattr(result, name):.3g} ± {unit * result.error[name]:.1g}"


def slope(curve):
    """Of log KSD against log budget; NaN if a run diverged."""
    if not np.all(np.isfinite(curve)):
        return math.nan
    return float(np.polyfit(np.log(np.arange(1, len(curve) + 1)), np.log(curve), 1)[0])


def tables(folder, problem):
    """Tables 1, 4 and 5, and figure 1."""
    tuned, found = Tuned(problem), {}
    for k, tuner in enumerate(TUNERS):
        began = time.perf_counter()
        for j, name in enumerate(NAMES):
            found[tuner, name] = tuned.choose(tuner, name, 100 * k + j)
        print(f"    {tuner}: tuned in {time.perf_counter() - began:.0f} s", flush=True)
    tasks = [(name, arm, seed) for (_, name), arm in found.items() for seed in range(RUNS)]
    runs = everywhere(tuned.evaluate, tasks)
    found = {key: Result(arm, runs[RUNS * k : RUNS * (k + 1)]) for k, (key, arm) in enumerate(found.items())}
    show(found)
    draw_curves(folder, tuned, found)
    draw_table(folder, found)
    return judge(problem, tuned, found)


def show(found):
    print(f"    {'':14} " + " ".join(f"{name:>15}" for name in NAMES))
    for title, text in (
        ("log10 γ / batch % / L", lambda r, name: setting(r.arm, name)),
        ("KSD", lambda r, name: value(r, "ksd")),
        ("KSD, whitened", lambda r, name: value(r, "whitened")),
        ("|mean of the scores|", lambda r, name: value(r, "mean_score")),
        ("ξ × 100", lambda r, name: value(r, "xi", 100.0)),
        ("accuracy × 100", lambda r, name: f"{100.0 * r.accuracy:.2f}" if r.samples else "diverged"),
        ("samples", lambda r, name: f"{r.samples:,}" if r.samples else "diverged"),
    ):
        print(f"    {title}")
        for tuner in TUNERS:
            print(f"    {tuner:14} " + " ".join(f"{text(found[tuner, name], name):>15}" for name in NAMES))


def decimal(axis):
    """Plain numbers on a logarithmic axis."""
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def draw_curves(folder, tuned, found):
    figure, grid = plt.subplots(2, 3, figsize=(10.5, 6.0), sharex=True, layout="constrained")
    passes = tuned.passes * np.arange(1, BUDGETS + 1) / BUDGETS
    order = [name for end in ("", "-CV") for name in (kind + end for kind in SAMPLERS)]
    for axes, name in zip(grid.ravel(), order, strict=True):
        for tuner, (colour, shape, size) in TUNERS.items():
            curve = np.where(np.isfinite(found[tuner, name].curve), found[tuner, name].curve, np.nan)
            label = tuner if np.all(np.isfinite(curve)) else f"{tuner}: diverged"
            axes.plot(passes, curve, "-", marker=shape, color=colour, ms=size, lw=1.2, label=label)
            if label != tuner:
                axes.text(0.97, 0.95, label, color=colour, fontsize=8, ha="right", va="top", transform=axes.transAxes)
        axes.set(xscale="log", yscale="log", title=name)
        axes.set_xticks(passes, [f"{p:g}" for p in passes])
        axes.minorticks_off()
        decimal(axes.yaxis)
    for axes in grid[:, 0]:
        axes.set_ylabel("KSD")
    for axes in grid[1]:
        axes.set_xlabel("data passes")
    labels = [plt.Line2D([], [], color=c, marker=m, ms=s, label=tuner) for tuner, (c, m, s) in TUNERS.items()]
    figure.legend(handles=labels, frameon=False, ncols=len(labels), loc="outside lower center")
    save(figure, folder, "mamba_f1")


def draw_table(folder, found):
    figure, both = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for k, (tuner, (colour, shape, _)) in enumerate(TUNERS.items()):
        x = np.arange(len(NAMES)) + 0.14 * (k - 2)
        results = [found[tuner, name] for name in NAMES]
        for axes, measure, unit in zip(both, ("ksd", "xi"), (1.0, 100.0), strict=True):
            values = unit * np.array([getattr(r, measure) for r in results])
            values[np.isinf(values)] = np.nan
            errors = unit * np.array([2.0 * r.error[measure] for r in results])
            errors = np.array([np.minimum(errors, 0.5 * values), errors])  # the axis is logarithmic
            axes.errorbar(x, values, errors, fmt=shape, color=colour, ms=5, lw=1, label=tuner)
    for axes, label in zip(both, ("KSD", "ξ of the standard deviations [%]"), strict=True):
        axes.set(yscale="log", ylabel=label)
        decimal(axes.yaxis)
        axes.set_xticks(range(len(NAMES)), NAMES, fontsize=8)
        for edge in np.arange(0.5, len(NAMES) - 1):
            axes.axvline(edge, color="0.9", lw=0.8, zorder=0)
    for j, name in enumerate(NAMES):
        away = [tuner for tuner in TUNERS if math.isinf(found[tuner, name].ksd)]
        for axes in both:
            text = "\n".join(f"{tuner}: diverged" for tuner in away)
            axes.text(j, 0.98, text, fontsize=7, ha="center", va="top", transform=axes.get_xaxis_transform())
    figure.legend(*both[0].get_legend_handles_labels(), frameon=False, ncols=len(TUNERS), loc="outside lower center")
    save(figure, folder, "mamba_t1")


def judge(problem, tuned, found):
    rows = []
    bandits, others = ("M-KSD", "M-FSSD"), ("grid", "1/N")
    best = {name: min(found[t, name].ksd for t in bandits) for name in NAMES}
    rest = {name: min(found[t, name].ksd for t in others) for name in NAMES}
    good = [name for name in NAMES if best[name] <= 1.1 * rest[name]]
    what = "T1 samplers with the least KSD by M-KSD or M-FSSD (within 10 %)"
    rows.append(Row(what, f"{len(good)} of 6", ">= 5", len(good) >= 5))
    for tuner in bandits:
        pairs = [(found[tuner, kind + "-CV"].ksd, found[tuner, kind].ksd) for kind in SAMPLERS]
        text = ", ".join(f"{a:.3g} {b:.3g}" for a, b in pairs)
        rows.append(Row(f"T1 {tuner}: KSD of CV, not CV", text, "CV <= not", all(a <= b for a, b in pairs)))
    for tuner in (*bandits, "M-KSD, whitened"):
        xi = found[tuner, "SGLD-CV"].xi
        rows.append(Row(f"T1 {tuner}: ξ of SGLD-CV", f"{xi:.3f}", "< 0.15", xi < 0.15))
    slopes = [slope(found[tuner, name].curve) for tuner in bandits for name in NAMES]
    middle = float(np.nanmedian(slopes))
    what = "F1 M-KSD and M-FSSD: slope of log KSD in log budget, median"
    rows.append(Row(what, f"{middle:.2f}", "in [-0.6, -0.3]", -0.6 <= middle <= -0.3))
    heuristic = found["1/N", "SGHMC"]
    product = problem.largest * 10.0 ** heuristic.arm["log_step"]
    rows.append(Row("F1 SGHMC with 1/N: γ × largest curvature", f"{product:.3f}", "> 0.063 is unstable"))
    grows = heuristic.curve[-1] > heuristic.curve[0]
    text = f"{heuristic.curve[0]:.3g}, {heuristic.curve[-1]:.3g}"
    rows.append(Row("F1 SGHMC with 1/N, explicit: KSD after 1/5 and all", text, "grows", grows))
    rows.append(Row("T1 SGHMC with 1/N, explicit: ξ", f"{heuristic.xi:.2f}", "> 1", heuristic.xi > 1.0))
    for scheme in ("semi_implicit", "splitting"):
        xi = tuned.evaluate("SGHMC", heuristic.arm, 0, scheme=scheme)["xi"]
        rows.append(Row(f"T1 SGHMC with 1/N, {scheme}: ξ", f"{xi:.2f}", "< 1", xi < 1.0))
    for tuner in TUNERS:
        small = sum(found[tuner, name].arm["share"] <= 0.01 for name in NAMES)
        what = f"T4 {tuner}: batches of at most 1 %"
        if tuner in bandits:
            rows.append(Row(what, f"{small} of 6", ">= 4", small >= 4))
        steps = np.array([found[tuner, name].arm["log_step"] for name in NAMES])
        at_edge = np.isin(steps, tuned.log_steps[[0, -1]])
        if tuner in PUBLISHED:
            apart = np.abs(steps - math.log10(1e6 / problem.n) - PUBLISHED[tuner])
            what = f"T4 {tuner}: log10 γ and the published one (of 10⁶ data), furthest apart"
            close = apart.max() <= 1.5 + 1e-9
            rows.append(Row(what, f"{apart.max():.1f}", *(("<= 1.5", close) if tuner == "M-KSD" else ())))
            lost = int(np.sum((apart > 1.5 + 1e-9) & at_edge))
            what = f"T4 {tuner}: steps further apart than 1.5, and at an edge of the grid"
            rows.append(Row(what, f"{lost} of 6", *(("0", lost == 0) if tuner in bandits else ())))
        elif tuner != "1/N":
            rows.append(Row(f"T4 {tuner}: steps at an edge of the grid", f"{int(at_edge.sum())} of 6"))
    settled = {key: r for key, r in found.items() if math.isfinite(r.ksd)}
    accuracies = [r.accuracy for (tuner, name), r in settled.items() if (tuner, name[:5]) != ("1/N", "SGHMC")]
    spread = 100.0 * (max(accuracies) - min(accuracies))
    what = "T5 accuracies [%]: largest less least, without SGHMC by 1/N"
    rows.append(Row(what, f"{spread:.2f}", "< 0.5", spread < 0.5))
    for what, one, other in (
        ("KSD and |mean of the scores|", "ksd", "mean_score"),
        ("KSD and ξ", "ksd", "xi"),
        ("whitened KSD and ξ", "whitened", "xi"),
    ):
        rank = stats.spearmanr(*([getattr(r, m) for r in settled.values()] for m in (one, other))).statistic
        rows.append(Row(f"T1 rank correlation of {what}", f"{rank:.3f}"))
    for tuner in TUNERS:
        xi = [100.0 * found[tuner, name].xi for name in NAMES]
        rows.append(Row(f"T1 {tuner}: ξ × 100, median of the samplers", f"{np.median(xi):.1f}"))
    return rows


FIGURES = {f.__name__: f for f in (f4, f5, tables)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="10⁵ data in place of 10⁶, shorter runs")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the pictures")
    parser.add_argument("--only", nargs="*", choices=FIGURES, default=list(FIGURES))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)  # of schemes and steps that are known to be biased; of few draws
    began, failed = time.perf_counter(), 0
    problem = Problem(args.quick)
    off = np.abs(problem.sd / np.sqrt(np.diag(problem.laplace)) - 1.0).max()
    print(f"{problem.model.n_data:,} data; largest curvature / N {problem.largest / problem.model.n_data:.3f}")
    print(f"posterior sd and Laplace's: {100.0 * off:.2f} % apart; {time.perf_counter() - began:.0f} s", flush=True)
    for name in args.only:
        began = time.perf_counter()
        for row in FIGURES[name](args.output, problem):
            verdict = "" if row.passed is None else "pass" if row.passed else "FAIL"
            failed += row.passed is not None and not row.passed
            print(f"{row.what:76} {row.measured:>20}  {row.criterion:22} {verdict}")
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
