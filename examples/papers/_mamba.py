"""What the three scripts on MAMBA share: the six samplers, the tuners, figures 1 to 5 and their tables.

Steps are γ in θ - γ∇Û + √(2γ) ξ, and h = γ in SGHMC and SGNHT: that is what the published tables have, not equation 1.
Budgets are data passes in place of seconds, so that every number can be repeated.
"""

from __future__ import annotations

import concurrent.futures
import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker
from scipy import stats

import discrete
import pdmp
from pdmp import tuning
from pdmp.diagnostics import ksd, scores

ALPHA = 0.01  #: friction of SGHMC and diffusion of SGNHT, as in the paper
BUDGETS = 5  #: points of a curve
SAMPLERS = {
    "SGLD": lambda provider, step, leaps: discrete.SGLD(provider, step),
    "SGHMC": lambda provider, step, leaps, scheme="explicit": discrete.SGHMC.from_h(
        provider, step, ALPHA, scheme=scheme, refresh_every=leaps
    ),
    "SGNHT": lambda provider, step, leaps: discrete.SGNHT.from_h(provider, step, ALPHA),
}
NAMES = [name + end for name in SAMPLERS for end in ("", "-CV")]
PANELS = [name + end for end in ("", "-CV") for name in SAMPLERS]
#: Colour, marker and its size of each tuner.
STYLES = {
    "M-KSD": ("#12508f", "o", 7),
    "M-FSSD": ("#7fb0dd", "s", 5),
    "M-KSD, whitened": ("#2e8b57", "^", 4),
    "grid": ("#e0912b", "D", 4),
    "1/N": ("#a32814", "v", 5),
}
ESTIMATORS = {
    "all data, every sample": ("#12508f", "-", "o"),
    "all data, every fifth": ("#7fb0dd", "-", "s"),
    "batch, every sample": ("#a32814", "--", "o"),
    "batch, every fifth": ("#e08a78", "--", "s"),
    "batch, every sample, no diagonal": ("#2e8b57", ":", "^"),
}


class Problem:
    """A posterior with what its samplers need.

    Parameters
    ----------
    model : pdmp.Model
    start : ndarray, shape (d,)
        Where chains begin, and where control variates anchor.
    log_steps : sequence of float
        log10 of the steps to choose from.
    shares : sequence of float
        Sizes of the batches to choose from, as fractions of the data; the first is that of the grid search and of 1/N.
    noise : float
        Standard deviation of the noise that the grid search starts with.
    workers : int, optional
        Arms that run at the same time; where the model itself uses several threads, 1.
    """

    def __init__(self, model, start, log_steps, shares, noise, workers=None):
        self.model, self.start, self.noise, self.workers = model, start, noise, workers
        self.log_steps, self.shares = [float(s) for s in log_steps], list(shares)
        self._providers = {}

    def provider(self, controlled, share):
        key = controlled, share
        if key not in self._providers:
            size = max(2, round(share * self.model.n_data))
            if controlled:
                self._providers[key] = pdmp.gradients.ControlVariate(self.model, size, anchor=self.start)
            else:
                self._providers[key] = pdmp.gradients.Minibatch(self.model, size)
        return self._providers[key]

    def make(self, name, log_step, share, leaps=10, **options):
        """The process of an arm."""
        kind, _, controlled = name.partition("-")
        return SAMPLERS[kind](self.provider(bool(controlled), share), 10.0**log_step, leaps, **options)

    def arms(self, name, shares):
        leaps = {"leaps": [5, 10]} if name.startswith("SGHMC") else {}
        return tuning.grid(log_step=self.log_steps, share=list(shares), **leaps)

    def mamba(self, name, metric, budget, seed, draws, thin=10):
        """The arm that successive halving on a discrepancy chooses."""
        found = tuning.mamba(
            lambda **arm: self.make(name, **arm),
            self.arms(name, self.shares),
            budget,
            metric,
            "data",
            seed=seed,
            initial=self.start,
            draws=draws,
            thin=thin,
            workers=self.workers,
        )
        return found.best

    def grid(self, name, metric, passes, seed, draws):
        """The arm of the largest batches that is best by a measure on held-out data, from a noisy start."""
        found = tuning.grid_search(
            lambda **arm: self.make(name, **arm),
            self.arms(name, [max(s for s in self.shares if s <= 0.1)]),
            passes,
            metric,
            "data",
            seed,
            initial=self.start,
            start_noise=self.noise,
            draws=draws,
            thin=2,
            workers=self.workers,
        )
        return found.best

    def heuristic(self):
        """γ = 1/N, batches of 10 %, L = 10."""
        share = max(s for s in self.shares if s <= 0.1)
        return {"log_step": math.log10(tuning.heuristic_step(self.model)), "share": share, "leaps": 10}

    def run(self, process, seed, **options):
        """A run; None if the chain diverged."""
        try:
            return pdmp.sample(process, initial=self.start, seed=seed, progress=False, **options)
        except pdmp.SamplingError:
            return None


def style(tuner):
    """Colour, marker and its size; a second problem's tuners have a prefix."""
    return STYLES[tuner.rpartition(": ")[2]]


def everywhere(function, tasks):
    """function(*task) for all of them, side by side."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda task: function(*task), tasks))


def evenly(x, most):
    """At most so many rows, in equal distances, the last among them."""
    return x if len(x) <= most else x[np.linspace(0, len(x) - 1, most).round().astype(int)]


# ---------------------------------------------------------------------------------------------------------------
# What a tuner chose, and what runs with it were worth


def add_choice(table, tuner, name, arm):
    """Tables 4, 6 and 8."""
    at = NAMES.index(name)
    table.add("chosen log10 step", tuner, at, arm["log_step"])
    table.add("chosen batch [%]", tuner, at, 100.0 * arm["share"])
    if name.startswith("SGHMC"):
        table.add("chosen L", tuner, at, arm["leaps"])


def add_measures(table, tuner, name, runs):
    """Means over the runs with standard errors; infinite if one of them diverged."""
    at = NAMES.index(name)
    for measure in runs[0]:
        values = np.array([run[measure] for run in runs], dtype=float)
        if measure != "curve":
            error = (
                values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 and np.all(np.isfinite(values)) else 0
            )
            table.add(measure, tuner, at, values.mean(), error)


def add_curve(table, tuner, name, places, curves):
    """The mean of the runs' curves, and their standard deviation, of which two make a band."""
    curves = np.array(curves, dtype=float)
    whole = np.all(np.isfinite(curves))
    spread = curves.std(axis=0, ddof=1) if whole and len(curves) > 1 else 0.0 * places
    table.add(f"curve of {name}", tuner, places, curves.mean(axis=0), spread)


def at(table, figure, tuner, name):
    return table.value(figure, tuner, NAMES.index(name))


def setting(table, tuner, name):
    """As the published tables write it."""
    text = f"{at(table, 'chosen log10 step', tuner, name):.1f}/{at(table, 'chosen batch [%]', tuner, name):g}"
    return text + (f"/{at(table, 'chosen L', tuner, name):g}" if name.startswith("SGHMC") else "")


def choices(table, tuners, Row):
    """The chosen hyper-parameters as rows without a criterion."""
    return [
        Row(f"{tuner}: log10 γ / batch % / L", " ".join(setting(table, tuner, name) for name in NAMES))
        for tuner in tuners
    ]


def measured(table, figure, tuners, Row, unit=1.0, digits=3):
    """A measure of every sampler by tuner, as rows without a criterion."""

    def text(value):
        return "diverged" if not math.isfinite(value) else f"{unit * value:.{digits}g}"

    return [
        Row(f"{figure}, {tuner}", " ".join(text(at(table, figure, tuner, name)) for name in NAMES)) for tuner in tuners
    ]


# ---------------------------------------------------------------------------------------------------------------
# Figures 4 and 5: what the discrepancy is computed from


def estimates(problem, log_step, share, seed, most=1_000, **budget):
    """KSD of a run of SGLD by each estimator; batch scores as precise as the batches of the run."""
    run = problem.run(problem.make("SGLD", log_step, share), seed, **budget)
    if run is None:
        return [math.inf] * len(ESTIMATORS)
    n = min(most, int(run.events[0])) if run.store == "skeleton" else int(run.records[0].grid.used[0])
    x = run.draws(n)[0]
    exact, noisy = scores(problem.model, x), scores(problem.provider(False, share), x, seed=seed + 1)
    if not (np.all(np.isfinite(exact)) and np.all(np.isfinite(noisy))):
        return [math.inf] * len(ESTIMATORS)
    unbiased = ksd(x, noisy, statistic="u", threads=1) if len(x) > 1 else math.nan
    return [
        ksd(x, exact, threads=1),
        ksd(x[::5], exact[::5], threads=1),
        ksd(x, noisy, threads=1),
        ksd(x[::5], noisy[::5], threads=1),
        math.sqrt(max(unbiased, 0.0)),
    ]


def add_estimates(table, figure, places, found):
    for k, name in enumerate(ESTIMATORS):
        table.add(figure, name, places, np.array(found)[:, k])


def agreement(table, figure, Row, least=0.9, evidence=""):
    """How the estimators agree with the first one, all data and every sample."""
    names, rows = list(ESTIMATORS), []
    reference = table.y(figure, names[0])
    for name in names[1:]:
        values = table.y(figure, name)
        rank = stats.spearmanr(reference, values).statistic
        apart = abs(int(np.argmin(reference)) - int(np.argmin(values)))
        what = f"{figure}, {name}: rank correlation with all data"
        if name == "batch, every sample":
            rows.append(Row(what, f"{rank:.3f}", f">= {least:g}", rank >= least, evidence))
            what = f"{figure}, {name}: minimum, steps of the grid apart"
            rows.append(Row(what, f"{apart}", "<= 1", apart <= 1, evidence))
        else:
            rows.append(Row(what + "; minimum apart", f"{rank:.3f}; {apart}"))
    return rows


# ---------------------------------------------------------------------------------------------------------------
# Pictures


def decimal(axis):
    """Plain numbers on a logarithmic axis."""
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def draw_estimates(table, title):
    """Figures 4 and 5, one panel."""
    figure, both = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for axes, name, label in zip(both, ("F4", "F5"), ("log₁₀ γ", "batch [% of the data]"), strict=True):
        for series, (colour, line, shape) in ESTIMATORS.items():
            x, y, _ = table.get(name, series)
            shown = np.where((y > 0.0) & np.isfinite(y), y, np.nan)
            axes.plot(x, shown, line, marker=shape, color=colour, ms=4, lw=1.2, label=series)
        axes.set(yscale="log", xlabel=label, ylabel="KSD")
        decimal(axes.yaxis)
    both[1].set_xscale("log")
    decimal(both[1].xaxis)
    both[0].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_curves(table, tuners, ylabel, note=""):
    """Figures 1 to 3: a panel a sampler, mean and a band of two standard deviations over the runs."""
    figure, grid = plt.subplots(2, 3, figsize=(10.5, 6.0), sharex=True, layout="constrained")
    for axes, name in zip(grid.ravel(), PANELS, strict=True):
        lost = []
        for tuner in tuners:
            colour, shape, size = style(tuner)
            x, y, spread = table.get(f"curve of {name}", tuner)
            if not np.all(np.isfinite(y)):
                lost.append(tuner)
                continue
            axes.plot(x, y, "-", marker=shape, color=colour, ms=size, lw=1.2)
            axes.fill_between(
                x, np.maximum(y - 2.0 * spread, 0.2 * y), y + 2.0 * spread, color=colour, alpha=0.15, lw=0
            )
        text = "\n".join(f"{tuner}: diverged" for tuner in lost)
        axes.text(0.97, 0.95, text, fontsize=8, ha="right", va="top", transform=axes.transAxes)
        axes.set(xscale="log", yscale="log", title=name)
        axes.set_xticks(x, [f"{p:g}" for p in x])
        axes.minorticks_off()
        decimal(axes.yaxis)
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    for axes in grid[1]:
        axes.set_xlabel("data passes")
    labels = [plt.Line2D([], [], color=style(t)[0], marker=style(t)[1], ms=style(t)[2], label=t) for t in tuners]
    figure.legend(handles=labels, ncols=len(labels), loc="outside lower center", title=note or None)
    return figure


def draw_measures(table, tuners, measures):
    """The tables as points: a panel a measure, given as (figure, label, unit)."""
    figure, panels = plt.subplots(1, len(measures), figsize=(5.3 * len(measures), 4.2), layout="constrained")
    panels = np.atleast_1d(panels)
    for axes, (name, label, unit) in zip(panels, measures, strict=True):
        for k, tuner in enumerate(tuners):
            colour, shape, _ = style(tuner)
            x, y, error = table.get(name, tuner)
            y, error = unit * y, unit * 2.0 * np.nan_to_num(error)
            y[~np.isfinite(y)] = np.nan
            both = np.array([np.minimum(error, 0.5 * np.abs(y)), error])
            axes.errorbar(
                x + 0.14 * (k - 0.5 * (len(tuners) - 1)), y, both, fmt=shape, color=colour, ms=5, lw=1, label=tuner
            )
        axes.set(yscale="log", ylabel=label)
        low, high = axes.get_ylim()
        if high < 3.0 * low:  # a logarithmic axis would have one number, or none
            axes.set_yscale("linear")
        else:
            decimal(axes.yaxis)
        axes.set_xticks(range(len(NAMES)), NAMES, fontsize=8)
        for edge in np.arange(0.5, len(NAMES) - 1):
            axes.axvline(edge, color="0.9", lw=0.8, zorder=0)
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=len(tuners), loc="outside lower center")
    return figure
