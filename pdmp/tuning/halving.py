r"""Successive halving: arms share a budget in rounds, and the best 1/η of them continue to the next round.

With M arms there are n = ⌊log_η M⌋ rounds. Round i gives each of its |Sᵢ| arms rᵢ = T / (|Sᵢ| n) and keeps the best
⌊|Sᵢ| / η⌋. The total T follows from R = Σ rᵢ, what an arm that is never dropped may spend (if η divides every |Sᵢ|)::

    T = R M n / (1 + η + … + ηⁿ⁻¹)

One or more arms are left at the end (56 → 18 → 6 → 2 for η = 3): the best of them wins.

References
----------
Karnin, Koren & Somekh (2013), Almost optimal exploration in multi-armed bandits, ICML; Coullon, South & Nemeth (2023),
Efficient and generalizable tuning strategies for stochastic gradient MCMC, Stat. Comput. 33: algorithm 1, theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pdmp.native.arguments import count, positive


@dataclass(frozen=True)
class Round:
    """One round: how many arms begin it, what each may spend in it, and how many are kept."""

    arms: int
    each: float
    kept: int


def schedule(arms: int, budget: float, eta: int = 3) -> list[Round]:
    """The rounds of successive halving.

    Parameters
    ----------
    arms : int
        Number of arms M.
    budget : float
        What an arm that is never dropped may spend (R in the module's text), in any unit.
    eta : int, default 3
        One of `eta` arms is kept.

    Returns
    -------
    list of Round

    Raises
    ------
    ValueError
        For no arms, a budget that is not positive, or an η below 2.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.tuning.schedule(9, budget=4.0, eta=3)
    [Round(arms=9, each=1.0, kept=3), Round(arms=3, each=3.0, kept=1)]
    """
    eta, budget = count("eta", eta, 2), positive("budget", budget)
    if count("arms", arms, 0) == 0:
        raise ValueError("`arms` must hold at least one set of hyper-parameters, it is empty.")
    n, left = 0, arms
    while left >= eta:  # not by logarithms: log 243 / log 3 is 4.999…
        left //= eta
        n += 1
    if n == 0:  # fewer arms than η: all of them run to the end
        return [Round(arms, budget, arms)]
    total = budget * arms * n / sum(eta**i for i in range(n))
    rounds, left = [], arms
    for _ in range(n):
        rounds.append(Round(left, total / (left * n), left // eta))
        left //= eta
    return rounds


@dataclass(frozen=True)
class Played:
    """The result of one arm in one round."""

    round: int
    arm: int
    spent: float  #: in this and the rounds before
    score: float  #: inf where the arm failed
    kept: bool


def successive_halving(
    arms: int, play: Callable, budget: float, eta: int = 3, map: Callable = map
) -> tuple[int | None, list[Played]]:
    """Find the best arm, the one with the lowest score.

    Parameters
    ----------
    arms : int
        Number of arms.
    play : callable
        ``play(arm, spent) -> score``: continue the arm until it has spent so much in total, and score it. An arm that
        failed returns infinity, and is dropped; NaN counts as infinity.
    budget, eta
        As in `schedule`.
    map : callable
        Calls `play` for the arms of a round: the built-in `map`, or that of an executor.

    Returns
    -------
    best : int or None
        None if every arm failed.
    played : list of Played
        In the order of rounds and arms.

    Raises
    ------
    ValueError
        As in `schedule`.

    Examples
    --------
    >>> import pdmp
    >>> best, played = pdmp.tuning.successive_halving(9, lambda arm, spent: abs(arm - 3) / spent, budget=4.0)
    >>> best
    3
    """
    alive, spent, played = list(range(arms)), 0.0, []
    rounds = schedule(arms, budget, eta)
    for number, each in enumerate(rounds):
        spent += each.each
        scores = [float(score) for score in map(play, alive, [spent] * len(alive))]
        scores = [math.inf if math.isnan(score) else score for score in scores]
        order = sorted(range(len(alive)), key=lambda k: scores[k])  # stable: ties keep their order
        kept = [k for k in order[: each.kept] if scores[k] < math.inf]
        played += [Played(number, arm, spent, scores[k], k in kept) for k, arm in enumerate(alive)]
        alive = [alive[k] for k in sorted(kept)]
        if not alive:
            return None, played
    last = [p for p in played if p.round == len(rounds) - 1 and p.kept]
    return min(last, key=lambda p: p.score).arm, played
