"""Figures 1, 4, 5, 8 and 15 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella).

Logistic regression on the Arrhythmia data: 344 rows to train, 100 standardised columns and a constant, prior N(0, I),
mini-batches of 34, chains of 100,000 steps from N(0, I) of which the first half is discarded, averaged over five splits
into training and test part. The reference is an exact run of the Bouncy Particle Sampler. v-, c- and e- are vanilla,
corrected and extreme variants; σ of SGLD is √h.

- Figures 1 and 8: the probability of Barker's sign at 1000 mini-batches: the vanilla estimate shrinks towards ½, the
  corrected one is right up to its breaking point.
- Figure 4: bias of means and variances, in posterior standard deviations, against the median effective sample size.
  Corrected SGLD has the smaller bias of the variance up to an effective size of 2,000, and beyond the larger one.
- Figure 5: log-loss on the test set during the runs with the published steps, whose median effective size is near 1000.
- Figure 15: log-loss against median effective size.

A smaller log-loss than the posterior's own is no sign of accuracy: the table gives that of exact draws and of Laplace's
approximation too.

    python examples/papers/arrhythmia.py [--quick] [--output FOLDER]

Data: `pdmp.data.arrhythmia`, downloaded from the UCI archive or from PDMP_DATA.
"""

import functools
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row, Study
from scipy import special, stats

import discrete
import pdmp

C = 1.702  #: of the probit approximation, as in the corrected estimator
GRIDS = {
    "v-SGBD": (0.04, 0.05, 0.07, 0.1, 0.15, 0.275, 0.5, 0.75, 1.0, 1.2),
    "c-SGBD": (0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0),
    "e-SGBD": (0.03, 0.05, 0.07, 0.1, 0.15, 0.2),
    "v-SGLD": (0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3),
    "c-SGLD": (0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.275, 0.29),
    "e-SGLD": (0.03, 0.05, 0.07, 0.09, 0.11, 0.13),
}
#: Of figure 5: each has a median effective size near 1000.
PUBLISHED = {"v-SGBD": 0.27, "c-SGBD": 0.22, "e-SGBD": 0.07, "v-SGLD": 0.145, "c-SGLD": 0.113, "e-SGLD": 0.09}
VARIANTS = {"v": None, "c": "corrected", "e": "extreme"}
#: Coordinates of figure 8, counted from 1; figure 1 is the first.
COORDINATES = (63, 34, 42, 15)
COLOURS = {
    "v-SGBD": BLUE,
    "c-SGBD": "#3b76b8",
    "e-SGBD": DARK_BLUE,
    "v-SGLD": RED,
    "c-SGLD": "#c9553f",
    "e-SGLD": DARK_RED,
}
STYLES = {"v": ":", "c": "--", "e": "-."}


@functools.cache
def data(split):
    return pdmp.data.arrhythmia(seed=split)


@functools.cache
def model(split):
    train = data(split).train
    return pdmp.models.LogisticRegression(train.X, train.y, prior_scale=1.0)


def batches(split):
    return pdmp.gradients.Minibatch(model(split), model(split).n_data // 10, draw="distinct")


def process(name, sigma, split):
    variant, sampler = name.split("-")
    if sampler == "SGBD":
        return discrete.SGBD(batches(split), sigma, VARIANTS[variant] or "vanilla")
    return discrete.SGLD.from_sigma(batches(split), sigma, correction=VARIANTS[variant])


def log_losses(draws, split):
    """Of the running average of the predictions, (draws,)."""
    test = data(split).test
    return pdmp.diagnostics.running_log_loss(test.y, model(split).predict(draws, test.X))


def reference(split, settings, table, work):
    target = model(split)
    run = work.sample(
        pdmp.BPS(target, metric="auto"), events=settings["reference_events"], warmup=0.05, seed=settings["seed"]
    )
    coordinates = np.arange(1, target.dim + 1)
    table.add("reference", f"mean {split}", coordinates, run.mean())
    table.add("reference", f"sd {split}", coordinates, run.sd())
    table.add("reference", f"least ESS {split}", 0, run.ess().min())
    table.add("reference", f"log-loss {split}", 0, log_losses(run.draws(4_000)[0], split)[-1])
    mode = target.mode()
    normal = np.random.default_rng(settings["seed"]).multivariate_normal(
        mode, np.linalg.inv(target.hessian(mode)), 4_000, method="cholesky"
    )
    table.add("reference", f"Laplace {split}", 0, log_losses(normal, split)[-1])


def chain(name, sigma, split, settings, work):
    """One run from N(0, I), or None if it diverges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # steps above the limit of stability are part of the figure
        try:
            return work.sample(
                process(name, sigma, split),
                f"{name}-{sigma:g}",
                initial=np.random.default_rng(settings["seed"]).standard_normal(model(split).dim),
                steps=settings["steps"],
                warmup=0.5,
                seed=settings["seed"] + split,
                store="grid",
                draws=settings["draws"],
                progress=False,
            )
        except pdmp.SamplingError:
            return None


def grid(name, split, settings, table, work):
    """Figures 4 and 15: one sampler with all of its steps."""
    mean, sd = table.y("reference", f"mean {split}"), table.y("reference", f"sd {split}")
    for sigma in GRIDS[name][:: settings["every"]]:
        run, found = chain(name, sigma, split, settings, work), (np.nan, np.inf, np.inf, np.inf)
        if run is not None:
            found = (
                np.median(run.ess()),
                np.mean(np.abs(run.mean() - mean) / sd),
                np.mean(np.abs(run.var() - sd**2) / sd),
                log_losses(run.draws(500)[0], split)[-1],
            )
        for what, value in zip(("ess", "bias of mean", "bias of variance", "log-loss"), found, strict=True):
            table.add(f"{what} {split}", name, sigma, value)


def curves(split, settings, table, work):
    """Figure 5, and on the first split figures 1 and 8 at the last state of v-SGBD."""
    for name, sigma in PUBLISHED.items():
        run = chain(name, sigma, split, settings, work)
        draws = run.draws(1_000)[0]
        loss = log_losses(draws, split)
        at = np.unique(np.geomspace(1, len(loss), 30).astype(int))
        half = settings["steps"] // 2
        table.add(f"F5 {split}", name, half + at * half // len(loss), loss[at - 1])
        table.add(f"F5 ess {split}", name, sigma, np.median(run.ess()))
        if name == "v-SGBD" and split == 0:
            probabilities(draws[-1], settings, table)


def probabilities(state, settings, table):
    """Average of the vanilla and of the corrected probability over mini-batches at one state."""
    noisy = pdmp.diagnostics.scores(
        batches(0), np.repeat(state[None], settings["batches"], axis=0), seed=settings["seed"]
    )
    exact, tau = pdmp.diagnostics.scores(model(0), state[None])[0], noisy.std(axis=0, ddof=1)
    kurtosis, z = stats.kurtosis(noisy), np.linspace(-0.3, 0.3, 61)
    for j in range(len(tau)):
        near = 1.5 / tau[j] * np.linspace(-1.0, 1.0, 41)[1:-1]  # below the breaking point, 1.702 / τ
        off = [
            np.abs(f(near, noisy[:, j], tau[j]) - special.expit(near * exact[j])).max() for f in (corrected, vanilla)
        ]
        for series, value in zip(("corrected off", "vanilla off", "kurtosis"), (*off, kurtosis[j]), strict=True):
            table.add("F8", series, j + 1, value)
        table.add("F8", "tau", j + 1, tau[j])
    for coordinate in COORDINATES:
        j, figure = coordinate - 1, f"F8 {coordinate}"
        table.add(figure, "exact", z, special.expit(z * exact[j]))
        table.add(figure, "vanilla", z, vanilla(z, noisy[:, j], tau[j]))
        table.add(figure, "corrected", z, corrected(z, noisy[:, j], tau[j]))


def vanilla(z, gradients, tau):
    """Average probability of the sign of z (n,) over the gradients."""
    return special.expit(z[:, None] * gradients).mean(axis=1)


def corrected(z, gradients, tau):
    """The same of the corrected estimator; beyond the breaking point it is the extreme one."""
    rest = C**2 - tau**2 * z**2
    stretch = C / np.sqrt(np.where(rest > 0.0, rest, np.inf))
    extreme = 0.5 + 0.5 * np.sign(z[:, None] * gradients)
    return np.where(rest[:, None] > 0.0, special.expit((stretch * z)[:, None] * gradients), extreme).mean(axis=1)


def pieces(settings):
    found = {}
    for split in range(settings["splits"]):
        found[f"reference {split}"] = functools.partial(reference, split, settings)
        found[f"F5 {split}"] = functools.partial(curves, split, settings)
        for name in GRIDS:
            found[f"{name} {split}"] = functools.partial(grid, name, split, settings)
    return found


def average(table, settings, what, name):
    """Mean over the splits at each σ; inf where a run diverged."""
    return np.mean([table.y(f"{what} {split}", name) for split in range(settings["splits"])], axis=0)


def against_ess(table, settings, what, name):
    """Median ESS, increasing, and a quantity, over the steps at which no run diverged."""
    ess, y = average(table, settings, "ess", name), average(table, settings, what, name)
    keep = np.isfinite(ess) & np.isfinite(y)
    ess, y = ess[keep], y[keep]
    grows = ess >= np.maximum.accumulate(ess)
    return ess[grows], y[grows]


def at_ess(table, settings, what, name, level):
    ess, y = against_ess(table, settings, what, name)
    return float(np.interp(np.log(level), np.log(ess), y))


def criteria(table, settings):
    rows = []

    def settled(*row):
        """No verdict of short runs, or of one or two splits, on small differences."""
        return Row(*row) if settings["steps"] >= 50_000 and settings["splits"] >= 3 else Row(*row)._replace(passed=None)

    off, plain = table.y("F8", "corrected off"), table.y("F8", "vanilla off")
    rows.append(
        Row(
            f"F8 |z| < 1.5 / τ, median of {len(off)} coordinates: corrected, vanilla off by",
            f"{np.median(off):.3f}, {np.median(plain):.3f}",
            "< 0.03 and half of vanilla",
            np.median(off) < 0.03 and np.median(off) < 0.5 * np.median(plain),
            f"Corrected is better at {np.mean(off < plain):.0%} of the coordinates. It assumes normal noise, and the "
            f"excess kurtosis of the gradients is {np.median(table.y('F8', 'kurtosis')):.1f} at the median coordinate, "
            f"{np.quantile(table.y('F8', 'kurtosis'), 0.9):.1f} at the ninth decile.",
        )
    )
    for coordinate in COORDINATES:
        figure, tau = f"F8 {coordinate}", table.value("F8", "tau", coordinate)
        kurtosis = table.value("F8", "kurtosis", coordinate)
        z, exact, _ = table.get(figure, "exact")
        shrunk, mended = table.y(figure, "vanilla"), table.y(figure, "corrected")
        what = "F1, F8" if coordinate == COORDINATES[0] else "F8"
        worst, other = off[coordinate - 1], plain[coordinate - 1]
        rows.append(
            Row(
                f"{what} coordinate {coordinate}, |z| < 1.5 / τ: corrected, vanilla off by",
                f"{worst:.3f}, {other:.3f}",
                "< 0.03 and half of vanilla",
                worst < 0.03 and worst < 0.5 * other,
                f"Vanilla is off by {other:.3f}, corrected by {worst:.3f}, with standard errors up to 0.016. The "
                f"correction assumes normal noise; the excess kurtosis is {kurtosis:.1f} here.",
            )
        )
        beyond = np.abs(mended - exact)[np.abs(z) > C / tau]
        rows.append(
            Row(
                f"{what} coordinate {coordinate}: corrected off beyond its breaking point {C / tau:.2f}",
                f"{beyond.max() if len(beyond) else 0.0:.3f}",
            )
        )
        rows.append(
            Row(
                f"{what} coordinate {coordinate}: vanilla nearer to ½ than the exact one, least by",
                f"{np.min(np.abs(exact - 0.5) - np.abs(shrunk - 0.5)):+.3f}",
                ">= -0.01",
                np.all(np.abs(shrunk - 0.5) <= np.abs(exact - 0.5) + 0.01),
            )
        )
    for what in ("bias of mean", "bias of variance"):
        for variant in "vc":
            name, langevin = f"{variant}-SGBD", f"{variant}-SGLD"
            most = min(against_ess(table, settings, what, n)[0][-1] for n in (name, langevin))
            level = min(settings["steps"] / 50, most)  # nothing is known beyond
            one, other = (at_ess(table, settings, what, n, level) for n in (name, langevin))
            rows.append(
                Row(
                    f"F4 {what} at a median ESS of {level:,.0f}: {name}, {langevin}",
                    f"{one:.3f}, {other:.3f}",
                    "SGBD less",
                    one < other,
                    f"{langevin} has the smaller bias there.",
                )
            )
        for variant in "vc":
            name, langevin = f"{variant}-SGBD", f"{variant}-SGLD"
            start = max(against_ess(table, settings, what, n)[0][0] for n in (name, langevin))
            one, other = (at_ess(table, settings, what, n, start) for n in (name, langevin))
            rows.append(
                settled(
                    f"F4 {what} at the smallest common ESS, {start:.0f}: {name}, {langevin}",
                    f"{one:.3f}, {other:.3f}",
                    "SGLD at most SGBD",
                    other <= one,
                )
            )
    splits = range(settings["splits"])
    last = {name: np.array([table.y(f"F5 {split}", name)[-1] for split in splits]) for name in PUBLISHED}
    for variant in "vce":
        one, other = last[f"{variant}-SGBD"], last[f"{variant}-SGLD"]
        rows.append(
            settled(
                f"F5 final log-loss, {len(one)} splits: {variant}-SGBD, {variant}-SGLD",
                f"{one.mean():.3f}, {other.mean():.3f}",
                "SGBD at most SGLD",
                one.mean() <= other.mean(),
            )
        )
    best, least = last["c-SGBD"].mean(), min(v.mean() for v in last.values())
    rows.append(
        settled(
            "F5 final log-loss of c-SGBD, least of six",
            f"{best:.3f}, {least:.3f}",
            "up to 0.005",
            best <= least + 0.005,
        )
    )
    for what, series in (("exact draws", "log-loss"), ("Laplace's approximation", "Laplace")):
        value = np.mean([table.value("reference", f"{series} {split}") for split in splits])
        rows.append(Row(f"F5 log-loss of {what}", f"{value:.3f}"))
    for name in PUBLISHED:
        ess = np.mean([table.value(f"F5 ess {split}", name) for split in splits])
        rows.append(Row(f"F5 median ESS of {name}, σ = {PUBLISHED[name]:g} (published: about 1000)", f"{ess:.0f}"))
    for variant in "vce":
        one, other = (against_ess(table, settings, "log-loss", f"{variant}-{s}") for s in ("SGBD", "SGLD"))
        levels = np.geomspace(max(one[0][0], other[0][0]), min(one[0][-1], other[0][-1]), 9)
        gaps = [
            at_ess(table, settings, "log-loss", f"{variant}-SGBD", k)
            - at_ess(table, settings, "log-loss", f"{variant}-SGLD", k)
            for k in levels
        ]
        rows.append(
            settled(
                f"F15 log-loss {variant}-SGBD - {variant}-SGLD, ESS {levels[0]:.0f} to {levels[-1]:.0f}: worst",
                f"{max(gaps):+.4f}",
                "< 0",
                max(gaps) < 0.0,
                f"SGBD is better at {sum(g < 0 for g in gaps)} of {len(gaps)} sizes; the gaps are "
                + ", ".join(f"{g:+.3f}" for g in gaps)
                + ".",
            )
        )
    return rows


def estimates(table, settings):
    """Figures 1 and 8."""
    figure, axes = plt.subplots(1, 4, figsize=(12.0, 3.1), layout="constrained", sharey=True)
    for coordinate, axis in zip(COORDINATES, axes, strict=True):
        where, tau = f"F8 {coordinate}", table.value("F8", "tau", coordinate)
        for series, style in (
            ("exact", {"color": "black"}),
            ("vanilla", {"color": RED}),
            ("corrected", {"color": BLUE}),
        ):
            axis.plot(*table.get(where, series)[:2], lw=1.6 if series == "exact" else 1.3, label=series, **style)
        for side in (-1, 1):
            if C / tau < 0.3:
                axis.axvline(side * C / tau, color="0.6", lw=0.8, ls=":")
        axis.set(title=f"coordinate {coordinate}, τ = {tau:.1f}", xlabel="z", ylim=(0.0, 1.0))
    axes[0].set_ylabel("probability of +z")
    axes[0].legend(fontsize=8, title="dotted: breaking point")
    return figure


def trade_off(table, settings):
    """Figure 4, with figure 15 at its right."""
    figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.8), layout="constrained")
    for axis, what in zip(axes, ("bias of mean", "bias of variance", "log-loss"), strict=True):
        for name in GRIDS:
            if name[0] == "e" and what != "log-loss":
                continue
            ess, y = against_ess(table, settings, what, name)
            axis.plot(ess, y, STYLES[name[0]], marker="o", ms=3.5, color=COLOURS[name], label=name)
        axis.set(xscale="log", xlabel="median effective sample size", title=what)
    axes[0].set(yscale="log", ylabel="mean over coordinates, in sd")
    axes[1].set(yscale="log")
    splits = range(settings["splits"])
    for series, style in (("log-loss", "-"), ("Laplace", ":")):
        value = np.mean([table.value("reference", f"{series} {split}") for split in splits])
        axes[2].axhline(value, color="black", lw=0.8, ls=style, label="posterior" if style == "-" else "Laplace")
    axes[2].legend(fontsize=8)
    return figure


def running(table, settings):
    """Figure 5."""
    figure, axis = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    splits = range(settings["splits"])
    for name in PUBLISHED:
        x = table.get("F5 0", name)[0]
        y = np.mean([table.y(f"F5 {split}", name) for split in splits], axis=0)
        axis.plot(x / 1e3, y, STYLES[name[0]], color=COLOURS[name], label=name)
    for series, style in (("log-loss", "-"), ("Laplace", ":")):
        value = np.mean([table.value("reference", f"{series} {split}") for split in splits])
        axis.axhline(value, color="black", lw=0.8, ls=style, label="posterior" if style == "-" else "Laplace")
    axis.set(xlabel="thousand steps", ylabel=f"log-loss on the test set, {len(splits)} splits", ylim=(0.5, 1.0))
    axis.legend(fontsize=8, ncols=2)
    return figure


STUDY = Study(
    name="arrhythmia",
    quick={
        "seed": 1, "splits": 1, "steps": 20_000, "every": 3, "draws": 1_000, "reference_events": 2_000,
        "batches": 1_000,
    },
    full={
        "seed": 1, "splits": 5, "steps": 100_000, "every": 1, "draws": 5_000, "reference_events": 20_000,
        "batches": 1_000,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"f8": estimates, "f4": trade_off, "f5": running},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
