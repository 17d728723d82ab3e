"""How bounds on the remainders of single rows grow with the distance from the anchor: φ(r), the rows' weights aside."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from pdmp.interfaces.report import Report
from pdmp.native.classes import Compiled, compiled


class Shells(Compiled):
    """φ(r) = F r² / 2, F the factor of the first shell of a radius of at least r; infinite beyond the last.

    `radii` (shells,) do not decrease, nor do the `factors` (levels, shells) of a level: of a group of rows, or of a
    share of coordinates that move.
    """

    radii: np.ndarray
    factors: np.ndarray

    def __init__(self, radii, factors):
        self.radii, self.factors = np.array(radii), np.array(factors, ndmin=2)

    @compiled
    def at(self, r, level):
        """φ(r)."""
        return self.share(r, level) * (0.5 * r * r)

    @compiled
    def share(self, r, level):
        """F."""
        s = 0
        while s < self.radii.shape[0] and r > self.radii[s]:
            s += 1
        return self.factors[level, s] if s < self.radii.shape[0] else math.inf


class _Beyond(Exception):
    """A distance for which no bound is known."""


class _Edge:
    """`Shells` that tell when they are asked for what is beyond the last."""

    def __init__(self, shells):
        self.shells = shells

    def at(self, r, level):
        return self.share(r, level) * (0.5 * r * r)

    def share(self, r, level):
        if r > self.shells.radii[-1]:
            raise _Beyond(r)
        return self.shells.share(r, level)


class RowReport(Report):
    """That a path is where no bounds on single rows are known."""

    def lost(self, process: Any, state: Any) -> str | None:
        """That a clock could not propose as a path gets beyond the last shell of `process.growth`; None if it does not.

        The clocks are asked again, in plain Python.
        """
        native, state = process.native._replace(growth=_Edge(process.native.growth)), copy.deepcopy(state)
        if hasattr(state.memory, "since"):  # the event from which on bounds hold that are known
            state.memory.since[:] = math.nan
        try:
            with np.errstate(all="ignore"):
                for i in range(process.clocks):
                    native.clock(state, i, float(state.now[0]), np.random.default_rng(0))
        except _Beyond as found:
            return (
                f"{type(process).__name__} has left the ball around its anchor in which bounds on single rows are "
                f"known: its path gets to {found.args[0]:.3g} standard deviations from it, and they end at "
                f"{process.growth.radii[-1]:.3g}; start nearer, give more rows, or let pdmp.sample(model) choose a "
                "process"
            )
        except Exception:  # noqa: BLE001 - arithmetic that raises in Python and gives inf or NaN when compiled
            pass
        return None
