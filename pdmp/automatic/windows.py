"""Short runs of all chains, of which the warm-up is made."""

from __future__ import annotations

import concurrent.futures

import numpy as np

from pdmp.engine.chain import Budget, Chain
from pdmp.engine.checks import describe
from pdmp.engine.result import Run
from pdmp.engine.run import cpu_count
from pdmp.process import DATA, Process

THINNING = "predicted"  #: the bound on the rates of all processes here
#: Events for each gradient of a window's budget: where they cost none (refreshments, quadratic targets) they end it.
EVENTS_PER_GRADIENT = 4


def run_window(process: Process, starts: np.ndarray, seed: np.random.SeedSequence, gradients: int) -> Run:
    """Chains of `process` from `starts` (chains, d), each of so many gradients; a chain that fails ends early.

    The result depends on the arguments alone, however many processors there are.
    """
    process = process.resolve(starts[0])
    terms = max(process.model.n_data, 1)
    budget = Budget(data=gradients * terms, events=EVENTS_PER_GRADIENT * gradients)
    chains = [
        Chain(process, i, x, child, budget=budget, warmup=0.0, store="skeleton")
        for i, (x, child) in enumerate(zip(starts, seed.spawn(len(starts)), strict=True))
    ]
    chains[0].compile()
    with concurrent.futures.ThreadPoolExecutor(min(len(chains), cpu_count()), thread_name_prefix="pdmp") as executor:
        list(executor.map(Chain.advance, chains))
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


def least_per_gradient(run: Run) -> float:
    """The least of all effective draws, per gradient; 0 if a chain failed."""
    if any(record.stopped == "failed" for record in run.records):
        return 0.0
    least = min(np.where(np.isfinite(draws), draws, 0.0).min() for draws in run.effective_draws().values())
    return float(least) / max(gradients_of(run), 1)
