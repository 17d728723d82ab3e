"""Figures 2, 9 and 10 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella, 2024).

How far the mean of a sampler is off, in units of the target's standard deviation, when the target becomes more and more
skewed: the skew-normal distribution with Gaussian noise on its gradient (figures 2 and 9), and the posterior of a
logistic regression with one coefficient and Half-Cauchy covariates, with mini-batches of one (figure 10). Steps are
fractions of the target's standard deviation; SGLD's is h = σ². The first half of each run is discarded.

What is reproduced: SGLD's bias explodes with the skewness, at smaller ones for larger steps, and SGBD's stays below 0.3
standard deviations everywhere; corrections of the noise matter where it is large, and c-SGBD is then better than SGBD.
What is not, in figure 10, whose values of s and λ were not published (λ = 1 here, s from 0.5 to 50, and on to 1,000):

- "SGLD fails to sample accurately, also when the step size is small, but the target is moderately skewed." Up to s = 11
  it is no worse than SGBD and with σ = 0.2 sd better: there its bias is 0.03 and SGBD's -0.12. It fails on some data
  sets from s = 18 on with σ = 0.2 sd, and from s = 50 on with σ = 0.1 sd; there the claim holds.
- SGBD's bias "does not increase with the skewness": with σ = 0.2 sd it grows from nothing at s = 0.5 to -0.2 at s = 215
  and shrinks after that, when the posterior tends to a half-normal distribution.

    python examples/papers/barker.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, pictures and what was found, and ends with exit code 1 if a criterion fails. Time: `--quick` less than a
minute; otherwise about four minutes on an idle machine.
"""

import math
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row
from scipy import stats

import discrete
import pdmp

ALPHAS = np.exp(np.linspace(math.log(1.01), 4.6, 10))
SCALES = np.concatenate([np.geomspace(0.5, 50.0, 10), np.geomspace(100.0, 1000.0, 4)])
SHOWN = (3.0, 20.0, 300.0)  #: scales of the covariates whose posteriors are drawn
SAMPLERS = {
    "SGLD": lambda provider, sigma: discrete.SGLD.from_h(provider, sigma**2),
    "SGBD": lambda provider, sigma: discrete.SGBD(provider, sigma),
    "c-SGLD": lambda provider, sigma: discrete.SGLD.from_h(provider, sigma**2, correction="corrected"),
    "c-SGBD": lambda provider, sigma: discrete.SGBD(provider, sigma, "corrected"),
}
COLOURS = {"SGLD": RED, "c-SGLD": DARK_RED, "SGBD": BLUE, "c-SGBD": DARK_BLUE}
SHAPES = {"SGLD": "o", "c-SGLD": "s", "SGBD": "o", "c-SGBD": "s"}
NORMAL, LOGISTIC = (0.1, 0.5), (0.1, 0.2)  #: steps in standard deviations of the target
MODERATE = "at a moderate skewness SGLD is no worse than SGBD here; s and λ of the figure were not published"


def sampled(process, start, steps, seed, **options):
    """One chain, or None if it diverged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # steps above the limit of stability are what this is about
        try:
            return pdmp.sample(process, initial=[start], steps=steps, warmup=0.5, seed=seed, progress=False, **options)
        except pdmp.SamplingError:
            return None


def bias(process, mean, sd, runs, steps, seed=0):
    """Bias of the mean over sd, and its standard error, from independent runs that start at the mean."""
    found = []
    for run in range(runs):
        chain = sampled(process, mean, steps, (seed << 16) + run, store="moments")
        found.append(math.inf if chain is None else (chain.mean()[0] - mean) / sd)
    if not np.all(np.isfinite(found)):
        return math.inf, 0.0
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(runs)


def histogram(process, mean, edges, runs, steps, seed=7):
    """Density of the states between `edges`."""
    counts, total = np.zeros(len(edges) - 1), 0
    for run in range(runs):
        chain = sampled(process, mean, steps, (seed << 16) + run)
        if chain is not None:
            states = chain.draws(steps // 2).ravel()
            counts, total = counts + np.histogram(states, edges)[0], total + len(states)
    return counts / max(total, 1) / np.diff(edges)


def skewed(sampler, noise, step, alpha):
    """The process on the skew-normal distribution, its mean and standard deviation."""
    model = pdmp.models.SkewNormal(alpha)
    sd = math.sqrt(model.exact_variance)
    return SAMPLERS[sampler](pdmp.gradients.Noisy(model, noise * sd), step * sd), model.exact_mean, sd


def half_cauchy(s, draw, n=100):
    """A data set, the same quantiles for each s: y = 1 for all of the covariates s |Cauchy|; and its posterior.

    Every second datum is written as (-x, 0), which has the same likelihood.
    """
    x, sign = s * np.abs(np.random.default_rng(draw).standard_cauchy(n)), np.resize([1.0, -1.0], n)
    model = pdmp.models.LogisticRegression((sign * x)[:, None], (sign > 0.0).astype(float), prior_scale=1.0)
    theta = np.linspace(-2.0, 8.0, 20_001)
    log_density = -0.5 * theta**2 - np.array([np.logaddexp(0.0, -x * t).sum() for t in theta])
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ theta
    return model, mean, math.sqrt(weights @ (theta - mean) ** 2), theta, weights


def alphas(s):
    return ALPHAS[:: s["every"]]


def scales(s):
    return SCALES[:: s["every"]]


def name(sampler, step):
    return f"{sampler}, σ = {step:g} sd"


EDGES, WIDE = np.linspace(-2.0, 4.0, 121), np.linspace(-1.0, 6.0, 141)


def pieces(s):
    def normal(noise, sampler):
        def piece(table, work):
            for step in NORMAL:
                for alpha in alphas(s):
                    process, mean, sd = skewed(sampler, noise, step, alpha)
                    value = bias(process, mean, sd, s["runs"], s["steps"], seed=int(10 * alpha))
                    table.add(f"noise {noise:g} sd", name(sampler, step), alpha, *value)

        return piece

    def laws(table, work):
        for alpha in (5.0, 20.0):
            for sampler in ("SGLD", "SGBD"):
                for step in NORMAL:
                    process, mean, _ = skewed(sampler, 1.0, step, alpha)
                    density = histogram(process, mean, EDGES, min(s["runs"], 8), s["steps"])
                    table.add(f"F2b α = {alpha:g}", name(sampler, step), 0.5 * (EDGES[1:] + EDGES[:-1]), density)
        for alpha in (5.0, 20.0):  # which the grid of F2a does not have
            for step in NORMAL:
                process, mean, sd = skewed("SGLD", 1.0, step, alpha)
                value = bias(process, mean, sd, s["runs"], s["steps"], seed=int(10 * alpha))
                table.add("F2a at α", name("SGLD", step), alpha, *value)

    def logistic(sampler):
        def piece(table, work):
            for step in LOGISTIC:
                for scale in scales(s):
                    found = []
                    for draw in range(s["data sets"]):
                        model, mean, sd, _, _ = half_cauchy(scale, draw)
                        process = SAMPLERS[sampler](pdmp.gradients.Minibatch(model, 1), step * sd)
                        found.append(bias(process, mean, sd, s["runs F10"], s["steps"], seed=draw))
                    value, error = np.array(found).T
                    table.add("F10", name(sampler, step), scale, value.mean(), np.linalg.norm(error) / len(found))

        return piece

    def posteriors(table, work):
        for scale in SHOWN:
            model, mean, sd, _, _ = half_cauchy(scale, 0)
            for sampler in ("SGLD", "SGBD"):
                for step in LOGISTIC:
                    process = SAMPLERS[sampler](pdmp.gradients.Minibatch(model, 1), step * sd)
                    density = histogram(process, mean, WIDE, s["runs F10"], s["steps"])
                    some = density > 0.0
                    table.add(
                        f"F10 s = {scale:g}", name(sampler, step), 0.5 * (WIDE[1:] + WIDE[:-1])[some], density[some]
                    )

    found = {"F2b": laws, "F10 SGLD": logistic("SGLD"), "F10 SGBD": logistic("SGBD"), "F10 laws": posteriors}
    return {
        f"noise {noise:g} sd, {sampler}": normal(noise, sampler) for noise in (1.0, 10.0) for sampler in SAMPLERS
    } | found


def distance(density, alpha):
    """Total variation between a histogram and the skew-normal law, as far as the bins tell them apart."""
    masses, target = density * np.diff(EDGES), np.diff(stats.skewnorm.cdf(EDGES, alpha))
    return 0.5 * (np.abs(masses - target).sum() + abs(1.0 - masses.sum()))


def criteria(table, s):
    def along(sampler, noise, step, least=0.0):
        """|bias| for the shapes from `least` on."""
        x, y, _ = table.get(f"noise {noise:g} sd", name(sampler, step))
        return np.abs(y[x >= least])

    rows, few = [], s["runs"] < 20
    at = {a: abs(table.value("F2a at α", name("SGLD", 0.5), a)) for a in (5.0, 20.0)}
    top, small = along("SGLD", 1.0, 0.5)[-1], along("SGLD", 1.0, 0.1)[-1]
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 5", f"{at[5.0]:.3f}", "< 0.15", at[5.0] < 0.15))
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 20", f"{at[20.0]:.2f}", "in [1.2, 2]", 1.2 <= at[20.0] <= 2.0))
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 99.5", f"{top:.1f}", "> 20", top > 20.0))
    rows.append(Row("F2a SGLD, σ = 0.1 sd, α = 99.5", f"{small:.2f}", "in [0.3, 0.7]", 0.3 <= small <= 0.7))
    for step, most in ((0.5, 0.15), (0.1, 0.15 if few else 0.1)):
        worst = along("SGBD", 1.0, step).max()
        rows.append(Row(f"F2a SGBD, σ = {step:g} sd, largest of all α", f"{worst:.3f}", f"< {most:g}", worst < most))
    for alpha in (5.0, 20.0):
        for step in NORMAL:
            one, other = (distance(table.y(f"F2b α = {alpha:g}", name(k, step)), alpha) for k in ("SGLD", "SGBD"))
            what, text = f"F2b total variation, α = {alpha:g}, σ = {step:g} sd: SGLD, SGBD", f"{one:.3f}, {other:.3f}"
            if (alpha, step) == (20.0, 0.5):
                rows.append(Row(what, text, "SGLD > 2 SGBD", one > 2.0 * other))
            else:
                rows.append(Row(what, text, "both < 0.2", max(one, other) < 0.2))
    room = 0.08 if few else 0.03
    for step in NORMAL:
        gap = np.abs(along("SGBD", 1.0, step) - along("c-SGBD", 1.0, step)).max()
        rows.append(
            Row(f"F9a 1 sd, σ = {step:g} sd: |c-SGBD - SGBD|, largest", f"{gap:.3f}", f"< {room:g}", gap < room)
        )
    worse = (along("c-SGBD", 10.0, 0.5, 4.9) - along("SGBD", 10.0, 0.5, 4.9)).max()
    rows.append(Row("F9b 10 sd, σ = 0.5 sd, α >= 5: c-SGBD - SGBD, largest", f"{worse:.3f}", "< 0", worse < 0.0))
    for noise in (1.0, 10.0):
        for one, other in (("SGLD", "SGBD"), ("c-SGLD", "c-SGBD")):
            for step in NORMAL:
                langevin, barker = along(one, noise, step).max(), along(other, noise, step).max()
                what = f"F9 {noise:g} sd, σ = {step:g} sd: largest of all α, {one}, {other}"
                rows.append(Row(what, f"{langevin:.2f}, {barker:.2f}", f"{other} is less", barker < langevin))
    for step in LOGISTIC:
        x = table.get("F10", name("SGBD", step))[0]
        values = {sampler: np.abs(table.y("F10", name(sampler, step))) for sampler in ("SGLD", "SGBD")}
        worst, ratio = values["SGBD"].max(), values["SGLD"] / values["SGBD"]
        rows.append(Row(f"F10 SGBD, σ = {step:g} sd: largest of all s", f"{worst:.3f}", "< 0.3", worst < 0.3))
        least = ratio[x >= 99.0].min()
        rows.append(Row(f"F10 σ = {step:g} sd, s >= 100: SGLD / SGBD, least", f"{least:.1f}", "> 1", least > 1.0))
        least = ratio[x >= 5.0].min()
        what = f"F10 σ = {step:g} sd, s >= 5: SGLD / SGBD, least"
        rows.append(Row(what, f"{least:.2f}", "> 1", least > 1.0, MODERATE))
    return rows


def line(axes, table, figure, sampler, step, dashed):
    """Bias with two standard errors; what has diverged is left out."""
    x, value, error = table.get(figure, name(sampler, step))
    keep = np.isfinite(value)
    axes.errorbar(
        x[keep], value[keep], 2.0 * error[keep], color=COLOURS[sampler], marker=SHAPES[sampler], ms=3.5, lw=1.2,
        elinewidth=0.7, ls="--" if dashed else ":", label=name(sampler, step),
    )  # fmt: skip


def signed_scale(axes, top):
    """Linear between -0.1 and 0.1, logarithmic outside."""
    axes.axhline(0.0, color="0.6", lw=0.6, zorder=0)
    axes.axhspan(-0.1, 0.1, color="0.95", lw=0, zorder=-1)
    axes.set_yscale("symlog", linthresh=0.1, linscale=1.0)
    decades = [10.0**k for k in range(-1, round(math.log10(top)) + 1)]
    axes.set_yticks([-1.0, -0.1, 0.0, *decades], ["-1", "-0.1", "0", *(f"{t:g}" for t in decades)])
    axes.set_ylim(-1.0, top)
    axes.minorticks_off()


def biases(axes, table, noise, samplers):
    for sampler in samplers:
        for step in NORMAL:
            line(axes, table, f"noise {noise:g} sd", sampler, step, step == 0.5)
    axes.set(xscale="log", xlabel="shape α", title=f"noise of the gradient: {noise:g} sd")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    signed_scale(axes, 100.0)


def densities(axes, table, figure, steps):
    for sampler in ("SGLD", "SGBD"):
        for step in steps:
            x, y, _ = table.get(figure, name(sampler, step))
            style = "--" if step == steps[1] else ":"
            axes.plot(x, y, color=COLOURS[sampler], lw=1.3, ls=style, label=name(sampler, step))


def f2(table, s):
    """Bias against skewness, and the laws at α = 5 and 20; noise of one standard deviation."""
    figure = plt.figure(figsize=(10.5, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
    left = figure.add_subplot(grid[:, 0])
    biases(left, table, 1.0, ("SGLD", "SGBD"))
    left.set_ylabel("bias of the mean / sd (grey: linear scale)")
    left.legend(fontsize=8, loc="upper left")
    for k, alpha in enumerate((5.0, 20.0)):
        axes, x = figure.add_subplot(grid[k, 1]), np.linspace(-1.0, 4.0, 1001)
        axes.fill_between(x, stats.skewnorm.pdf(x, alpha), color="0.85", lw=0, label="target")
        densities(axes, table, f"F2b α = {alpha:g}", NORMAL)
        axes.set(xlim=(-1.2, 3.6), ylim=(0.0, None), ylabel="density", title=f"α = {alpha:g}", xlabel="θ" if k else "")
        if not k:
            axes.legend(fontsize=8)
    return figure


def f9(table, s):
    """The same with the corrected samplers, and with noise of one and of ten standard deviations."""
    figure, both = plt.subplots(1, 2, figsize=(10.5, 4.4), sharey=True, layout="constrained")
    for axes, noise in zip(both, (1.0, 10.0), strict=True):
        biases(axes, table, noise, SAMPLERS)
    both[0].set_ylabel("bias of the mean / sd (grey: linear scale)")
    both[0].legend(fontsize=8, loc="upper left", ncols=2)
    return figure


def f10(table, s):
    """Bias against the scale of the covariates, averaged over data sets, and some laws."""
    figure = plt.figure(figsize=(10.5, 5.4), layout="constrained")
    grid = figure.add_gridspec(len(SHOWN), 2, width_ratios=(1.15, 1.0))
    left = figure.add_subplot(grid[:, 0])
    for sampler in ("SGLD", "SGBD"):
        for step in LOGISTIC:
            line(left, table, "F10", sampler, step, step == 0.2)
    left.set(xscale="log", xlabel="scale s of the covariates", ylabel="bias of the mean / sd (grey: linear scale)")
    left.set(title=f"batches of one, mean of {s['data sets']} data sets")
    left.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    signed_scale(left, 1e4)
    left.legend(fontsize=8, loc="upper left")
    for k, scale in enumerate(SHOWN):
        axes, (_, mean, sd, theta, weights) = figure.add_subplot(grid[k, 1]), half_cauchy(scale, 0)
        axes.fill_between(theta, weights / (theta[1] - theta[0]), color="0.85", lw=0, label="target")
        densities(axes, table, f"F10 s = {scale:g}", LOGISTIC)
        axes.set(xlim=(mean - 2.5 * sd, mean + 7.0 * sd), ylim=(0.0, None), ylabel="density", title=f"s = {scale:g}")
        if not k:
            axes.legend(fontsize=7)
    return figure


STUDY = common.Study(
    name="barker",
    quick={"seed": 0, "runs": 6, "steps": 50_000, "every": 3, "data sets": 2, "runs F10": 3},
    full={"seed": 0, "runs": 32, "steps": 200_000, "every": 1, "data sets": 5, "runs F10": 8},
    pieces=pieces,
    criteria=criteria,
    pictures={"f2": f2, "f9": f9, "f10": f10},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
