"""Models as samplers see them: called by address, so that a sampler is compiled once on a machine for all models.

See `pdmp.native.addresses`. A call costs about 2 ns, which a gradient of a whole posterior does not show; where an event
costs a datum or a coordinate, samplers are compiled for the model instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import types

from pdmp.native.addresses import AVAILABLE, VECTOR, Method, record_of
from pdmp.native.classes import Compiled, compiled, entry

if TYPE_CHECKING:
    from pdmp.models.base import Model


def _total_potential(fields, x):
    return fields[0].total_potential(x)


def _add_gradient(fields, x, out):
    fields[0].add_gradient(x, out)


def _potential_and_gradient(fields, x, out):
    return fields[0].potential_and_gradient(x, out)


POTENTIAL = Method(1, _total_potential, types.float64, VECTOR)
GRADIENT = Method(2, _add_gradient, types.none, VECTOR, VECTOR)
BOTH = Method(3, _potential_and_gradient, types.float64, VECTOR, VECTOR)
_potential, _gradient, _both = POTENTIAL.call, GRADIENT.call, BOTH.call


@entry
def total_potential(record, x):
    """U(x) of the model with this record."""
    return _potential(record, (x,))


@entry
def add_gradient(record, x, out):
    """Add ∇U(x) of the model with this record to `out`."""
    _gradient(record, (x, out))


class Called(Compiled):
    """The whole potential of a model and its gradient, by address.

    Parameters
    ----------
    model : Model
    """

    record: np.ndarray
    n_data: int
    separate: bool  #: whether the model has no `potential_and_gradient` of its own

    volatile = ("record",)

    def __init__(self, model: Model) -> None:
        self.model, self.n_data = model, model.n_data
        self.separate = not model.has("potential_and_gradient")
        self.record = record_of(model, *((GRADIENT, POTENTIAL) if self.separate else (GRADIENT, POTENTIAL, BOTH)))

    @compiled
    def total_potential(self, x):
        return total_potential(self.record, x)

    @compiled
    def add_gradient(self, x, out):
        add_gradient(self.record, x, out)

    @compiled
    def potential_and_gradient(self, x, out):
        if self.separate:
            self.add_gradient(x, out)
            return self.total_potential(x)
        return _both(self.record, (x, out))

    def identity(self) -> tuple:
        """The model: addresses are of one process only."""
        return (self.model,)

    @property
    def in_plain(self) -> Model:
        """The model, which plain Python calls itself."""
        return self.model


def called(model: Model) -> Called | Model:
    """A model by address; the model itself where nothing is compiled."""
    return Called(model) if AVAILABLE else model
