"""From a model to a tempered process: the plain warm-up finds modes, rounds of tempering the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.metric import Metric, learn_metric
from pdmp.automatic.metric import acceptance as aimed_at
from pdmp.automatic.modes import NAMED, Hidden, hidden_modes
from pdmp.automatic.start import Evaluations, Path, Starts, elbo, find_starts, is_typical
from pdmp.automatic.tempering.lines import along_lines, narrowest
from pdmp.automatic.tempering.modes import groups
from pdmp.automatic.tempering.process import Tempered
from pdmp.automatic.tempering.references import BEHIND
from pdmp.automatic.tempering.rounds import Mode, learn_ladder
from pdmp.automatic.tempering.rows import by_rows
from pdmp.errors import warn
from pdmp.metric import lower
from pdmp.models.base import Model
from pdmp.models.transforms import coordinate_names
from pdmp.process import Prepared

RARE = 0.02  #: weight in the reference from which on a narrow mode is named
#: Rows from which on they are sub-sampled, or it is said beforehand what a pass costs; passes that runs have taken.
MANY_ROWS, PASSES = 50_000, (36_000, 430_000)


def tempered(
    model: Model, chains: int, seeds: list[np.random.SeedSequence], initial: ArrayLike | None, acceptance: float | None
) -> Tempered:
    """A tempered process that is ready: of `MANY_ROWS` rows or more that of `by_rows`, where there is one; else

    1. starts and a metric as of `pdmp.auto`, and modes that no chain is in;
    2. rounds of tempering (`pdmp.automatic.tempering.rounds`).

    The `seeds` are of the starts, the metric, the further paths, and the rounds; steps of all rungs aim at
    `acceptance`. It warns of what passes over many rows cost, before the run.
    """
    if model.n_data >= MANY_ROWS:
        why = "`target_acceptance` is of Hamiltonian paths"
        if acceptance is None:
            process, why = by_rows(model, chains, seeds[:3], initial)
            if process is not None:
                return process
        warn(cost(model, why))
    for_starts, for_metric, for_modes, for_rounds = seeds
    starts = find_starts(model, chains, np.random.Generator(np.random.PCG64(for_starts)), initial)
    learnt = learn_metric(model, starts, for_metric)
    hidden, _, further = hidden_modes(model, starts, learnt, for_modes)
    modes, lines, more = known_modes(model, starts, learnt, hidden, for_modes.spawn(1)[0])
    spent = starts.evaluations + learnt.gradients + further + more
    aim = aimed_at(learnt.far, acceptance)
    ladder, rounds, barrier = learn_ladder(model, modes, starts.centre, chains, for_rounds, aim, learnt.far)
    process = ladder.process(model, False, aim)
    target = Evaluations(model)
    process.modes = groups(target, process.reference)
    process.known = (
        np.array([m.centre for m in modes]),
        np.array([m.root for m in modes]),
        np.array([m.mass for m in modes]),
    )
    process.narrowest = narrowest(model.dim, lines)
    names = coordinate_names(model.variables, model.transforms)
    cautions = tuple(filter(None, [starts.warning(names), narrow(process, names)]))
    spent += rounds + target.count
    process.prepared = Prepared(ladder.starts, describe(process, rounds, barrier), spent, cautions)
    return process


def cost(model: Model, why: str) -> str:
    """What is said of a gradient, and of a run."""
    target, clock = Evaluations(model), [perf_counter()]  # which has compiled what is timed
    for _ in range(3):
        target.gradient(model.initial)
        clock.append(perf_counter())
    took = float(np.diff(clock).min())
    least, most = (f"{n * took / 60.0:,.1f}" for n in PASSES)
    return (
        f"the tempered run does not sub-sample, as {why}: each gradient is a pass over all {model.n_data:,} rows, "
        f"{took:.2g} s. Such runs have taken {PASSES[0]:,} to {PASSES[1]:,} passes by default, here {least} to {most} "
        "minutes of the processors. `gradients=` and `ess=` bound those after the warm-up. Of a posterior with one "
        "mode a fit of pdmp.regression without `tempered` has `log_evidence` from fewer."
    )


def describe(process: Tempered, gradients: int, barrier: float) -> str:
    """One sentence on what was learnt."""
    n, components, modes = len(process.betas), len(process.reference.weights) - 1, int(process.modes.max()) + 1
    return (
        f"parallel tempering with {n} rungs, of HMC with paths of 1 to {process.longest} steps; the reference has "
        f"{components} fitted component{'s' if components > 1 else ''}, in {modes} mode{'s' if modes > 1 else ''}, and "
        f"a wide one; barrier {barrier:.2g}, learnt in {gradients:,} gradients; modes less "
        f"than {process.narrowest:.2g} times as wide as others may be missed"
    )


def narrow(process: Tempered, names: list[str]) -> str | None:
    """What to say of a mode that is narrower than what lines see, or None."""
    reference, groups = process.reference, process.modes
    volumes = np.log(np.diagonal(reference.roots[:-1], axis1=1, axis2=2)).mean(axis=1)
    own = [np.flatnonzero(groups == k) for k in range(int(groups.max()) + 1)]
    widths = np.exp([volumes[j].max() - volumes.max() for j in own])
    weights = np.array([reference.weights[j].sum() for j in own])
    k = int(np.argmin(np.where(weights > RARE, widths, 1.0)))
    if not widths[k] < process.narrowest:
        return None
    centre = reference.means[own[k][np.argmax(reference.weights[own[k]])]]
    where = ", ".join(f"{name} = {x:.3g}" for name, x in list(zip(names, centre, strict=True))[:NAMED])
    return (
        f"the mode at {where}{' …' if len(names) > NAMED else ''} is {widths[k]:.2g} times as wide as another one, and "
        f"what is less than {process.narrowest:.2g} times as wide is found by luck: others like it may be missing. If "
        "you know of any give `initial=` a row for each chain, one of them there"
    )


def known_modes(
    model: Model, starts: Starts, learnt: Metric, hidden: Sequence[Hidden], seed: np.random.SeedSequence
) -> tuple[list[Mode], int, int]:
    """Distinct Gaussians that paths have found, that of most mass first; lines looked along, and evaluations in all.

    Besides those of the plain warm-up there are those to which `along_lines` leads.
    """
    target, rng = Evaluations(model), np.random.Generator(np.random.PCG64(seed))
    z = rng.standard_normal((8, model.dim))
    paths = tuple(path for path in starts.paths if path.gaussian is not None)
    gaussians = [one.gaussian for one in hidden] + [learnt.gaussian]
    paths += tuple(Path(g, elbo(target, g, z), True, mode=g) for g in gaussians)
    paths, lines = along_lines(target, paths, starts.centre, rng)
    found: list[Mode] = []
    gaussians = [path.mode or path.gaussian for path in {id(path): path for path in paths}.values()]
    judged = [(elbo(target, g, z), g) for g in gaussians]
    best = max(mass for mass, _ in judged)
    judged += [(best - one.behind, one.gaussian) for one in hidden]  # of an image that is known better
    for mass, g in sorted(judged, key=lambda c: -c[0]):
        if not any(
            is_typical(np.linalg.solve(m.root, g.centre - m.centre))
            and is_typical(g.standardised(m.centre))  # else a narrow one within a wide one
            for m in found
        ):
            root = lower(g.root)
            found.append(Mode(g.centre, root * np.sign(np.diag(root)), mass))
    best = found[0].mass
    found = [m for m in found if m.mass > best - BEHIND] if math.isfinite(best) else found[:1]
    return found, lines, target.count
