"""Figure 7 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella, 2024).

Bayesian probabilistic matrix factorisation of MovieLens 100K, split u1: 80,000 ratings by 943 users of 1682 films, 20
factors, 52,580 coordinates, noise precision 3, Gamma(1, 5) prior of the precisions, mini-batches of 800, 5000 steps (50
epochs) from U, V, μ ~ N(0, 1), log λ_U ~ N(-0.1, 1), log λ_V ~ N(-0.1, 0.1²). σ is √0.0005 and 0.005 for v- and e-SGBD,
0.011 and 0.0105 for v- and e-SGLD (σ = √h). Shown is the root mean squared error on the test set, predictions clipped
to [1, 5]: of single states, and of the average prediction of all states since the middle of the run.

The orders that are claimed: SGBD is better than SGLD in both variants, e-SGBD has the best single states, v-SGBD the
best averages, about 0.97. The mean rating alone has 1.154.

    python examples/papers/bpmf.py [--quick] [--output FOLDER]

Data: `pdmp.data.movielens_100k`, from PDMP_DATA (GroupLens, research use, not to be redistributed).
"""

import functools
import sys

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row, Study

import discrete
import pdmp

STEPS = {"v-SGBD": 0.0005**0.5, "e-SGBD": 0.005, "v-SGLD": 0.011, "e-SGLD": 0.0105}
COLOURS = {"v-SGBD": BLUE, "e-SGBD": DARK_BLUE, "v-SGLD": RED, "e-SGLD": DARK_RED}
RANK, BATCH = 20, 800


@functools.cache
def data():
    return pdmp.data.movielens_100k(1)


@functools.cache
def model():
    train = data().train
    users, items = data().shape
    return pdmp.models.BPMF(train.users, train.items, train.ratings, RANK, users, items, shape=1.0, rate=5.0)


def start(seed):
    """U, V and means are N(0, 1), logarithms of precisions near -0.1."""
    rng, target = np.random.default_rng(seed), model()
    x = rng.standard_normal(target.dim)
    x[-2 * RANK : -RANK] = rng.normal(-0.1, 1.0, RANK)
    x[-RANK:] = rng.normal(-0.1, 0.1, RANK)
    return x


def process(name):
    batches, sigma = pdmp.gradients.Minibatch(model(), BATCH, draw="distinct"), STEPS[name]
    extreme = name[0] == "e"
    if name.endswith("SGBD"):
        return discrete.SGBD(batches, sigma, "extreme" if extreme else "vanilla")
    return discrete.SGLD.from_sigma(batches, sigma, correction="extreme" if extreme else None)


def errors(predictions, truth):
    """rMSE of each state, and of the average since the middle, (kept,); nan before the middle."""
    each = pdmp.diagnostics.rmse(truth, predictions, 1.0, 5.0)[0]
    averaged, first = np.full(len(predictions), np.nan), len(predictions) // 2
    total = np.zeros(predictions.shape[1])
    for k in range(first, len(predictions)):
        total += predictions[k]
        averaged[k] = np.sqrt(np.mean((np.clip(total / (k - first + 1), 1.0, 5.0) - truth) ** 2))
    return each, averaged


def sampler(name, settings, table, work):
    test = data().test
    truth = np.asarray(test.ratings, float)
    found = []
    for chain in range(settings["chains"]):
        run = work.sample(
            process(name),
            keep=False,
            initial=start(settings["seed"] + chain),
            steps=settings["steps"],
            seed=settings["seed"] + chain,
            store="grid",
            draws=settings["kept"],
        )
        predictions = model().predict(run.draws(settings["kept"])[0], test.users, test.items)
        found.append(errors(predictions, truth))
    found = np.array(found)
    steps = np.arange(1, settings["kept"] + 1) * settings["steps"] // settings["kept"]
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.full(found.shape[1:], np.nan)
    table.add("sample", name, steps, found[:, 0].mean(axis=0), error[0])
    late = np.isfinite(found[0, 1])
    table.add("MCMC", name, steps[late], found[:, 1].mean(axis=0)[late], error[1][late])


def pieces(settings):
    return {name: functools.partial(sampler, name, settings) for name in STEPS}


def criteria(table, settings):
    last = {name: tuple(v[-1] for v in table.get("MCMC", name)[1:]) for name in STEPS}
    rows = []

    def settled(*row):
        """No verdict of runs that are still on their way from where they started."""
        return Row(*row) if settings["steps"] >= 5_000 else Row(*row)._replace(passed=None)

    for name, (value, error) in last.items():
        rows.append(settled(f"F7 MCMC rMSE, {name}", f"{value:.4f} ± {error:.4f}", "< 1.154", value < 1.154))
    value = last["v-SGBD"][0]
    what = "F7 MCMC rMSE of v-SGBD (published: about 0.97)"
    rows.append(settled(what, f"{value:.3f}", "0.97 ± 0.02", abs(value - 0.97) <= 0.02))
    order = sorted(last, key=lambda n: last[n][0])
    rows.append(settled("F7 best MCMC rMSE", ", ".join(order[:2]), "v-SGBD first", order[0] == "v-SGBD"))
    for variant in "ve":
        one, other = last[f"{variant}-SGBD"][0], last[f"{variant}-SGLD"][0]
        row = Row if variant == "e" else settled
        rows.append(
            row(f"F7 MCMC rMSE: {variant}-SGBD, {variant}-SGLD", f"{one:.4f}, {other:.4f}", "SGBD less", one < other)
        )
    for at in (0.2, 1.0):
        each = {}
        for name in STEPS:
            x, y, _ = table.get("sample", name)
            each[name] = y[np.searchsorted(x, at * settings["steps"])]
        order = sorted(each, key=each.get)
        text = ", ".join(f"{n} {each[n]:.3f}" for n in order[:2])
        row = Row if at == 1.0 else settled
        rows.append(
            row(f"F7 best single state after {at:.0%} of the steps", text, "e-SGBD first", order[0] == "e-SGBD")
        )
    return rows


def picture(table, settings):
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained", sharey=True)
    for axis, what in zip(axes, ("sample", "MCMC"), strict=True):
        for name in STEPS:
            x, y, _ = table.get(what, name)
            axis.plot(x, y, ":" if name[0] == "v" else "-.", color=COLOURS[name], label=name)
        axis.axhline(1.154, color="black", lw=0.8, label="mean rating")
        axis.set(xlabel="steps")
    axes[0].set(ylabel="rMSE on the test set", title="each state", ylim=(0.93, 1.5))
    axes[1].set(title="average prediction of the second half")
    axes[1].legend(fontsize=8)
    return figure


STUDY = Study(
    name="bpmf",
    quick={"seed": 1, "steps": 1_000, "chains": 1, "kept": 40},
    full={"seed": 1, "steps": 5_000, "chains": 3, "kept": 100},
    pieces=pieces,
    criteria=criteria,
    pictures={"": picture},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
