"""What a sampler says of its own run: further statistics, what it accumulated, warnings and reminders."""

from __future__ import annotations

import numpy as np


class Report:
    """What a run says beside the events that the engine counts; the class attribute ``report`` of a `Process`.

    This one says nothing. A sampler with something to say derives a report of its own.
    """

    def statistics(self, process, state) -> dict[str, float]:
        """Further entries of ``run.stats``, from the final `State` of one chain.

        They are added up over the chains; those whose names begin with ``mean_`` are averaged.
        """
        return {}

    def accumulated(self, process, state, since: float, end: float) -> dict[str, np.ndarray]:
        """Arrays that the process integrated by itself over the times [since, end] of one chain."""
        return {}

    def warnings(self, process, stats: dict) -> list[str]:
        """Reasons to mistrust a run with these ``run.stats``, a sentence each: `sample` warns of them."""
        return []

    def reminders(self, process) -> list[str]:
        """What the summary of a run says about its settings, a sentence each: nobody is warned of it."""
        return []
