"""What a model has that its class does not define: sums over the terms, and defaults of what it may know better."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.numerical import term_partial_bounds, term_partial_lipschitz
from pdmp.native.arguments import real
from pdmp.native.classes import compiled, entry, readable
from pdmp.native.explanations import explained_methods

if TYPE_CHECKING:
    from pdmp.models.base import Model


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


@explained_methods
class Derived:
    """What a model has where its class defines nothing: each can be replaced by what is faster, or knows more.

    Python and the compiler of classes look here after a model's class and all its bases (`_kind_defaults`, see
    `pdmp.native.classes`): what a class defines comes first, and `Model.has` tells that it does. As this is no base,
    `dir` does not show it, and a method that a class defines calls the one that it replaces as
    ``Derived.omitted(self)``. The compiled ones follow from the potential and gradient of the prior and of one term.
    """

    # -- attributes -----------------------------------------------------------------------------------------------

    divisible = True  #: whether the sum over data can be taken over a part of them
    everywhere = True  #: whether the potential is known to exist at every point, beyond walls too
    #: Name of the bound on rates that processes with exact gradients take where the model has no affine one.
    usual_thinning = "grid"
    resolution = float(np.finfo(float).eps)  #: relative rounding error of U
    #: For ArviZ: names of the dimensions of variables and observed data, and the labels along each dimension.
    dims: ClassVar[Mapping[str, Sequence[str]]] = {}
    coords: ClassVar[Mapping[str, Sequence]] = {}
    failure = None  #: the exception that a Python function of the model raised in what this thread computes, or None
    knows_constants = True  #: whether `omitted` is known
    in_file = False  #: whether the data are read from a file, so that rows are asked for long before they are looked at
    #: Whether `mode` is `find_mode`, as there are so many data that a search with all of them takes minutes.
    searches_by_batches = False

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

    add_prior_coefficients, add_term_coefficients = add_prior_parts, add_term_parts

    # -- Python: what a model may know of itself --------------------------------------------------------------------

    def row_width(self) -> int | None:
        """Numbers in the data of a term, where passes over all terms take them in chunks on threads; else None."""
        return None

    def factors(self) -> Any:
        """What `pdmp.models.capabilities` says; None where the model does not know it."""
        return None

    hessian_bounds = prior_hessian_bounds = factors

    def rearranged(self, rows: ArrayLike) -> Model | None:
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

    # -- Python: values and derivatives that some models have in a way of their own --------------------------------

    def gradient_and_hessian(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """∇U(x), (dim,), and `hessian`, (dim, dim): in one pass over the data where the model can."""
        return self.gradient(x), self.hessian(x)

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        """Diagonal of the Hessian at x, shape (dim,)."""
        return np.diag(self.hessian(x)).copy()

    def curvature(self, x: ArrayLike, probes: int | None = 32) -> float:
        """Trace of the Hessian at x divided by `dim`: the mean curvature. Above 200 dimensions by random probes.

        Where that is not positive, between modes or far out, the mean of the Hessian's absolute eigenvalues.
        """
        if self.dim <= 200:
            hessian = self.hessian(x)
            mean = float(np.trace(hessian)) / self.dim
            if not mean > 0.0 and np.all(np.isfinite(hessian)):
                mean = float(np.abs(np.linalg.eigvalsh(hessian)).mean())
            return mean
        x, rng, total = self.check(x), np.random.default_rng(0), 0.0
        for _ in range(probes):
            z = rng.choice([-1.0, 1.0], self.dim) * 1e-5
            total += z @ (self.gradient(x + z) - self.gradient(x - z)) / 2e-10
        return total / probes / self.dim

    def some_rows(self, rows: np.ndarray) -> Model | None:
        """The same model of the data `rows` (n,) alone, where a search for the mode begins; None: not known."""
        return None

    def term_gradient_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray | None:
        """Bounds on |rootᵀ ∇Uᵢ(x)| over all x for first <= i < last, a matrix `root` (dim, dim); None without any."""
        bounds = term_partial_bounds(self, first, last)
        return None if bounds is None else np.linalg.norm(bounds @ np.abs(root), axis=1)

    def term_lipschitz_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray | None:
        """Λᵢ with |rootᵀ (∇Uᵢ(root y) - ∇Uᵢ(root z))| <= Λᵢ |y - z| for first <= i < last; None without any."""
        scale = np.linalg.norm(root, axis=1)
        bounds = term_partial_lipschitz(self, first, last, scale)
        if bounds is None:
            return None
        return np.linalg.norm(bounds @ np.abs(root), axis=1) * np.linalg.norm(root / scale[:, None], 2)

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        """Log-likelihood of each datum at draws of x (..., dim): (..., n_data).

        It is minus the potential of the datum's term, up to those constants that the potential leaves out.
        """
        draws = real("draws", draws, self.dim)
        points = np.ascontiguousarray(draws.reshape(-1, self.dim))
        out = np.empty((len(points), self.n_data))
        with readable(type(self).__name__):
            _term_log_likelihoods(self.native, points, out)
        return out.reshape(*draws.shape[:-1], self.n_data)

    def observed_data(self) -> dict[str, np.ndarray]:
        """The data that the terms are of, by name, each (n_data,) or of a shape of its own; empty where unknown."""
        return {}

    def log_likelihoods(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Log-likelihood of each datum at draws of x, by the names of `observed_data`; empty without terms.

        Parameters
        ----------
        draws : array_like, shape (..., dim)

        Returns
        -------
        dict of str to ndarray, shape (..., n_data)
            See `pointwise_log_likelihood`. A model that overrides this may have several of other shapes.
        """
        if self.n_data == 0 or not self.has("term_potential"):
            return {}
        return {next(iter(self.observed_data()), "y"): self.pointwise_log_likelihood(draws)}

    def omitted(self) -> float:
        """log of the factor that exp(-U) lacks to be likelihood times priors, which `Run.log_evidence` adds.

        0 of a model of one's own, whose U is taken as it is written; nan of a prior that is flat, and where not known.
        """
        return 0.0 if self.knows_constants else math.nan

    @property
    def constrains(self) -> bool:
        """Whether natural parameters are computed in a way of the model's own, which a loaded run does not know."""
        return self.has("constrain")


@entry
def _term_log_likelihoods(model, points, out):
    for k in range(points.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = -model.term_potential(points[k], i)
