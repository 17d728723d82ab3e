"""The base of all bounds on rates: given the state, a bound proposes when the next event may come."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.models.capabilities import require
from pdmp.native.classes import Compiled, compiled, inlined, positive_part
from pdmp.process import KINDS


class Scratch(NamedTuple):
    """Arrays of a bound that keeps nothing from one proposal to the next."""

    rates: np.ndarray  #: (m,) signed rates
    slope_bounds: np.ndarray  #: (m,) bounds on their derivatives in time


class Bound(Compiled):
    """Base of the bounds on the rate Σⱼ max(0, rⱼ) of one clock, with signed rates r₁ … rₘ along the path.

    A process that is thinned by a bound gives ``signed_rates(state, now, rng, out)``, which writes r at the time `now`
    into `out` (m,), and keeps ``thinning.memory(m, dim, width)`` as the entry `bound` of its memory. A bound may ask
    the process for more: `Affine` for ``rate_slope_bounds(state, out)``, bounds on the derivatives of r in time for all
    times; `LocalHessian` for ``rate_slope_bounds_within(state, now, s, out)``, the same for the next s; `ModelConstant`
    for ``rate_bounds(state, out)``, bounds on r itself; `ConcaveConvex` and `Polynomial` for ``rate_parts`` and
    ``rate_coefficients``; `Sinusoids` for ``harmonics``; `Predicted` for
    ``predict(state, now, rng, rates, rises, squares)``, which says how the rates should go on and returns the time
    since the last gradient and the longest one to the next; its ``rate`` then calls `observe`. Each clock that is
    thinned needs its own memory.

    Attributes
    ----------
    name : str
        What a message or a table calls it.
    exact : bool
        Whether it is proven, so that a rate above it is an error; violations of other bounds are counted.
    wants : tuple of str
        Names of the model's compiled methods that it needs: the first for a process with one rate v·∇U, the last for
        one with a rate vᵢ ∂ᵢU for each coordinate. Empty if it needs none.
    straight : bool
        Whether it holds on straight paths only.
    adapts : bool
        Whether it has a horizon that adapts, starting from `width`.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.Grid().exact, pdmp.thinning.Affine().exact
    (False, True)
    """

    name = "a bound"
    exact = True
    wants: ClassVar[tuple[str, ...]] = ()
    straight = False
    adapts = False

    @compiled
    def propose(self, process, state, i, now, rng):
        """When clock i proposes next, and the bound there; (time, HORIZON) if it proposes nothing before that time."""
        return np.nan, np.nan

    @compiled
    def observe(self, process, state, i, now, rng):
        """Called where clock i has proposed, or had a horizon, and the gradient there is known; nothing by default."""

    @compiled
    def rate_of(self, process, state, i, now):
        """The signed rate of clock i, of a bound that has it for single clocks: see `pdmp.thinning.enclosures`."""
        return np.nan

    def memory(self, m: int, dim: int, width: float) -> tuple:
        """What one chain keeps for this bound: a named tuple of arrays.

        Parameters
        ----------
        m : int
            Number of signed rates.
        dim : int
            Dimension of the target.
        width : float
            The scale of the first horizon, in process time: the rate is expected to change over this time.
        """
        return Scratch(np.zeros(m), np.zeros(m))

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        """Raise a `ValueError` that says what is missing, if this bound does not fit.

        Parameters
        ----------
        model : Model
            The target.
        form : {"directional", "partial", None}
            Of what the rates are made: v·∇U, vᵢ ∂ᵢU, or something else.
        flow : Compiled
            One of `pdmp.flow`.
        components : int
            Number of signed rates.
        """
        who = f"pdmp.thinning.{type(self).__name__}"
        if self.straight and flow.kind != "linear":
            raise ValueError(f'{who} holds on straight paths only; use thinning="grid".')
        if self.wants:
            method = self.method(form)
            if method is None:
                raise ValueError(f'{who} does not know the rates of this process; use thinning="grid".')
            require(model, f"{who} needs", method, instead='Use thinning="grid".')

    def method(self, form: str | None) -> str | None:
        """Name of the model's method that it needs for rates of this form; None if it needs none."""
        if not self.wants or form is None:
            return None
        return self.wants[0 if form == "directional" else -1]

    def describe(self, model: Model, form: str | None) -> str:
        """What a message calls it, with the name of the model."""
        method = self.method(form)
        if method is not None:
            return f"the bound `{method}` of {type(model).__name__}"
        return f"{self.name} for {type(model).__name__}"


@inlined
def draw_component(rates, rest):
    """The component at which the running sum of the positive parts of `rates` first exceeds `rest`.

    With `rest` uniform between 0 and the whole sum, each is drawn in proportion to its positive part.
    """
    for j in range(rates.shape[0]):
        rest -= positive_part(rates[j])
        if rest < 0.0:
            return j
    return rates.shape[0] - 1


@inlined
def events_so_far(state):
    """How many events there have been. While this number does not change, neither does the velocity."""
    total = 0
    for k in range(KINDS, state.counts.shape[0]):
        total += state.counts[k]
    return total


@inlined
def is_in_cell(memory, state, i, now):
    """Whether the last cell, an interval of time, still holds: no event since, and `now` lies in it."""
    return memory.events[0] == events_so_far(state) and memory.clock[0] == i and memory.begin[0] <= now < memory.end[0]


@inlined
def settle_cell(memory, state, i, now, width):
    """Store for which interval, clock and number of events a cell was made."""
    memory.begin[0] = now
    memory.end[0] = now + width
    memory.events[0] = events_so_far(state)
    memory.clock[0] = i


@inlined
def next_other(state, i, now):
    """The earliest time after `now` for which another clock is known to propose; infinite when none is.

    Clock i and the one that proposed at `now` are left out. The earliest of the others is among the first seven entries
    of the heap.
    """
    other = np.inf
    for k in range(min(7, state.heap.shape[0])):
        if state.heap[k] != i and now < state.keys[k] < other:
            other = state.keys[k]
    return other
