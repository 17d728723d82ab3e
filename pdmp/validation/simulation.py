"""Simulation-based calibration: ranks of true parameters among draws from the posteriors of their simulated data.

References
----------
Talts, Betancourt, Simpson, Vehtari & Gelman (2018), Validating Bayesian inference algorithms with simulation-based
calibration, arXiv:1804.06788, sections 3 and 4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.preparing import model_of
from pdmp.automatic.sampling import sample
from pdmp.diagnostics.averages import diagnostic_draws
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.errors import listening, short_runs, warn
from pdmp.models.base import Model
from pdmp.models.transforms import flat
from pdmp.native.arguments import count, seed_number
from pdmp.process import Process


@dataclass(frozen=True)
class Calibration:
    """Ranks of true parameters among draws from the posteriors of their data; they should be uniform."""

    ranks: np.ndarray  #: (replicates, d) integers 0 … draws
    draws: int
    names: tuple[str, ...] = ()  #: of the coordinates, where they are known

    def p_values(self, bins: int | None = None) -> np.ndarray:
        """P value for the uniformity of each coordinate's ranks (d,), by Pearson's χ² test.

        By default there are as many `bins` as give at least ten ranks in each; at most one for each of the draws + 1
        ranks, and at least 2, else a `ValueError`.
        """
        from scipy import stats

        n = len(self.ranks)
        bins = max(2, min(self.draws + 1, n // 10)) if bins is None else count("bins", bins, least=2)
        if bins > self.draws + 1:
            raise ValueError(f"`bins` must be at most {self.draws + 1}, the number of ranks, got {bins}.")
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
        text = f"ranks of {n} parameters of dimension {d} among {self.draws} draws each: p = {self.p:.2g}"
        if self.names:
            p = self.p_values()
            text += f"; smallest for {self.names[int(np.argmin(p))]}: {p.min():.2g}"
        return text


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
        If `replicates` or `draws` is not a whole number from 2, or a parameter is not of the model's dimension, not
        finite, or the same in all replicates.

    Warns
    -----
    UserWarning
        Where half of the runs have fewer effective draws than `draws`: ranks are not uniform then, or say nothing.

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
    replicates, draws = count("replicates", replicates, least=2), count("draws", draws, least=2)
    ranks, before, effective = [], None, []
    for child in np.random.SeedSequence(seed_number("seed", seed)).spawn(replicates):
        rng = np.random.default_rng(child)
        parameter = before = _point("prior_draw", prior_draw(rng), before)
        process = make_process(simulate(parameter, rng))
        with short_runs():
            run = sample(process, warmup=warmup, seed=int(rng.integers(2**62)), **budget)
        found = run.draws(draws).reshape(draws, -1)
        if found.shape[1] != len(parameter):
            raise ValueError(
                f"`prior_draw` gave a parameter of dimension {len(parameter)}, the process samples {found.shape[1]}."
            )
        ranks.append((found < parameter).sum(axis=0) + rng.integers((found == parameter).sum(axis=0) + 1))
        effective.append(_effective(run))
    if (median := float(np.median(effective))) < draws:
        warn(
            f"half of the runs have {median:.3g} effective draws or fewer, and {draws} draws were taken of each: their "
            "ranks need not be uniform; give a larger budget, or fewer `draws`."
        )
    return Calibration(np.array(ranks), draws)


def _point(asked, drawn, before):
    """A point (d,) that a prior gave, `before` being that of the last replicate; a `ValueError` for what is none."""
    point = np.atleast_1d(np.asarray(drawn, dtype=float))
    if not np.all(np.isfinite(point)):
        raise ValueError(f"`{asked}` gave a point that is not finite: {point}.")
    # 0 may have a probability of its own, as under a spike and slab.
    if before is not None and len(point) == len(before) and np.any((point == before) & (point != 0.0)):
        raise ValueError(
            f"`{asked}` gave {point} in two replicates, the same number: it must draw every coordinate, with the `rng` "
            "that it is given."
        )
    return point


def _effective(run):
    """Effective draws of the coordinate that has the fewest, of those that moved; 0 of a run without draws."""
    draws = diagnostic_draws(run)
    if draws is None:
        return 0.0
    with np.errstate(all="ignore"):
        found = np.asarray(draws_ess(draws, "mean"), dtype=float)
    return float(np.nanmin(found)) if np.isfinite(found).any() else 0.0


def calibrate(
    model: Model | Callable[[Any], Model] | Any,
    prior: Callable[[np.random.Generator], ArrayLike] | Any = None,
    simulate: Callable[[np.ndarray, np.random.Generator], Any] | None = None,
    *,
    replicates: int = 100,
    draws: int = 20,
    chains: int = 4,
    ess: float = 200,
    gradients: float = 20_000,
    seed: int = 0,
) -> Calibration:
    """Simulation-based calibration of `pdmp.sample` on a model, from one call.

    For each replicate parameters are drawn from the prior, data are simulated from them, and ``pdmp.sample`` samples
    the posterior of these data. If model, simulation and sampler agree, the ranks of the parameters among the draws are
    uniform, see `calibration`. Warnings of the runs are counted, and said once.

    Parameters
    ----------
    model : Model, callable, or pymc.Model
        A model with a method ``simulate(x, rng)``, which returns the same model of data that are drawn from its
        likelihood at x; or data -> Model; or a PyMC model with observed variables, which holds prior and likelihood.
    prior : callable, or frozen distribution of scipy.stats
        rng -> x (d,), a point drawn from the prior in the model's own coordinates; not for a PyMC model.
    simulate : callable, optional
        (x, rng) -> data, for a `model` that is a function of data.
    replicates : int, default 100
        Number of parameters drawn, each with data and a posterior. With 100, a model whose prior is 2.5 times too
        narrow shows where the data say little; smaller errors take more.
    draws : int, default 20
        Draws from each posterior, all chains together, uniform in time; a multiple of `chains`.
    chains, ess, gradients
        Of each run, as in `pdmp.sample`.
    seed : int, default 0
        Of the random generators.

    Returns
    -------
    Calibration
        ``.ranks`` (replicates, d); ``.p``, the p value for their uniformity; ``.names``.

    Raises
    ------
    TypeError
        If there is no way to draw parameters or data.
    ValueError
        If a number is out of range, a point is not of the model's dimension, or a PyMC model has Potentials, from which
        nothing can be drawn.

    Examples
    --------
    A normal mean with a standard normal prior, and one datum with standard normal noise.

    >>> import pdmp
    >>> found = pdmp.validation.calibrate(
    ...     lambda datum: pdmp.models.Gaussian([0.5 * datum], [2.0]),
    ...     lambda rng: rng.standard_normal(1),
    ...     lambda x, rng: x[0] + rng.standard_normal(),
    ...     replicates=3, draws=4, chains=1, ess=20, seed=1,
    ... )
    >>> found.ranks.shape, found.names
    ((3, 1), ('x[0]',))
    """
    replicates, draws = count("replicates", replicates, least=2), count("draws", draws, least=2)
    if draws % count("chains", chains):
        raise ValueError(f"`draws` must be a multiple of `chains`, got {draws} and {chains}.")
    seed, before = seed_number("seed", seed), None
    pymc = sys.modules.get("pymc")
    theirs = pymc is not None and isinstance(model, pymc.Model)
    replicate = _of_pymc(model, prior, simulate, replicates, seed) if theirs else _of_own(model, prior, simulate)
    ranks, said, names = [], [], ()
    for k, child in enumerate(np.random.SeedSequence(seed).spawn(replicates)):
        rng = np.random.default_rng(child)
        truth, posterior = replicate(k, rng)
        if not theirs:
            truth = before = _point("prior", truth, before)
        with listening() as heard:
            run = sample(posterior, chains=chains, ess=ess, gradients=gradients, seed=int(rng.integers(2**62)))
        said += heard[:1]
        found = run.draws(draws // chains)
        named = flat(run.constrain(found)) if theirs else dict(zip(run.names(), np.moveaxis(found, -1, 0), strict=True))
        names = tuple(truth) if theirs else tuple(named)
        truth = np.array(list(truth.values())) if theirs else truth
        if len(truth) != len(names):
            raise ValueError(f"`prior` gave a point of dimension {len(truth)}, the model has {len(names)}.")
        values = np.array([named[name].ravel() for name in names])
        below, equal = (values < truth[:, None]).sum(axis=1), (values == truth[:, None]).sum(axis=1)
        ranks.append(below + rng.integers(equal + 1))
    if said:
        warn(f"{len(said)} of {replicates} runs warned, the first: {said[0]}")
    return Calibration(np.array(ranks), draws, names)


def _of_own(model, prior, simulate):
    """A function (k, rng) -> (x, model of data simulated from x)."""
    draw = prior if callable(prior) and not hasattr(prior, "rvs") else getattr(prior, "rvs", None)
    if draw is None:
        raise TypeError(f"`prior` must be a function rng -> x or a distribution of scipy.stats, got {prior!r}.")
    if isinstance(model, Model) and (simulate is not None or not hasattr(model, "simulate")):
        raise TypeError(
            f"`model` must have a method simulate(x, rng) that returns it with data drawn at x, {type(model).__name__} "
            "has none: give a function data -> model, and `simulate`."
            if simulate is None
            else "`simulate` is for a `model` that is a function data -> model."
        )
    if not isinstance(model, Model) and not (callable(model) and callable(simulate)):
        raise TypeError("`model` must be a Model, or a function data -> model together with `simulate`.")

    def replicate(k, rng):
        x = draw(random_state=rng) if hasattr(prior, "rvs") else draw(rng)
        x = np.atleast_1d(np.asarray(x, dtype=float))
        posterior = model.simulate(x, rng) if isinstance(model, Model) else model(simulate(x, rng))
        if model_of(posterior) is None:
            raise TypeError(f"`model` must give a Model of the simulated data, got {type(posterior).__name__}.")
        return x, posterior

    return replicate


def _of_pymc(model, prior, simulate, replicates, seed):
    """The same for a PyMC model: (natural parameters by name, PyMC model of simulated data)."""
    import pymc

    if prior is not None or simulate is not None:
        raise TypeError("`prior` and `simulate` are those of the PyMC model: leave them out.")
    if not model.observed_RVs:
        raise ValueError("`model` has no observed variables to simulate.")
    if model.potentials:
        names = ", ".join(v.name for v in model.potentials)
        raise ValueError(f"`model` has Potentials ({names}), from which nothing can be drawn.")
    with model:
        drawn = pymc.sample_prior_predictive(replicates, random_seed=seed % 2**32)

    def replicate(k, rng):
        truth = {v.name: drawn["prior"][v.name].values[:1, k : k + 1] for v in model.free_RVs}
        data = {v.name: drawn["prior_predictive"][v.name].values[0, k] for v in model.observed_RVs}
        return {name: float(value[0, 0]) for name, value in flat(truth).items()}, pymc.observe(model, data)

    return replicate
