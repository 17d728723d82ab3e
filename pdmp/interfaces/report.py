"""What a sampler reports of its own run: further statistics, accumulated arrays, warnings and reminders.

Processes are built on this module, so that it cannot name their type: a `process` is a `pdmp.Process`, and a `state`
its `State`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Report:
    """What a run reports besides the counts of the engine; the class attribute ``report`` of a `Process`.

    This base class reports nothing; a sampler that does has a subclass.
    """

    def statistics(self, process: Any, state: Any) -> dict[str, float]:
        """Further entries of ``run.stats``, from the final `State` of one chain.

        They are summed over the chains; those whose names begin with ``mean_`` are averaged, and of ``max_`` the
        largest is taken.
        """
        return {}

    def accumulated(self, process: Any, state: Any, since: float, end: float) -> dict[str, np.ndarray]:
        """Arrays that the process itself integrated over the times [since, end] of one chain."""
        return {}

    def count_from(self, process: Any, state: Any, now: float) -> None:
        """Restart, at the end of the warm-up, `now`, what `accumulated` returns."""

    def ended(self, process: Any, state: Any) -> str | None:
        """The word for ``run.stopped`` if the process has ended by itself (it was absorbed); else None."""
        return None

    def lost(self, process: Any, state: Any) -> str | None:
        """For the message of a failure: that the path is where no bounds are known; None: it is not."""
        return None

    def warnings(self, process: Any, stats: dict) -> list[str]:
        """Reasons to mistrust a run with these ``run.stats``, a sentence each; `sample` issues them as warnings."""
        return []

    def further_draws(self, run: Any) -> dict[str, float]:
        """Effective draws, by name, of what a goal `ess` asks for besides the mean and sd of every coordinate."""
        return {}

    def in_vain(self, run: Any) -> bool:
        """Whether a longer run would not reach a goal either, for a reason that `doubts` says: it then stops."""
        return False

    def doubts(self, run: Any, asked: float | None) -> list[str]:
        """Further reasons to mistrust a `pdmp.Run`, which need more than its ``stats``; `sample` warns of them.

        `asked` is the goal `ess` of the run, None if it has none.
        """
        return []

    def step_acceptance(self, process: Any, x: np.ndarray, rng: np.random.Generator) -> tuple[float, float] | None:
        """The share of steps from the states `x` (n, d) that a Metropolis test would accept, and what was expected.

        Of a sampler that chose its step by an approximation; None for others.
        """
        return None

    def reminders(self, process: Any) -> list[str]:
        """Notes on the settings for the summary of a run, a sentence each; no warning is issued."""
        return []
