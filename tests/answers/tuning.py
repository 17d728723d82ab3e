"""Choices of hyper-parameters: rounds, bounds, grids, losses, and searches of short chains."""

from __future__ import annotations

import csv
import io
import itertools
import math
from unittest import mock

import numpy as np

import discrete
import pdmp
from pdmp import tuning
from pdmp.tuning import competition
from tests.answers import case
from tests.recorded import moved

TARGET = pdmp.models.Gaussian(moved([1.0, -1.0]), [1.0, 4.0])
NOISY = pdmp.gradients.Noisy(TARGET, 1.0)
RNG = np.random.default_rng(3)
X, Y = moved(RNG.standard_normal((60, 2))), RNG.integers(0, 2, 60)
REGRESSION = pdmp.models.LogisticRegression(X[:40], Y[:40])


@case
def rounds():
    sizes = (1, 2), (2, 3), (9, 3), (26, 3), (27, 3), (30, 2), (64, 4), (5, 5)
    return [tuning.schedule(arms, 7.0, eta) for arms, eta in sizes], tuning.schedule(20, 3.0)


@case
def halvings():
    """Scores that change from round to round, ties, arms that fail, and all that fail."""
    scores = {
        "abs": lambda arm, spent: abs(arm - (3 if spent < 0.5 else 4)),
        "tied": lambda arm, spent: 0.0,
        "some": lambda arm, spent: math.nan if arm % 3 else -arm * spent,
        "late": lambda arm, spent: math.inf if spent > 0.5 and arm > 2 else -float(arm),
        "none": lambda arm, spent: math.inf,
    }
    found = {name: tuning.successive_halving(20, play, 1.0) for name, play in scores.items()}
    found["eta"] = [tuning.successive_halving(n, scores["abs"], 2.0, eta) for n, eta in ((9, 2), (2, 3), (16, 4))]
    found["map"] = tuning.successive_halving(9, scores["abs"], 2.0, 3, lambda *a: list(map(*a)))
    return found


@case
def failure_bounds():
    gaps = [0.5, 2.0, 0.9, 3.0, 1.4, 2.2, 0.8, 1.0]
    call = (gaps, 0.3, 3.0), (gaps, 0.4, 5.0, 2), (np.array(gaps), 1.0, 2.0, 4), ([0.7], 0.5, 9.0)
    return [tuning.failure_bound(*each) for each in call]


@case
def grids():
    found = tuning.grid(a=[1, 2], b=["x", None, "y"], c=(0.5,)), tuning.grid()
    return found, [tuning.heuristic_step(model) for model in (REGRESSION, TARGET)]


@case
def losses():
    """Of labels, of classes of a network, of ratings within limits; and what has run away."""
    draws, far = moved(np.random.default_rng(5).standard_normal((7, 2))), np.full((5, 2), np.nan)
    network = pdmp.models.BayesianNN(X[40:], Y[40:], hidden=2)
    weights = moved(np.random.default_rng(6).standard_normal((5, network.dim)))
    ratings = pdmp.models.MatrixFactorization([0, 1, 2], [0, 1, 0], [1.0, 2.0, 5.0], 2)
    factors = 3.0 * moved(np.random.default_rng(7).standard_normal((6, ratings.dim)))
    limits = {}, {"lowest": -0.5}, {"highest": 0.5}, {"lowest": -1.0, "highest": 0.2}
    held = [tuning.held_out([3.0, 4.0, 1.0], [0, 1, 2], [1, 0, 1], loss="rmse", **each) for each in limits]
    found = [
        [tuning.held_out(Y[40:], X[40:], loss=loss) for loss in ("log_loss", "error")],
        [tuning.held_out(Y[40:].tolist(), X[40:])],
    ]
    return (
        [metric(factors, ratings) for metric in held],
        [[metric(draws, REGRESSION), metric(far, REGRESSION), metric.__name__] for metric in itertools.chain(*found)],
        [metric(weights, network) for metric in found[0]],
    )


@case
def scores_of_draws():
    draws = moved(np.random.default_rng(8).standard_normal((9, 2)))
    for_name = [competition._metric(name) for name in ("ksd", error, lambda x, model: 0.0)]
    return [[function(draws, TARGET), name] for function, name in for_name] + [
        competition._metric("ksd")[0](np.full((5, 2), 1e308), TARGET),
        competition._metric("fssd")[1],
    ]


def langevin(step, size=None):
    return discrete.SGLD(NOISY if size is None else pdmp.gradients.Minibatch(REGRESSION, size), step)


def error(x, model):
    return float(np.abs(x.mean(axis=0) - 0.3).max())


def told(found):
    """A search: its table, as a file and as text, and the winner's path."""
    file = io.StringIO()
    with mock.patch.object(
        competition, "open", lambda *a, **k: mock.MagicMock(__enter__=lambda self: file), create=True
    ):
        found.to_csv("somewhere")
    rows = list(csv.reader(io.StringIO(file.getvalue())))
    of = found.run
    words = [line.split() for line in str(found).splitlines()]
    return [
        [found.best, found.score, found.clock, found.metric, found.seed, found.table, words],
        [rows[0], [[cell if cell.isalpha() else cell and cell[:8] for cell in row] for row in rows[1:3]]],
        [of.mean(), of.events, of.end, of.stats["data_terms"]],
    ]


STEPS = tuning.grid(step=[0.4, 1e-3, 0.1, 0.02])
NINE = tuning.grid(step=[0.3, 0.25, 0.2], size=[2, 4, 6])
SEARCHES = {
    "four": (tuning.mamba, langevin, STEPS, 60, {"metric": "ksd", "thin": 3}),
    "halves": (tuning.mamba, langevin, STEPS, 50, {"metric": error, "eta": 2, "thin": 2, "draws": 9}),
    "all": (tuning.mamba, langevin, NINE, 40, {"metric": error, "window": "all", "thin": 2, "initial": [2.0, -1.0]}),
    "round": (tuning.mamba, langevin, NINE, 40, {"metric": error, "thin": 2, "workers": 3}),
    "data": (tuning.mamba, langevin, NINE, 3.0, {"metric": error, "thin": 1, "clock": "data"}),
    "by default": (tuning.mamba, langevin, STEPS[:2], 40, {}),
    "diverged": (tuning.mamba, langevin, tuning.grid(step=[3.0, 0.1, 400.0]), 400, {"metric": error}),
    "grid": (tuning.grid_search, langevin, STEPS, 40, {"thin": 4}),
    "grid, draws": (tuning.grid_search, langevin, STEPS[::-1], 40, {"metric": error, "thin": 1, "draws": 11}),
    "grid, start": (tuning.grid_search, langevin, STEPS, 33, {"metric": error, "initial": [4.0, 0.0]}),
    "grid, noise": (tuning.grid_search, langevin, NINE[:3], 33, {"metric": error, "start_noise": 2.0}),
    "grid, noisy start": (
        tuning.grid_search,
        langevin,
        STEPS,
        33,
        {"metric": error, "start_noise": 2.0, "initial": [4.0, 0.0], "thin": 3},
    ),
    "grid, anchor": (
        tuning.grid_search,
        lambda step: discrete.SGLD(pdmp.gradients.ControlVariate(REGRESSION, 4, anchor=[2.0, 1.0]), step),
        tuning.grid(step=[1e-4, 1e-3]),
        30,
        {"metric": error, "start_noise": 0.5, "thin": 3},
    ),
    "grid, data": (tuning.grid_search, langevin, NINE[3:], 2.0, {"metric": error, "thin": 1, "clock": "data"}),
    "grid, held out": (tuning.grid_search, langevin, NINE, 30, {"metric": tuning.held_out(Y[40:], X[40:]), "thin": 2}),
}

for name, (search, make, arms, budget, options) in SEARCHES.items():
    case(
        lambda s=search, m=make, a=arms, b=budget, o=options: told(s(m, a, b, **{"clock": "steps", "seed": 5} | o)),
        f"search, {name}",
    )


@case
def metrics_that_fail():
    """NaN in a later round, few draws, and what is said of each arm that was scored."""
    found, lines = [], []
    for search in (tuning.mamba, tuning.grid_search):
        calls = itertools.count()

        def metric(x, model, calls=calls):
            k = next(calls)
            return math.nan if k in (3, 9) else math.inf if k == 5 else float(abs(k - 7))

        more = {"say": lines.append} if search is tuning.mamba else {}
        call = {"clock": "steps", "seed": 5, "thin": 2, "workers": 1}
        found.append(
            told(search(langevin, tuning.grid(step=list(np.linspace(0.1, 0.2, 9))), 60, metric, **call, **more))
        )
    few = tuning.mamba(langevin, tuning.grid(size=[2, 38], step=[0.01]), 1.5, error, "data", seed=1, thin=9)
    return found, lines, told(few)


@case
def recipes_and_reports():
    """What a sampler without any of its own has."""
    recipe, report, process = pdmp.interfaces.Recipe(), pdmp.interfaces.Report(), pdmp.ZigZag(TARGET)
    made = recipe.processes(pdmp.ZigZag, TARGET, None, np.zeros(2), 0.1)
    said = [report.statistics(process, None), report.accumulated(process, None, 0.0, 1.0), report.ended(process, None)]
    said += [report.count_from(process, None, 0.0), report.lost(process, None), report.warnings(process, {})]
    said += [report.further_draws(None), report.doubts(None, 1.0), report.step_acceptance(process, None, None)]
    return (
        [recipe.featured, pdmp.interfaces.Recipe(False).featured, list(made), made["ZigZag"].model is TARGET],
        [recipe.arms(pdmp.ZigZag, TARGET, np.zeros(2)), recipe.setting(process), said, report.reminders(process)],
    )
