"""Figures 4.1 to 4.3 of the handout "Bayesian learning by stochastic gradient and SGLD".

A linear regression whose posterior is known: 10,000 pairs (x, y), normal with unit variances and correlation 0.9; y
regressed on x with an intercept, the conjugate prior; θ = (β₀, β₁, log σ²). The step is 10⁻⁵, for the full sum.

- Figure 4.1: SGD settles around the maximum of the likelihood, and fluctuates the less the larger the batch.
- Figure 4.2: SGLD at the same step is too wide, by how much the size of the batch says: the gradient's noise adds to
  its own.
- Figure 4.3: a higher temperature makes it wider, but mildly, because here most of the noise is the gradient's.

And two things that the handout mentions: with decreasing steps an average weighted by the step is more accurate than a
plain one where the injected noise dominates, and less where the gradient's does; and clipping the gradient narrows SGLD
here, because what it cuts off is mostly noise, and moves σ², whose gradient is skew.

What is not reproduced: "max |w - MLE| < 0.05 between steps 100 and 300" with batches of 100. The typical distance is
0.03, as it must be, but the largest of 200 steps is near 0.09 in most runs.

    python examples/papers/sgd.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, a picture and what was found, and ends with exit code 1 if a criterion fails. Time: about 30 s with
--quick, 45 s without, and 20 s more the first time for compilation.
"""

import functools
import math
import sys

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import Row
from scipy import stats

import discrete
import pdmp

N, STEP, START = 10_000, 1e-5, np.array([1.1, -2.0, 0.0])
BATCHES, TEMPERATURES = (10, 100, 1_000), (0.01, 1.0, 10.0)
COLOURS = ("tab:orange", "tab:blue", "tab:green")
NAMES = ("β₀", "β₁", "σ²")
LIMITS = (1e3, 2e3, 4e3, 8e3, 16e3, math.inf)  #: of the norm of a gradient
EXCURSION = "the stationary law of the step says a typical distance of 0.03 and a largest one near 0.09 in 200 steps"
PLACES = {1_000: 2e-6, 100: 1e-5}  #: the largest of the decreasing steps by size of the batch


@functools.cache
def problem():
    """The model, and the marginal law of β₁."""
    rng = np.random.default_rng(2023)
    x, y = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], N).T
    model = pdmp.models.NormalInverseGammaRegression(np.column_stack([np.ones(N), x]), y, prior_covariance=100.0)
    law = model.law
    width = math.sqrt(law.scale / law.shape * np.linalg.inv(law.precision)[1, 1])
    return model, stats.t(2.0 * law.shape, law.mean[1], width)


def slope_sd():
    """Standard deviation of β₁ under the posterior."""
    return math.sqrt(problem()[0].posterior()[1][1, 1])


def batches(size):
    return pdmp.gradients.Minibatch(problem()[0], size, draw="distinct")


def path(process, steps, seed=1, start=START, chains=1):
    """(β₀, β₁, σ²) after each step, of shape (chains, steps + 1, 3)."""
    run = pdmp.sample(process, steps=steps, initial=start, seed=seed, warmup=0.0, chains=chains)
    theta = np.array([t.positions for t in run.trajectories])
    theta[..., 2] = np.exp(theta[..., 2])
    return theta


def best():
    """(β₀, β₁, σ²) at the maximum of the likelihood."""
    model = problem()[0]
    beta = np.linalg.lstsq(model.X, model.y, rcond=None)[0]
    return np.array([*beta, np.mean((model.y - model.X @ beta) ** 2)])


def gradient_noise(size):
    """Variance of a batch's estimate of a partial derivative with respect to β, at σ² = 0.19 and unit variance of x."""
    return N**2 / size * (1.0 - size / N) / 0.19


def predicted_sd(gammas, weights, curvature, noise):
    """sd of Σ wₖ xₖ, x' = (1 - γλ) x + N(0, 2γ + γ²τ²) from 0 on: each noise's influence, from the last back."""
    variance, influence = 0.0, 0.0
    for k in range(len(gammas) - 1, 0, -1):  # state k, and the noise of the step that led to it
        influence = weights[k] + influence * (1.0 - gammas[k] * curvature)
        variance += influence**2 * (2.0 * gammas[k - 1] + gammas[k - 1] ** 2 * noise)
    return math.sqrt(variance)


def add_path(table, figure, series, process, s):
    """What a histogram of the last half of a run as long as the handout's needs."""
    half = path(process, s["short"])[0][s["short"] // 2 :, 1]
    counts, edges = np.histogram(half, 30)
    table.add(figure, series, 0.5 * (edges[1:] + edges[:-1]), counts)


def moments(process, s, seed):
    return pdmp.sample(process, steps=s["steps"], warmup=0.05, seed=seed, store="moments")


def pieces(s):
    def f41(table, work):
        maximum, after = best(), 3 * s["short"] // 10  # 300 steps
        for k in range(3):
            table.add("F4.1", f"MLE, {NAMES[k]}", 0, maximum[k])
        for size in BATCHES:
            theta = path(discrete.SGD(batches(size), STEP), s["short"])[0]
            for k in range(3):
                table.add(f"F4.1 {NAMES[k]}", f"m = {size:,}", range(0, s["short"] + 1, 5), theta[::5, k])
            table.add("F4.1", "sd of β in the second half", size, theta[s["short"] // 2 :, :2].std(axis=0).mean())
            far = [
                np.abs(path(discrete.SGD(batches(size), STEP), after, seed=k + 1)[0][after // 3 :] - maximum).max(
                    axis=1
                )
                for k in range(s["runs"])
            ]
            table.add("F4.1", f"mean distance, m = {size}", range(s["runs"]), [f.mean() for f in far])
            table.add("F4.1", f"largest distance, m = {size}", range(s["runs"]), [f.max() for f in far])

    def f42(table, work):
        for size in BATCHES:
            process = discrete.SGLD(batches(size), STEP)
            table.add("F4.2", "sd / exact", size, math.sqrt(moments(process, s, 2).var()[1]) / slope_sd())
            add_path(table, "F4.2", f"m = {size:,}", process, s)

    def f43(table, work):
        for temperature in TEMPERATURES:
            process = discrete.SGLD(batches(100), STEP, temperature=temperature)
            table.add("F4.3", "sd / exact", temperature, math.sqrt(moments(process, s, 3).var()[1]) / slope_sd())
            add_path(table, "F4.3", f"T = {temperature:g}", process, s)

    def decreasing(table, work):
        model, exact, curvature = problem()[0], problem()[0].posterior()[0][1], N / 0.19
        steps = s["decreasing"]
        for size, largest in PLACES.items():
            process = discrete.SGLD(batches(size), discrete.schedules.power(largest, 0.5))
            states = path(process, steps, 4, model.mode(), s["replicates"])[:, :-1, 1]
            gammas = largest / np.sqrt(1.0 + np.arange(steps))
            for name, w in (
                ("by the step", gammas / gammas.sum()),
                ("plain", np.full(steps, 1.0 / steps)),
            ):
                averages = (states @ w - exact) / slope_sd()
                quartiles = np.quantile(averages, [0.05, 0.25, 0.5, 0.75, 0.95])
                table.add("C/√k", f"{name}, m = {size}, quantiles", range(5), quartiles)
                table.add("C/√k", f"{name}, m = {size}, sd", 0, averages.std())
                table.add(
                    "C/√k",
                    f"{name}, m = {size}, predicted",
                    0,
                    predicted_sd(gammas, w, curvature, gradient_noise(size)),
                )

    def clipping(table, work):
        mean, covariance = problem()[0].posterior()
        for k, limit in enumerate(LIMITS):
            run = moments(discrete.SGLD(batches(100), STEP, clip_norm=limit if limit < math.inf else None), s, 3)
            table.add("clipping", "bias of log σ² / sd", k, (run.mean()[2] - mean[2]) / math.sqrt(covariance[2, 2]))
            table.add("clipping", "sd of β₁ / exact", k, math.sqrt(run.var()[1]) / slope_sd())
            table.add("clipping", "fraction of steps", k, run.stats.get("mean_clipped", 0.0))

    return {"F4.1": f41, "F4.2": f42, "F4.3": f43, "C/√k": decreasing, "clipping": clipping}


def criteria(table, s):
    rows = []

    def near(what, value, truth, fraction):
        passed = abs(value / truth - 1.0) <= fraction
        rows.append(Row(what, f"{value:.3g}", f"{truth:.4g} ± {100 * fraction:g} %", passed))

    mean, largest = (table.y("F4.1", f"{what} distance, m = 100") for what in ("mean", "largest"))
    what = f"F4.1 m = 100: max |w - MLE| in steps 100-300, median of {s['runs']} runs"
    rows.append(Row(what, f"{np.median(largest):.3f}", "< 0.05", np.median(largest) < 0.05, EXCURSION))
    what = f"F4.1 m = 100: mean |w - MLE| in steps 100-300, mean of {s['runs']} runs"
    rows.append(Row(what, f"{mean.mean():.3f}", "< 0.05", mean.mean() < 0.05))
    spread = {size: table.value("F4.1", "sd of β in the second half", size) for size in BATCHES}
    for large, small in ((100, 10), (1_000, 100)):
        predicted = math.sqrt((1.0 - small / N) / small / ((1.0 - large / N) / large))
        near(f"F4.1 SGD: sd of β, m = {small} / m = {large}", spread[small] / spread[large], predicted, 0.2)
    for size, expected in zip(BATCHES, (19.5, 6.1, 2.15), strict=True):
        ratio = table.value("F4.2", "sd / exact", size)
        near(f"F4.2 SGLD, m = {size}: sd of β₁ / exact", ratio, expected, 0.07)
        if size >= 100:  # for smaller batches the noise depends on θ
            formula = math.sqrt((1.0 + 0.5 * STEP * gradient_noise(size)) / (1.0 - 0.5 * STEP * N / 0.19))
            near("F4.2    the same, by the formula", ratio, formula, 0.07)
    found = [table.value("F4.3", "sd / exact", t) for t in TEMPERATURES]
    for temperature, value, expected in zip(TEMPERATURES, found, (6.0, 6.1, 7.1), strict=True):
        near(f"F4.3 SGLD, T = {temperature:g}: sd of β₁ / exact at T = 1", value, expected, 0.05)
    near("F4.3 SGLD: sd at T = 10 / sd at T = 0.01", found[2] / found[0], 1.18, 0.05)
    for size in PLACES:
        sds, exact = (
            [table.value("C/√k", f"{name}, m = {size}, {what}") for name in ("by the step", "plain")]
            for what in ("sd", "predicted")
        )
        near(f"C/√k, m = {size}: sd of weighted / plain averages", sds[0] / sds[1], exact[0] / exact[1], 0.1)
        less = size == 1_000
        rows.append(
            Row("C/√k    which is", f"{sds[0] / sds[1]:.3g}", "< 1" if less else "> 1", (sds[0] < sds[1]) == less)
        )
    acted, bias, width = (
        table.y("clipping", name) for name in ("fraction of steps", "bias of log σ² / sd", "sd of β₁ / exact")
    )
    rows.append(Row("clipping to 1,000: fraction of steps", f"{acted[0]:.3f}", "> 0.9", acted[0] > 0.9))
    moved = bias[0] - bias[-1]
    rows.append(Row("clipping to 1,000 moves the mean of log σ², in sd", f"{moved:.2f}", "< -0.5", moved < -0.5))
    narrower = width[0] / width[-1]
    rows.append(Row("clipping to 1,000: sd of β₁, against that without", f"{narrower:.2f}", "< 0.7", narrower < 0.7))
    same = acted[-2] > 0.0 or width[-2] == width[-1]
    rows.append(Row("clipping to 16,000 never acts: change of the sd", f"{width[-2] - width[-1]:.2g}", "0", same))
    return rows


def bars(axis, table, figure, series, title, colour, width=None):
    """The last half of a path of β₁ next to the exact density, which is drawn with the same height."""
    x, counts, _ = table.get(figure, series)
    exact, centre, sd = problem()[1], problem()[0].posterior()[0][1], slope_sd()
    axis.bar(x, counts, x[1] - x[0], color=colour, alpha=0.7, label="SGLD, last 500 steps")
    width = width or max(4.0 * sd, 1.1 * np.abs(x - centre).max())
    grid = np.linspace(centre - width, centre + width, 2_001)
    density = counts.max() * exact.pdf(grid) / exact.pdf(centre)
    axis.plot(grid, density, color="black", lw=1.2, label="exact, at the same height")
    axis.set(
        title=title, xlabel=NAMES[1], ylabel="steps per bin", xlim=(grid[0], grid[-1]), ylim=(0, 1.3 * counts.max())
    )
    axis.legend(fontsize=8, loc="upper left")


def picture(table, s):
    figure, axes = plt.subplots(4, 3, figsize=(14, 15), layout="constrained")
    for k, axis in enumerate(axes[0]):
        exact = table.value("F4.1", f"MLE, {NAMES[k]}")
        for size, colour in zip(BATCHES, COLOURS, strict=True):
            x, y, _ = table.get(f"F4.1 {NAMES[k]}", f"m = {size:,}")
            axis.plot(x, y, color=colour, lw=0.8, label=f"m = {size:,}")
        axis.axhline(exact, color="black", lw=1, ls="--", label="maximum of the likelihood")
        width = 0.3 if k < 2 else 0.15
        axis.set(title=f"SGD: {NAMES[k]}", xlabel="step", ylabel=NAMES[k], ylim=(exact - width, exact + width))
    axes[0, 0].legend(fontsize=8, ncols=2, loc="lower center", title="m data in a batch", title_fontsize=8)
    for axis, size, colour in zip(axes[1], BATCHES, COLOURS, strict=True):
        ratio = table.value("F4.2", "sd / exact", size)
        bars(axis, table, "F4.2", f"m = {size:,}", f"SGLD, m = {size:,}: sd {ratio:.1f} times the exact one", colour)
    for axis, temperature, colour in zip(axes[2], TEMPERATURES, COLOURS, strict=True):
        ratio = table.value("F4.3", "sd / exact", temperature)
        title = f"SGLD, T = {temperature:g}: sd {ratio:.1f} times exact at T = 1"
        bars(axis, table, "F4.3", f"T = {temperature:g}", title, colour, width=0.13)
    labels, axis = [], axes[3, 0]
    for place, size in ((0, 1_000), (3, 100)):
        for k, name in enumerate(("by the step", "plain")):
            low, q1, middle, q3, high = table.y("C/√k", f"{name}, m = {size}, quantiles")
            box = {"med": middle, "q1": q1, "q3": q3, "whislo": low, "whishi": high}
            axis.bxp([box], positions=[place + k], widths=0.7, showfliers=False, medianprops={"color": "black"})
            labels.append((place + k, f"{name}\nm = {size:,}"))
    axis.axhline(0.0, color="black", lw=0.8, ls="--")
    axis.set_xticks(*zip(*labels, strict=True), fontsize=8)
    title = f"Averages over {s['decreasing']:,} steps C/√k, {s['replicates']} replicates"
    axis.set(title=title, ylabel="error of mean of β₁ / exact sd")
    places, acted = np.arange(len(LIMITS)), table.y("clipping", "fraction of steps")
    for axis, label, exact, title in (
        (axes[3, 1], "bias of log σ² / sd", 0.0, "Clipping moves σ²"),
        (axes[3, 2], "sd of β₁ / exact", 1.0, "Clipping changes the spread"),
    ):
        axis.bar(places, acted, color="0.85", width=0.6, label="fraction of steps clipped")
        axis.plot(places, table.y("clipping", label), "o-", color="tab:red", label=label)
        axis.axhline(exact, color="black", lw=1, ls="--", label="exact")
        axis.set(title=title, xlabel="largest norm of the gradient estimate", ylabel=label)
        axis.set_xticks(places, [*(f"{limit:,.0f}" for limit in LIMITS[:-1]), "none"])
        axis.legend(fontsize=8)
    return figure


STUDY = common.Study(
    name="sgd",
    quick={"seed": 1, "steps": 40_000, "short": 1_000, "runs": 20, "decreasing": 2_000, "replicates": 200},
    full={"seed": 1, "steps": 400_000, "short": 1_000, "runs": 20, "decreasing": 2_000, "replicates": 500},
    pieces=pieces,
    criteria=criteria,
    pictures={"": picture},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
