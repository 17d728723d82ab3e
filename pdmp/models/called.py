"""Models as samplers see them: called by address, so that a sampler is compiled once on a machine for all models.

See `pdmp.native.addresses`. A call costs about 2 ns, which a gradient of a whole posterior does not show. Where an
event costs one datum or one coordinate, samplers are compiled for the model instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import types

from pdmp.native.addresses import Method, record_of, unpacked
from pdmp.native.classes import Compiled, compiled, entry, inlined

if TYPE_CHECKING:
    from pdmp.models.base import Model


def _total_potential(fields, x):
    return unpacked(fields).total_potential(x)


def _add_gradient(fields, x, out):
    unpacked(fields).add_gradient(x, out)


def _potential_and_gradient(fields, x, out):
    return unpacked(fields).potential_and_gradient(x, out)


def _natural(fields, z, x):
    unpacked(fields).natural(z, x)


def _standardise(fields, x, z):
    unpacked(fields).standardise(x, z)


POTENTIAL = Method(1, _total_potential, types.float64, 1)
GRADIENT = Method(2, _add_gradient, types.none, 2)
BOTH = Method(3, _potential_and_gradient, types.float64, 2)
NATURAL = Method(4, _natural, types.none, 2)
STANDARDISE = Method(5, _standardise, types.none, 2)
_potential, _gradient, _both = POTENTIAL.call, GRADIENT.call, BOTH.call
_there, _back = STANDARDISE.call, NATURAL.call


# Functions, as Python calls them too; inlined, as a leapfrog step of a small target would be a third slower otherwise.
@inlined
def _potential_at(record, x):
    return _potential(record, (x,))


@inlined
def _gradient_at(record, x, out):
    _gradient(record, (x, out))


@inlined
def _both_at(record, x, out):
    return _both(record, (x, out))


@inlined
def _standardise_at(record, x, z):
    _there(record, (x, z))


@inlined
def _natural_at(record, z, x):
    _back(record, (z, x))


@entry
def total_potential(record, x):
    """U(x) of the model that has this record."""
    return _potential_at(record, x)


@entry
def add_gradient(record, x, out):
    """Add ∇U(x) of the model that has this record to `out`."""
    _gradient_at(record, x, out)


class Called(Compiled):
    """The whole potential of a model and its gradient, by address."""

    record: np.ndarray
    dim: int
    n_data: int
    separate: bool  #: whether the model has no `potential_and_gradient` of its own
    moved: bool  #: whether it is in coordinates of its own, as `pdmp.models.noncentred.NonCentred`

    def __init__(self, model: Model) -> None:
        self.dim, self.n_data, self.separate = model.dim, model.n_data, not model.has("potential_and_gradient")
        self.moved = hasattr(model, "standardise")
        further = ([] if self.separate else [BOTH]) + ([NATURAL, STANDARDISE] if self.moved else [])
        self.record = record_of(model, GRADIENT, POTENTIAL, *further)

    @compiled
    def standardise(self, x, z):
        """Write what is x in the coordinates of the model into z."""
        if self.moved:
            _standardise_at(self.record, x, z)
        else:
            for j in range(x.shape[0]):
                z[j] = x[j]

    @compiled
    def natural(self, z, x):
        """The way back."""
        if self.moved:
            _natural_at(self.record, z, x)
        else:
            for j in range(z.shape[0]):
                x[j] = z[j]

    @compiled
    def total_potential(self, x):
        return _potential_at(self.record, x)

    @compiled
    def add_gradient(self, x, out):
        _gradient_at(self.record, x, out)

    @compiled
    def potential_and_gradient(self, x, out):
        if self.separate:
            self.add_gradient(x, out)
            return self.total_potential(x)
        return _both_at(self.record, x, out)
