r"""Which process: the Boomerang or the forward event chain, with the learnt metric.

Where the target is near normal the Boomerang has few events, and its refreshments cost no gradient. In heavy tails and
funnels its reference says little, and the forward event chain is better. What the warm-up has measured of that is the
residual gradient r (`pdmp.automatic.metric.residual_gradient`): below `NEAR` the Boomerang is taken, above `FAR` the
chain, and in between the Boomerang is tried, in a window as long as the chain's last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pdmp.automatic.metric import Metric, chain_process
from pdmp.automatic.start import Gaussian
from pdmp.automatic.windows import THINNING, ends, gradients_of, least_per_gradient, run_window
from pdmp.engine.result import Run
from pdmp.models.base import Model
from pdmp.process import Process
from pdmp.processes.boomerang import Boomerang
from pdmp.processes.gaussian_reference import DenseReference

NEAR, FAR = 0.2, 0.4  #: residual gradients below and above which nothing is tried
MARGIN = 1.2  #: the Boomerang must yield this many times the effective draws per gradient of the chain
REFRESH_RATE = 1.2  #: of the Boomerang
VIOLATIONS = 0.05  #: largest share of a trial's proposals that may exceed their bound


class Choice(NamedTuple):
    """The process, and why."""

    process: Process
    line: str  #: one sentence
    points: np.ndarray  #: (chains, d) where the chains are
    gradients: int  #: that this has cost, all chains


def boomerang_process(model: Model, gaussian: Gaussian) -> Boomerang:
    """The Boomerang whose reference is a learnt Gaussian."""
    root = gaussian.root
    scale = np.linalg.norm(root, axis=1) if root.ndim == 2 else root
    process = Boomerang(model, gaussian.centre, scale**2, refresh_rate=REFRESH_RATE, thinning=THINNING)
    if root.ndim == 2:
        process.reference = DenseReference.from_root(root)
    return process


def choose(model: Model, metric: Metric, seed: np.random.SeedSequence) -> Choice:
    """The better of the two processes, by the residual gradient and, where that leaves it open, by trials."""
    chain, learnt = chain_process(model, metric.gaussian.root), describe_metric(metric)
    if not metric.residual <= FAR:
        line = (
            f"forward event chain: the posterior is far from normal (residual gradient {metric.residual:.2f}); {learnt}"
        )
        return Choice(chain, line, metric.points, 0)
    boomerang = boomerang_process(model, metric.gaussian)
    if metric.residual < NEAR:
        line = f"Boomerang: the posterior is near normal (residual gradient {metric.residual:.2f}); {learnt}"
        return Choice(boomerang, line, metric.points, 1)
    trial = run_window(boomerang, metric.points, seed, gradients_of(metric.last) // metric.last.chains)
    by_boomerang, by_chain = 1_000.0 * trial_yield(trial), 1_000.0 * trial_yield(metric.last)
    wins = by_boomerang > MARGIN * by_chain
    line = (
        f"{'Boomerang' if wins else 'forward event chain'}: in trials {by_boomerang:.3g} effective draws per 1,000 "
        f"gradients of the Boomerang, {by_chain:.3g} of the forward event chain; {learnt}"
    )
    points = ends(trial, metric.points) if wins else metric.points
    return Choice(boomerang if wins else chain, line, points, gradients_of(trial) + 1)


def trial_yield(run: Run) -> float:
    """The least effective draws per gradient; 0 where too many proposals exceeded their bound, or a chain failed."""
    stats = run.stats
    if stats["bound_violations"] > VIOLATIONS * max(stats["thinned"], 1):
        return 0.0
    return least_per_gradient(run)


def describe_metric(metric: Metric) -> str:
    """How the metric was learnt, and whether it has settled."""
    kind = "covariance" if metric.gaussian.root.ndim == 2 else "variances"
    settled = "settled" if metric.settled else f"not settled: they changed by {metric.change:.2g} in the last window"
    return f"{kind} learnt in {metric.windows} windows, {metric.gradients:,} gradients, {settled}"
