"""Posteriors whose rows are linear in other coordinates than those that move."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled


class MovedRows(Model):
    """A posterior of rows at y, whose state is x.

    A class of this kind has the compiled methods ``room()``, arrays to compute in; ``natural(x, y, room)``, which
    writes y, and into the room what it has computed for it, and returns a part of the prior; ``pull_back(x, y, room,
    by_natural, of_effects, out)``, which adds the derivatives by x of what has the derivatives `by_natural`, both
    changing, by y, and `of_effects` times those of what `natural` returns; ``prior_at(x, y)``, the rest of the prior,
    and ``add_prior_slopes(x, y, by_natural, out)``, which adds its derivatives by y and by x. And `natural_draws` and
    `coordinates`, y of x and x of y.
    """

    base: Compiled  #: of y

    @compiled(inline=False, allocates=True)
    def prior_potential(self, x):
        y, room = np.empty(self.dim), self.room()
        return self.natural(x, y, room) + self.prior_at(x, y)

    @compiled(inline=False, allocates=True)
    def add_prior_gradient(self, x, out):
        y, by_natural, room = np.empty(self.dim), np.zeros(self.dim), self.room()
        self.natural(x, y, room)
        self.add_prior_slopes(x, y, by_natural, out)
        self.pull_back(x, y, room, by_natural, 1.0, out)

    @compiled(inline=False, allocates=True)
    def total_potential(self, x):
        y, room = np.empty(self.dim), self.room()
        return self.natural(x, y, room) + self.prior_at(x, y) + self.base.block_potential(y, 0, self.n_data)

    @compiled(inline=False, allocates=True)
    def add_gradient(self, x, out):
        y, by_natural, room = np.empty(self.dim), np.zeros(self.dim), self.room()
        self.natural(x, y, room)
        self.base.add_block_gradient(y, 0, self.n_data, by_natural)
        self.add_prior_slopes(x, y, by_natural, out)
        self.pull_back(x, y, room, by_natural, 1.0, out)

    @compiled(inline=False, allocates=True)
    def term_potential(self, x, i):
        y, room = np.empty(self.dim), self.room()
        self.natural(x, y, room)
        return self.base.term_potential(y, i)

    @compiled(inline=False, allocates=True)
    def add_term_gradient(self, x, i, out):
        y, by_natural, room = np.empty(self.dim), np.zeros(self.dim), self.room()
        self.natural(x, y, room)
        self.base.add_term_gradient(y, i, by_natural)
        self.pull_back(x, y, room, by_natural, 0.0, out)

    @compiled(inline=False, allocates=True)
    def block_potential(self, x, first, last):
        y, room = np.empty(self.dim), self.room()
        self.natural(x, y, room)
        return self.base.block_potential(y, first, last)

    @compiled(inline=False, allocates=True)
    def add_block_gradient(self, x, first, last, out):
        y, by_natural, room = np.empty(self.dim), np.zeros(self.dim), self.room()
        self.natural(x, y, room)
        self.base.add_block_gradient(y, first, last, by_natural)
        self.pull_back(x, y, room, by_natural, 0.0, out)

    @compiled(inline=False, allocates=True)
    def add_batch_gradient(self, x, rows, n, out):
        y, by_natural, room = np.empty(self.dim), np.zeros(self.dim), self.room()
        self.natural(x, y, room)
        self.base.add_batch_gradient(y, rows, n, by_natural)
        self.pull_back(x, y, room, by_natural, 0.0, out)

    def omitted(self) -> float:
        """See `Derived.omitted`: what `natural` returns has the Jacobian."""
        return float(self.base.omitted())

    def natural_draws(self, draws: ArrayLike) -> np.ndarray:
        """y (..., dim) of draws of x."""
        raise NotImplementedError

    def coordinates(self, natural: ArrayLike) -> np.ndarray:
        """x (..., dim) of y."""
        raise NotImplementedError

    def images(self, x: np.ndarray) -> list[np.ndarray]:
        """See `SumOfTerms.images`."""
        known = hasattr(self.base, "images")
        return [self.coordinates(y) for y in self.base.images(self.natural_draws(x))] if known else []

    def as_effects(self) -> Any:
        """See `MixedRegression.as_effects`."""
        return self

    @property
    def reported(self) -> Any:
        """How the coordinates of `base` are reported."""
        return self.base.reported

    @property
    def observed(self) -> list:
        """What is known of the responses."""
        return self.base.observed

    def observed_data(self) -> dict[str, np.ndarray]:
        return self.base.observed_data()

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        return self.base.constrain(self.natural_draws(draws))

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return self.base.pointwise_log_likelihood(self.natural_draws(draws))

    def predict(self, x: ArrayLike, *, kind: str = "mean", seed: int | None = None) -> np.ndarray:
        """See `SumOfTerms.predict`."""
        return self.base.predict(self.natural_draws(x), kind=kind, seed=seed)

    def some_rows(self, rows: np.ndarray) -> Self:
        other = copy.copy(self)
        other.base = self.base.some_rows(rows)
        other.n_data = other.base.n_data
        return other


def innermost(model: Any) -> Any:
    """The model whose rows are linear in its coordinates."""
    return innermost(model.base) if isinstance(model, MovedRows) else model


def natural_of(model: Any, x: np.ndarray) -> np.ndarray:
    """Its coordinates (..., dim), of those of a model."""
    return natural_of(model.base, model.natural_draws(x)) if isinstance(model, MovedRows) else x


def coordinates_of(model: Any, natural: np.ndarray) -> np.ndarray:
    """The reverse."""
    return model.coordinates(coordinates_of(model.base, natural)) if isinstance(model, MovedRows) else natural
