"""`pdmp.auto`: starts and metric, one after the other."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.metric import FAR, Metric, hamiltonian, learn_metric
from pdmp.automatic.start import find_starts
from pdmp.engine.checks import check_count, check_seed
from pdmp.engine.preflight import check_methods, check_target
from pdmp.models.adapters import from_pymc
from pdmp.models.base import Model
from pdmp.process import Process
from pdmp.processes.hmc import HMC
from pdmp.processes.mass import LowRank

#: Place of the warm-up's seeds among the children of a run's, which its chains take from 0 on.
SPAWN_KEY = 2**32 - 1


def auto(model: Model | Any, *, chains: int = 4, seed: int | None = None, initial: ArrayLike | None = None) -> Process:
    """A process that is ready to sample a model: started, preconditioned and chosen by its own warm-up.

    1. Starts: from the model's initial point, and from a point dispersed around it for each chain, a Newton path; each
       chain starts from the Gaussian of best ELBO along its own path (`pdmp.automatic.start`).
    2. Metric: windows of `HMC`, of all chains together, learn mean and covariance, until they have settled, and the
       step; above 200 dimensions variances and a few directions that they miss (`pdmp.automatic.metric`).

    ``pdmp.sample(model)`` does this, and then samples.

    Parameters
    ----------
    model : Model or pymc.Model
        The target. A PyMC model goes through `pdmp.models.from_pymc`.
    chains : int, default 4
        Number of chains, which all take part in the warm-up.
    seed : int, optional
        The same seed gives the same process. By default one is drawn.
    initial : array_like, shape (d,) or (chains, d), optional
        Around which point the paths begin, or where each chain's path does; the model's ``initial`` when omitted.

    Returns
    -------
    Process
        An `HMC`. Its attribute ``starts`` is where the chains of a run start by default, ``choice`` says in one line
        what was learnt, ``preparation_gradients`` is the number of gradients and
        potentials that this has cost, all chains together.

    Raises
    ------
    TypeError
        If it is not a model.
    ValueError
        If no point of positive density is found near `initial`.
    SamplingError
        If the warm-up fails.

    Warns
    -----
    UserWarning
        If paths end apart, so that there may be modes that no chain starts from.

    Examples
    --------
    >>> import pdmp
    >>> process = pdmp.auto(pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0]), seed=1)
    >>> process.starts.shape
    (4, 2)
    >>> run = pdmp.sample(process, events=200, chains=4, seed=1)
    """
    target = model_of(model)
    if target is None:
        raise TypeError(f"`model` must be a pdmp.Model or a pymc.Model, got {type(model).__name__}.")
    chains = check_count("chains", chains)
    root = np.random.SeedSequence(check_seed(seed, None), spawn_key=(SPAWN_KEY,))
    for_starts, for_metric = root.spawn(2)
    check_methods(target)
    check_target(target)
    starts = find_starts(target, chains, np.random.Generator(np.random.PCG64(for_starts)), initial)
    said = starts.warning()
    if said is not None:
        warnings.warn(said, UserWarning, stacklevel=4)
    metric = learn_metric(target, starts, for_metric)
    process = hamiltonian(target, metric.mass, metric.far, metric.step)
    process.starts, process.choice = metric.points, describe(process, metric)
    process.preparation_gradients = starts.evaluations + metric.gradients
    return process


def describe(process: HMC, metric: Metric) -> str:
    """One sentence on what was learnt, and how."""
    kind = "covariance" if metric.gaussian.root.ndim == 2 else "variances"
    if isinstance(process.mass, LowRank):
        kind += f" and {len(process.mass.gains)} directions"
    settled = "settled" if metric.settled else f"not settled: they changed by {metric.change:.2g} in the last window"
    shape = "far from normal" if metric.residual > FAR else "near normal"
    return (
        f"Hamiltonian Monte Carlo with step {metric.step:.2g} in paths of {process.duration:g}: {kind} learnt in "
        f"{metric.windows} window{'s' if metric.windows > 1 else ''}, {metric.gradients:,} gradients, {settled}; the "
        f"posterior is {shape} (residual gradient {metric.residual:.2f})"
    )


def model_of(target: Any) -> Model | None:
    """The model that `target` is or stands for; None if it is neither a model nor a PyMC model."""
    if isinstance(target, Model):
        return target
    pymc = sys.modules.get("pymc")  # whoever made a PyMC model has imported it
    if pymc is not None and isinstance(target, pymc.Model):
        return from_pymc(target)
    return None
