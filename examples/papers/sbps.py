"""Figures 3, 4 and 5 of the supplement of "Stochastic Bouncy Particle Sampler" (Pakman et al., 2017).

Logistic regression: 1,000 data, 20 covariates, the first of variance 6, coefficients uniform on (-5, 5).

- Figure 3: the step of SGLD (for the gradient of U / N) against the variance of NLL/N, the mean loss,
  beside the d / (2 N²) of the Laplace approximation.
- Figure 4: SBPS with batches of 50 to 900: NLL/N from a wide start, time between bounces, autocorrelations along the
  directions of the largest and the smallest posterior variance, all against the number of data looked at.
- Figure 5: SBPS with k = 0 … 6: violations of the bound, bias, and autocorrelations. "As published" is
  `pdmp.SBPS.published`: the noise of each observation from its own batch, a nearly flat prior of the slope, no cap to
  speak of. "Default" is `pdmp.SBPS`, which pools the noise along a ray and caps waits.

What is reproduced: the variance of NLL/N reaches that of Laplace at a step of 0.1; the time between bounces grows with
n; small batches settle first; violations fall with k, small k is biased, large k slow. What is not, quite:

- The time between bounces is not a straight line in n: R² is 0.976 to 0.983, the points bend downwards, as a noise of
  variance 1/n would have it, and n = 50 is below the line.
- Autocorrelations per datum are similar along the smallest variance, a factor 1.5 between batches, but differ by 2
  to 3 along the largest, where n = 50 is best and n = 200 or 500 worst.
- As published, k = 0 … 2 are not merely biased: bounds that are wrong for long, with nothing to cap a wait, send paths
  on excursions far from the posterior, and its variances are off by factors of 500 to 60,000 (by 1.2 at k = 2 with the
  defaults). Bounces per proposal then do not fall from k = 1 to 2, and rates of violations at k = 5 and 6 hang on rare
  excursions: they differ fivefold between data sets and twofold to fourfold between runs of 10⁵ proposals.

    python examples/papers/sbps.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, pictures and what was found, and ends with exit code 1 if a criterion fails. Time: `--quick` less than a
minute; otherwise about three minutes on an idle machine.
"""

import functools
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, ORANGE, Row
from scipy import special

import discrete
import pdmp
from pdmp.diagnostics import acf as correlations
from pdmp.diagnostics import integrated_time

N, D, BATCH = 1_000, 20, 100
STEPS = 10.0 ** (-0.5 * np.arange(10))
SIZES = (50, 100, 200, 500, 900)
BOUNDS = np.arange(7.0)
#: Violations per proposal as published, measured by an independent implementation on these data.
VIOLATIONS = np.array([0.335, 0.079, 0.028, 0.0104, 0.0041, 0.0016, 0.0008])
KINDS = {"published": ORANGE, "default": DARK_BLUE}
COLOURS = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, 7))
DIRECTIONS = ("largest variance", "smallest variance")
LAPLACE = D / (2.0 * N**2)
BENT = "the points bend downwards, as a noise of variance 1/n would have it, and n = 50 is below the line"
APART = "along the largest variance batches of 50 are best, and of 200 or 500 worst, whatever the seed"


@functools.cache
def problem():
    """The model, its mode, and the covariance of the Laplace approximation."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    X[:, 0] *= np.sqrt(6.0)
    y = (rng.random(N) < special.expit(X @ rng.uniform(-5.0, 5.0, D))).astype(float)
    model = pdmp.models.LogisticRegression(X, y, prior_scale=10.0)
    mode = model.mode()
    return model, mode, np.linalg.inv(model.hessian(mode))


@functools.cache
def posterior():
    """Means and standard deviations from importance sampling with a t distribution around the mode."""
    model, mode, covariance = problem()
    rng, freedom, n = np.random.default_rng(4), 12.0, 60_000
    z = rng.normal(size=(n, D)) / np.sqrt(rng.chisquare(freedom, size=(n, 1)) / freedom)
    x = mode + 1.05 * z @ np.linalg.cholesky(covariance).T
    log_weights = 0.5 * (freedom + D) * np.log1p((z**2).sum(axis=1) / freedom) - 0.005 * (x**2).sum(axis=1)
    weights = special.softmax(log_weights - N * nll(x))
    mean = weights @ x
    return mean, np.sqrt(weights @ (x - mean) ** 2)


def nll(x):
    """Mean negative log-likelihood at each row of x."""
    model = problem()[0]
    signed = model.X * (2.0 * model.y - 1.0)[:, None]
    return np.concatenate(
        [np.logaddexp(0.0, -part @ signed.T).mean(axis=1) for part in np.array_split(x, len(x) // 1_000 + 1)]
    )


def sampled(process, **options):
    """A run; what it says of lost bounces is what figure 5 is about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pdmp.SBPS lost")
        return pdmp.sample(process, **options)


def sbps(size=BATCH, **options):
    return pdmp.SBPS(pdmp.gradients.Minibatch(problem()[0], size, draw="distinct"), **options)


def add_acf(table, figure, series, run, points):
    """Autocorrelations against data looked at, and the integrated ones in data, along both directions."""
    _, vectors = np.linalg.eigh(problem()[2])
    found = correlations(run, points // 2, vectors[:, [-1, 0]].T, points)
    data = found["data_terms"]
    for direction, acf in zip(DIRECTIONS, found["acf"], strict=True):
        total = integrated_time(acf)
        lags = np.unique(np.linspace(0, min(len(acf) - 1, 8.0 * total + 10), 80).astype(int))
        table.add(f"{figure}, ACF, {direction}", series, data[lags], acf[lags])
        table.add(f"{figure}, integrated ACF", direction, float(series), total * data[1])


def pieces(s):
    def f3(table, work):
        model, mode, _ = problem()
        batch = pdmp.gradients.Minibatch(model, BATCH, draw="distinct")
        for step in STEPS:
            for seed in range(s["runs F3"]):
                process = discrete.SGLD.from_mean_gradient_step(batch, step)
                try:
                    run = sampled(
                        process, initial=mode, steps=s["steps F3"], warmup=0.2, seed=seed, store="grid", draws=2_400
                    )
                    variance = nll(run.draws(2_400)[0]).var()
                except pdmp.SamplingError:
                    variance = np.inf
                table.add("F3", f"run {seed}", step, variance)

    def f4(n):
        def piece(table, work):
            _, mode, covariance = problem()
            run = sampled(sbps(n), data_passes=s["data F4"] / N, warmup=0.1, seed=5)
            table.add("F4", "time between bounces", n, run.end.sum() / run.stats["events"]["bounce"])
            add_acf(table, "F4", str(n), run, s["points"])
            rng, starts = np.random.default_rng(6), s["starts"]
            initial = mode + np.sqrt(10.0) * rng.normal(size=(starts, D)) @ np.linalg.cholesky(covariance).T
            run = sampled(sbps(n), initial=initial, data_passes=s["passes F4"], chains=starts, seed=7)
            curves = [nll(path.at(np.linspace(0.0, path.end, 61))) for path in run.trajectories]
            table.add("F4, NLL / N", str(n), np.linspace(0.0, N * s["passes F4"], 61), np.mean(curves, axis=0))

        return piece

    def f5(kind, k):
        def piece(table, work):
            batch = pdmp.gradients.Minibatch(problem()[0], BATCH, draw="distinct")
            process = pdmp.SBPS.published(batch, k=k) if kind == "published" else pdmp.SBPS(batch, k=k)
            run = sampled(process, proposals=s["proposals F5"], warmup=0.1, chains=2, seed=8)
            mean, sd = posterior()
            table.add("F5, violations", kind, k, run.stats["bound_violations"] / run.stats["thinned"])
            table.add("F5, bounces", kind, k, run.stats["events"]["bounce"] / run.stats["thinned"])
            table.add("F5, |bias| / sd", kind, k, np.abs((run.mean() - mean) / sd).mean())
            table.add("F5, variance / exact", kind, k, np.median(run.var() / sd**2))
            if kind == "default":
                add_acf(table, "F5", f"{k:g}", run, s["points"])

        return piece

    found = {"F3": f3} | {f"F4, n = {n}": f4(n) for n in SIZES}
    return found | {f"F5, {kind}, k = {k:g}": f5(kind, k) for kind in KINDS for k in BOUNDS}


def variances(table, s):
    """Of NLL / N by step: means over the runs and standard errors."""
    found = np.array([table.y("F3", f"run {seed}") for seed in range(s["runs F3"])])
    return found, found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))


def text(values):
    return " ".join(f"{v:.2g}" for v in values)


def criteria(table, s):
    _, mean, error = variances(table, s)
    below = STEPS[mean - 2.0 * error < LAPLACE].max()
    at_tenth = 0.7e-5 - 2.0 * error[2] <= mean[2] <= 1.0e-5 + 2.0 * error[2]
    sizes, bounce, _ = table.get("F4", "time between bounces")
    line = np.polyfit(sizes, bounce, 1)
    r2 = 1.0 - (bounce - np.polyval(line, sizes)).var() / bounce.var()
    wide, narrow = (table.y("F4, integrated ACF", direction) for direction in DIRECTIONS)
    settled = {n: table.value("F4, NLL / N", str(n), N * s["passes F4"] / 3) for n in SIZES}
    violated, found = table.y("F5, violations", "published"), {}
    for what in ("violations", "bounces", "|bias| / sd", "variance / exact"):
        found[what] = table.y(f"F5, {what}", "default")
    off, printed, large = violated / VIOLATIONS, table.y("F5, variance / exact", "published"), BOUNDS >= 4.0
    bias, ratio = found["|bias| / sd"][large].max(), found["variance / exact"][large]
    within = bool(np.all((ratio > 0.75) & (ratio < 1.3)))
    return [
        Row("F3 variance at step 0.1", f"{mean[2]:.2e} ± {error[2]:.0e}", "[0.7, 1] e-5, 2 se", at_tenth),
        Row("F3 variance at step 1", f"{mean[0]:.2e}", "> 1.2e-5", mean[0] > 1.2e-5),
        Row("F3 largest step not above the Laplace variance", f"{below:.2g}", "0.1 or 0.32, 2 se", 0.09 < below < 0.33),
        Row("F3 small steps have not mixed: variance at 10^-4.5", f"{mean[-1]:.2e}", "< 0.5e-5", mean[-1] < 0.5e-5),
        Row("F4 mean time between bounces", " ".join(f"{b:.3f}" for b in bounce)),
        Row("F4 it is linear in n, R²", f"{r2:.3f}", "> 0.98, rising", r2 > 0.98 and line[0] > 0.0, BENT),
        Row("F4 integrated ACF in data, largest variance", text(wide)),
        Row("F4 integrated ACF in data, smallest variance", text(narrow)),
        Row(
            "F4 largest / smallest over n, wide direction",
            f"{wide.max() / wide.min():.1f}",
            "< 2",
            wide.max() < 2.0 * wide.min(),
            APART,
        ),
        Row(
            "F4 largest / smallest over n, narrow direction",
            f"{narrow.max() / narrow.min():.1f}",
            "< 2",
            narrow.max() < 2.0 * narrow.min(),
            APART,
        ),
        Row(
            f"F4 NLL / N after {N * s['passes F4'] // 3:,} data, by n",
            " ".join(f"{v:.3f}" for v in settled.values()),
            "least for n = 50",
            min(settled, key=settled.get) == 50,
        ),
        Row("F5 violations / proposal, as published", text(violated), "falling", bool(np.all(np.diff(violated) < 0.0))),
        Row(
            "F5 relative to an independent implementation",
            text(off),
            "0.5 … 2 to k = 3",
            bool(np.all(np.abs(np.log2(off[:4])) < 1.0)),
        ),
        Row("F5 bounces / proposal, as published", text(table.y("F5, bounces", "published"))),
        Row(
            "F5 violations / proposal, default",
            text(found["violations"]),
            "falling",
            bool(np.all(np.diff(found["violations"]) <= 0.0)),
        ),
        Row(
            "F5 bounces / proposal, default",
            text(found["bounces"]),
            "falling",
            bool(np.all(np.diff(found["bounces"]) < 0.0)),
        ),
        Row("F5 variance / exact, as published", text(printed)),
        Row("F5 variance / exact, default", text(found["variance / exact"])),
        Row("F5 |bias| / sd, as published", text(table.y("F5, |bias| / sd", "published"))),
        Row("F5 |bias| / sd, default", text(found["|bias| / sd"])),
        Row("F5 k >= 4: bias, default", f"{bias:.3f}", "< 0.15", bias < 0.15),
        Row("F5 k >= 4: variance / exact, default", text(ratio), "0.75 … 1.3", within),
        Row("F5 k <= 2: variance / exact, as published", text(printed[:3]), "> 1.2", bool(np.all(printed[:3] > 1.2))),
    ]


def draw_acf(panels, table, figure, label):
    """Autocorrelations along both directions."""
    for axes, direction in zip(panels, DIRECTIONS, strict=True):
        name = f"{figure}, ACF, {direction}"
        for colour, series in zip(COLOURS, table.series(name), strict=False):
            x, y, _ = table.get(name, series)
            axes.plot(x, y, color=colour, label=f"{label} = {series}", lw=1.2)
        axes.axhline(0.0, color="0.7", lw=0.6)
        axes.set(xlabel="lag in data looked at", ylabel="autocorrelation", title=direction, ylim=(-0.15, 1.0))
        axes.xaxis.set_major_locator(plt.MaxNLocator(5))
        axes.set_xlim(0.0, 3.0 * np.median(table.y(f"{figure}, integrated ACF", direction)))
    panels[0].legend(fontsize=7)


def f3(table, s):
    found, mean, _ = variances(table, s)
    figure, axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    axes.axhline(LAPLACE, color="0.4", ls="--", lw=1.0, label="$d / (2 N^2)$, Laplace")
    axes.plot(STEPS, found.T, ".", color=BLUE, ms=4)
    axes.plot(STEPS, mean, "o-", color=DARK_BLUE, label=f"SGLD, {s['steps F3']:,} steps; mean and each run")
    axes.set(xscale="log", yscale="log", xlabel="step (for the gradient of U / N)", ylabel="variance of NLL / N")
    axes.legend(fontsize=8)
    return figure


def f4(table, s):
    figure, panels = plt.subplots(2, 2, figsize=(10.5, 7.2), layout="constrained")
    draw_acf(panels[1], table, "F4", "n")
    for colour, n in zip(COLOURS, SIZES, strict=False):
        x, y, _ = table.get("F4, NLL / N", str(n))
        panels[0, 0].plot(x, y, color=colour, label=f"n = {n}")
    mode = problem()[1]
    panels[0, 0].axhline(nll(mode[None])[0] + D / (2.0 * N), color="0.4", ls="--", lw=1.0, label="Laplace")
    title = f"from a wide start, mean of {s['starts']} chains"
    panels[0, 0].set(xlabel="data looked at", ylabel="NLL / N", title=title)
    panels[0, 0].legend(fontsize=7)
    x, y, _ = table.get("F4", "time between bounces")
    line = np.polyfit(x, y, 1)
    panels[0, 1].plot(x, y, "o", color=DARK_BLUE)
    panels[0, 1].plot([0, 950], np.polyval(line, [0, 950]), "--", color="0.5", lw=1.0, label="a line")
    panels[0, 1].set(xlabel="size n of the batches", ylabel="mean time between bounces", xlim=(0, 950), ylim=(0, None))
    panels[0, 1].legend()
    return figure


def f5(table, s):
    figure, panels = plt.subplots(2, 2, figsize=(10.5, 7.2), layout="constrained")
    for kind, colour in KINDS.items():
        for axes, what, other in (
            (panels[0, 0], "violations", "bounces"),
            (panels[0, 1], "variance / exact", "|bias| / sd"),
        ):
            axes.semilogy(
                BOUNDS, np.maximum(table.y(f"F5, {what}", kind), 1e-7), "o-", color=colour, label=f"{kind}: {what}"
            )
            axes.semilogy(
                BOUNDS, table.y(f"F5, {other}", kind), "s:", color=colour, mfc="none", label=f"{kind}: {other}"
            )
    panels[0, 0].set(xlabel="k", ylabel="per proposal", title="violations and bounces", ylim=(1e-6, 1.0))
    panels[0, 1].axhline(1.0, color="0.6", lw=0.7)
    panels[0, 1].set(xlabel="k", title="moments: median and mean over coordinates")
    for axes in panels[0]:
        axes.legend(fontsize=7)
    draw_acf(panels[1], table, "F5", "k")
    return figure


STUDY = common.Study(
    name="sbps",
    quick={
        "seed": 3, "runs F3": 3, "steps F3": 60_000, "data F4": 8e6, "passes F4": 60, "starts": 8,
        "points": 60_000, "proposals F5": 200_000,
    },
    full={
        "seed": 3, "runs F3": 6, "steps F3": 60_000, "data F4": 4e7, "passes F4": 60, "starts": 40,
        "points": 60_000, "proposals F5": 300_000,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"f3": f3, "f4": f4, "f5": f5},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
