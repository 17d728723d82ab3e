"""Stochastic gradient descent and Langevin dynamics on a linear regression whose posterior is known.

10,000 pairs (x, y), normal with unit variances and correlation 0.9; y regressed on x with an intercept, a normal prior
on the coefficients β given σ² and an inverse gamma prior on σ²; θ = (β₀, β₁, log σ²). The step is 10⁻⁵, for the full
sum. Four rows of one picture:

1. SGD settles around the maximum of the likelihood, and fluctuates the less the larger the batch. It fluctuates at
   every step: with batches of 100 its typical distance is 0.03 in β, the largest in 200 steps near 0.09.
2. SGLD at the same step is too wide, by how much the size of the batch says: the gradient's noise adds to its own.
3. A higher temperature makes it wider, but mildly, because here most of the noise is the gradient's.
4. Decreasing steps: where the injected noise dominates, an average weighted by the step is more accurate than a plain
   one; where the gradient's noise does, it is the other way round. And clipping the gradient: it narrows SGLD here,
   because what it cuts off is mostly noise, and moves σ², whose gradient is skew.

    python examples/sgd_and_sgld.py [--quick] [--output FOLDER]

Writes the picture, prints a table, and ends with exit code 1 if a criterion fails. Time: about 20 s with --quick, 40 s
without, and 20 s more the first time for compilation.
"""

import argparse
import math
import pathlib
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import special, stats

import discrete
import pdmp

N, STEP, START = 10_000, 1e-5, np.array([1.1, -2.0, 0.0])
BATCHES, TEMPERATURES = (10, 100, 1_000), (0.01, 1.0, 10.0)
COLOURS = ("tab:orange", "tab:blue", "tab:green")
NAMES = ("β₀", "β₁", "σ²")


class NormalRegression(pdmp.Model):
    """y_i ~ N(X_i·β, σ²), β | σ² ~ N(0, σ² v I), σ² ~ IG(shape, scale), in θ = (β, log σ²), the Jacobian included."""

    X: np.ndarray
    y: np.ndarray
    v: float
    shape: float
    scale: float

    def __init__(self, X, y, v=100.0, shape=1.0, scale=1.0):
        super().__init__(dim=X.shape[1] + 1, n_data=len(y), variables={"beta": (X.shape[1],), "log_variance": (1,)})
        self.X, self.y = np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=float)
        self.v, self.shape, self.scale = v, shape, scale

    @pdmp.compiled
    def residual(self, x, i):
        r = self.y[i]
        for j in range(self.dim - 1):
            r -= self.X[i, j] * x[j]
        return r

    @pdmp.compiled
    def prior_potential(self, x):
        d, total = self.dim - 1, 0.0
        for j in range(d):
            total += x[j] * x[j]
        return (0.5 * total / self.v + self.scale) * math.exp(-x[d]) + (0.5 * d + self.shape) * x[d]

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        d, total = self.dim - 1, 0.0
        precision = math.exp(-x[d])
        for j in range(d):
            total += x[j] * x[j]
            out[j] += x[j] * precision / self.v
        out[d] += 0.5 * d + self.shape - (0.5 * total / self.v + self.scale) * precision

    @pdmp.compiled
    def term_potential(self, x, i):
        d, r = self.dim - 1, self.residual(x, i)
        return 0.5 * (x[d] + r * r * math.exp(-x[d]))

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        d, r = self.dim - 1, self.residual(x, i)
        scaled = r * math.exp(-x[d])
        for j in range(d):
            out[j] -= scaled * self.X[i, j]
        out[d] += 0.5 * (1.0 - r * scaled)

    def posterior(self):
        """Exact marginals of β₀, β₁ (Student) and σ² (inverse gamma), frozen distributions."""
        precision = np.eye(self.dim - 1) / self.v + self.X.T @ self.X
        mean = np.linalg.solve(precision, self.X.T @ self.y)
        shape = self.shape + 0.5 * self.n_data
        scale = self.scale + 0.5 * (self.y @ self.y - mean @ precision @ mean)
        widths = np.sqrt(scale / shape * np.diag(np.linalg.inv(precision)))
        beta = [stats.t(2.0 * shape, m, w) for m, w in zip(mean, widths, strict=True)]
        return [*beta, stats.invgamma(shape, scale=scale)]


def generated(seed=2023):
    """The model on data drawn as the module's text says."""
    rng = np.random.default_rng(seed)
    x, y = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], N).T
    return NormalRegression(np.column_stack([np.ones(N), x]), y)


def batches(model, size):
    return pdmp.gradients.Minibatch(model, size, draw="distinct")


def path(process, steps=1_000, seed=1, start=START, chains=1):
    """(β₀, β₁, σ²) after each step, of shape (chains, steps + 1, 3)."""
    run = pdmp.sample(process, steps=steps, initial=start, seed=seed, warmup=0.0, chains=chains)
    theta = np.array([t.positions for t in run.trajectories])
    theta[..., 2] = np.exp(theta[..., 2])
    return theta


def within(value, truth, fraction):
    return abs(value / truth - 1.0) <= fraction


def gradient_noise(size):
    """Variance of a batch's estimate of a partial derivative with respect to β, at σ² = 0.19 and unit variance of x."""
    return N**2 / size * (1.0 - size / N) / 0.19


# ---------------------------------------------------------------------------------------------------------------
# The figures: each draws into its axes and returns rows (what, measured, must be, whether it is)


def sgd_traces(model, axes, quick):
    """SGD with batches of 10, 100 and 1,000 against the maximum of the likelihood."""
    beta = np.linalg.lstsq(model.X, model.y, rcond=None)[0]
    best = np.array([*beta, np.mean((model.y - model.X @ beta) ** 2)])
    rows, spread = [], {}
    for size, colour in zip(BATCHES, COLOURS, strict=True):
        theta = path(discrete.SGD(batches(model, size), STEP))[0]
        spread[size] = theta[500:, :2].std(axis=0).mean()
        for k, axis in enumerate(axes):
            axis.plot(theta[:, k], color=colour, lw=0.7, label=f"m = {size:,}")
        if size == 100:
            far = np.abs(theta[100:301] - best).max(axis=1)
            rows.append(
                ("SGD, m = 100: mean distance to the MLE, steps 100-300", far.mean(), "< 0.05", far.mean() < 0.05)
            )
            limit = 4.0 * math.sqrt(0.5 * STEP * gradient_noise(size) / (N / 0.19) / (1.0 - 0.5 * STEP * N / 0.19))
            rows.append(("SGD, m = 100: the largest of them", far.max(), f"< 4 sd = {limit:.3f}", far.max() < limit))
    for k, axis in enumerate(axes):
        axis.axhline(best[k], color="black", lw=1, ls="--", label="maximum of the likelihood")
        width = 0.3 if k < 2 else 0.15
        axis.set(title=f"SGD: {NAMES[k]}", xlabel="step", ylabel=NAMES[k], ylim=(best[k] - width, best[k] + width))
    axes[0].legend(fontsize=8, ncols=2, loc="lower center", title="m data in a batch", title_fontsize=8)
    for large, small in ((100, 10), (1_000, 100)):
        predicted = math.sqrt((1.0 - small / N) / small / ((1.0 - large / N) / large))
        ratio = spread[small] / spread[large]
        ok = within(ratio, predicted, 0.2)
        rows.append((f"SGD: sd of β, m = {small} / m = {large}", ratio, f"{predicted:.2f} ± 20 %", ok))
    return rows


def histogram(axis, theta, exact, title, colour, width=None):
    """The last half of a path of β₁ next to the exact density, which is drawn with the same height."""
    half = theta[len(theta) // 2 :, 1]
    counts, *_ = axis.hist(half, bins=30, color=colour, alpha=0.7, label="SGLD, last 500 steps")
    width = width or max(4.0 * exact.std(), 1.1 * np.abs(half - exact.mean()).max())
    grid = np.linspace(exact.mean() - width, exact.mean() + width, 2_001)
    density = counts.max() * exact.pdf(grid) / exact.pdf(exact.mean())
    axis.plot(grid, density, color="black", lw=1.2, label="exact, at the same height")
    axis.set(title=title, xlabel=NAMES[1], ylabel="steps per bin", xlim=(grid[0], grid[-1]))
    axis.set_ylim(0.0, 1.3 * counts.max())
    axis.legend(fontsize=8, loc="upper left")


def spread_of(process, exact, quick, seed):
    """sd of β₁ under SGLD in units of the exact one, from a run that starts at the mode."""
    run = pdmp.sample(process, steps=40_000 if quick else 400_000, warmup=0.05, seed=seed, store="moments")
    return math.sqrt(run.var()[1]) / exact.std()


def sgld_and_batches(model, axes, quick):
    """SGLD with batches of 10, 100 and 1,000 at temperature 1."""
    exact, rows = model.posterior()[1], []
    for axis, size, colour, expected in zip(axes, BATCHES, COLOURS, (19.5, 6.1, 2.15), strict=True):
        process = discrete.SGLD(batches(model, size), STEP)
        ratio = spread_of(process, exact, quick, seed=2)
        rows.append((f"SGLD, m = {size}: sd of β₁ / exact", ratio, f"{expected} ± 7 %", within(ratio, expected, 0.07)))
        if size >= 100:  # for smaller batches the noise depends on θ
            formula = math.sqrt((1.0 + 0.5 * STEP * gradient_noise(size)) / (1.0 - 0.5 * STEP * N / 0.19))
            rows.append(("    the same, by the formula", ratio, f"{formula:.2f} ± 7 %", within(ratio, formula, 0.07)))
        histogram(axis, path(process)[0], exact, f"SGLD, m = {size:,}: sd {ratio:.1f} times the exact one", colour)
    return rows


def sgld_and_temperatures(model, axes, quick):
    """SGLD with batches of 100 at temperatures 0.01, 1 and 10."""
    exact, rows, found = model.posterior()[1], [], []
    for axis, temperature, colour, expected in zip(axes, TEMPERATURES, COLOURS, (6.0, 6.1, 7.1), strict=True):
        process = discrete.SGLD(batches(model, 100), STEP, temperature=temperature)
        found.append(spread_of(process, exact, quick, seed=3))
        ok = within(found[-1], expected, 0.05)
        rows.append((f"SGLD, T = {temperature:g}: sd of β₁ / exact at T = 1", found[-1], f"{expected} ± 5 %", ok))
        title = f"SGLD, T = {temperature:g}: sd {found[-1]:.1f} times exact at T = 1"
        histogram(axis, path(process)[0], exact, title, colour, width=0.13)
    rows.append(
        (
            "SGLD: sd at T = 10 / sd at T = 0.01",
            found[2] / found[0],
            "1.18 ± 5 %",
            within(found[2] / found[0], 1.18, 0.05),
        )
    )
    return rows


def predicted_sd(gammas, weights, curvature, noise):
    """sd of Σ wₖ xₖ, x' = (1 - γλ) x + N(0, 2γ + γ²τ²) from 0 on: each noise's influence, from the last back."""
    variance, influence = 0.0, 0.0
    for k in range(len(gammas) - 1, 0, -1):  # state k, and the noise of the step that led to it
        influence = weights[k] + influence * (1.0 - gammas[k] * curvature)
        variance += influence**2 * (2.0 * gammas[k - 1] + gammas[k - 1] ** 2 * noise)
    return math.sqrt(variance)


def decreasing_steps(model, axis, quick):
    """Averages of β₁ over 2,000 steps C / √k, in independent replicates: weighted by the step, and plain."""
    steps, replicates, rows, labels = 2_000, 200 if quick else 500, [], []
    mode, exact, curvature = model.mode(), model.posterior()[1], N / 0.19
    for place, size, largest in ((0, 1_000, 2e-6), (3, 100, 1e-5)):
        process = discrete.SGLD(batches(model, size), discrete.schedules.power(largest, 0.5))
        states = path(process, steps, 4, mode, replicates)[:, :-1, 1]
        gammas = largest / np.sqrt(1.0 + np.arange(steps))
        weights = {"by the step": gammas / gammas.sum(), "plain": np.full(steps, 1.0 / steps)}
        sds, predicted = [], []
        for k, (name, w) in enumerate(weights.items()):
            averages = (states @ w - exact.mean()) / exact.std()
            sds.append(averages.std())
            predicted.append(predicted_sd(gammas, w, curvature, gradient_noise(size)))
            axis.boxplot(averages, positions=[place + k], widths=0.7, showfliers=False, medianprops={"color": "black"})
            labels.append((place + k, f"{name}\nm = {size:,}"))
        ratio, expected = sds[0] / sds[1], predicted[0] / predicted[1]
        rows.append(
            (
                f"C/√k, m = {size}: sd of weighted / plain averages",
                ratio,
                f"{expected:.2f} ± 10 %",
                within(ratio, expected, 0.1),
            )
        )
        ok = (ratio < 1.0) if size == 1_000 else (ratio > 1.0)
        rows.append(("    which is", ratio, "< 1" if size == 1_000 else "> 1", ok))
    axis.axhline(0.0, color="black", lw=0.8, ls="--")
    axis.set_xticks(*zip(*labels, strict=True), fontsize=8)
    axis.set(
        title=f"Averages over {steps:,} steps C/√k, {replicates} replicates", ylabel="error of mean of β₁ / exact sd"
    )
    return rows


def clipping(model, axes, quick):
    """SGLD with batches of 100 whose gradient estimates are clipped."""
    beta, variance = model.posterior()[1:]
    shape, scale = variance.args[0], variance.kwds["scale"]
    mean, sd = math.log(scale) - special.digamma(shape), math.sqrt(special.polygamma(1, shape))
    limits = (1e3, 2e3, 4e3, 8e3, 16e3, math.inf)
    bias, width, acted = [], [], []
    for limit in limits:
        process = discrete.SGLD(batches(model, 100), STEP, clip_norm=limit if limit < math.inf else None)
        run = pdmp.sample(process, steps=40_000 if quick else 400_000, warmup=0.05, seed=3, store="moments")
        bias.append((run.mean()[2] - mean) / sd)
        width.append(math.sqrt(run.var()[1]) / beta.std())
        acted.append(run.stats.get("mean_clipped", 0.0))
    places = np.arange(len(limits))
    for axis, values, exact, title, label in (
        (axes[0], bias, 0.0, "Clipping moves σ²", "bias of log σ² / exact sd"),
        (axes[1], width, 1.0, "Clipping changes the spread", "sd of β₁ / exact sd"),
    ):
        axis.bar(places, acted, color="0.85", width=0.6, label="fraction of steps clipped")
        axis.plot(places, values, "o-", color="tab:red", label=label)
        axis.axhline(exact, color="black", lw=1, ls="--", label="exact")
        axis.set(title=title, xlabel="largest norm of the gradient estimate", ylabel=label)
        axis.set_xticks(places, [*(f"{limit:,.0f}" for limit in limits[:-1]), "none"])
        axis.legend(fontsize=8)
    moved = bias[0] - bias[-1]
    return [
        ("clipping to 1,000: fraction of steps", acted[0], "> 0.9", acted[0] > 0.9),
        ("    moves the mean of log σ², in posterior sd, by", moved, "< -0.5", moved < -0.5),
        ("    sd of β₁ / exact, against that without", width[0] / width[-1], "< 0.7", width[0] < 0.7 * width[-1]),
        (
            "clipping to 16,000 never acts: change of the sd",
            width[-2] - width[-1],
            "0",
            acted[-2] > 0.0 or width[-2] == width[-1],
        ),
    ]


def main(quick, output):
    """Draw all rows into one picture, print the table; whether all criteria hold."""
    model = generated()
    figure, axes = plt.subplots(4, 3, figsize=(14, 15), layout="constrained")
    failed = False
    for draw, where in (
        (sgd_traces, axes[0]),
        (sgld_and_batches, axes[1]),
        (sgld_and_temperatures, axes[2]),
        (decreasing_steps, axes[3, 0]),
        (clipping, axes[3, 1:]),
    ):
        began = time.perf_counter()
        for what, measured, criterion, passed in draw(model, where, quick):
            failed |= not passed
            print(f"{what:58} {measured:10.4g}   {criterion:18} {'pass' if passed else 'FAIL'}")
        print(f"{draw.__name__}: {time.perf_counter() - began:.0f} s", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    picture = output / "sgd_and_sgld.png"
    figure.savefig(picture, dpi=110)
    print(f"picture: {picture}")
    return not failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the picture")
    args = parser.parse_args()
    sys.exit(0 if main(args.quick, args.output) else 1)
