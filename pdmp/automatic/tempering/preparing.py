"""From a model to a tempered process: the plain warm-up finds modes, rounds of tempering the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.metric import Metric, learn_metric
from pdmp.automatic.metric import acceptance as aimed_at
from pdmp.automatic.modes import hidden_modes
from pdmp.automatic.start import Evaluations, Gaussian, Starts, elbo, find_starts, is_typical
from pdmp.automatic.tempering.modes import groups
from pdmp.automatic.tempering.process import Tempered
from pdmp.automatic.tempering.rounds import Mode, learn_ladder
from pdmp.models.base import Model
from pdmp.models.transforms import coordinate_names
from pdmp.processes.mass import lower


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
    modes, more = known_modes(model, starts, learnt, [mode.gaussian for mode in hidden])
    spent = starts.evaluations + learnt.gradients + further + more
    aim = aimed_at(learnt.far, acceptance)
    ladder, rounds, barrier = learn_ladder(model, modes, chains, for_rounds, aim, learnt.far)
    process = ladder.process(model, False, aim)
    target = Evaluations(model)
    process.modes = groups(target, process.reference)
    process.known = (
        np.array([m.centre for m in modes]),
        np.array([m.root for m in modes]),
        np.array([m.mass for m in modes]),
    )
    process.starts = ladder.starts
    process.cautions = tuple(filter(None, [starts.warning(coordinate_names(model.variables, model.transforms))]))
    process.preparation_gradients = spent + rounds + target.count
    process.choice = describe(process, rounds, barrier)
    return process


def describe(process: Tempered, gradients: int, barrier: float) -> str:
    """One sentence on what was learnt."""
    n, components, modes = len(process.betas), len(process.reference.weights) - 1, int(process.modes.max()) + 1
    return (
        f"parallel tempering with {n} rungs, of HMC with paths of 1 to {process.longest} steps; the reference has "
        f"{components} fitted component{'s' if components > 1 else ''}, in {modes} mode{'s' if modes > 1 else ''}, and "
        f"a wide one; barrier {barrier:.2g}, learnt in {gradients:,} gradients"
    )


def known_modes(model: Model, starts: Starts, learnt: Metric, hidden: list[Gaussian]) -> tuple[list[Mode], int]:
    """Distinct Gaussians that paths and chains have found, that of most mass first, and the evaluations it took."""
    target = Evaluations(model)
    z = np.random.Generator(np.random.PCG64(0)).standard_normal((8, model.dim))
    gaussians = [*hidden, *(path.mode or path.gaussian for path in starts.paths if path.gaussian is not None)]
    if not gaussians:
        gaussians = [learnt.gaussian]
    found: list[Mode] = []
    candidates = [(elbo(target, g, z), g) for g in {id(g): g for g in gaussians}.values()]
    for mass, g in sorted(candidates, key=lambda c: -c[0]):
        if any(is_typical(np.linalg.solve(m.root, g.centre - m.centre)) for m in found):
            continue
        root = lower(g.root)
        found.append(Mode(g.centre, root * np.sign(np.diag(root)), mass))
    return found, target.count
