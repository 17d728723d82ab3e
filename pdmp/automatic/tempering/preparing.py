"""From a model to a tempered process: the plain warm-up finds modes, rounds of tempering the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.metric import Metric, learn_metric
from pdmp.automatic.metric import acceptance as aimed_at
from pdmp.automatic.modes import hidden_modes
from pdmp.automatic.start import WIDTH, Evaluations, Gaussian, Path, Starts, elbo, find_path, find_starts, is_typical
from pdmp.automatic.tempering.modes import groups
from pdmp.automatic.tempering.process import Tempered
from pdmp.automatic.tempering.references import BEHIND
from pdmp.automatic.tempering.rounds import Mode, learn_ladder
from pdmp.metric import lower
from pdmp.models.base import Model
from pdmp.models.transforms import coordinate_names
from pdmp.process import Prepared

PATHS, EVALUATIONS = 24, 3_000  #: further paths, at most, and evaluations from which on no other one begins


def tempered(
    model: Model, chains: int, seeds: list[np.random.SeedSequence], initial: ArrayLike | None, acceptance: float | None
) -> Tempered:
    """A tempered process that is ready.

    1. Starts and a metric as of `pdmp.auto`, and modes that no chain is in.
    2. Rounds of tempering (`pdmp.automatic.tempering.rounds`).

    Parameters
    ----------
    model : Model
        Of at most `DENSE` dimensions.
    chains : int
        Ladders.
    seeds : list of numpy.random.SeedSequence
        Of the starts, the metric, the further paths, and the rounds.
    initial : array_like, optional
        As of `pdmp.auto`.
    acceptance : float, optional
        At which the steps of all rungs aim.
    """
    for_starts, for_metric, for_modes, for_rounds = seeds
    starts = find_starts(model, chains, np.random.Generator(np.random.PCG64(for_starts)), initial)
    learnt = learn_metric(model, starts, for_metric)
    hidden, further = hidden_modes(model, starts, learnt, for_modes)
    modes, more = known_modes(model, starts, learnt, [m.gaussian for m in hidden], for_modes.spawn(1)[0])
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
    cautions = tuple(filter(None, [starts.warning(coordinate_names(model.variables, model.transforms))]))
    spent += rounds + target.count
    process.prepared = Prepared(ladder.starts, describe(process, rounds, barrier), spent, cautions)
    return process


def describe(process: Tempered, gradients: int, barrier: float) -> str:
    """One sentence on what was learnt."""
    n, components, modes = len(process.betas), len(process.reference.weights) - 1, int(process.modes.max()) + 1
    return (
        f"parallel tempering with {n} rungs, of HMC with paths of 1 to {process.longest} steps; the reference has "
        f"{components} fitted component{'s' if components > 1 else ''}, in {modes} mode{'s' if modes > 1 else ''}, and "
        f"a wide one; barrier {barrier:.2g}, learnt in {gradients:,} gradients; they miss modes that are narrow and far"
    )


def known_modes(
    model: Model, starts: Starts, learnt: Metric, hidden: Sequence[Gaussian], seed: np.random.SeedSequence
) -> tuple[list[Mode], int]:
    """Distinct Gaussians that paths have found, that of most mass first, and the evaluations it took.

    Besides those of the plain warm-up there are up to `PATHS` further paths, in pairs on either side of the centre of
    what is known and of where the first paths began, at once, twice and four times its spread.
    """
    target, rng = Evaluations(model), np.random.Generator(np.random.PCG64(seed))
    z = rng.standard_normal((8, model.dim))
    paths = tuple(path for path in starts.paths if path.gaussian is not None)
    paths += tuple(Path(g, elbo(target, g, z), True, mode=g) for g in (*hidden, learnt.gaussian))
    centres = np.array([starts.centre, *(path.gaussian.centre for path in paths)])
    width = np.sqrt(centres.var(axis=0) + np.square(WIDTH) / 3.0) + np.max([p.gaussian.widths() for p in paths], axis=0)
    for k in range(PATHS):
        if target.count > EVALUATIONS:
            break
        if k % 2 == 0:
            offset = 2.0 ** (k // 2 % 3) * width * rng.standard_normal(model.dim)
        origin = centres.mean(axis=0) + (offset if k % 2 == 0 else -offset)
        if target.potential(origin) < math.inf:
            path = find_path(target, origin, rng, paths, True)
            if path.mode is not None and not any(path is other for other in paths):
                paths = (*paths, path)
    found: list[Mode] = []
    gaussians = [path.mode or path.gaussian for path in {id(path): path for path in paths}.values()]
    for mass, g in sorted(((elbo(target, g, z), g) for g in gaussians), key=lambda c: -c[0]):
        if not any(is_typical(np.linalg.solve(m.root, g.centre - m.centre)) for m in found):
            root = lower(g.root)
            found.append(Mode(g.centre, root * np.sign(np.diag(root)), mass))
    best = found[0].mass
    return [m for m in found if m.mass > best - BEHIND] if math.isfinite(best) else found[:1], target.count
