"""Rounds of tempering that learn the ladder, the metric of each rung, and the reference.

The metric of a rung is the inverse of E ∇U_β∇U_βᵀ, its widths *within* modes; a covariance has the distances between
them too. Rounds are of all chains together, of twice the scans each time, and four times for the first fitted one. In
the first `SEARCHES` the reference is one wide t, from which replicas come to whatever is within it; after each later
one it is fitted anew to draws of the target (`pdmp.automatic.tempering.references`). In the first quarter of a round
steps adapt; only what follows is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pdmp.automatic.tempering import references
from pdmp.automatic.tempering.evidence import LogEvidence, log_evidence
from pdmp.automatic.tempering.ladder import first_rungs, rungs, wanted
from pdmp.automatic.tempering.process import ACCEPTANCE, LONG, SHORT, Tempered
from pdmp.automatic.tempering.references import Mixture, defended, fitted
from pdmp.automatic.windows import advanced
from pdmp.engine.chain import Budget
from pdmp.errors import SamplingError
from pdmp.metric import root_of as inverse_root
from pdmp.models.base import Model
from pdmp.native.threads import one_thread
from pdmp.process import DATA

FIRST_RUNGS = 12  #: of the first round
FEW_RUNGS = 8  #: of the second, at least: the first has seen little of the barrier
SCANS = 64  #: of all chains together in the first round, at least; of one a quarter of that
SEARCHES, FITS = 2, 2  #: rounds with the wide reference, and with fitted ones; the last of these stays
ADAPTED = 0.25  #: part of a round in which steps adapt
COMPARED = 200  #: draws at which the gradients of target and reference are compared
MISFIT = 0.8  #: by which the target is far from the reference; of normal components t's are 0.3 to 0.6 away
TRUST = 5.0  #: draws for each dimension that what is known of a metric beforehand counts for


class Mode(NamedTuple):
    """A mode that was found before there were draws: by a path, or by a chain of the warm-up."""

    centre: np.ndarray  #: (d,)
    root: np.ndarray  #: L (d, d), lower triangular, of the covariance L Lᵀ
    mass: float  #: log of its mass, by Laplace's approximation or the ELBO


class Round(NamedTuple):
    """What a round saw, all chains together."""

    draws: np.ndarray  #: (chains, n, d) of the target
    rejections: np.ndarray  #: (N - 1,)
    steps: np.ndarray  #: (N,)
    squares: np.ndarray  #: (N, d, d)
    positions: np.ndarray  #: (chains, N, d) where the replicas of each rung are
    evidence: LogEvidence
    gradients: int


class Ladder(NamedTuple):
    """What a process is made of."""

    reference: Mixture
    betas: np.ndarray
    precisions: np.ndarray  #: (N, d, d)
    steps: np.ndarray  #: (N,)
    pool: np.ndarray  #: (chains, N, d)
    starts: np.ndarray  #: (chains, d)
    longest: int  #: steps of a path, at most

    def process(self, model: Model, learns: bool, acceptance: float) -> Tempered:
        """The process with it."""
        roots = np.array([inverse_root(p) for p in self.precisions])
        return Tempered(
            model, self.reference, self.betas, roots, self.steps, self.pool, learns, acceptance, self.longest
        )


def run_round(process: Tempered, starts: np.ndarray, seed: np.random.SeedSequence, scans: int) -> Round:
    """Chains from `starts` (chains, d), of so many scans each; the result depends on the arguments alone."""
    chains = advanced(process, starts, seed, Budget(events=scans), ADAPTED)
    failed = [chain for chain in chains if chain.failure is not None]
    if failed:
        raise SamplingError(f"the tempered warm-up of {type(process.model).__name__} failed: {failed[0].failure[0]}.")
    found = [process.learnt(chain.state) for chain in chains]
    records = [chain.finish() for chain in chains]
    kept = [record.xs[np.asarray(record.times) > record.warmup] for record in records]
    terms = max(process.model.n_data, 1)

    def mean(name):
        return np.mean([one[name] for one in found], axis=0)

    return Round(
        draws=np.array(kept),
        rejections=mean("rejections"),
        steps=np.exp(mean("log_steps")),
        squares=mean("squares"),
        positions=np.array([one["positions"] for one in found]),
        evidence=log_evidence([one["works"] for one in found], process.betas),
        gradients=sum(int(record.counts[DATA]) for record in records) // terms,
    )


def first_ladder(wide: Mixture, precision: np.ndarray, points: np.ndarray, chains: int, longest: int) -> Ladder:
    """Before the first round: rungs in equal ratios, metrics between the reference's and that of the modes."""
    betas, d = first_rungs(FIRST_RUNGS), len(precision)
    precisions = np.array([b * precision + (1.0 - b) * wide.precision() for b in betas])
    places = (np.arange(chains)[:, None] + np.arange(FIRST_RUNGS)) % len(points)
    steps = np.full(FIRST_RUNGS, d**-0.25)
    return Ladder(wide, betas, precisions, steps, points[places], points[np.arange(chains) % len(points)], longest)


def next_ladder(
    ladder: Ladder,
    seen: Round,
    least: int,
    known: np.ndarray,
    count: int,
    reference: Mixture | None,
    rng: np.random.Generator,
) -> Ladder:
    """Rungs at equal shares of the barrier that was seen, with metrics and steps between those of the old ones.

    They are `least` at least. `known` (d, d): the precision at β = 1 that was known beforehand; `count`: draws that
    have been seen of each rung; `reference`: a new one, whose replicas start at draws of the target, which `rng`
    chooses.
    """
    d = len(known)
    betas = rungs(ladder.betas, seen.rejections, max(wanted(float(seen.rejections.sum())), least))
    prior = np.array([b * known + (1.0 - b) * ladder.reference.precision() for b in ladder.betas])
    weight, diagonal = TRUST * d, np.array([np.diag(np.diag(square)) for square in seen.squares])
    learnt = (count * seen.squares + 0.5 * weight * (diagonal + prior)) / (count + weight)
    chains = len(seen.positions)
    if reference is None:
        reference = ladder.reference
        places = np.interp(betas, ladder.betas, np.arange(len(ladder.betas)))
        below = np.minimum(places.astype(int), len(ladder.betas) - 2)
        part = (places - below)[:, None, None]
        precisions = (1.0 - part) * learnt[below] + part * learnt[below + 1]
        steps = np.interp(betas, ladder.betas, seen.steps)
        pool = seen.positions[:, np.rint(places).astype(int)]
    else:  # of a new path only its ends are known
        precisions = np.array([b * learnt[-1] + (1.0 - b) * reference.precision() for b in betas])
        steps = np.full(len(betas), seen.steps[-1])
        draws = seen.draws.reshape(-1, d)
        pool = draws[rng.integers(len(draws), size=(chains, len(betas)))]
    pool[:, 0] = seen.positions[:, -1]  # one in zero density is replaced at the first scan, but never swapped
    return Ladder(reference, betas, precisions, steps, pool, seen.positions[:, -1].copy(), ladder.longest)


def misfit(model: Model, reference: Mixture, x: np.ndarray, root: np.ndarray) -> float:
    """√(mean of |Lᵀ(∇U - ∇U₀)|² / d) over draws x (n, d) of the target, of the root L: 0 if the reference is it."""
    memory, slope, total = reference.memory(), np.empty(x.shape[1]), []
    for point in x:
        reference.potential_and_gradient(np.ascontiguousarray(point), memory, slope)
        total.append((((model.gradient(point) - slope) @ root) ** 2).mean())
    return math.sqrt(float(np.mean(total)))


def learn_ladder(
    model: Model,
    modes: Sequence[Mode],
    begun: np.ndarray,
    chains: int,
    seed: np.random.SeedSequence,
    acceptance: float = ACCEPTANCE,
    far: bool = False,
) -> tuple[Ladder, int, float]:
    """Run the rounds: the ladder, the gradients they took, and the barrier that the last one saw.

    The first of the modes is that of most mass; paths have begun around `begun` (d,). `acceptance`: at which steps aim;
    `far`: whether the target is far from normal, as far as is known. Once a reference is fitted it is seen whether the
    target is far from that. A `SamplingError` if the model fails.
    """
    children = seed.spawn(SEARCHES + FITS + 1)
    rng = np.random.Generator(np.random.PCG64(children[-1]))
    centres, covariances = np.array([m.centre for m in modes]), np.array([m.root @ m.root.T for m in modes])
    with one_thread():
        wide = references.wide(centres, covariances, begun)
        inverses = [np.linalg.inv(c) for c, m in zip(covariances, modes, strict=True) if m.mass > modes[0].mass - 5.0]
        known = np.mean(inverses, axis=0)
        ladder = first_ladder(wide, known, centres, chains, LONG if far else SHORT)
    spent, scans, worst = 0, math.ceil(SCANS / min(chains, 4)), 0.0
    for k in range(SEARCHES + FITS):
        process = ladder.process(model, True, acceptance)
        seen = run_round(process, ladder.starts, children[k], scans)
        spent, count = spent + seen.gradients, seen.draws.shape[0] * seen.draws.shape[1]
        with one_thread():
            reference = None
            if SEARCHES - 1 <= k < SEARCHES + FITS - 1:  # the last ladder is for the reference that was there
                draws = seen.draws.reshape(-1, model.dim)
                x = draws[:: -(-len(draws) // references.USED)]
                reference = defended(fitted(x, rng), wide, modes, seen.evidence.value)
            ladder = next_ladder(ladder, seen, FEW_RUNGS if k == 0 else 0, known, count, reference, rng)
        if reference is not None:
            x = x[:: -(-len(x) // COMPARED)]
            root = inverse_root(ladder.precisions[-1])
            worst, spent = max(worst, misfit(model, reference, x, root)), spent + len(x)
            ladder = ladder._replace(longest=LONG if worst > MISFIT else SHORT)
        scans *= 4 if k == SEARCHES - 1 else 2
    return ladder, spent, float(seen.rejections.sum())
