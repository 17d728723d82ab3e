"""Figure 16 of "Robust approximate sampling via stochastic gradient Barker dynamics" (Mauri & Zanella, 2024).

Poisson matrix factorisation of MovieLens 100K, split u1: 100 factors, 265,125 coordinates, all shapes 0.3, means 1,
mini-batches of 800, 5000 steps (50 epochs). Shown is the log-likelihood of a rating of the test set: of single states,
and at the average rate of all states since the middle of the run; with rates as they are, and clipped to [1, 5].

The paper states no steps. As it says of other figures that they are tuned, each sampler has here the σ of a grid, by
factors of e, with the highest log-likelihood of the average rates.

    python examples/papers/ppmf.py [--quick] [--output FOLDER]

Data: `pdmp.data.movielens_100k`, from PDMP_DATA (GroupLens, research use, not to be redistributed).
"""

import functools
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row, Study
from scipy import special

import discrete
import pdmp

SAMPLERS = ("v-SGBD", "e-SGBD", "v-SGLD", "e-SGLD")
COLOURS = {"v-SGBD": BLUE, "e-SGBD": DARK_BLUE, "v-SGLD": RED, "e-SGLD": DARK_RED}
KINDS = {"raw": (0.0, np.inf), "clipped": (1.0, 5.0)}
BATCH = 800


@functools.cache
def data():
    return pdmp.data.movielens_100k(1)


@functools.cache
def model(rank):
    train = data().train
    users, items = data().shape
    return pdmp.models.PPMF(train.users, train.items, train.ratings, rank, users, items)


def process(name, sigma, rank):
    batches = pdmp.gradients.Minibatch(model(rank), BATCH, draw="distinct")
    if name.endswith("SGBD"):
        return discrete.SGBD(batches, sigma, "extreme" if name[0] == "e" else "vanilla")
    return discrete.SGLD.from_sigma(batches, sigma, correction="extreme" if name[0] == "e" else None)


def log_likelihood(rates, counts, limits):
    """Mean over the ratings, of rates (..., n)."""
    rates = np.clip(rates, *limits)
    return np.mean(special.xlogy(counts, rates) - rates - special.gammaln(counts + 1.0), axis=-1)


def grid(settings):
    return tuple(settings["smallest"] * np.exp(np.arange(settings["sizes"])))


def run(name, sigma, settings, table, work):
    """One sampler with one step: curves of all four log-likelihoods."""
    test, kept, target = data().test, settings["kept"], model(settings["rank"])
    counts = np.asarray(test.ratings, float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = work.sample(
                process(name, sigma, settings["rank"]),
                keep=False,
                initial=target.initial,
                steps=settings["steps"],
                seed=settings["seed"],
                store="grid",
                draws=kept,
            )
        except pdmp.SamplingError:
            table.add(f"{name} MCMC raw", f"{sigma:.4g}", settings["steps"], -np.inf)
            return
    rates = target.predict(found.draws(kept)[0], test.users, test.items)
    late = rates[kept // 2 :]
    averages = np.cumsum(late, axis=0) / np.arange(1, len(late) + 1)[:, None]
    steps = np.arange(1, kept + 1) * settings["steps"] // kept
    for kind, limits in KINDS.items():
        table.add(f"{name} sample {kind}", f"{sigma:.4g}", steps, log_likelihood(rates, counts, limits))
        table.add(f"{name} MCMC {kind}", f"{sigma:.4g}", steps[kept // 2 :], log_likelihood(averages, counts, limits))


def references(settings, table, work):
    """The mean rating as rate of all, and what independent Poisson variables would give at best."""
    train, counts = data().train, np.asarray(data().test.ratings, float)
    mean = np.full(len(counts), train.ratings.mean(dtype=float))
    table.add("reference", "mean rating", 0, log_likelihood(mean, counts, KINDS["raw"]))
    table.add("reference", "the rating itself", 0, log_likelihood(counts, counts, KINDS["raw"]))


def pieces(settings):
    found = {"references": functools.partial(references, settings)}
    for name in SAMPLERS:
        for sigma in grid(settings):
            found[f"{name} {sigma:.4g}"] = functools.partial(run, name, sigma, settings)
    return found


def best(table, name):
    """The σ whose average rates end with the highest log-likelihood, as text."""
    where = f"{name} MCMC raw"
    return max(table.series(where), key=lambda s: table.y(where, s)[-1])


def criteria(table, settings):
    rows = [Row("F16 log-likelihood with the mean rating as rate", f"{table.value('reference', 'mean rating'):.4f}")]
    rows.append(Row("F16 with each rating as its own rate", f"{table.value('reference', 'the rating itself'):.4f}"))
    sizes = [f"{s:.4g}" for s in grid(settings)]

    def settled(*row):
        """No verdict of runs that are still on their way from where they started."""
        return Row(*row) if settings["steps"] >= 1_000 else Row(*row)._replace(passed=None)

    for name in SAMPLERS:
        chosen = best(table, name)
        ends = ", ".join(f"{table.y(f'{name} MCMC raw', s)[-1]:.4f}" for s in sizes)
        rows.append(Row(f"F16 {name}, MCMC, σ = {', '.join(sizes)}", ends))
        where = "an end of the grid" if chosen in (sizes[0], sizes[-1]) else "inside the grid"
        rows.append(Row(f"F16 {name}: the best σ", f"{chosen}, {where}"))
    for kind in KINDS:
        last = {name: table.y(f"{name} MCMC {kind}", best(table, name))[-1] for name in SAMPLERS}
        values = np.array(list(last.values()))
        spread, behind = np.ptp(values) / abs(values.mean()), (values.max() - last["e-SGBD"]) / abs(values.max())
        rows.append(settled(f"F16 MCMC {kind}: spread of the four", f"{spread:.2%}", "< 5 %", spread < 0.05))
        text = ", ".join(f"{name} {value:.4f}" for name, value in sorted(last.items(), key=lambda item: -item[1]))
        rows.append(Row(f"F16 MCMC {kind}: {text}", ""))
        rows.append(settled(f"F16 MCMC {kind}: e-SGBD behind the best", f"{behind:.2%}", "< 1 %", behind < 0.01))
        first = max(last, key=last.get)
        gap = last[first] - last["e-SGBD"]
        rows.append(
            settled(
                f'F16 MCMC {kind}: "e-SGBD slightly better" than all others',
                f"{-gap:+.4f}",
                "0",
                first == "e-SGBD",
                f"{first} has {last[first]:.4f}, e-SGBD {last['e-SGBD']:.4f}, each with the best σ of the grid.",
            )
        )
    return rows


def picture(table, settings):
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 3.9), layout="constrained", sharey=True)
    for kind, axis in zip(KINDS, axes, strict=True):
        for name in SAMPLERS:
            chosen = best(table, name)
            x, y, _ = table.get(f"{name} sample {kind}", chosen)
            axis.plot(x, y, color=COLOURS[name], lw=1.1, label=f"{name}, σ = {chosen}")
            x, y, _ = table.get(f"{name} MCMC {kind}", chosen)
            axis.plot(x, y, "--", color=COLOURS[name], lw=1.6)
        axis.axhline(table.value("reference", "mean rating"), color="black", lw=0.8, label="mean rating")
        axis.set(xlabel="steps", title=f"rates {'as they are' if kind == 'raw' else 'clipped to [1, 5]'}")
    ends = [table.y(f"{n} MCMC raw", best(table, n))[-1] for n in SAMPLERS]
    axes[0].set(ylabel="log-likelihood of a rating, test set", ylim=(min(ends) - 0.12, max(ends) + 0.03))
    axes[1].legend(fontsize=8, title="solid: each state; dashed: average rate")
    return figure


STUDY = Study(
    name="ppmf",
    quick={"seed": 1, "rank": 20, "steps": 300, "kept": 20, "smallest": 0.004, "sizes": 2},
    full={"seed": 1, "rank": 100, "steps": 5_000, "kept": 50, "smallest": 0.0015, "sizes": 6},
    pieces=pieces,
    criteria=criteria,
    pictures={"": picture},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
