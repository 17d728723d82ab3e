"""Which process: the Boomerang or the forward event chain, by what each yields in a trial with the learnt metric.

Where the posterior is near normal the Boomerang needs few events, and refreshments cost it no gradient. In heavy tails
and funnels its reference says little, and the forward event chain takes over.
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

TRIAL = 500  #: gradients of each chain in a trial of the Boomerang
MARGIN = 1.2  #: how many times the chain's effective draws per gradient the Boomerang must have
REFRESH_RATE = 1.0  #: of the Boomerang
VIOLATIONS = 0.05  #: largest share of a trial's proposals that may exceed their bound


class Choice(NamedTuple):
    """The process, and why."""

    process: Process
    line: str  #: one sentence
    points: np.ndarray  #: (chains, d) where the chains are
    gradients: int  #: of the trial, all chains


def boomerang_process(model: Model, gaussian: Gaussian) -> Boomerang:
    """The Boomerang whose reference is a learnt Gaussian."""
    root = gaussian.root
    scale = np.linalg.norm(root, axis=1) if root.ndim == 2 else root
    process = Boomerang(model, gaussian.centre, scale**2, refresh_rate=REFRESH_RATE, thinning=THINNING)
    if root.ndim == 2:
        process.reference = DenseReference.from_root(root)
    return process


def choose(model: Model, metric: Metric, seed: np.random.SeedSequence) -> Choice:
    """Try the Boomerang, compare it with the last window of the chain, and take the better."""
    boomerang = boomerang_process(model, metric.gaussian)
    trial = run_window(boomerang, metric.points, seed, TRIAL)
    boomerang_yield = trial_yield(trial)
    chain_yield = trial_yield(metric.last)
    wins = boomerang_yield > MARGIN * chain_yield
    process = boomerang if wins else chain_process(model, metric.gaussian.root)
    points = ends(trial, metric.points) if wins else metric.points
    line = describe_choice(boomerang_yield, chain_yield, trial, metric)
    return Choice(process, line, points, gradients_of(trial))


def trial_yield(run: Run) -> float:
    """The least effective draws per gradient, 0 where too many proposals exceeded their bound."""
    stats = run.stats
    if stats["bound_violations"] > VIOLATIONS * max(stats["thinned"], 1):
        return 0.0
    return least_per_gradient(run)


def describe_choice(boomerang_yield: float, chain_yield: float, trial: Run, metric: Metric) -> str:
    """What was chosen and why, in one line."""
    wins = boomerang_yield > MARGIN * chain_yield
    names = ["Boomerang", "forward event chain"]
    chosen, other = names if wins else names[::-1]
    yields = [boomerang_yield, chain_yield]
    best, worst = yields if wins else yields[::-1]
    settled = "settled" if metric.settled else f"not settled (it changed by {metric.change:.2g} in the last window)"
    compared = "failed" if worst == 0.0 and not wins else f"{1_000 * worst:.3g}"
    metric_kind = "covariance" if metric.gaussian.root.ndim == 2 else "variances"
    return (
        f"{chosen} with {metric_kind} learnt from {metric.gradients:,} gradients, {settled}: least effective draws per "
        f"1,000 gradients in a trial {1_000 * best:.3g}, {other} {compared}"
    )
