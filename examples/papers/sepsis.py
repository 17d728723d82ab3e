"""Figures 3, 11 to 14 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella, 2024).

Logistic regression on the Sepsis data without standardising, so that the four coordinates have posterior standard
deviations from 0.0009 (age) to 0.08 (intercept); 88,163 rows to train, mini-batches of 881, prior N(0, I), chains that
start at the posterior mean, 200,000 steps of which the first half is discarded. Steps: σ = 2 10⁻⁴ and 4 10⁻⁴ for SGLD
(h = σ²), 7.5 10⁻⁴ and 1.5 10⁻³ for SGBD; in figure 14 a tenth and a fifth of each coordinate's standard deviation. The
reference is an exact run of the Bouncy Particle Sampler.

- Figures 3 and 11: SGLD inflates the standard deviation of the first coordinate, by more than ten with the larger step,
  and hardly moves the others; SGBD inflates it modestly.
- Figure 12: SGBD's marginals are close to the posterior's for coordinates 2 to 4.
- Figure 13, "smaller step-sizes produce better estimates, SGBD with a small step-size obtains the best predictive
  accuracy": the log-losses on the test set differ by about 10⁻⁴ or less; the table says by how many standard errors.
- Figure 14: with a step for each coordinate SGBD matches the marginals, and SGLD inflates them at a fifth.

    python examples/papers/sepsis.py [--quick] [--output FOLDER]

Data: `pdmp.data.sepsis`, downloaded from the UCI archive or from PDMP_DATA.
"""

import functools
import sys

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row, Study

import discrete
import pdmp

NAMES = ("age", "sex", "episode", "intercept")
SMALL = {"SGLD": 2e-4, "SGBD": 7.5e-4}
LARGE = {"SGLD": 4e-4, "SGBD": 1.5e-3}
#: Bandwidths of the published density estimates, by coordinate.
BANDWIDTHS = (0.0005, 0.008, 0.005, 0.03)
COLOURS = {"SGLD small": RED, "SGLD large": DARK_RED, "SGBD small": BLUE, "SGBD large": DARK_BLUE}
COLOURS |= {"SGLD 0.1 sd": RED, "SGLD 0.2 sd": DARK_RED, "SGBD 0.1 sd": BLUE, "SGBD 0.2 sd": DARK_BLUE}
UNTUNED = ("SGLD small", "SGLD large", "SGBD small", "SGBD large")
TUNED = ("SGLD 0.1 sd", "SGLD 0.2 sd", "SGBD 0.1 sd", "SGBD 0.2 sd")


@functools.cache
def data():
    return pdmp.data.sepsis()


@functools.cache
def model():
    train = data().train
    return pdmp.models.LogisticRegression(train.X, train.y, prior_scale=1.0)


def process(name, sd):
    """The sampler of this name; `sd` are the posterior standard deviations."""
    sampler, size = name.split(" ", 1)
    batches = pdmp.gradients.Minibatch(model(), model().n_data // 100, draw="distinct")
    if size in ("small", "large"):
        sigma = (SMALL if size == "small" else LARGE)[sampler]
        return discrete.SGBD(batches, sigma) if sampler == "SGBD" else discrete.SGLD.from_sigma(batches, sigma)
    sigma = float(size.split()[0]) * sd
    # h = σ² of each coordinate is the step γ = ½ with the preconditioner P = σ².
    return (
        discrete.SGBD(batches, sigma)
        if sampler == "SGBD"
        else discrete.SGLD(batches, 0.5, metric=pdmp.Metric(covariance=sigma**2))
    )


def density(values, places, bandwidth):
    """Gaussian kernel estimate at `places`."""
    z = (places[:, None] - values[None, :]) / bandwidth
    return np.exp(-0.5 * z * z).mean(axis=1) / (bandwidth * np.sqrt(2.0 * np.pi))


def places(table, j):
    mean, sd = table.y("reference", "mean")[j], table.y("reference", "sd")[j]
    return mean + sd * np.linspace(-4.5, 4.5, 61)


def reference(settings, table, work):
    run = work.sample(
        pdmp.BPS(model(), metric="auto"), events=settings["reference_events"], warmup=0.05, seed=settings["seed"]
    )
    coordinates = np.arange(1, 5)
    table.add("reference", "mean", coordinates, run.mean())
    table.add("reference", "sd", coordinates, run.sd())
    table.add("reference", "ess", coordinates, run.ess())
    draws = run.draws(5_000)[0]
    for j in range(4):
        at = places(table, j)
        table.add("density", f"reference {j + 1}", at, density(draws[:, j], at, 0.25 * draws[:, j].std()))
    loss = pdmp.diagnostics.running_log_loss(data().test.y, model().predict(draws[::10], data().test.X))[-1]
    table.add("reference", "log-loss", 0, loss)


def sampler(name, settings, table, work):
    """Moments, traces, densities and log-loss of one sampler with one step, from a few chains."""
    mean, sd = table.y("reference", "mean"), table.y("reference", "sd")
    steps, kept = settings["steps"], settings["kept"]
    shared = {"initial": mean, "steps": steps, "seed": settings["seed"] + 1, "store": "grid", "draws": kept}
    half = work.sample(process(name, sd), "half", chains=settings["chains"], warmup=0.5, **shared)
    coordinates = np.arange(1, 5)
    each = np.array([part.sd() for part in pdmp.diagnostics.split(half)])
    table.add("sd ratio", name, coordinates, half.sd() / sd, each.std(axis=0, ddof=1) / np.sqrt(len(each)) / sd)
    table.add("mean error", name, coordinates, (half.mean() - mean) / sd)
    table.add("ess", name, coordinates, half.ess() / settings["chains"])
    draws = half.draws(kept)
    if name in UNTUNED:  # the same seed: the path of the first chain, with its first half
        first = work.sample(process(name, sd), "whole", **shared).draws(kept)[0]
        shown = np.arange(0, kept, max(kept // 80, 1))
        for j in range(4):
            table.add("trace", f"{name} {j + 1}", (shown + 1) * steps // kept, first[shown, j])
    for j in range(4):
        at = places(table, j)
        table.add("density", f"{name} {j + 1}", at, density(draws[..., j].ravel(), at, BANDWIDTHS[j]))
    test, losses = data().test, []
    for chain in draws[:, :: max(kept // 500, 1)]:
        losses.append(pdmp.diagnostics.running_log_loss(test.y, model().predict(chain, test.X)))
    losses = np.array(losses)
    n = losses.shape[1]
    at = np.unique(np.geomspace(1, n, 25).astype(int))
    error = losses[:, at - 1].std(axis=0, ddof=1) / np.sqrt(len(losses))
    table.add("F13", name, steps // 2 + at * (steps // 2) // n, losses[:, at - 1].mean(axis=0), error)


def pieces(settings):
    found = {"reference": functools.partial(reference, settings)}
    for name in UNTUNED + TUNED:
        found[name] = functools.partial(sampler, name, settings)
    return found


def criteria(table, settings):
    ratio = {name: table.y("sd ratio", name) for name in UNTUNED + TUNED}
    bias = {name: table.y("mean error", name) for name in UNTUNED + TUNED}
    ess = {name: table.y("ess", name) for name in UNTUNED}

    def slow(*row):
        """Coordinates 2 to 4 mix in some 10⁴ steps or more: no verdict of a short run on what depends on them."""
        return Row(*row) if settings["steps"] >= 100_000 else Row(*row)._replace(passed=None)

    rows = [
        slow(
            "F3 SGLD σ = 2e-4: sd of age / posterior",
            f"{ratio['SGLD small'][0]:.2f}",
            "1.69 ± 0.2",
            abs(ratio["SGLD small"][0] - 1.69) <= 0.2,
        ),
        Row(
            "F3 SGLD σ = 4e-4: sd of age / posterior",
            f"{ratio['SGLD large'][0]:.1f}",
            "> 10",
            ratio["SGLD large"][0] > 10.0,
        ),
    ]
    for size in ("small", "large"):
        one, other = f"SGLD {size}", f"SGBD {size}"
        rows.append(
            Row(
                f"F3 sd of age / posterior: {other}, {one}",
                f"{ratio[other][0]:.2f}, {ratio[one][0]:.2f}",
                "SGBD less",
                ratio[other][0] < ratio[one][0],
            )
        )
        worst = np.abs(bias[other][1:]).max()
        rows.append(Row(f"F11 {other}: |error of the means of 2 to 4| / sd", f"{worst:.2f}", "< 1", worst < 1.0))
        gain = (ess[other][1:] / ess[one][1:]).min()
        rows.append(slow(f"F11 ESS of 2 to 4: {other} / {one}, least", f"{gain:.1f}", ">= 3", gain >= 3.0))
        low, high = ratio[other][1:].min(), ratio[other][1:].max()
        rows.append(
            slow(
                f"F12 {other}: sd of 2 to 4 / posterior",
                f"{low:.2f} to {high:.2f}",
                "in [0.8, 1.3]",
                0.8 <= low and high <= 1.3,
            )
        )
    last = {name: tuple(v[-1] for v in table.get("F13", name)[1:]) for name in UNTUNED}
    exact = table.value("reference", "log-loss")
    for name in UNTUNED:
        value, error = last[name]
        rows.append(Row(f"F13 log-loss {name} - posterior's", f"{1e5 * (value - exact):+.1f} ± {1e5 * error:.1f} 1e-5"))
    for one, other, claim in (
        ("SGBD small", "SGBD large", "a smaller step is better, SGBD"),
        ("SGLD small", "SGLD large", "a smaller step is better, SGLD"),
        ("SGBD small", "SGLD small", "SGBD is best"),
    ):
        gap, error = last[other][0] - last[one][0], np.hypot(last[one][1], last[other][1])
        rows.append(
            slow(
                f"F13 {claim}: log-loss {other} - {one}",
                f"{1e5 * gap:+.1f} ± {1e5 * error:.1f} 1e-5",
                "> 0",
                gap > 0.0,
                f"The log-losses of one chain each differ by {1e5 * abs(gap):.1f} 1e-5 of {exact:.4f}, with a standard "
                f"error of {1e5 * error:.1f} 1e-5 over chains; the posterior's own is {exact:.6f}.",
            )
        )
    for size in ("0.1 sd", "0.2 sd"):
        low, high = ratio[f"SGBD {size}"].min(), ratio[f"SGBD {size}"].max()
        rows.append(
            slow(
                f"F14 SGBD σ = {size}: sd / posterior",
                f"{low:.2f} to {high:.2f}",
                "in [0.9, 1.4]",
                0.9 <= low and high <= 1.4,
            )
        )
    gap = (ratio["SGLD 0.2 sd"] - ratio["SGBD 0.2 sd"]).min()
    rows.append(Row("F14 σ = 0.2 sd: SGLD's ratio - SGBD's, least of 4", f"{gap:.2f}", "> 0", gap > 0.0))
    return rows


def traces(table, settings):
    """Figures 3 and 11."""
    figure, axes = plt.subplots(2, 4, figsize=(12.0, 4.8), layout="constrained", sharex=True)
    mean, sd = table.y("reference", "mean"), table.y("reference", "sd")
    for row, size in zip(axes, ("small", "large"), strict=True):
        for j, axis in enumerate(row):
            for sampler in ("SGLD", "SGBD"):
                name = f"{sampler} {size}"
                x, y, _ = table.get("trace", f"{name} {j + 1}")
                sigma = (SMALL if size == "small" else LARGE)[sampler]
                axis.plot(
                    x / 1e3, y, color=(RED, DARK_BLUE)[sampler == "SGBD"], lw=0.8, label=f"{sampler}, σ = {sigma:g}"
                )
            for k in (-2, 2):
                axis.axhline(mean[j] + k * sd[j], color="black", lw=0.8)
            span = 12.0 if j == 0 and size == "large" else 5.0
            axis.set_ylim(mean[j] - span * sd[j], mean[j] + span * sd[j])
            axis.tick_params(labelsize=8)
            if size == "small":
                axis.set_title(NAMES[j])
            else:
                axis.set_xlabel("thousand steps")
            if j == 3:
                axis.legend(fontsize=8)
    figure.suptitle("One chain; black: posterior mean ± 2 sd")
    return figure


def densities(table, settings):
    """Figures 12 and 14."""
    figure, axes = plt.subplots(2, 4, figsize=(12.0, 4.8), layout="constrained")
    for row, names in zip(axes, (UNTUNED, TUNED), strict=True):
        for j, axis in enumerate(row):
            x, y, _ = table.get("density", f"reference {j + 1}")
            axis.fill_between(x, y, color="0.87", lw=0, label="posterior")
            for name in names:
                style = ":" if name.endswith(("small", "0.1 sd")) else "--"
                label = name
                if name in UNTUNED:
                    sampler, size = name.split()
                    label = f"{sampler}, σ = {(SMALL if size == 'small' else LARGE)[sampler]:g}"
                axis.plot(*table.get("density", f"{name} {j + 1}")[:2], style, color=COLOURS[name], lw=1.3, label=label)
            axis.set_yticks([])
            axis.set_ylim(0.0, 1.5 * y.max())
            axis.set_title(NAMES[j])
            axis.tick_params(labelsize=8)
            axis.xaxis.set_major_locator(plt.MaxNLocator(4))
            if j == 3:
                axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[0, 0].set_ylabel("figure 12: one σ")
    axes[1, 0].set_ylabel("figure 14: σ by coordinate")
    return figure


def losses(table, settings):
    """Figure 13."""
    figure, axis = plt.subplots(figsize=(6.0, 3.8), layout="constrained")
    exact = table.value("reference", "log-loss")
    for name in UNTUNED:
        x, y, error = table.get("F13", name)
        style = ":" if name.endswith("small") else "--"
        axis.plot(x / 1e3, 1e5 * (y - exact), style, color=COLOURS[name], label=name)
        axis.fill_between(
            x / 1e3, *(1e5 * (y - exact + k * error) for k in (-2, 2)), color=COLOURS[name], alpha=0.2, lw=0
        )
    axis.axhline(0.0, color="black", lw=0.8)
    axis.set(xlabel="thousand steps", ylabel="log-loss on the test set - posterior's, 10⁻⁵", ylim=(-20, 40))
    axis.legend(title="band: 2 standard errors", fontsize=8)
    return figure


STUDY = Study(
    name="sepsis",
    quick={"seed": 1, "steps": 10_000, "chains": 2, "kept": 200, "reference_events": 200},
    full={"seed": 1, "steps": 200_000, "chains": 3, "kept": 2_000, "reference_events": 4_000},
    pieces=pieces,
    criteria=criteria,
    pictures={"traces": traces, "densities": densities, "f13": losses},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
