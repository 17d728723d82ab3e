"""What a target is: a potential U = -log density, usually a prior plus a sum of terms, one for each datum."""

from __future__ import annotations

import numpy as np

from pdmp.models.transforms import check_transforms, split
from pdmp.native.classes import Compiled, compiled, entry, readable
from pdmp.process import check_methods


class Model(Compiled):
    r"""Base of every target: U(x) = prior(x) + Σᵢ Uᵢ(x), up to a constant, with i running over `n_data` terms.

    A model of your own is a class with fields (annotations) and two compiled methods, or four::

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
    data defines only ``prior_potential`` and ``add_prior_gradient`` and has ``n_data=0`` terms.

    Everything else is derived from these; a model overrides what it can do faster, and states what it knows of its
    curvature, for the clocks:

    - ``curvature_bound(v)``: a bound, for every x, on v·H(x)v, H the Hessian of U (BPS by affine thinning);
    - ``hessian_product(v, out)``: for a quadratic U, out = Hv, the slope of ∇U along v (BPS by exact inversion);
    - ``partial_curvature_bounds(v, out)``: out[i] = a bound, for every x, on vᵢ Σⱼ Hᵢⱼ(x) vⱼ (Zig-Zag by affine thinning);
    - ``affine_partial(x, v, moved, now, i)``: for a quadratic U, the partial derivative ∂ᵢU at the time `now` and its
      slope in time, when coordinate j was at x[j] at time moved[j] (Zig-Zag by exact inversion), together with
      ``neighbours()``, the pattern of the Hessian in compressed rows;
    - ``prior_curvature_bound(v)``: a bound, for every x, on v·H(x)v, H the Hessian of the prior's part of U alone, and
      ``largest_term_gradient()`` (BPS with mini-batches under a bound on all of them);
    - ``term_gradient_bounds(i, out)``: out[j] = the least bound known, for every x, on |∂ⱼUᵢ(x)| (exact sub-sampling);
    - ``term_lipschitz(i, scale, out)``: out[j] = Lᵢⱼ with |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale| for all x
      and y (exact sub-sampling with control variates);
    - ``prior_partial(x, j)`` = ∂ⱼ prior(x), and ``prior_partial_curvature_bound(v, j)``: a bound, for every x, on its slope along
      v times vⱼ, vⱼ Σₖ ∂ⱼₖ prior(x) vₖ (the prior's part of a clock, exactly).

    Derivatives along a ray x + v s, for `DirectionalBPS`: a Python method ``ray_room()``, the length of an array `ray`
    in which the model keeps what it likes of the ray, and

    - ``ray_begin(x, v, ray)``: the ray from x with the velocity v begins;
    - ``ray_derivatives(s, ray)``: the first and the second derivative of U(x + v s) by s;
    - ``ray_bound(s, h, ray)``: a number b with U'(s + τ) <= U'(s) + b τ for 0 <= τ <= h, asked for after ``ray_derivatives``
      at that s, also with h = ∞;
    - ``ray_gradient(x, s, ray, out)``: out = ∇U at s, where the position is x, asked for after ``ray_derivatives`` there;
    - ``ray_turn(x, s, v, ray)``: the velocity changes to v at s, where the position is x; s counts from there.

    A sum of factors that depend on few coordinates each says so, for local samplers, by a Python method ``factors()``:
    the lists of the coordinates of each term, in order, and of the prior at the end if there is one. For other factors
    than these it has its own ``add_factor_gradient(x, f, out)``, which reads and writes the coordinates of factor f
    alone. What it knows of their derivatives along a path x + v s:

    - ``affine_factor(x, v, moved, now, f)``: for quadratic factors, v·∇U_f at the time `now` and its slope in time,
      when coordinate j was at x[j] at time moved[j] (exact inversion);
    - ``factor_rate_bound(x, v, f)``: numbers (a, b) with v·∇U_f(x + v s) <= a + b s for every s >= 0 (exact thinning);
    - ``signed_term_bound(i, j, sign)``: a bound >= 0, for every x, on sign · ∂ⱼUᵢ(x) of term i (data that share one
      clock).

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
    """

    dim: int
    n_data: int

    #: Whether the sum over data can be taken over a part of them.
    divisible = True
    #: The exception that a Python function of the model raised in the last run, or None.
    failure = None

    def __init__(self, dim, n_data=0, variables=None, initial=None, transforms=None):
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
        super().__init_subclass__(**kwargs)
        bounds = {
            "curvature_bound": "self, v",
            "hessian_product": "self, v, out",
            "ray_begin": "self, x, v, ray",
            "ray_derivatives": "self, s, ray",
            "ray_bound": "self, s, h, ray",
            "ray_gradient": "self, x, s, ray, out",
            "ray_turn": "self, x, s, v, ray",
            "partial_curvature_bounds": "self, v, out",
            "affine_partial": "self, x, v, moved, now, i",
            "prior_curvature_bound": "self, v",
            "affine_factor": "self, x, v, moved, now, f",
            "factor_rate_bound": "self, x, v, f",
            "signed_term_bound": "self, i, j, sign",
            "term_gradient_bounds": "self, i, out",
            "term_lipschitz": "self, i, scale, out",
            "directional_derivative_bound": "self, v",
            "partial_derivative_bounds": "self, v, out",
            "curvature_bound_within": "self, x, v, s",
            "partial_curvature_bounds_within": "self, x, v, s, out",
        }
        check_methods(cls, Model, (), bounds)
        own = {name for name, method in cls._methods.items() if method is not Model._methods.get(name)}
        pairs = ("term_potential", "add_term_gradient"), ("prior_potential", "add_prior_gradient")
        if not own & {name for pair in pairs for name in pair}:
            raise TypeError(f"{cls.__name__} is a model without the methods `term_potential` and `add_term_gradient`.")
        for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
            if one in own and other not in own:
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

    def defines(self, method):
        """Whether the model's class defines this compiled method itself, other than by the base's default."""
        return method in self._methods and self._methods[method] is not Model._methods.get(method)

    @property
    def model(self):
        """Itself: a model is its own exact gradient."""
        return self

    @property
    def constrains(self):
        """Whether natural parameters are computed in a way of the model's own, which a loaded run does not know."""
        return type(self).constrain is not Model.constrain

    def constrain(self, draws):
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

    def prior_inclusion(self):
        """Prior probabilities, (dim,), that a coordinate is not 0; None for a prior without spikes."""
        return None

    def slab_density(self):
        """Density at 0 of the prior of each coordinate, (dim,), where it is a product; None when that is not known."""
        return None

    def knows(self, *methods):
        """Whether the model defines these compiled methods."""
        return all(m in self._methods for m in methods)

    def _redefines(self, method):
        return self._methods[method] is not Model._methods[method]

    @property
    def has_prior(self):
        """Whether the potential has a part that is not one of the terms."""
        return self._redefines("add_prior_gradient")

    @property
    def has_factor_gradient(self):
        """Whether the model has factors other than its terms and its prior."""
        return self._redefines("add_factor_gradient")

    def factors(self):
        """The coordinates of each factor, lists or compressed rows (indptr, indices); None when they are not known.

        Factor f is term f, and the last one the prior, unless the model has its own ``add_factor_gradient``.
        """
        return None

    @property
    def knows_prior(self):
        """Whether the prior's partial derivatives and bounds on their slopes are known; no prior at all is known."""
        return not self.has_prior or (
            self._redefines("prior_partial") and self._redefines("prior_partial_curvature_bound")
        )

    def term_partial_bounds(self, first, last):
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
        if not self.knows("term_gradient_bounds"):
            return None
        first, last = self._check_range(first, last)
        out = np.zeros((last - first, self.dim))
        _term_gradient_bounds(self.native, first, out)
        return out

    def term_partial_lipschitz(self, first, last, scale=None):
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
        if not self.knows("term_lipschitz"):
            return None
        first, last = self._check_range(first, last)
        scale = np.ones(self.dim) if scale is None else self.check(scale, "scale")
        out = np.zeros((last - first, self.dim))
        _term_lipschitz(self.native, first, scale, out)
        return out

    def _check_range(self, first, last):
        if not 0 <= first <= last <= self.n_data:
            raise ValueError(f"`first` and `last` must lie in 0 … {self.n_data} in this order, got {first}, {last}.")
        return int(first), int(last)

    def curvatures(self, x):
        """Diagonal of the Hessian at x, shape (dim,)."""
        return np.diag(self.hessian(x)).copy()

    def rearranged(self, rows):
        """The same model with its data in the order `rows`, each a datum's index; None when it does not know how.

        A model with this method gives ``draw="reshuffle"`` blocks that are contiguous in memory.
        """
        return None

    def batch_room(self, size):
        """An array for the copy of a batch that is used more than once; an empty one when the model makes none.

        A model with this method has ``copy_batch`` and ``add_copied_gradient``.
        """
        return np.zeros(0)

    def check(self, x, name="x"):
        """`x` as a float array of shape (dim,), or a `ValueError` that names it."""
        array = np.array(x, dtype=float)
        if array.shape != (self.dim,):
            raise ValueError(f"`{name}` must have shape ({self.dim},), got {array.shape}.")
        return array

    def potential(self, x):
        """U(x) = -log density up to a constant; x of shape (dim,)."""
        with readable(type(self).__name__):
            return _potential(self.native, self.check(x))

    def gradient(self, x):
        """∇U(x), shape (dim,): the gradient of the potential, of all terms and the prior."""
        out = np.zeros(self.dim)
        with readable(type(self).__name__):
            _add_gradient(self.native, self.check(x), out)
        return out

    def term_gradients(self, x, rows):
        """∇Uᵢ(x) for i in `rows`, shape (len(rows), dim), the prior not included."""
        rows = np.atleast_1d(np.asarray(rows))
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_data):
            raise ValueError(f"`rows` must lie in 0 … {self.n_data - 1}.")
        out = np.zeros((len(rows), self.dim))
        _add_term_gradients(self.native, self.check(x), rows.astype(np.int64), out)
        return out

    def hessian(self, x):
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

    def curvature(self, x, probes=32):
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

    def largest_term_gradient(self):
        """A bound, for every x and i, on the norm of ∇Uᵢ(x); infinite when the model knows none."""
        return np.inf

    def term_gradient_norms(self, root, first, last):
        """Bounds on |rootᵀ ∇Uᵢ(x)| over all x for first <= i < last, a matrix `root` (dim, dim); None without any."""
        bounds = self.term_partial_bounds(first, last)
        return None if bounds is None else np.linalg.norm(bounds @ np.abs(root), axis=1)

    def term_lipschitz_norms(self, root, first, last):
        """Λᵢ with |rootᵀ (∇Uᵢ(root y) - ∇Uᵢ(root z))| <= Λᵢ |y - z| for first <= i < last; None without any."""
        scale = np.linalg.norm(root, axis=1)
        bounds = self.term_partial_lipschitz(first, last, scale)
        if bounds is None:
            return None
        return np.linalg.norm(bounds @ np.abs(root), axis=1) * np.linalg.norm(root / scale[:, None], 2)

    def hessian_bounds(self):
        """Symmetric matrices with lower <= H(x) <= upper for every x, each (dim, dim); None when the model knows none.

        H is the Hessian of U, and A <= B says that B - A has no negative eigenvalue.
        """
        return None

    def prior_hessian_bounds(self):
        """The same for the prior's part of U alone."""
        return None

    def mode(self, initial=None):
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
