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

import numpy as np
from numpy.typing import ArrayLike

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


def failure_bound(gaps: ArrayLike, sigma: float, budget: float, eta: int = 3) -> float:
    r"""Upper bound on the probability that successive halving drops the best arm.

    It is (2η - 1) ⌊log_η M⌋ exp(-T / (4 η σ² H₂ (log_η M + 1))). H₂ is the largest s / αₛ² over s = 2, …, M, with αₛ
    the gap between the best arm and the s-th best.

    Theorem 1 of Coullon et al. (2023) has η in the numerator of the exponent. It belongs in the denominator: their
    proof leaves out the best sᵢ = |Sᵢ| / 2η arms of a round, so that 1 / |Sᵢ| = 1 / (2η sᵢ).

    Parameters
    ----------
    gaps : array_like, shape (M - 1,)
        Mean score of each other arm minus that of the best; positive.
    sigma : float
        Standard deviation of a score after one unit of budget; scores are assumed sub-Gaussian with variance σ² / rᵢ in
        a round of length rᵢ.
    budget, eta
        As in `schedule`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a gap is not positive, or as in `schedule`.

    Examples
    --------
    >>> import pdmp
    >>> round(pdmp.tuning.failure_bound([1.0, 2.0], sigma=1.0, budget=500.0, eta=3), 4)
    0.0
    """
    gaps = np.sort(np.asarray(gaps, dtype=float))
    if gaps.ndim != 1 or not np.all(gaps > 0.0):
        raise ValueError("`gaps` must be positive: how much worse each other arm is than the best.")
    m = len(gaps) + 1
    rounds = schedule(m, budget, eta)
    total = len(rounds) * rounds[0].each * m
    hardness = float(np.max(np.arange(2, m + 1) / gaps**2))
    exponent = total / (4.0 * eta * sigma**2 * hardness * (math.log(m, eta) + 1.0))
    return min(1.0, (2 * eta - 1) * len(rounds) * math.exp(-exponent))
