"""Simulation-based calibration: do posteriors of simulated data hold the parameters that these were simulated from?

References
----------
Talts, Betancourt, Simpson, Vehtari & Gelman (2018), Validating Bayesian inference algorithms with simulation-based
calibration, arXiv:1804.06788, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Calibration:
    """Ranks of true parameters among draws from their posteriors, which should be uniform."""

    ranks: np.ndarray  #: (replicates, d) integers 0 … draws
    draws: int

    def p_values(self, bins=None):
        """P value of each coordinate's ranks (d,), by Pearson's χ² over about five ranks of each bin."""
        from scipy import stats

        n = len(self.ranks)
        bins = max(2, min(self.draws + 1, n // 10)) if bins is None else bins
        edges = np.linspace(0, self.draws + 1, bins + 1).round()
        expected = n * np.diff(edges) / (self.draws + 1)
        counts = [np.histogram(column, edges - 0.5)[0] for column in self.ranks.T]
        return np.array([stats.chisquare(count, expected).pvalue for count in counts])

    @property
    def p(self):
        """Smallest p value, times the number of coordinates."""
        return float(min(1.0, self.ranks.shape[1] * self.p_values().min()))

    def __str__(self):
        n, d = self.ranks.shape
        return f"ranks of {n} parameters of dimension {d} among {self.draws} draws each: p = {self.p:.2g}"


def calibration(make_process, prior_draw, simulate, *, replicates=200, draws=19, warmup=0.1, seed=0, **budget):
    """Rank parameters drawn from the prior among draws from the posterior of data that they generated.

    A sampler that leaves the posterior invariant, given enough of a run that its draws are nearly independent of each
    other and of the start, makes the ranks uniform on 0 … draws. Ranks heaped in the middle say that the sampled
    posterior is too wide, at the ends that it is too narrow, on one side that it is shifted. Draws that are equal to
    the parameter, as coefficients of 0 are under a prior of spike and slab, count as less or more at random.

    Parameters
    ----------
    make_process : callable
        data -> Process, the sampler of the posterior.
    prior_draw : callable
        rng -> parameter (d,), drawn from the prior of the model that `make_process` builds.
    simulate : callable
        (parameter, rng) -> data.
    replicates : int, default 200
    draws : int, default 19
        Draws from each posterior, uniform in time.
    warmup : float, default 0.1
        As in `pdmp.sample`.
    seed : int, default 0
    **budget
        Budgets of each run, as in `pdmp.sample`: ``events=...`` or ``time=...``.

    Returns
    -------
    Calibration
        ``.ranks`` (replicates, d), ``.p`` the p value of their uniformity.

    Raises
    ------
    ValueError
        If `replicates` or `draws` is less than 2, or a parameter is not of the model's dimension.
    """
    from pdmp.engine.run import sample

    for name, value in (("replicates", replicates), ("draws", draws)):
        if int(value) != value or value < 2:
            raise ValueError(f"`{name}` must be an integer of at least 2, got {value!r}.")
    ranks = []
    for child in np.random.SeedSequence(seed).spawn(int(replicates)):
        rng = np.random.default_rng(child)
        parameter = np.atleast_1d(np.asarray(prior_draw(rng), dtype=float))
        process = make_process(simulate(parameter, rng))
        run = sample(process, warmup=warmup, seed=int(rng.integers(2**62)), **budget)
        found = run.draws(int(draws)).reshape(int(draws), -1)
        if found.shape[1] != len(parameter):
            raise ValueError(
                f"`prior_draw` gave a parameter of dimension {len(parameter)}, the process samples {found.shape[1]}."
            )
        ranks.append((found < parameter).sum(axis=0) + rng.integers((found == parameter).sum(axis=0) + 1))
    return Calibration(np.array(ranks), int(draws))
