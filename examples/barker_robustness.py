"""Figures 2, 9 and 10 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella, 2024).

How far the mean of a sampler is off, in units of the target's standard deviation, when the target becomes more and more
skewed: the skew-normal distribution with Gaussian noise on its gradient (figures 2 and 9), and the posterior of a
logistic regression with one coefficient and Half-Cauchy covariates, with mini-batches of one (figure 10). Steps are
fractions of the target's standard deviation; SGLD's is h = σ². The first half of each run is discarded.

What is reproduced: SGLD's bias explodes with the skewness, at smaller ones for larger steps, and SGBD's stays below 0.3
standard deviations everywhere; corrections of the noise matter where it is large, and c-SGBD is then better than SGBD.
What is not, in figure 10, whose values of s and λ were not published (λ = 1 here):

- "SGLD fails to sample accurately, also when the step size is small, but the target is moderately skewed." Up to s = 16
  it is no worse than SGBD and with σ = 0.2 sd better: at s = 8 its bias is 0.03 and SGBD's -0.10. It fails from s = 32
  on with σ = 0.2 sd, and somewhere between s = 64 and 128 with σ = 0.1 sd; there the claim holds.
- SGBD's bias "does not increase with the skewness": with σ = 0.2 sd it grows from nothing at s = 0.5 to -0.2 at s = 128
  and shrinks after that, when the posterior tends to a half-normal distribution.

    python examples/barker_robustness.py [--quick] [--output FOLDER] [--only f2 f9 f10]

Writes a picture for each figure, prints a table, and ends with exit code 1 if a criterion fails. Time: `--quick` less
than a minute; otherwise about three minutes on an idle machine.
"""

import argparse
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
from scipy import stats

import discrete
import pdmp

RED, DARK_RED, BLUE, DARK_BLUE = "#e08a78", "#a32814", "#7fb0dd", "#12508f"
ALPHAS = np.exp(np.linspace(math.log(1.01), 4.6, 10))


class Row(NamedTuple):
    """A line of the table; `passed` is None where there is nothing to pass."""

    what: str
    measured: str
    criterion: str = ""
    passed: bool | None = None


class Bias(NamedTuple):
    """Of the mean, in standard deviations of the target."""

    value: float
    error: float  #: standard error


SAMPLERS = {
    "SGLD": lambda provider, sigma: discrete.SGLD.from_h(provider, sigma**2),
    "SGBD": lambda provider, sigma: discrete.SGBD(provider, sigma),
    "c-SGLD": lambda provider, sigma: discrete.SGLD.from_h(provider, sigma**2, correction="corrected"),
    "c-SGBD": lambda provider, sigma: discrete.SGBD(provider, sigma, "corrected"),
}
COLOURS = {"SGLD": RED, "c-SGLD": DARK_RED, "SGBD": BLUE, "c-SGBD": DARK_BLUE}
SHAPES = {"SGLD": "o", "c-SGLD": "s", "SGBD": "o", "c-SGBD": "s"}


def sampled(process, start, steps, seed, **options):
    """One chain, or None if it diverged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # steps above the limit of stability are what this is about
        try:
            return pdmp.sample(process, initial=[start], steps=steps, warmup=0.5, seed=seed, **options)
        except pdmp.SamplingError:
            return None


def bias(process, mean, sd, runs, steps, seed=0):
    """From independent runs that start at the mean."""
    found = []
    for run in range(runs):
        chain = sampled(process, mean, steps, (seed << 16) + run, store="moments")
        found.append(math.inf if chain is None else (chain.mean()[0] - mean) / sd)
    if not np.all(np.isfinite(found)):
        return Bias(math.inf, 0.0)
    return Bias(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(runs)))


def histogram(process, mean, edges, runs, steps, seed=0):
    """Density of the states between `edges`."""
    counts, total = np.zeros(len(edges) - 1), 0
    for run in range(runs):
        chain = sampled(process, mean, steps, (seed << 16) + run)
        if chain is not None:
            states = chain.draws(steps // 2).ravel()
            counts, total = counts + np.histogram(states, edges)[0], total + len(states)
    return counts / max(total, 1) / np.diff(edges)


def distance(density, edges, cdf):
    """Total variation between a histogram and the target, as far as the bins tell them apart."""
    masses, target = density * np.diff(edges), np.diff(cdf(edges))
    inside = np.abs(masses - target).sum()
    return 0.5 * (inside + abs(1.0 - masses.sum()))


def line(axes, x, found, colour, shape, label, dashed):
    """Bias with two standard errors; what has diverged is left out."""
    value, error = np.array([b.value for b in found]), np.array([b.error for b in found])
    keep = np.isfinite(value)
    axes.errorbar(
        np.asarray(x)[keep],
        value[keep],
        2.0 * error[keep],
        color=colour,
        marker=shape,
        ms=3.5,
        lw=1.2,
        elinewidth=0.7,
        ls="--" if dashed else ":",
        label=label,
    )


def signed_scale(axes, top):
    """Linear between -0.1 and 0.1, logarithmic outside."""
    axes.axhline(0.0, color="0.6", lw=0.6, zorder=0)
    axes.axhspan(-0.1, 0.1, color="0.95", lw=0, zorder=-1)
    axes.set_yscale("symlog", linthresh=0.1, linscale=1.0)
    decades = [10.0**k for k in range(-1, round(math.log10(top)) + 1)]
    axes.set_yticks([-1.0, -0.1, 0.0, *decades], ["-1", "-0.1", "0", *(f"{t:g}" for t in decades)])
    axes.set_ylim(-1.0, top)
    axes.minorticks_off()


def curve(axes, edges, density, sampler, step, dashed):
    """A histogram as a line through the middles of its bins."""
    style = {"color": COLOURS[sampler], "lw": 1.3, "ls": "--" if dashed else ":"}
    axes.plot(0.5 * (edges[1:] + edges[:-1]), density, label=f"{sampler}, σ = {step:g} sd", **style)


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.png", dpi=130, bbox_inches="tight")
    plt.close(figure)


# ---------------------------------------------------------------------------------------------------------------
# The skew-normal target


class Skewed:
    """Biases on the skew-normal distribution by sampler, size of the noise, step, and shape."""

    def __init__(self, quick):
        self.runs, self.steps = (8, 60_000) if quick else (32, 200_000)
        self.alphas = ALPHAS[::3] if quick else ALPHAS
        self.found = {}

    def process(self, sampler, noise, step, alpha):
        model = pdmp.models.SkewNormal(alpha)
        sd = math.sqrt(model.exact_variance)
        return SAMPLERS[sampler](pdmp.gradients.Noisy(model, noise * sd), step * sd), model.exact_mean, sd

    def bias(self, sampler, noise, step, alpha):
        key = sampler, noise, step, alpha
        if key not in self.found:
            process, mean, sd = self.process(*key)
            self.found[key] = bias(process, mean, sd, self.runs, self.steps, seed=int(10 * alpha))
        return self.found[key]

    def along(self, sampler, noise, step, least=0.0):
        """|bias| for the shapes from `least` on."""
        return np.array([abs(self.bias(sampler, noise, step, a).value) for a in self.alphas if a >= least])

    def draw(self, axes, noise, samplers):
        for sampler in samplers:
            for step in (0.1, 0.5):
                found = [self.bias(sampler, noise, step, a) for a in self.alphas]
                label = f"{sampler}, σ = {step:g} sd"
                line(axes, self.alphas, found, COLOURS[sampler], SHAPES[sampler], label, step == 0.5)
        axes.set(xscale="log", xlabel="shape α")
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        signed_scale(axes, 100.0)


def f2(folder, quick, skewed):
    """Figure 2: bias against skewness, and the laws at α = 5 and 20; noise of one standard deviation."""
    figure = plt.figure(figsize=(10.5, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
    left = figure.add_subplot(grid[:, 0])
    skewed.draw(left, 1.0, ("SGLD", "SGBD"))
    left.set(ylabel="bias of the mean / sd (grey: linear scale)", title="noise of the gradient: 1 sd")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    rows, edges, tv = [], np.linspace(-2.0, 4.0, 121), {}
    for k, alpha in enumerate((5.0, 20.0)):
        axes = figure.add_subplot(grid[k, 1])
        x = np.linspace(-1.0, 4.0, 1001)
        axes.fill_between(x, stats.skewnorm.pdf(x, alpha), color="0.85", lw=0, label="target")
        for sampler in ("SGLD", "SGBD"):
            for step in (0.1, 0.5):
                process, mean, _ = skewed.process(sampler, 1.0, step, alpha)
                density = histogram(process, mean, edges, min(skewed.runs, 8), skewed.steps, seed=7)
                tv[sampler, step, alpha] = distance(density, edges, lambda e, a=alpha: stats.skewnorm.cdf(e, a))
                curve(axes, edges, density, sampler, step, step == 0.5)
        axes.set(xlim=(-1.2, 3.6), ylim=(0.0, None), ylabel="density", title=f"α = {alpha:g}")
        if k:
            axes.set_xlabel("θ")
        else:
            axes.legend(frameon=False, fontsize=8)
    save(figure, folder, "barker_f2")

    large = {a: abs(skewed.bias("SGLD", 1.0, 0.5, a).value) for a in (5.0, 20.0, skewed.alphas[-1])}
    small = abs(skewed.bias("SGLD", 1.0, 0.1, skewed.alphas[-1]).value)
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 5", f"{large[5.0]:.3f}", "< 0.15", large[5.0] < 0.15))
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 20", f"{large[20.0]:.2f}", "in [1.2, 2]", 1.2 <= large[20.0] <= 2.0))
    value = large[skewed.alphas[-1]]
    rows.append(Row("F2a SGLD, σ = 0.5 sd, α = 99.5", f"{value:.1f}", "> 20", value > 20.0))
    rows.append(Row("F2a SGLD, σ = 0.1 sd, α = 99.5", f"{small:.2f}", "in [0.3, 0.7]", 0.3 <= small <= 0.7))
    for step, most in ((0.5, 0.15), (0.1, 0.15 if quick else 0.1)):
        worst = skewed.along("SGBD", 1.0, step).max()
        rows.append(Row(f"F2a SGBD, σ = {step:g} sd, largest of all α", f"{worst:.3f}", f"< {most:g}", worst < most))
    for alpha in (5.0, 20.0):
        for step in (0.1, 0.5):
            one, other = tv["SGLD", step, alpha], tv["SGBD", step, alpha]
            what = f"F2b total variation, α = {alpha:g}, σ = {step:g} sd: SGLD, SGBD"
            if (alpha, step) == (20.0, 0.5):
                rows.append(Row(what, f"{one:.3f}, {other:.3f}", "SGLD > 2 SGBD", one > 2.0 * other))
            else:
                rows.append(Row(what, f"{one:.3f}, {other:.3f}", "both < 0.2", max(one, other) < 0.2))
    return rows


def f9(folder, quick, skewed):
    """Figure 9: the same with the corrected samplers, and with noise of one and of ten standard deviations."""
    figure, both = plt.subplots(1, 2, figsize=(10.5, 4.4), sharey=True, layout="constrained")
    for axes, noise in zip(both, (1.0, 10.0), strict=True):
        skewed.draw(axes, noise, SAMPLERS)
        axes.set_title(f"noise of the gradient: {noise:g} sd")
    both[0].set_ylabel("bias of the mean / sd (grey: linear scale)")
    both[0].legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    save(figure, folder, "barker_f9")
    rows, room = [], 0.03 if not quick else 0.08
    for step in (0.1, 0.5):
        gap = np.abs(skewed.along("SGBD", 1.0, step) - skewed.along("c-SGBD", 1.0, step)).max()
        what = f"F9a 1 sd, σ = {step:g} sd: |c-SGBD - SGBD|, largest"
        rows.append(Row(what, f"{gap:.3f}", f"< {room:g}", gap < room))
    plain, corrected = skewed.along("SGBD", 10.0, 0.5, 4.9), skewed.along("c-SGBD", 10.0, 0.5, 4.9)
    rows.append(
        Row(
            "F9b 10 sd, σ = 0.5 sd, α >= 5: c-SGBD - SGBD, largest",
            f"{(corrected - plain).max():.3f}",
            "< 0",
            bool(np.all(corrected < plain)),
        )
    )
    for noise in (1.0, 10.0):
        for one, other in (("SGLD", "SGBD"), ("c-SGLD", "c-SGBD")):
            for step in (0.1, 0.5):
                langevin, barker = skewed.along(one, noise, step).max(), skewed.along(other, noise, step).max()
                what = f"F9 {noise:g} sd, σ = {step:g} sd: largest of all α, {one}, {other}"
                rows.append(Row(what, f"{langevin:.2f}, {barker:.2f}", f"{other} is less", barker < langevin))
    return rows


# ---------------------------------------------------------------------------------------------------------------
# The logistic regression


class OneCoefficient(pdmp.Model):
    """y = 1 for all of the covariates x > 0: U(θ) = Σ log(1 + exp(-xᵢ θ)) + θ²/2."""

    x: np.ndarray

    def __init__(self, x):
        super().__init__(dim=1, n_data=len(x))
        self.x = np.ascontiguousarray(x, dtype=float)

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * x[0] * x[0]

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += x[0]

    @pdmp.compiled
    def term_potential(self, x, i):
        u = -self.x[i] * x[0]
        return max(u, 0.0) + math.log1p(math.exp(-abs(u)))

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        u = -self.x[i] * x[0]
        e = math.exp(-abs(u))
        out[0] -= self.x[i] * (1.0 if u > 0.0 else e) / (1.0 + e)

    def posterior(self):
        """Mean, standard deviation, and the distribution function on a grid, by quadrature."""
        theta = np.linspace(-2.0, 8.0, 20_001)
        log_density = -0.5 * theta**2 - np.array([np.logaddexp(0.0, -self.x * t).sum() for t in theta])
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        mean = weights @ theta
        return mean, math.sqrt(weights @ (theta - mean) ** 2), theta, weights


def half_cauchy(s, draw, n=100):
    """The model with a data set; the same quantiles for each s."""
    return OneCoefficient(s * np.abs(np.random.default_rng(draw).standard_cauchy(n)))


def f10(folder, quick, skewed):
    """Figure 10: bias against the scale of the covariates, averaged over data sets, and the laws at s = 20 and 300."""
    scales = np.geomspace(0.5, 1000.0, 5 if quick else 12)
    draws, runs, steps = (2, 3, 50_000) if quick else (5, 8, 200_000)
    found = {}
    for s in scales:
        for draw in range(draws):
            model = half_cauchy(s, draw)
            mean, sd, _, _ = model.posterior()
            provider = pdmp.gradients.Minibatch(model, 1)
            for sampler in ("SGLD", "SGBD"):
                for step in (0.1, 0.2):
                    b = bias(SAMPLERS[sampler](provider, step * sd), mean, sd, runs, steps, seed=draw)
                    found.setdefault((sampler, step, s), []).append(b)

    def average(sampler, step, s):
        each = found[sampler, step, s]
        values, errors = np.array([b.value for b in each]), np.array([b.error for b in each])
        return Bias(float(values.mean()), float(math.sqrt(np.sum(errors**2)) / len(each)))

    figure = plt.figure(figsize=(10.5, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
    left = figure.add_subplot(grid[:, 0])
    for sampler in ("SGLD", "SGBD"):
        for step in (0.1, 0.2):
            biases = [average(sampler, step, s) for s in scales]
            label = f"{sampler}, σ = {step:g} sd"
            line(left, scales, biases, COLOURS[sampler], "o", label, step == 0.2)
    left.set(xscale="log", xlabel="scale s of the covariates", ylabel="bias of the mean / sd (grey: linear scale)")
    left.set(title=f"batches of one, mean of {draws} data sets")
    left.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    signed_scale(left, 1e4)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    edges = np.linspace(-1.0, 6.0, 141)
    for k, s in enumerate((20.0, 300.0)):
        axes, model = figure.add_subplot(grid[k, 1]), half_cauchy(s, 0)
        mean, sd, theta, weights = model.posterior()
        axes.fill_between(theta, weights / (theta[1] - theta[0]), color="0.85", lw=0, label="target")
        for sampler in ("SGLD", "SGBD"):
            for step in (0.1, 0.2):
                process = SAMPLERS[sampler](pdmp.gradients.Minibatch(model, 1), step * sd)
                density = histogram(process, mean, edges, runs, steps, seed=7)
                curve(axes, edges, density, sampler, step, step == 0.2)
        axes.set(xlim=(mean - 2.5 * sd, mean + 7.0 * sd), ylim=(0.0, None), ylabel="density", title=f"s = {s:g}")
        if k:
            axes.set_xlabel("θ")
        else:
            axes.legend(frameon=False, fontsize=8)
    save(figure, folder, "barker_f10")

    rows = []
    for step in (0.1, 0.2):
        values = {m: np.abs([average(m, step, s).value for s in scales]) for m in ("SGLD", "SGBD")}
        worst = values["SGBD"].max()
        rows.append(Row(f"F10 SGBD, σ = {step:g} sd: largest of all s", f"{worst:.3f}", "< 0.3", worst < 0.3))
        steep, moderate = scales >= 100.0, (scales > 4.0) & (scales < 30.0)
        ratio = values["SGLD"] / values["SGBD"]
        least = ratio[steep].min()
        rows.append(Row(f"F10 σ = {step:g} sd, s >= 100: SGLD / SGBD, least", f"{least:.1f}", "> 1", least > 1.0))
        rows.append(Row(f"F10 σ = {step:g} sd, 4 < s < 30: SGLD / SGBD, least", f"{ratio[moderate].min():.2f}"))
    return rows


FIGURES = {f.__name__: f for f in (f2, f9, f10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, fewer skewnesses")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the pictures")
    parser.add_argument("--only", nargs="*", choices=FIGURES, default=list(FIGURES))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    failed, skewed = 0, Skewed(args.quick)
    for name in args.only:
        began = time.perf_counter()
        for row in FIGURES[name](args.output, args.quick, skewed):
            verdict = "" if row.passed is None else "pass" if row.passed else "FAIL"
            failed += row.passed is not None and not row.passed
            print(f"{row.what:68} {row.measured:>20}  {row.criterion:28} {verdict}")
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
