"""A figure that none of the papers has: the samplers of all five on the same three posteriors.

Error of the posterior means and of the standard deviations against data passes and against seconds. The posteriors are
the logistic regressions of Sepsis (88,163 patients, 4 coefficients) and of Arrhythmia (344 patients, 101 coefficients),
and a hierarchy: the mean ratings of the first 100 films of MovieLens 100K with their standard errors, centred, 102
coordinates. Samplers are as their defaults set them up, which learn a step from the curvature and the noise on the way
("rule"); those of stochastic gradients besides as MAMBA chooses step and batch ("MAMBA", by the Stein discrepancy, its
budget not counted). Batches of the rule are a tenth of the data, at most 500. `pdmp.auto` and NUTS, of nutpie, stand
beside them; the exact samplers have a larger budget besides, as learning a metric takes thousands of gradients.
Everything starts at draws of the reference; warm-ups count. The reference is a long run of `pdmp.auto`.

Seconds are those of one chain while two run side by side. NUTS calls the model through Python: its seconds say little.
A sampler without a point has failed, or cannot be used on this posterior; the script says which, and why.

    python examples/papers/every_sampler.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Needs nutpie (`pip install 'pdmp[nutpie]'`), Sepsis, Arrhythmia and MovieLens 100K (PDMP_DATA, or a download). Writes a
table, pictures and what was found, and ends with exit code 1 if a criterion fails.
"""

import functools
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import Row

import discrete
import pdmp
from pdmp import tuning
from pdmp.comparison import NUTS, Reference

POSTERIORS = ("Sepsis", "Arrhythmia", "films")
FILMS = 100
STARTS = 4  #: chains


@functools.cache
def model(posterior):
    if posterior == "films":
        data = pdmp.data.movielens_100k(1)
        items, ratings = (np.concatenate([getattr(part, name) for part in (data.train, data.test)]) for name in FIELDS)
        count = np.bincount(items, minlength=data.shape[1])
        some = np.flatnonzero(count)[:FILMS]
        mean = np.bincount(items, ratings - ratings.mean())[some] / count[some]
        error = ratings.std() / np.sqrt(count[some])
        return pdmp.models.HierarchicalNormal(mean, error, mu_scale=1.0, tau_scale=1.0, centred=True)
    train = (pdmp.data.sepsis() if posterior == "Sepsis" else pdmp.data.arrhythmia(seed=0)).train
    return pdmp.models.LogisticRegression(train.X, train.y, prior_scale=1.0)


FIELDS = ("items", "ratings")
NO_POINT = "the budget is too small for its warm-up, or nutpie is not installed"

# What makes a process of a provider of gradients, by default and with what MAMBA varies.
NOISY = {
    "SGLD": lambda g, **arm: discrete.SGLD(g, **arm),
    "v-SGBD": lambda g, **arm: discrete.SGBD(g, **arm),
    "c-SGBD": lambda g, **arm: discrete.SGBD(g, estimator="corrected", **arm),
    "e-SGBD": lambda g, **arm: discrete.SGBD(g, estimator="extreme", **arm),
    "SGHMC": lambda g, **arm: discrete.SGHMC(g, **arm),
    "SGNHT": lambda g, **arm: discrete.SGNHT(g, **arm),
    "mSGNHT": lambda g, **arm: discrete.MSGNHT(g, **arm),
    "SGRRLD": lambda g, **arm: discrete.SGRRLD(g, **arm),
    "SGRRHMC": lambda g, **arm: discrete.RichardsonRomberg(discrete.SGHMC(g, **arm)),
    "SBPS": lambda g, **arm: pdmp.SBPS(g, **arm),
}
EXACT = {
    "BPS": pdmp.BPS,
    "Zig-Zag": pdmp.ZigZag,
    "Boomerang": pdmp.Boomerang,
    "forward event-chain": lambda m: pdmp.ForwardEventChain(m, metric="diagonal"),
    "auto": lambda m: m,
    "NUTS": NUTS,
}
CONTROLLED = ("SGLD", "SGHMC", "SGNHT")  #: those that the paper on MAMBA has with control variates
#: Whose settings MAMBA chooses from; the others have their own recipe.
LIKE = {"c-SGBD": "SGBD", "e-SGBD": "SGBD", "v-SGBD": "SGBD", "mSGNHT": "SGHMC", "SGNHT": "SGHMC", "SGRRHMC": "SGHMC"}
FAMILIES = {
    "auto": "#000000", "NUTS": "#888888", "BPS": "#12508f", "Zig-Zag": "#12508f", "Boomerang": "#12508f",
    "forward event-chain": "#12508f", "SBPS": "#7fb0dd", "SGLD": "#a32814", "SGRRLD": "#e08a78", "v-SGBD": "#2e8b57",
    "c-SGBD": "#2e8b57", "e-SGBD": "#2e8b57", "SGHMC": "#d98b1f", "SGRRHMC": "#d98b1f", "SGNHT": "#8c6bb1",
    "mSGNHT": "#8c6bb1",
}  # fmt: skip
MARKERS = {
    "auto": "*", "NUTS": "*", "BPS": "o", "Zig-Zag": "s", "Boomerang": "^", "forward event-chain": "v", "SBPS": "D",
    "SGLD": "o", "SGRRLD": "s", "v-SGBD": "o", "c-SGBD": "s", "e-SGBD": "^", "SGHMC": "o", "SGRRHMC": "s",
    "SGNHT": "o", "mSGNHT": "s",
}  # fmt: skip


def batch(target):
    """The mini-batches of the rule."""
    return pdmp.gradients.Minibatch(target, min(max(target.n_data // 10, 20), 500, target.n_data), draw="distinct")


def moments(table, posterior):
    """The reference, and its draws to start from."""
    mean, sd = (table.y("reference", f"{posterior}: {what}") for what in ("mean", "sd"))
    ess, rhat = (table.value("reference", f"{posterior}: {what}") for what in ("least ESS", "R-hat"))
    starts = np.array([table.y("reference", f"{posterior}: start {k}") for k in range(STARTS)])
    return Reference(mean, sd, np.diag(sd**2), starts, rhat, ess, text=f"auto, min ESS {ess:,.0f}"), starts


def reference(posterior, s, table, work):
    run = work.sample(
        model(posterior), ess=s["ess"], gradients=s["reference gradients"], chains=4, seed=s["seed"] + 1, progress=False
    )
    coordinates = np.arange(1, run.dim + 1)
    table.add("reference", f"{posterior}: mean", coordinates, run.mean())
    table.add("reference", f"{posterior}: sd", coordinates, run.sd())
    table.add("reference", f"{posterior}: least ESS", 0, min(run.ess().min(), run.ess("sd").min()))
    table.add("reference", f"{posterior}: R-hat", 0, run.rhat().max())
    for k, draw in enumerate(run.draws(1_000)[:, 500]):
        table.add("reference", f"{posterior}: start {k}", coordinates, draw)


def rows(posterior, label, process, s, table, longer=()):
    """A point for each budget; none where the sampler fails."""
    truth, starts = moments(table, posterior)
    for passes in [*s["passes"][posterior], *longer]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = pdmp.compare(
                {label: process}, data_passes=passes, reference=truth, initial=starts, warmup=0.2, seed=s["seed"]
            )
        row = found.rows[0]
        if np.isnan(row["mean_error"]):
            print(f"{posterior}, {label}, {passes:g} passes: {[n for n in found.notes if label in n]}")
            continue
        at = row["data_passes"]
        table.add("means", f"{posterior}: {label}", at, row["mean_error"])
        table.add("sds", f"{posterior}: {label}", at, row["sd_error"])
        table.add("seconds", f"{posterior}: {label}", at, row["seconds"])


def exact(posterior, label, s, table, work):
    rows(posterior, label, EXACT[label](model(posterior)), s, table, s["longer"][posterior])


def by_rule(posterior, label, s, table, work):
    target = model(posterior)
    rows(posterior, f"{label}, rule", NOISY[label](batch(target)), s, table)
    if label in CONTROLLED:
        anchor = moments(table, posterior)[0].mean
        provider = pdmp.gradients.ControlVariate(target, batch(target).size, anchor=anchor)
        rows(posterior, f"{label}-CV, rule", NOISY[label](provider), s, table)


def by_mamba(posterior, label, s, table, work):
    truth, starts = moments(table, posterior)
    target, registered = model(posterior), pdmp.comparison.registered()
    recipe = (registered.get(LIKE.get(label, label)) or registered[label]).recipe
    _, arms = recipe.arms(registered[LIKE.get(label, label)], target, truth.mean)

    def make(size, **arm):
        if label in ("SGNHT", "mSGNHT"):
            arm["diffusion"] = arm.pop("friction")
        return NOISY[label](pdmp.gradients.Minibatch(target, size, draw="distinct"), **arm)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = tuning.mamba(
                make, arms, s["tuning"][posterior], "ksd", "data", seed=s["seed"], initial=starts[0], draws=300
            )
        except pdmp.SamplingError as error:
            print(f"{posterior}, {label}, MAMBA: {error}")
            return
    for name, value in found.best.items():
        table.add("chosen", f"{posterior}: {label}, {name}", 0, value)
    rows(posterior, f"{label}, MAMBA", make(**found.best), s, table)


def pieces(s):
    found = {}
    for posterior in POSTERIORS[: s["posteriors"]]:
        found[f"{posterior}: reference"] = functools.partial(reference, posterior, s)
        for label in EXACT:
            found[f"{posterior}: {label}"] = possible(exact, posterior, label, s)
        for label in NOISY:
            found[f"{posterior}: {label}, rule"] = possible(by_rule, posterior, label, s)
            found[f"{posterior}: {label}, MAMBA"] = possible(by_mamba, posterior, label, s)
    return found


def possible(function, posterior, label, s):
    """A piece that says so, and adds no point, if the sampler cannot be used there."""

    def piece(table, work):
        try:
            function(posterior, label, s, table, work)
        except (ValueError, ImportError) as error:
            print(f"{posterior}, {label}: {error}")

    return piece


def last(table, figure, posterior, only=None):
    """The value at the largest budget of each sampler of a posterior."""
    found = {}
    for series in table.series(figure):
        name, label = series.split(": ", 1)
        if name == posterior and (only is None or label.partition(",")[0] in only):
            found[label] = table.y(figure, series)[-1]
    return found


def criteria(table, s):
    found = []
    for posterior in POSTERIORS[: s["posteriors"]]:
        rhat = table.value("reference", f"{posterior}: R-hat")
        found.append(Row(f"{posterior}, reference: R-hat", f"{rhat:.4f}", "< 1.01", rhat < 1.01))
        ess = table.value("reference", f"{posterior}: least ESS")
        floor = float(np.sqrt(2.0 / np.pi / ess))
        found.append(Row(f"{posterior}, reference: its own error of a mean, sd", f"{floor:.4f}"))
        for figure in ("means", "sds"):
            best = sorted(last(table, figure, posterior).items(), key=lambda item: item[1])
            text = ", ".join(f"{label} {value:.3f}" for label, value in best[:3])
            found.append(Row(f"{posterior}, {figure}: least errors at the largest budget", text))
        for label in ("auto", "NUTS"):
            value = last(table, "means", posterior, (label,)).get(label, np.inf)
            what = f"{posterior}: error of the means of {label} at the largest budget"
            found.append(Row(what, f"{value:.4f}", "< 0.1", value < 0.1, NO_POINT))
        biased = {k: v for k, v in last(table, "sds", posterior).items() if k.endswith(", rule")}
        held = sum(v < 0.1 for v in biased.values())
        what = f"{posterior}: stochastic gradients by the rule: sds within 10 % at the largest budget"
        found.append(Row(what, f"{held} of {len(biased)}"))
    return found


SHOWN = 5e-3, 5.0  #: errors beyond are drawn at the edge


def picture(table, s, against):
    figures = ("means", "sds")
    shown = POSTERIORS[: s["posteriors"]]
    figure, grid = plt.subplots(
        2, len(shown), figsize=(5.0 * len(shown), 8.0), layout="constrained", squeeze=False, sharex="col", sharey="row"
    )
    labels = {}
    for row, what in zip(grid, figures, strict=True):
        for axes, posterior in zip(row, shown, strict=True):
            for series in table.series(what):
                name, label = series.split(": ", 1)
                if name != posterior:
                    continue
                x, y, _ = table.get(what, series)
                if against == "seconds":
                    x = table.y("seconds", series)
                base = label.partition(",")[0].removesuffix("-CV")
                style = ":" if label.endswith("MAMBA") else "--" if "-CV" in label else "-"
                front = label in ("auto", "NUTS")
                (line,) = axes.plot(
                    x, np.clip(y, *SHOWN), style, marker=MARKERS[base], ms=10 if front else 4, color=FAMILIES[base],
                    lw=2.0 if front else 0.9, zorder=3 if front else 2,
                    markerfacecolor="white" if style != "-" else FAMILIES[base],
                )  # fmt: skip
                labels.setdefault(label, line)
            axes.set(xscale="log", yscale="log", ylim=(0.8 * SHOWN[0], 1.25 * SHOWN[1]))
            if what == "means":
                axes.set_title(f"{posterior}, d = {len(table.y('reference', f'{posterior}: mean'))}")
        row[0].set_ylabel(f"error of the {'means' if what == 'means' else 'standard deviations'} [sd]")
    for axes in grid[1]:
        axes.set_xlabel("seconds of a chain" if against == "seconds" else "data passes of a chain")
    figure.legend(labels.values(), labels, loc="outside right upper", fontsize=8)
    grid[0, 0].text(
        0.03, 0.93, f"errors above {SHOWN[1]:g} are at the edge", transform=grid[0, 0].transAxes, va="top", fontsize=8
    )
    return figure


STUDY = common.Study(
    name="every_sampler",
    quick={
        "seed": 0, "posteriors": 1, "ess": 400, "reference gradients": 20_000,
        "passes": {"Sepsis": [3, 10], "Arrhythmia": [], "films": []},
        "longer": {"Sepsis": [], "Arrhythmia": [], "films": []},
        "tuning": {"Sepsis": 3, "Arrhythmia": 0, "films": 0},
    },
    full={
        "seed": 0, "posteriors": 3, "ess": 10_000, "reference gradients": 3_000_000,
        "passes": {
            "Sepsis": [10, 100, 1_000],
            "Arrhythmia": [100, 1_000, 10_000],
            "films": [100, 1_000, 10_000],
        },
        "longer": {"Sepsis": [5_000], "Arrhythmia": [50_000], "films": []},
        "tuning": {"Sepsis": 30, "Arrhythmia": 300, "films": 300},
    },
    pieces=pieces,
    criteria=criteria,
    pictures={
        "": functools.partial(picture, against="passes"),
        "seconds": functools.partial(picture, against="seconds"),
    },
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
