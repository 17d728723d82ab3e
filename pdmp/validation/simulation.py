"""Simulation-based calibration: ranks of true parameters among draws from the posteriors of their simulated data.

References
----------
Talts, Betancourt, Simpson, Vehtari & Gelman (2018), Validating Bayesian inference algorithms with simulation-based
calibration, arXiv:1804.06788, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.arguments import count, seed_number
from pdmp.process import Process


@dataclass(frozen=True)
class Calibration:
    """Ranks of true parameters among draws from the posteriors of their data; they should be uniform."""

    ranks: np.ndarray  #: (replicates, d) integers 0 … draws
    draws: int

    def p_values(self, bins: int | None = None) -> np.ndarray:
        """P value for the uniformity of each coordinate's ranks (d,), by Pearson's χ² test.

        By default there are as many `bins` as give at least ten ranks in each.
        """
        from scipy import stats

        n = len(self.ranks)
        bins = max(2, min(self.draws + 1, n // 10)) if bins is None else bins
        edges = np.linspace(0, self.draws + 1, bins + 1).round()
        expected = n * np.diff(edges) / (self.draws + 1)
        counts = [np.histogram(column, edges - 0.5)[0] for column in self.ranks.T]
        return np.array([stats.chisquare(found, expected).pvalue for found in counts])

    @property
    def p(self) -> float:
        """Smallest p value, times the number of coordinates."""
        return float(min(1.0, self.ranks.shape[1] * self.p_values().min()))

    def __str__(self):
        n, d = self.ranks.shape
        return f"ranks of {n} parameters of dimension {d} among {self.draws} draws each: p = {self.p:.2g}"


def calibration(
    make_process: Callable[[Any], Process],
    prior_draw: Callable[[np.random.Generator], ArrayLike],
    simulate: Callable[[np.ndarray, np.random.Generator], Any],
    *,
    replicates: int = 200,
    draws: int = 19,
    warmup: float = 0.1,
    seed: int = 0,
    **budget: float,
) -> Calibration:
    """Ranks of parameters drawn from the prior among draws from the posterior of data simulated from them.

    If the sampler is exact, and runs are so long that draws are nearly independent of each other and of the start, the
    ranks are uniform on 0 … draws. If there are too many ranks in the middle, the sampled posterior is too wide; at
    both ends, too narrow; at one end, shifted. Draws that are equal to the parameter, such as a coefficient of 0 under
    a spike-and-slab prior, count as less or more at random.

    Parameters
    ----------
    make_process : callable
        data -> Process, a sampler of the posterior given the data.
    prior_draw : callable
        rng -> parameter (d,), drawn from the prior of the model that `make_process` builds.
    simulate : callable
        (parameter, rng) -> data.
    replicates : int, default 200
        Number of parameters drawn, each with data and a posterior.
    draws : int, default 19
        Draws from each posterior, uniform in time.
    warmup : float, default 0.1
        As in `pdmp.sample`.
    seed : int, default 0
        Of the random generators.
    **budget
        Budgets of each run, as in `pdmp.sample`: ``events=...`` or ``time=...``.

    Returns
    -------
    Calibration
        ``.ranks`` (replicates, d), and ``.p``, the p value for their uniformity.

    Raises
    ------
    ValueError
        If `replicates` or `draws` is not a whole number from 2, or a parameter is not of the model's dimension.

    Examples
    --------
    A normal mean with a standard normal prior, and one datum with standard normal noise: the posterior is
    N(datum / 2, 1 / 2).

    >>> import pdmp
    >>> found = pdmp.validation.calibration(
    ...     lambda datum: pdmp.ZigZag(pdmp.models.Gaussian([0.5 * datum], [2.0])),
    ...     lambda rng: rng.standard_normal(1),
    ...     lambda parameter, rng: parameter[0] + rng.standard_normal(),
    ...     replicates=20, draws=4, events=100, seed=1,
    ... )
    >>> found.ranks.shape, found.p > 0.001
    ((20, 1), True)
    """
    from pdmp.engine.run import sample

    replicates, draws = count("replicates", replicates, least=2), count("draws", draws, least=2)
    ranks = []
    for child in np.random.SeedSequence(seed_number("seed", seed)).spawn(replicates):
        rng = np.random.default_rng(child)
        parameter = np.atleast_1d(np.asarray(prior_draw(rng), dtype=float))
        process = make_process(simulate(parameter, rng))
        run = sample(process, warmup=warmup, seed=int(rng.integers(2**62)), **budget)
        found = run.draws(draws).reshape(draws, -1)
        if found.shape[1] != len(parameter):
            raise ValueError(
                f"`prior_draw` gave a parameter of dimension {len(parameter)}, the process samples {found.shape[1]}."
            )
        ranks.append((found < parameter).sum(axis=0) + rng.integers((found == parameter).sum(axis=0) + 1))
    return Calibration(np.array(ranks), draws)
