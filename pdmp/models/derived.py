"""What a model has beside its potential and gradient: sums over the terms, and defaults of what it may know better."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import Compiled, compiled


def reordered(model: Any, rows: ArrayLike, fields: Callable[[np.ndarray], dict | None]) -> Any:
    """The model with its data in the order `rows`, itself where they are; None where its ``fields(rows)`` are."""
    rows = np.asarray(rows)
    if np.array_equal(rows, np.arange(model.n_data)):
        return model
    found = fields(rows)
    if found is None:
        return None
    other = copy.copy(model)
    other.__dict__.update(found, n_data=len(rows))
    return other


class PriorOfEach:
    """Mixin of models with a factor for each term, and one for the prior of each coordinate."""

    @compiled
    def add_factor_gradient(self, x, f, out):
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            out[f - self.n_data] += self.prior_partial(x, f - self.n_data)


class Derived(Compiled):
    """Methods that every model has; each can be replaced by a faster one, or by one that knows more.

    The compiled ones follow from the potential and the gradient of the prior and of one term.
    """

    # -- compiled: of the prior, zero for a model without one ------------------------------------------------------

    @compiled
    def prior_partial(self, x, j):
        return 0.0

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return 0.0

    @compiled
    def prior_curvature_bound(self, v):
        return 0.0

    # -- compiled: of one term, and sums over terms ----------------------------------------------------------------

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Add the gradient of factor f to `out`: of a term, or, after all terms, of the prior."""
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            self.add_prior_gradient(x, out)

    @compiled
    def fetch(self, i):
        """Ask the memory for datum i, which will be looked at soon."""

    @compiled
    def term_partial(self, x, i, j, scratch):
        """∂ⱼUᵢ(x)."""
        for k in range(self.dim):
            scratch[k] = 0.0
        self.add_term_gradient(x, i, scratch)
        return scratch[j]

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        """∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)."""
        return self.term_partial(x, i, j, scratch) - self.term_partial(y, i, j, scratch)

    @compiled
    def total_potential(self, x):
        """U(x)."""
        total = self.prior_potential(x)
        for i in range(self.n_data):
            total += self.term_potential(x, i)
        return total

    @compiled
    def total_rise(self, x, y):
        """U(y) - U(x)."""
        return self.total_potential(y) - self.total_potential(x)

    @compiled
    def block_potential(self, x, first, last):
        """Σ Uᵢ(x) over first <= i < last."""
        total = 0.0
        for i in range(first, last):
            total += self.term_potential(x, i)
        return total

    @compiled
    def add_gradient(self, x, out):
        """Add ∇U(x) to `out`."""
        self.add_prior_gradient(x, out)
        self.add_block_gradient(x, 0, self.n_data, out)

    @compiled
    def potential_and_gradient(self, x, out):
        """U(x); adds ∇U(x) to `out`."""
        self.add_gradient(x, out)
        return self.total_potential(x)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        """Add Σ ∇Uᵢ(x) over first <= i < last to `out`."""
        for i in range(first, last):
            self.add_term_gradient(x, i, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        """Add Σ ∇Uᵢ(x) over i = rows[0], …, rows[n - 1] to `out`."""
        for k in range(n):
            self.add_term_gradient(x, rows[k], out)

    @compiled
    def copy_batch(self, rows, n, copied):
        """Copy what the gradient needs of these rows into what `batch_room` gave."""

    @compiled
    def add_copied_gradient(self, x, copied, n, out):
        """Add Σ ∇Uᵢ(x) over the n terms of such a copy to `out`."""

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        """Write Σ [∇Uᵢ(x) - ∇Uᵢ(y)] over the rows into `out`; exactly zero where x = y."""
        for j in range(self.dim):
            out[j] = 0.0
            scratch[j] = 0.0
        self.add_batch_gradient(x, rows, n, out)
        self.add_batch_gradient(y, rows, n, scratch)
        for j in range(self.dim):
            out[j] -= scratch[j]

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        """Write Σₖ weights[k] [∇Uᵢ(x) - ∇Uᵢ(y)] over i = rows[k] into `out`; exactly zero where x = y."""
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(n):
            for j in range(self.dim):
                scratch[j] = 0.0
            self.add_term_gradient(x, rows[k], scratch)
            for j in range(self.dim):
                out[j] += weights[k] * scratch[j]
                scratch[j] = 0.0
            self.add_term_gradient(y, rows[k], scratch)
            for j in range(self.dim):
                out[j] -= weights[k] * scratch[j]

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        """Add Σ ∇Uᵢ(x) over the rows to `out`; returns Σ pᵢ and Σ pᵢ² of the projections pᵢ = v·∇Uᵢ(x)."""
        first, second = 0.0, 0.0
        for k in range(n):
            for j in range(self.dim):
                scratch[j] = 0.0
            self.add_term_gradient(x, rows[k], scratch)
            p = 0.0
            for j in range(self.dim):
                out[j] += scratch[j]
                p += v[j] * scratch[j]
            first += p
            second += p * p
        return first, second

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        """Add Σ ∇Uᵢ(x) over the rows to `out`, and the sum of its squares, coordinate by coordinate, to `squares`."""
        for k in range(n):
            for j in range(self.dim):
                scratch[j] = 0.0
            self.add_term_gradient(x, rows[k], scratch)
            for j in range(self.dim):
                out[j] += scratch[j]
                squares[j] += scratch[j] * scratch[j]

    # -- compiled: pieces of the rates along straight paths, for the bounds of `pdmp.thinning` ----------------------

    @compiled
    def add_prior_parts(self, x, v, out):
        pass

    @compiled
    def add_term_parts(self, x, v, i, out):
        pass

    @compiled
    def add_prior_coefficients(self, x, v, out):
        pass

    @compiled
    def add_term_coefficients(self, x, v, i, out):
        pass

    # -- Python: what a model may know of itself --------------------------------------------------------------------

    def factors(self) -> Sequence[Sequence[int]] | tuple[np.ndarray, np.ndarray] | None:
        """The coordinates of each factor, lists or compressed rows (indptr, indices); None when they are not known.

        Factor f is term f, and the last one the prior, unless the model has its own ``add_factor_gradient``.
        """
        return None

    def rearranged(self, rows: ArrayLike) -> Derived | None:
        """The same model with its data in the order `rows`, each a datum's index; None when it does not know how.

        A model with this method gives ``draw="reshuffle"`` blocks that are contiguous in memory.
        """
        return None

    def batch_room(self, size: int) -> np.ndarray:
        """An array for the copy of a batch that is used more than once; an empty one when the model makes none.

        A model with this method has ``copy_batch`` and ``add_copied_gradient``.
        """
        return np.zeros(0)

    def prior_inclusion(self) -> np.ndarray | None:
        """Prior probabilities, (dim,), that a coordinate is not 0; None for a prior without spikes."""
        return None

    def slab_density(self) -> np.ndarray | None:
        """Density at 0 of the prior of each coordinate, (dim,), where it is a product; None when that is not known."""
        return None

    def largest_term_gradient(self) -> float:
        """A bound, for every x and i, on the norm of ∇Uᵢ(x); infinite when the model knows none."""
        return np.inf

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Symmetric matrices with lower <= H(x) <= upper for every x, each (dim, dim); None when the model knows none.

        H is the Hessian of U, and A <= B says that B - A has no negative eigenvalue.
        """
        return None

    def prior_hessian_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The same for the prior's part of U alone."""
        return None
