"""What `pdmp.Bounded` asks of a process that it confines to a region."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pdmp.native.classes import compiled


class Walls:
    """Mixin of the processes that know what a wall does to their velocity; named before `pdmp.Process` as a base."""

    #: "reflect": v ← v - 2 (v·n) Σn / (n·Σn), n the normal, Σ the covariance of the velocities; "flip": the sign of vⱼ
    #: changes wherever nⱼ ≠ 0; None: this process cannot be confined.
    wall_rule = "reflect"

    def velocity_covariance(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """A function that multiplies a vector (d,) by the covariance of the velocities; None if isotropic."""
        return None

    @compiled
    def velocity_changed(self, state, now, rng):
        """Update what ``state.memory`` has computed from the velocity, which a wall has changed at the time `now`."""
