"""Figure 5 of "Stochastic gradient Richardson-Romberg Markov chain Monte Carlo" (Durmus et al., NeurIPS 2016).

Factorisation of film ratings, rank 10: the error on held-out ratings of the running mean of the predictions, SGLD with
K steps beside SGRRLD with K/2, whose two chains can run side by side. MovieLens 1M; 10M and 20M as generated ratings of
the same shape and number. Batches are a tenth, a fiftieth and a five-hundredth of the data. Besides: ten times the
published step and more, where K steps are enough to come near stationarity, and SGHMC with its extrapolation SGRRHMC by
the paper's Euler scheme. Predictions are extrapolated, not factors, which rotate. All chains start where
`pdmp.models.MatrixFactorization` does, which the paper does not say.

What is not reproduced: "SGRRLD requires only 200 seconds for achieving the accuracy that SGLD provides after 400".
Half the steps of the same size cover half the time of the diffusion, and what extrapolation removes, the bias of the
step, is not what the error consists of. With the published step both chains are on their way from the start, where the
one that has gone half as far is worse; near stationarity they differ by what the longer average is worth.

    python examples/papers/matrix_factorisation.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Needs MovieLens 1M (PDMP_DATA). Writes a table, a picture and what was found, and ends with exit code 1 if a criterion
fails. Time: `--quick` less than a minute; otherwise one to two hours, most of them for 10M and 20M.
"""

import functools
import sys
import time

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_BLUE, DARK_RED, RED, Row

import discrete
import pdmp

WARMUP = 1.0 / 21.0  #: 500 of 10,500 steps and 250 of 5,250
GENERATED = {"10M": pdmp.data.synthetic_movielens_10m, "20M": pdmp.data.synthetic_movielens_20m}
BATCHES = {"1M": 10, "10M": 50, "20M": 500}  #: part of the data in a batch
COLOURS = {"SGLD": RED, "SGRRLD": BLUE, "SGHMC": DARK_RED, "SGRRHMC": DARK_BLUE}
TRANSIENT = (
    "half the steps cover half the time of the diffusion: what extrapolation removes, the bias of the step, is small "
    "beside the distance from the start that is left, or the error of the shorter average"
)


@functools.cache
def problem(name, users):
    """Model, provider and test part."""
    data = pdmp.data.movielens_1m() if name == "1M" else GENERATED[name]()
    train, test = data.train, data.test
    rows, held = train.users < users, test.users < users
    model = pdmp.models.MatrixFactorization(
        train.users[rows], train.items[rows], train.ratings[rows], n_users=min(data.shape[0], users),
        n_items=data.shape[1],
    )  # fmt: skip
    batch = pdmp.gradients.Minibatch(model, model.n_data // BATCHES[name], draw="distinct")
    return batch, test.users[held], test.items[held], test.ratings[held]


def samplers(batch, step, s):
    """By name: the process and the number of steps in units of K."""
    eps, friction = s["epsilon"], s["epsilon"] / step
    return {
        "SGLD": (discrete.SGLD(batch, step), 1.0),
        "SGRRLD": (discrete.SGRRLD(batch, step), 0.5),
        "SGHMC": (discrete.SGHMC(batch, eps, friction, "explicit"), 1.0),
        "SGRRHMC": (discrete.SGRRHMC(batch, eps, friction, scheme="explicit"), 0.5),
    }


def curve(name, step, which, s, work):
    """Steps of the (coarse) chain, and the error of the running mean of the predictions."""
    batch, users, items, ratings = problem(name, s["users"])
    process, part = samplers(batch, step, s)[which]
    steps = round(part * s["steps"])
    run = work.sample(
        process, keep=batch.model.dim < 500_000, initial=batch.model.initial, steps=steps, warmup=WARMUP,
        seed=s["seed"], store="grid", draws=s["points"],
    )  # fmt: skip
    means = pdmp.diagnostics.running_mean(run, lambda x: batch.model.predict(x, users, items), s["points"])[0]
    error = np.sqrt(np.mean((means - ratings) ** 2, axis=1))
    return steps * (WARMUP + (1.0 - WARMUP) * np.arange(1, s["points"] + 1) / s["points"]), error


def regimes(s):
    """(data set, step, samplers) of each panel."""
    both, all_four = ("SGLD", "SGRRLD"), tuple(COLOURS)
    found = [("1M", 2e-6, both), ("1M", s["large step"], all_four)]
    return found + [(name, 2e-5, both) for name in s["larger sets"]]


def label(name, step):
    return f"ML-{name}, γ = {step:g}"


def pieces(s):
    def of(name, step, which):
        def piece(table, work):
            table.add(label(name, step), which, *curve(name, step, which, s, work))

        return piece

    def seconds(table, work):
        """Of steps with one and two threads, and of SGLD: they depend on the machine and on what else it does."""
        batch = problem("1M", s["users"])[0]
        timed = {
            "SGLD": discrete.SGLD(batch, 2e-6),
            "SGRRLD, one thread": discrete.SGRRLD(batch, 2e-6),
            "SGRRLD, two threads": discrete.SGRRLD(batch, 2e-6, threads=2),
        }
        for which, process in timed.items():
            pdmp.sample(process, initial=batch.model.initial, steps=2, seed=1, store="moments")  # compiled
            began = time.perf_counter()
            pdmp.sample(process, initial=batch.model.initial, steps=s["timed"], seed=1, store="moments")
            table.add("milliseconds a step", which, 0, 1e3 * (time.perf_counter() - began) / s["timed"])

    found = {}
    for name, step, some in regimes(s):
        found |= {f"{label(name, step)}, {which}": of(name, step, which) for which in some}
    return found | {"seconds": seconds}


def when(table, figure, which, target):
    """Steps after which the error is at most `target`; infinite if it never is."""
    x, y, _ = table.get(figure, which)
    return float(x[np.argmax(y <= target)]) if np.any(y <= target) else np.inf


def criteria(table, s):
    rows = []
    for name, step, some in regimes(s):
        figure = label(name, step)
        for plain, extrapolated in (("SGLD", "SGRRLD"), ("SGHMC", "SGRRHMC")):
            if plain not in some:
                continue
            one, two = table.y(figure, plain), table.y(figure, extrapolated)
            what = f"F5 {figure}: RMSE of {plain} with K steps, {extrapolated} with K/2"
            good = two[-1] <= one[-1] + 0.002
            rows.append(Row(what, f"{one[-1]:.4f}, {two[-1]:.4f}", "no larger, by 0.002", good, TRANSIENT))
            half = one[len(one) // 2 - 1]
            what = f"F5 {figure}: at equal steps, K/2, of {plain} and {extrapolated}"
            rows.append(Row(what, f"{half:.4f}, {two[-1]:.4f}"))
            ratio = when(table, figure, extrapolated, one[-1]) / when(table, figure, plain, one[-1])
            what = f"F5 {figure}: steps to {plain}'s last RMSE, {extrapolated} / {plain}"
            measured = f"{ratio:.2f}" if np.isfinite(ratio) else "not reached"
            rows.append(Row(what, measured, "<= 0.8", ratio <= 0.8, TRANSIENT))
    figure = "milliseconds a step"
    for which in table.series(figure):
        rows.append(Row(f"F5 ML-1M, {which}: ms a step on this machine", f"{table.value(figure, which):.1f}"))
    return rows


def picture(table, s):
    panels = regimes(s)
    figure, axes = plt.subplots(1, len(panels), figsize=(5.0 * len(panels), 4.0), layout="constrained")
    for one, (name, step, some) in zip(axes, panels, strict=True):
        for which in some:
            x, y, _ = table.get(label(name, step), which)
            one.plot(x, y, "--" if "RR" not in which else "-", color=COLOURS[which], label=which)
        regime = "published step" if step < s["large step"] else "larger step"
        one.set(xlabel="steps of a chain, one after the other", title=f"{label(name, step)}: {regime}")
        one.legend()
    axes[0].set_ylabel("RMSE on held-out ratings of the running mean")
    return figure


STUDY = common.Study(
    name="matrix_factorisation",
    quick={
        "seed": 1, "steps": 1_050, "points": 10, "users": 100, "large step": 5e-4, "epsilon": 1e-3, "larger sets": [],
        "timed": 10,
    },
    full={
        "seed": 1, "steps": 10_500, "points": 40, "users": 10**6, "large step": 5e-5, "epsilon": 1e-3,
        "larger sets": ["10M", "20M"], "timed": 200,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"": picture},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
