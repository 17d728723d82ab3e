"""A short run before the run: of a regression with groups or dispersions, where the mode says little of the mean.

Posteriors of log-dispersions are skewed: their mean lies several standard deviations from where
`pdmp.models.regressions.laplace` expands, and they are wider than it says, those of log τ too. Both only cost: rows are
evaluated more often the farther the anchor of the likelihood's dispersions is, and a coordinate whose speed is too
small mixes slowly. So a short chain tells where they are and how wide; where that is far from the expansion, the
process is made anew. Coefficients and the groups' effects are close to normal: their mode is better than the mean of a
short chain.

The law that is sampled is that of any anchor and any speeds: exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pdmp.automatic.sampling import sample
from pdmp.errors import SamplingError, short_runs
from pdmp.metric import Metric
from pdmp.process import Process
from pdmp.processes.regression_zigzag import RegressionZigZag

LENGTH = 100.0  #: process time of a pilot run, in which each coordinate moves so many of its standard deviations
SETTLING = 0.2  #: share of it that is left out
ROUNDS = 3  #: most pilot runs: where speeds are much too small, the first one has seen little
FAR = 1.0  #: distance of the anchor from the mean, in standard deviations, from which on the process is made anew
WIDER = 1.5  #: and how many times as wide as it says a posterior is


def with_pilot(
    process: Process, starts: Callable[[int, np.random.Generator], np.ndarray], seed: int
) -> tuple[Process, float]:
    """The process, or one with anchor and speeds of a pilot run, and the passes over the data that it took.

    It is for `RegressionZigZag` without crossed groups. Rows in files are left alone: the survey of an anchor is a pass
    over all files.
    """
    model, passes = process.model, 0.0
    if not isinstance(process, RegressionZigZag) or process.crossed or model.coded is not None:
        return process, passes
    laws = np.arange(model.dim) >= model.dim - model.n_dispersions
    few = laws | (np.arange(model.dim) >= process.spread) & (np.arange(model.dim) < process.first_effect)
    if not few.any():
        return process, passes
    for k in range(ROUNDS):
        sequence = np.random.SeedSequence(seed, spawn_key=(2**32 - 3, k))
        start = starts(1, np.random.default_rng(sequence))[0]
        try:
            with short_runs():
                run = sample(
                    process,
                    initial=start,
                    time=LENGTH,
                    warmup=SETTLING,
                    store="moments",
                    covariance=False,
                    seed=int(sequence.generate_state(1)[0]),
                    progress=False,
                )
        except SamplingError:  # the run itself will say why
            return process, passes
        passes += run.stats["data_passes"]
        mean, sd = run.mean(), np.sqrt(np.maximum(run.var(), 0.0))
        usable = few & (sd > 0.0) & np.isfinite(mean + sd)
        away = np.where(usable & laws, np.abs(mean - process.anchor) / np.where(usable, sd, 1.0), 0.0)
        wider = float(np.where(usable, sd / process.speed, 0.0).max())
        if away.max() <= FAR and wider <= WIDER:
            break
        # A short run sees too little of a coordinate that mixes slowly: it makes no speed smaller.
        anchor = np.where(usable, mean, process.anchor)
        speeds = np.where(usable, np.maximum(sd, process.speed), process.speed)
        try:
            process = RegressionZigZag(model, anchor, metric=Metric(scales=speeds))
        except ValueError:  # bounds that are not finite there
            break
        passes += 1.0
        if wider <= WIDER:
            break
    return process, passes
