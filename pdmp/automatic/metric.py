r"""The metric: mean and covariance of the target, learnt in windows of all chains.

A window is a piece of a forward event chain in the metric of the window before. The first metric is that of the
Gaussian that the starts are from. Mean and covariance are time integrals of all chains' paths together, which are exact
along a path; windows are twice as long each time until the covariance has settled. The last metric is frozen: what is
sampled with it is the target's law, however good it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pdmp.automatic.start import DENSE, Gaussian, Starts
from pdmp.automatic.windows import THINNING, ends, gradients_of, run_window
from pdmp.engine.result import Run
from pdmp.errors import SamplingError
from pdmp.models.base import Model
from pdmp.processes.forward_event_chain import ForwardEventChain
from pdmp.processes.mass import Dense, Diagonal

FIRST_WINDOW = 250  #: gradients of each chain in the first window, at least; ten for each dimension
WINDOWS = 5  #: largest number of windows
TOLERANCE = 0.3  #: the covariance has settled when it changes by less, see `distance`
LEAST_EIGENVALUE = 1e-6  #: of a learnt correlation matrix
REFRESH = 0.5  #: probability that an event of the forward event chain draws the orthogonal component anew


class Metric(NamedTuple):
    """What the windows learnt."""

    gaussian: Gaussian  #: mean, and a root of the covariance
    points: np.ndarray  #: (chains, d) where the chains are
    last: Run  #: the last window
    change: float  #: of the covariance in the last window, see `distance`
    windows: int
    gradients: int  #: of all windows, all chains

    @property
    def settled(self) -> bool:
        """Whether the last two windows agree."""
        return self.change <= TOLERANCE


def chain_process(model: Model, root: np.ndarray) -> ForwardEventChain:
    """The forward event chain whose velocities are L z, z ~ N(0, I), with a root L (d, d) or (d,)."""
    process = ForwardEventChain(
        model, orthogonal="refresh", probability=REFRESH, velocities="gaussian", thinning=THINNING
    )
    process.mass = Diagonal(root) if root.ndim == 1 else Dense(lower(root))
    return process


def lower(root: np.ndarray) -> np.ndarray:
    """The lower triangular root of the same covariance."""
    return np.ascontiguousarray(np.tril(np.linalg.qr(root.T, mode="r").T))


def regularised_root(covariance: np.ndarray) -> np.ndarray:
    """L with L Lᵀ = covariance (d, d), or (d,) of variances; eigenvalues of the correlations raised to the least."""
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / sd[:, None] / sd)
    return lower(sd[:, None] * vectors * np.sqrt(np.maximum(values, LEAST_EIGENVALUE)))


def distance(old: np.ndarray, new: np.ndarray) -> float:
    """√(mean over k of log² λₖ), λₖ the eigenvalues of Σ_old⁻¹ Σ_new, of roots (d, d) or (d,) of both.

    It does not depend on the coordinates. Estimates from n and m independent normal draws are about
    √((d + 1) (1/n + 1/m)) apart.
    """
    if old.ndim == 1:
        logs = 2.0 * (np.log(new) - np.log(old))
    else:
        logs = 2.0 * np.log(np.linalg.svd(np.linalg.solve(old, new), compute_uv=False))
    return float(np.sqrt(np.mean(logs**2)))


def learn_metric(model: Model, starts: Starts, seed: np.random.SeedSequence) -> Metric:
    """Run the windows.

    Raises
    ------
    SamplingError
        If all chains of a window fail, or do not move.
    """
    root, points = starts.gaussian.root, starts.points
    dense = model.dim <= DENSE
    root = lower(root) if dense else root
    length, spent, before = max(FIRST_WINDOW, 10 * model.dim), 0, None
    for k, child in enumerate(seed.spawn(WINDOWS)):
        run = run_window(chain_process(model, root), points, child, length)
        spent += gradients_of(run)
        if all(record.stopped == "failed" or record.length <= 0.0 for record in run.records):
            raise SamplingError(
                f"the warm-up of {type(model).__name__} failed in window {k + 1}: its gradient is not finite where the "
                "chains went; give `initial=`, or a process of your choice.",
                run=run,
            )
        learnt = regularised_root(run.cov() if dense else run.var())
        change, root, mean = distance(root, learnt), learnt, run.mean()
        points = ends(run, points)
        if before is not None and change <= TOLERANCE:  # the same law was seen in both windows: both count
            both = Run(dict(run.info), [*before.records, *run.records], process=run.process)
            root, mean = regularised_root(both.cov() if dense else both.var()), both.mean()
            break
        length, before = 2 * length, run
    return Metric(Gaussian(mean, root), points, run, change, k + 1, spent)
