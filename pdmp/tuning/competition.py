"""Tuning by bandits (MAMBA): find the hyper-parameters whose samples have the smallest Stein discrepancy at equal cost.

Every setting is an arm. All arms run for a while and their samples are scored; the best third runs on, three times as
long, and so on (`pdmp.tuning.halving`). Chains are continued from round to round, never started anew.

References
----------
Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient MCMC,
Stat. Comput. 33.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.sampling import sample
from pdmp.diagnostics.predictive import accuracy, log_loss, rmse
from pdmp.diagnostics.stein import fssd, ksd, scores
from pdmp.engine.checkpoint import digest, model_values, same_values
from pdmp.engine.executors import check_executor
from pdmp.engine.result import Run
from pdmp.engine.run import extend
from pdmp.errors import SamplingError, silenced
from pdmp.models.base import Model
from pdmp.native.arguments import count, number, one_of, seed_number
from pdmp.native.fingerprints import UNIQUE
from pdmp.native.representation import in_columns
from pdmp.native.threads import cpu_count, thread_pool
from pdmp.process import EVENTS, Process
from pdmp.tuning.halving import Played, schedule, successive_halving

#: Units of a budget, and the argument of `pdmp.sample` for each.
CLOCKS = {"seconds": "seconds", "data": "data_passes", "steps": "proposals"}
LEAST_DRAWS = 3  #: smallest number of draws that are scored


@dataclass(frozen=True)
class Tuning:
    """The result of `mamba` or `grid_search`; prints as a table.

    Attributes
    ----------
    best : dict
        The winning arm.
    score : float
        Its last score.
    table : list of dict
        One row for each arm and round: the arm's entries, and ``round``, ``spent`` (in units of `clock`), ``score``
        (infinite if the arm failed), ``kept``, ``draws``, and ``why`` it failed.
    clock, metric : str
        Unit of the budget; name of the score.
    seed : int
    run : pdmp.Run
        The winner's run.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> def make(refresh_rate):
    ...     return pdmp.BPS(model, refresh_rate=refresh_rate)
    >>> arms = pdmp.tuning.grid(refresh_rate=[0.01, 0.1, 1.0])
    >>> found = pdmp.tuning.grid_search(make, arms, budget=200, clock='steps', seed=1)
    >>> sorted(found.table[0])[:3]
    ['draws', 'kept', 'refresh_rate']
    """

    best: dict
    score: float
    table: list[dict] = field(repr=False)
    clock: str
    metric: str
    seed: int
    run: Run = field(repr=False)

    def to_csv(self, path: str | os.PathLike) -> None:
        """Write the table to a CSV file, at full precision."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(self.table[0]))
            writer.writeheader()
            writer.writerows(self.table)

    def __str__(self):
        names = list(self.best)
        rows = [["round", *names, f"spent [{self.clock}]", self.metric, ""]]
        for row in self.table:
            end = row["why"] or ("" if row["kept"] else "dropped")
            values = [_short(row[name]) for name in names]
            rows.append([str(row["round"] + 1), *values, f"{row['spent']:.4g}", f"{row['score']:.4g}", end])
        best = ", ".join(f"{name}={_short(value)}" for name, value in self.best.items())
        return "\n".join([*in_columns(rows, left=range(len(rows[0]))), f"best: {best}"])


def _short(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def grid(**values: Sequence) -> list[dict]:
    """All combinations of the given values: ``grid(step=[1e-3, 1e-4], size=[10, 100])`` is a list of four arms.

    Parameters
    ----------
    **values : sequence
        The values of each argument.

    Returns
    -------
    list of dict

    Raises
    ------
    ValueError
        If an argument has no values.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.tuning.grid(step=[0.1, 0.2], size=[10])
    [{'step': 0.1, 'size': 10}, {'step': 0.2, 'size': 10}]
    """
    for name, some in values.items():
        if len(some) == 0:
            raise ValueError(f"`{name}` is empty: a grid needs at least one value of each.")
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def heuristic_step(model: Model) -> float:
    """The step 1 / N that is often used for lack of a better one (Brosse, Durmus & Moulines, 2018).

    Parameters
    ----------
    model : Model
        A sum over data.

    Returns
    -------
    float

    Examples
    --------
    >>> import pdmp
    >>> pdmp.tuning.heuristic_step(pdmp.models.LogisticRegression([[1.0], [2.0]], [0, 1]))
    0.5
    """
    return 1.0 / max(model.n_data, 1)


class _Arm:
    """One setting and its chain."""

    def __init__(self, make, values, seed, initial, options):
        self.values, self.process, self.seed, self.initial = values, make(**values), seed, initial
        self.clock, self.metric, self.draws, self.thin, self.window, self.executor = options
        self.run, self.failure, self.used = None, "", []

    def _go_on(self, budget):
        if self.run is not None:
            self.run = extend(self.run, executor=self.executor, **budget)
            return
        self.run = sample(
            self.process, initial=self.initial, seed=self.seed, progress=False, executor=self.executor, **budget
        )

    def play(self, spent):
        """Run until `spent` is used up in total; returns the score of the draws."""
        begun = 0.0 if self.run is None or self.window == "all" else float(self.run.records[0].end)
        before = 0 if self.run is None or self.window == "all" else int(self.run.records[0].counts[EVENTS])
        budget = {CLOCKS[self.clock]: spent if self.clock != "steps" else max(round(spent), 1)}
        try:
            self._go_on(budget)
        except SamplingError as error:
            cause = error.__cause__
            # A divergence, or arithmetic of a function that fails far out, speaks against this setting. Other errors
            # come from where it ran.
            if error.chain is None or not isinstance(cause, (type(None), ArithmeticError, ValueError)):
                raise
            self.run, self.failure = error.run, "diverged" if cause is None else f"diverged ({type(cause).__name__})"
            self.used.append(0)
            return math.inf
        record = self.run.records[0]
        n = min((int(record.counts[EVENTS]) - before) // self.thin, self.draws)
        self.used.append(max(n, 0))
        if n < LEAST_DRAWS:
            self.failure = "too few steps"
            return math.inf
        times = np.minimum(begun + (record.end - begun) * np.arange(1, n + 1) / n, record.end)
        score = float(self.metric(self.run.trajectories[0].at(times), self.process.model))
        if math.isnan(score):
            self.failure = "the metric is NaN"
        elif score == math.inf:
            self.failure = "diverged"
        return score


def _discrepancy(function):
    """Make a metric of a function of draws and scores; infinite if scores are not finite, as for a diverged chain."""

    def metric(x, model):
        try:
            s = scores(model, x)
        except (ArithmeticError, ValueError):  # of a function of the user's, where the draws are too far out
            return math.inf
        return function(x, s) if np.all(np.isfinite(s)) else math.inf

    return metric


def _metric(metric):
    """The metric, a function of draws and model, and its name; from either."""
    if metric == "ksd":
        return _discrepancy(lambda x, s: ksd(x, s, threads=1)), "ksd"
    if metric == "fssd":
        return _discrepancy(fssd), "fssd"
    if callable(metric):
        return metric, getattr(metric, "__name__", "metric")
    raise ValueError(f'`metric` must be "ksd", "fssd" or a function of draws (P, d) and model, got {metric!r}.')


def held_out(
    y: ArrayLike, *inputs: ArrayLike, loss: str = "log_loss", lowest: float = -np.inf, highest: float = np.inf
) -> Callable:
    """A metric for `mamba` and `grid_search`: the loss of the draws' mean prediction on data that were held out.

    Predictions are ``model.predict(x, *inputs)``. An arm whose predictions are not finite has diverged.

    Parameters
    ----------
    y : array_like, shape (n,)
        What was observed.
    *inputs : array_like
        What the model predicts from: the features ``X`` of a regression or a network; ``users, items`` of ratings.
    loss : {"log_loss", "error", "rmse"}, default "log_loss"
        For labels the mean of -log p(label), or the fraction that is not predicted; for other values the root mean
        squared error.
    lowest, highest : float
        Limits to which the mean predictions are clipped for "rmse", such as 1 and 5 for ratings.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        For an unknown loss.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> metric = pdmp.tuning.held_out([0, 1], [[0.5], [4.0]], loss="error")
    >>> metric([[1.0], [1.2]], model)
    0.5
    """
    one_of("loss", loss, ("log_loss", "error", "rmse"))
    y = np.asarray(y)

    def metric(x, model):
        with np.errstate(all="ignore"):  # of a chain that diverged
            predicted = np.mean(model.predict(x, *inputs), axis=0)
        if not np.all(np.isfinite(predicted)):
            return math.inf
        if loss == "rmse":
            return rmse(y, predicted, lowest, highest)[1]
        return log_loss(y, predicted) if loss == "log_loss" else 1.0 - accuracy(y, predicted)

    metric.__name__ = f"held-out {loss}"
    return metric


def _noisy_start(process, initial, noise, seed):
    """Where the chains of a grid search start: off `initial`, or off the mode."""
    if initial is None:
        initial = process.model.mode() if process.anchor is None else process.anchor
        if initial is None:
            raise ValueError(
                f"`initial` must be given: the search for the mode of {type(process.model).__name__} did not converge."
            )
    initial = process.model.check(initial, "initial")
    return initial + noise * np.random.default_rng(seed).standard_normal(process.model.dim)


def _arms(make, arms, seed, initial, clock, metric, draws, thin, window, executor):
    """The arms of a search, checked, the name of its metric, and its seed."""
    function, name = _metric(metric)
    arms = [dict(arm) for arm in arms]
    if not arms:
        raise ValueError("`arms` must hold at least one set of hyper-parameters, it is empty.")
    one_of("clock", clock, CLOCKS)
    one_of("window", window, ("round", "all"))
    draws, thin = count("draws", draws), count("thin", thin)
    sequence = np.random.SeedSequence(None if seed is None else seed_number("seed", seed))
    seeds = [int(child.generate_state(1, np.uint64)[0]) for child in sequence.spawn(len(arms))]
    options = clock, function, draws, thin, window, check_executor(executor)
    made = [_Arm(make, values, one, initial, options) for values, one in zip(arms, seeds, strict=True)]
    _check_targets(made, metric)
    _check_makes(made)
    return made, name, int(sequence.entropy)


def _check_targets(made, metric):
    """Refuse settings of which one has another posterior: discrepancies to their own do not compare them."""
    model = made[0].process.model
    others = [arm for arm in made if arm.process.model is not model] if isinstance(metric, str) else []
    for arm in others:
        other, x = arm.process.model, np.full(model.dim, 0.1)
        if other.dim != model.dim or not same_values(model, model_values(model, x), model_values(other, x)):
            raise ValueError(
                f"`make`: {arm.values} has another target than {made[0].values}; {metric!r} compares samplers of one "
                "target: see pdmp.tuning.held_out."
            )


def _check_makes(made):
    """Refuse a `make` that ignores a hyper-parameter: its values would be one sampler, and the best one chance."""
    first = made[0]
    for name, value in first.values.items():
        for arm in made[1:]:
            if {other for other in arm.values if not _alike(arm.values[other], first.values.get(other))} == {name}:
                one, other = digest(first.process), digest(arm.process)
                if one == other and not one.startswith(UNIQUE):
                    raise ValueError(
                        f"`make` returns the same process for {name}={value!r} and {name}={arm.values[name]!r}: it "
                        "must use what it is given."
                    )
                break


def _alike(a, b):
    """Whether two values of a hyper-parameter are one, as far as that can be told."""
    try:
        return a is b or bool(np.all(a == b))
    except (ValueError, TypeError):
        return False


@contextlib.contextmanager
def _pool(workers, clock):
    """A pool of threads, each of which runs one arm at a time."""
    if workers is None:
        workers = 1 if clock == "seconds" else cpu_count()
    with silenced(UserWarning), thread_pool(workers, "tuning") as executor:  # an arm may diverge: the result says so
        yield executor


def mamba(
    make: Callable[..., Process],
    arms: Sequence[dict],
    budget: float,
    metric: str | Callable = "ksd",
    clock: str = "seconds",
    eta: int = 3,
    seed: int | None = None,
    *,
    initial: ArrayLike | None = None,
    draws: int = 1_000,
    thin: int = 10,
    window: str = "round",
    executor: Executor | Any | None = None,
    workers: int | None = None,
    say: Callable[[str], object] | None = None,
) -> Tuning:
    """Choose hyper-parameters by successive halving.

    Parameters
    ----------
    make : callable
        ``make(**arm)`` is a process.
    arms : list of dict
        The settings to choose from, for example from `grid`.
    budget : float
        What an arm that is never dropped spends, in units of `clock`.
    metric : "ksd", "fssd" or callable
        The score to minimise: a Stein discrepancy, with scores from all the data, or ``metric(x, model)`` of draws
        (P, d). An arm whose score is infinite or NaN has failed, and is dropped.
    clock : {"seconds", "data", "steps"}
        Unit of the budget: computing time (without compilation), data passes, or steps (proposals, in continuous
        time). With the last two a seed repeats the result.
    eta : int, default 3
        One of `eta` arms continues to the next round.
    seed : int, optional
        Each arm has a random generator of its own.
    initial : array_like, optional
        Where all arms start; as in `pdmp.sample`.
    draws, thin : int, default 1000 and 10
        The path of a round is scored by equally spaced draws: one for every `thin` events, at most `draws`.
    window : {"round", "all"}
        Whether to score the path of this round, or from the start.
    executor : concurrent.futures.Executor, distributed.Client or ray.util.multiprocessing.Pool, optional
        Where the chains run, as in `pdmp.sample`.
    workers : int, optional
        How many arms run at the same time. By default one under ``clock="seconds"``, so that they do not slow each
        other down, else as many as there are processors. The result depends on it under ``clock="seconds"`` only.
    say : callable, optional
        Called with a line of text, the progress, when an arm has been scored.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError
        For an empty list of arms, an unknown clock, metric or window, or a budget too small for one round.
    pdmp.SamplingError
        If all arms fail.

    See Also
    --------
    pdmp.tuning.grid : The settings.
    pdmp.tuning.grid_search : By a score of your own.
    pdmp.plots.tuning : Draws what is returned.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> def make(refresh_rate):
    ...     return pdmp.BPS(model, refresh_rate=refresh_rate)
    >>> arms = pdmp.tuning.grid(refresh_rate=[0.01, 0.1, 1.0])
    >>> found = pdmp.tuning.mamba(make, arms, budget=500, clock='steps', seed=1)
    >>> found.best in arms
    True
    """
    made, name, seed = _arms(make, arms, seed, initial, clock, metric, draws, thin, window, executor)
    rounds = schedule(len(made), budget, eta)
    if clock == "steps" and rounds[0].each < thin * LEAST_DRAWS:
        raise ValueError(
            f"`budget` is too small for one round: {rounds[0].each:.3g} steps of each of {len(made)} arms; at least "
            f"{thin * LEAST_DRAWS} are needed to score one."
        )
    total, scored = sum(each.arms for each in rounds), itertools.count(1)

    def play(i, spent):
        score = made[i].play(spent)
        if say is not None:
            say(f"{next(scored)} of {total} runs scored")
        return score

    with _pool(workers, clock) as pool:
        best, played = successive_halving(len(made), play, budget, eta, map=pool.map)
    return _result(made, best, played, clock, name, seed)


def grid_search(
    make: Callable[..., Process],
    arms: Sequence[dict],
    budget: float,
    metric: str | Callable = "ksd",
    clock: str = "seconds",
    seed: int | None = None,
    *,
    initial: ArrayLike | None = None,
    start_noise: float = 0.0,
    draws: int = 1_000,
    thin: int = 10,
    executor: Executor | Any | None = None,
    workers: int | None = None,
) -> Tuning:
    """Run every arm for the whole budget and choose the one with the smallest score.

    What MAMBA was compared with [1]_ is a grid search for the best prediction of held-out data, by chains that all
    start at the same point near the mode: ``metric=pdmp.tuning.held_out(y, X)`` and a `start_noise`. They chose among
    steps for batches of 10 %, with `start_noise` and budget of 0.2 and 5,000 steps for a logistic regression, 1 and
    2,000 for a matrix factorisation, 1 and 1,000 for a network.

    Parameters
    ----------
    make, arms, budget, metric, clock, seed, initial, draws, thin, executor, workers :
        As in `mamba`.
    start_noise : float, default 0.0
        Standard deviation of the normal numbers added to `initial`, the same ones for all arms. With it, `initial` is
        the anchor of the control variates or the mode when omitted.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError, pdmp.SamplingError
        As in `mamba`, and for a negative `start_noise`.

    References
    ----------
    .. [1] Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient MCMC,
       Stat. Comput. 33, section 4.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> def make(refresh_rate):
    ...     return pdmp.BPS(model, refresh_rate=refresh_rate)
    >>> arms = pdmp.tuning.grid(refresh_rate=[0.01, 0.1, 1.0])
    >>> found = pdmp.tuning.grid_search(make, arms, budget=200, clock='steps', seed=1)
    >>> len(found.table)
    3
    """
    start_noise = number("start_noise", start_noise, 0.0)
    made, name, seed = _arms(make, arms, seed, initial, clock, metric, draws, thin, "all", executor)
    schedule(len(made), budget)
    if start_noise > 0.0:
        start = _noisy_start(made[0].process, initial, start_noise, seed)
        for arm in made:
            arm.initial = start
    with _pool(workers, clock) as pool:
        found = list(pool.map(lambda arm: arm.play(budget), made))
    found = [math.inf if math.isnan(score) else score for score in found]
    best = int(np.argmin(found))
    played = [Played(0, i, budget, score, i == best) for i, score in enumerate(found)]
    return _result(made, best if found[best] < math.inf else None, played, clock, name, seed)


def _result(made, best, played, clock, metric, seed):
    table = []
    for p in played:
        arm = made[p.arm]
        why = "" if p.score < math.inf else arm.failure
        row = {"round": p.round, "spent": p.spent, "score": p.score, "kept": p.kept}
        table.append(arm.values | row | {"draws": arm.used[p.round], "why": why})
    if best is None:
        reasons = sorted({row["why"] for row in table if row["why"]})
        if reasons == ["too few steps"]:
            raise ValueError(
                f"`budget` is too small for one round: no arm took enough steps in {played[0].spent:.3g} {clock} to be "
                "scored."
            )
        raise SamplingError(f"All {len(made)} arms failed: {'; '.join(reasons)}.")
    last = [p.score for p in played if p.arm == best][-1]
    return Tuning(made[best].values, last, table, clock, metric, seed, made[best].run)
