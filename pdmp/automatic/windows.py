"""Short runs of all chains, of which the warm-up is made."""

from __future__ import annotations

import numpy as np

from pdmp.engine.chain import Budget, Chain
from pdmp.engine.checks import describe
from pdmp.engine.result import Run
from pdmp.errors import filters_kept, warn
from pdmp.native.threads import cpu_count, thread_pool
from pdmp.process import DATA, Process

#: Part of a window in which the step adapts, and which is left out: of the first, and of one whose step begins at that
#: of the window before.
WARMUP, LATER = 0.4, 0.2


def advanced(
    process: Process, starts: np.ndarray, seed: np.random.SeedSequence, budget: Budget, warmup: float
) -> list[Chain]:
    """Chains from `starts` (chains, d) at the end of their budgets, or where they have failed."""
    chains = [
        Chain(process, i, x, child, budget=budget, warmup=warmup, store="skeleton")
        for i, (x, child) in enumerate(zip(starts, seed.spawn(len(starts)), strict=True))
    ]
    chains[0].compile()
    with filters_kept(), thread_pool(min(len(chains), cpu_count()), "pdmp") as executor:
        list(executor.map(Chain.advance, chains))
    return chains


def run_window(
    process: Process,
    starts: np.ndarray,
    seed: np.random.SeedSequence,
    gradients: float,
    warmup: float = WARMUP,
    time: float | None = None,
) -> Run:
    """Chains of `process` from `starts` (chains, d), each of so many gradients or, if given, of a time.

    A chain that fails ends early. The result depends on the arguments alone, however many processors there are. A
    warning says what the gradient raised, as in a run it would end all chains; what is no `Exception`, as a
    `SystemExit`, is raised.
    """
    process = process.resolve(starts[0])
    terms = max(process.model.n_data, 1)
    budget = Budget(data=gradients * terms) if time is None else Budget(time=time)
    chains = advanced(process, starts, seed, budget, warmup)
    raised = [chain.cause for chain in chains if chain.cause is not None]
    for error in raised:
        if not isinstance(error, Exception):
            raise error
    if raised:
        warn(
            f"in the warm-up the gradient of {type(process.model or process).__name__} raised "
            f"{type(raised[0]).__name__}: {raised[0]}. The chains that met this ended there, and the metric was learnt "
            "from the others; in a run the error would end all chains. Return the potential inf outside the support."
        )
    info = describe(process) | {"store": "skeleton", "seed": None, "budget": {"gradients": gradients}}
    return Run(info, [chain.finish() for chain in chains], process=process)


def gradients_of(run: Run) -> int:
    """Gradients that a run has evaluated, all chains together."""
    return sum(int(r.counts[DATA]) for r in run.records) // max(run.info["n_data"], 1)


def ends(run: Run, starts: np.ndarray) -> np.ndarray:
    """Where the chains are at the end, (chains, d); a chain that failed is where it started."""
    points = [
        path.at(path.end) if record.stopped != "failed" and record.length > 0.0 else start
        for path, record, start in zip(run.trajectories, run.records, starts, strict=True)
    ]
    return np.array(points)
