"""What a target is: a potential U = -log density, usually a prior plus a sum of terms, one for each datum."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.capabilities import CAPABILITIES, missing
from pdmp.models.transforms import Transform, check_transforms, split
from pdmp.models.verification import check_bounds, check_gradient
from pdmp.native.classes import Compiled, compiled, entry, readable
from pdmp.process import check_methods


class Model(Compiled):
    r"""Base of every target: U(x) = prior(x) + Σᵢ Uᵢ(x), up to a constant, with i running over `n_data` terms.

    A model of your own is a class with fields (annotations) and two compiled methods::

        class PoissonRegression(pdmp.Model):
            X: np.ndarray
            y: np.ndarray

            def __init__(self, X, y):
                super().__init__(dim=X.shape[1], n_data=len(y))
                self.X, self.y = np.ascontiguousarray(X, float), np.ascontiguousarray(y, float)

            @pdmp.compiled
            def term_potential(self, x, i):              # U_i(x)
                ...

            @pdmp.compiled
            def add_term_gradient(self, x, i, out):      # out += the gradient of U_i at x
                ...

    and, for a proper prior, ``prior_potential(x)`` and ``add_prior_gradient(x, out)``. A target that is not a sum over
    data defines these two instead, and has ``n_data=0`` terms::

            @pdmp.compiled
            def potential(self, x):                      # U(x)
                ...

            @pdmp.compiled
            def add_gradient(self, x, out):              # out += the gradient of U at x
                ...

    From Python, ``model.potential(x)`` and ``model.gradient(x)`` are then what they are for every model.

    Everything else is derived from these. What a model can compute faster it defines itself; what it knows of its
    curvature and of bounds, for the clocks, it says by the methods in the table of `pdmp.models.capabilities`, each
    with its signature, its meaning and who uses it. ``model.has("curvature_bound")`` tells whether a model does.

    Compiled methods allocate nothing: work in place on what they are given.

    Parameters
    ----------
    dim : int
        Dimension of x.
    n_data : int, default 0
        Number of terms.
    variables : dict of str to tuple of int, optional
        Names and shapes of the parts of x, in order; one vector ``x`` when omitted.
    initial : array_like, shape (dim,), optional
        Where to look for the mode from; zeros when omitted.
    transforms : dict of str to pdmp.models.transforms.Transform, optional
        For parts of x that are not natural parameters: ``{"sigma": Log()}`` says that the part `sigma` of x is log σ.
        Names and draws for ArviZ follow it; the potential is that of x, the Jacobian in it.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> class Quadratic(pdmp.Model):
    ...     precision: float
    ...     def __init__(self, dim, precision):
    ...         super().__init__(dim=dim)
    ...         self.precision = precision
    ...     @pdmp.compiled
    ...     def potential(self, x):
    ...         total = 0.0
    ...         for j in range(self.dim):
    ...             total += self.precision * x[j] * x[j]
    ...         return 0.5 * total
    ...     @pdmp.compiled
    ...     def add_gradient(self, x, out):
    ...         for j in range(self.dim):
    ...             out[j] += self.precision * x[j]
    >>> Quadratic(2, 4.0).gradient(np.ones(2))
    array([4., 4.])
    """

    dim: int
    n_data: int

    #: Whether the sum over data can be taken over a part of them.
    divisible = True
    #: Relative rounding error of U.
    resolution = float(np.finfo(float).eps)
    #: The exception that a Python function of the model raised in the last run, or None.
    failure = None

    def __init__(
        self,
        dim: int,
        n_data: int = 0,
        variables: Mapping[str, tuple[int, ...]] | None = None,
        initial: ArrayLike | None = None,
        transforms: Mapping[str, Transform] | None = None,
    ) -> None:
        self.dim = int(dim)
        self.n_data = int(n_data)
        if self.dim < 1:
            raise ValueError(f"`dim` must be at least 1, got {dim}.")
        self.variables = {"x": (self.dim,)} if variables is None else dict(variables)
        if sum(int(np.prod(s)) for s in self.variables.values()) != self.dim:
            raise ValueError(f"`variables` {self.variables} do not add up to the dimension {self.dim}.")
        self.transforms = check_transforms(transforms, self.variables)
        self.initial = np.zeros(self.dim) if initial is None else self.check(initial, "initial")

    def __init_subclass__(cls, **kwargs):
        _take_whole_target(cls)
        super().__init_subclass__(**kwargs)
        cls._methods["potential"] = cls._methods["total_potential"]  # so that compiled code may call it by this name
        cls._tuple.potential = cls._methods["total_potential"]
        known = {n: ", ".join(filter(None, ("self", c.arguments))) for n, c in CAPABILITIES.items() if c.compiled}
        check_methods(cls, Model, (), known)
        own = {name for name, method in cls._methods.items() if method is not Model._methods.get(name)}
        pairs = ("term_potential", "add_term_gradient"), ("prior_potential", "add_prior_gradient")
        if not own & {name for pair in pairs for name in pair}:
            raise TypeError(
                f"{cls.__name__} is a model without the methods `term_potential` and `add_term_gradient`, or "
                "`potential` and `add_gradient` for a target that is not a sum over data."
            )
        for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
            if one in own and other not in own:
                one, other = cls._methods[one].__name__, _counterpart(cls._methods[one].__name__)
                raise TypeError(f"{cls.__name__} is a model with `{one}`, but without the method `{other}`.")

    # -- compiled: what a model defines ---------------------------------------------------------------------------

    @compiled
    def prior_potential(self, x):
        return 0.0

    @compiled
    def add_prior_gradient(self, x, out):
        pass

    @compiled
    def term_potential(self, x, i):
        return 0.0

    @compiled
    def add_term_gradient(self, x, i, out):
        pass

    @compiled
    def prior_partial(self, x, j):
        return 0.0

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return 0.0

    @compiled
    def prior_curvature_bound(self, v):
        return 0.0

    # -- compiled: what follows from it -----------------------------------------------------------------------------

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
    def add_gradient(self, x, out):
        """Add ∇U(x) to `out`."""
        self.add_prior_gradient(x, out)
        self.add_block_gradient(x, 0, self.n_data, out)

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
    def add_parts(self, x, v, out):
        """Add the convex and concave parts of all rates vⱼ ∂ⱼU, or of their sum, to `out` (d or 1, 3)."""
        self.add_prior_parts(x, v, out)
        for i in range(self.n_data):
            self.add_term_parts(x, v, i, out)

    @compiled
    def add_prior_coefficients(self, x, v, out):
        pass

    @compiled
    def add_term_coefficients(self, x, v, i, out):
        pass

    @compiled
    def add_coefficients(self, x, v, out):
        """Add the coefficients of all rates vⱼ ∂ⱼU as polynomials in time, or of their sum, to `out` (d or 1, n)."""
        self.add_prior_coefficients(x, v, out)
        for i in range(self.n_data):
            self.add_term_coefficients(x, v, i, out)

    # -- Python ---------------------------------------------------------------------------------------------------

    def has(self, *names: str) -> bool:
        """Whether the model defines these methods itself, rather than inherits the base's defaults.

        Parameters
        ----------
        *names : str
            Capabilities, see `pdmp.models.capabilities`, or other methods of a model. What is asked of the prior alone
            a model without a prior has as well: the base's answer, zero, is right for it; likewise for the terms.

        Examples
        --------
        >>> import pdmp
        >>> pdmp.models.Gaussian(0.0, [1.0, 4.0]).has("curvature_bound", "hessian_product")
        True
        """
        cls = type(self)
        for name in names:
            unless = CAPABILITIES[name].unless if name in CAPABILITIES else ""
            if unless and getattr(cls, unless) is getattr(Model, unless):
                continue
            method = getattr(cls, name, None)
            if method is None or method is getattr(Model, name, None):
                return False
        return True

    def require(self, asked: str, *names: str, instead: str = "") -> None:
        """Raise a `ValueError` that names the first of these capabilities that the model lacks.

        Parameters
        ----------
        asked : str
            Who asks, with the verb: '`thinning="inversion"` needs'.
        *names : str
            Capabilities.
        instead : str, optional
            What to do instead, a sentence.
        """
        for name in names:
            if not self.has(name):
                raise ValueError(missing(self, name, asked, instead))

    def check_gradient(self, points: int = 5, data: int = 10, seed: int = 0) -> None:
        """Raise a `ValueError` if a gradient is not that of its potential.

        The gradients of the prior and of single terms are compared, in plain Python, with central differences of
        their potentials at random points; what is already in `out` must stay there; and what the class computes in
        a faster way of its own (``add_batch_gradient``, ``total_potential``, …) must be what its terms add up to. The
        step is ε^(1/3), ε the rounding error of one number, and the tolerance 10⁻⁴ of what is compared, besides what
        rounding and the next term of the expansion may spoil. At a kink a derivative between the slopes to the left
        and to the right is right. The first run of a model of your own calls this with a few points and data.

        Parameters
        ----------
        points : int, default 5
            Number of points, drawn around `initial`, where U is finite.
        data : int, default 10
            Number of terms to look at: the first, the last, and others drawn at random.
        seed : int, default 0
            Of points, terms and, above 12 dimensions, of the coordinates that are compared at each point.

        Raises
        ------
        ValueError
            Naming the method, the coordinate, the point and the two values; or when U is finite at no point.

        Examples
        --------
        >>> import pdmp
        >>> pdmp.models.Funnel(3).check_gradient()
        """
        if not check_gradient(self, points, data, seed):
            raise ValueError(f"the potential of {type(self).__name__} is not finite at any point near `initial`.")

    def check_bounds(self, points: int = 30, steps: int = 60, seed: int = 0) -> None:
        """Raise a `ValueError` if a point is found where a bound, or another capability, is wrong.

        Each capability of `pdmp.models.capabilities` that the model defines is tried at random points, velocities,
        data and times, and then around the worst of these by a random search that goes where it is worse. That finds
        wrong bounds, and proves none right. A relative excess of 10⁻⁶ passes as rounding.

        Parameters
        ----------
        points : int, default 30
            Number of random points.
        steps : int, default 60
            Number of steps of the search, for each capability.
        seed : int, default 0

        Raises
        ------
        ValueError
            Naming the capability, the point and the velocity, what was claimed and what was found.

        Examples
        --------
        >>> import pdmp
        >>> pdmp.models.Banana().check_bounds()
        """
        check_bounds(self, points, steps, seed)

    @property
    def model(self) -> Model:
        """Itself: a model is its own exact gradient."""
        return self

    @property
    def constrains(self) -> bool:
        """Whether natural parameters are computed in a way of the model's own, which a loaded run does not know."""
        return type(self).constrain is not Model.constrain

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x.

        Parameters
        ----------
        draws : array_like, shape (..., dim)

        Returns
        -------
        dict of str to ndarray, shape (..., *shape)
            The parts of x by their names in `variables`, each through its transform. A model that overrides this may
            return others.
        """
        return split(draws, self.variables, self.transforms)

    def prior_inclusion(self) -> np.ndarray | None:
        """Prior probabilities, (dim,), that a coordinate is not 0; None for a prior without spikes."""
        return None

    def slab_density(self) -> np.ndarray | None:
        """Density at 0 of the prior of each coordinate, (dim,), where it is a product; None when that is not known."""
        return None

    def factors(self) -> Sequence[Sequence[int]] | tuple[np.ndarray, np.ndarray] | None:
        """The coordinates of each factor, lists or compressed rows (indptr, indices); None when they are not known.

        Factor f is term f, and the last one the prior, unless the model has its own ``add_factor_gradient``.
        """
        return None

    def term_partial_bounds(self, first: int, last: int) -> np.ndarray | None:
        """Bounds on the partial derivatives of single terms.

        Parameters
        ----------
        first, last : int
            The terms first <= i < last.

        Returns
        -------
        ndarray of shape (last - first, dim) or None
            A bound on |∂ⱼUᵢ(x)| over all x; None when the model knows none.
        """
        if not self.has("term_gradient_bounds"):
            return None
        first, last = self._check_range(first, last)
        out = np.zeros((last - first, self.dim))
        with readable(type(self).__name__):
            _term_gradient_bounds(self.native, first, out)
        return out

    def term_partial_lipschitz(self, first: int, last: int, scale: ArrayLike | None = None) -> np.ndarray | None:
        """Lipschitz constants of the partial derivatives of single terms.

        Parameters
        ----------
        first, last : int
            The terms first <= i < last.
        scale : array_like of shape (dim,), optional
            Units in which distances are measured, coordinate by coordinate; ones when omitted.

        Returns
        -------
        ndarray of shape (last - first, dim) or None
            Lᵢⱼ with |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale|₂ for all x and y; None when the model knows none.
        """
        if not self.has("term_lipschitz"):
            return None
        first, last = self._check_range(first, last)
        scale = np.ones(self.dim) if scale is None else self.check(scale, "scale")
        out = np.zeros((last - first, self.dim))
        with readable(type(self).__name__):
            _term_lipschitz(self.native, first, scale, out)
        return out

    def _check_range(self, first, last):
        if not 0 <= first <= last <= self.n_data:
            raise ValueError(f"`first` and `last` must lie in 0 … {self.n_data} in this order, got {first}, {last}.")
        return int(first), int(last)

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        """Diagonal of the Hessian at x, shape (dim,)."""
        return np.diag(self.hessian(x)).copy()

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

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """`x` as a float array of shape (dim,), or a `ValueError` that names it."""
        array = np.array(x, dtype=float)
        if array.shape != (self.dim,):
            raise ValueError(f"`{name}` must have shape ({self.dim},), got {array.shape}.")
        return array

    def potential(self, x: ArrayLike) -> float:
        """U(x) = -log density up to a constant; x of shape (dim,)."""
        with readable(type(self).__name__):
            return _potential(self.native, self.check(x))

    def gradient(self, x: ArrayLike) -> np.ndarray:
        """∇U(x), shape (dim,): the gradient of the potential, of all terms and the prior."""
        out = np.zeros(self.dim)
        with readable(type(self).__name__):
            _add_gradient(self.native, self.check(x), out)
        return out

    def term_gradients(self, x: ArrayLike, rows: ArrayLike) -> np.ndarray:
        """∇Uᵢ(x) for i in `rows`, shape (len(rows), dim), the prior not included."""
        rows = np.atleast_1d(np.asarray(rows))
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_data):
            raise ValueError(f"`rows` must lie in 0 … {self.n_data - 1}.")
        out = np.zeros((len(rows), self.dim))
        with readable(type(self).__name__):
            _add_term_gradients(self.native, self.check(x), rows.astype(np.int64), out)
        return out

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at x, shape (dim, dim), by central differences of the gradient unless the model knows better."""
        x = self.check(x)
        step = 1e-5 * np.maximum(1.0, np.abs(x))
        columns = []
        for j in range(self.dim):
            e = np.zeros(self.dim)
            e[j] = step[j]
            columns.append((self.gradient(x + e) - self.gradient(x - e)) / (2.0 * step[j]))
        hessian = np.array(columns)
        return 0.5 * (hessian + hessian.T)

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

    def largest_term_gradient(self) -> float:
        """A bound, for every x and i, on the norm of ∇Uᵢ(x); infinite when the model knows none."""
        return np.inf

    def term_gradient_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray | None:
        """Bounds on |rootᵀ ∇Uᵢ(x)| over all x for first <= i < last, a matrix `root` (dim, dim); None without any."""
        bounds = self.term_partial_bounds(first, last)
        return None if bounds is None else np.linalg.norm(bounds @ np.abs(root), axis=1)

    def term_lipschitz_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray | None:
        """Λᵢ with |rootᵀ (∇Uᵢ(root y) - ∇Uᵢ(root z))| <= Λᵢ |y - z| for first <= i < last; None without any."""
        scale = np.linalg.norm(root, axis=1)
        bounds = self.term_partial_lipschitz(first, last, scale)
        if bounds is None:
            return None
        return np.linalg.norm(bounds @ np.abs(root), axis=1) * np.linalg.norm(root / scale[:, None], 2)

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Symmetric matrices with lower <= H(x) <= upper for every x, each (dim, dim); None when the model knows none.

        H is the Hessian of U, and A <= B says that B - A has no negative eigenvalue.
        """
        return None

    def prior_hessian_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The same for the prior's part of U alone."""
        return None

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """Minimum of U, shape (dim,); None when none was found."""
        from scipy import optimize

        x = self.initial if initial is None else self.check(initial, "initial")
        result = optimize.minimize(self.potential, x, jac=self.gradient, method="L-BFGS-B", options={"maxiter": 2000})
        if not np.all(np.isfinite(result.x)) or not np.isfinite(result.fun):
            return None
        x = result.x
        if self.dim <= 200:  # polish: a quasi-Newton stops early where U is large
            for _ in range(20):
                gradient, hessian = self.gradient(x), self.hessian(x)
                try:
                    step = np.linalg.solve(hessian, gradient)
                    np.linalg.cholesky(hessian)
                except np.linalg.LinAlgError:
                    break
                if not self.potential(x - step) <= self.potential(x) + 1e-9:
                    break
                x = x - step
                if step @ gradient < 1e-16:
                    break
            # A minimum at infinity (separable data without a prior): U is flat where the search gave up.
            largest = np.abs(self.hessian(x)).max()
            if largest < 1e-8 * np.abs(self.hessian(self.initial if initial is None else initial)).max():
                return None
        scale = np.sqrt(max(self.curvature(x), 0.0)) if self.dim <= 200 else 1.0
        return x if np.linalg.norm(self.gradient(x)) <= 1e-3 * max(scale, 1.0) * np.sqrt(self.dim) else None


def _counterpart(name):
    """The potential that belongs to a gradient, or the gradient that belongs to a potential."""
    pairs = {
        "potential": "add_gradient",
        "prior_potential": "add_prior_gradient",
        "term_potential": "add_term_gradient",
    }
    return (pairs | {gradient: potential for potential, gradient in pairs.items()})[name]


def _take_whole_target(cls):
    """Move what a class body calls `potential` and `add_gradient` to where a model keeps it.

    `Model.potential`, which Python calls, checks its argument; the compiled method of that name is kept as
    ``total_potential``. A target that is not a sum over data has one part, which is kept where a sum has its prior.
    """
    written = cls.__dict__.get("potential")
    of_data = cls.term_potential is not Model.term_potential
    if getattr(written, "__compiled__", False) and "prior_potential" not in cls.__dict__:
        setattr(cls, "total_potential" if of_data else "prior_potential", written)
        del cls.potential
    elif inspect.isfunction(written) and not _defines_target(cls):
        raise TypeError(f"{cls.__name__}.potential is a method of a model that must be marked @compiled.")
    written = cls.__dict__.get("add_gradient")
    if not of_data and getattr(written, "__compiled__", False) and "add_prior_gradient" not in cls.__dict__:
        cls.add_prior_gradient = written
        del cls.add_gradient


def _defines_target(cls):
    return cls.term_potential is not Model.term_potential or cls.prior_potential is not Model.prior_potential


def data_and_coordinates(X):
    """Factors of a regression in compressed rows: for each row of `X` where it is not zero, then each coordinate."""
    d = X.shape[1]
    filled = X != 0.0
    sizes = filled.sum(axis=1)
    if np.any(sizes == 0):
        raise ValueError(f"row {int(np.argmin(sizes))} of the features is zero: its factor depends on no coordinate.")
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([sizes, np.ones(d, np.int64)]))])
    return indptr, np.concatenate([np.nonzero(filled)[1], np.arange(d)])


@entry
def _potential(model, x):
    return model.total_potential(x)


@entry
def _add_gradient(model, x, out):
    model.add_gradient(x, out)


@entry
def _add_term_gradients(model, x, rows, out):
    for k in range(rows.shape[0]):
        model.add_term_gradient(x, rows[k], out[k])


@entry
def _term_gradient_bounds(model, first, out):
    for k in range(out.shape[0]):
        model.term_gradient_bounds(first + k, out[k])


@entry
def _term_lipschitz(model, first, scale, out):
    for k in range(out.shape[0]):
        model.term_lipschitz(first + k, scale, out[k])
