"""What a target is: a potential U = -log density, usually a prior plus a sum of terms, one for each datum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pdmp.data.memory import check_size
from pdmp.models.called import GRADIENT, POTENTIAL, Called, add_gradient, total_potential
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.definition import check_is_target, check_model_class, take_whole_target
from pdmp.models.derived import Derived
from pdmp.models.numerical import data_gradient, prior_gradient, row_chunks, searched_mode
from pdmp.models.transforms import Transform, check_transforms, split
from pdmp.models.verification import check_bounds, check_gradient
from pdmp.native.addresses import record_of
from pdmp.native.arguments import count, refuse_unreal
from pdmp.native.classes import Compiled, compiled, entry, readable
from pdmp.native.explanations import explained_methods
from pdmp.native.threads import each

COARSEST = 0.01  #: relative resolution of U that no arithmetic is coarser than
#: What methods of the past are called.
MOVED = {
    name.rpartition(".")[2]: f"pdmp.models.{name}(model, ...)"
    for name in "find_mode numerical.data_gradient numerical.term_partial_bounds numerical.term_partial_lipschitz "
    "capabilities.require".split()
}


@explained_methods
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
    data has ``n_data=0`` terms, and defines U and its gradient, ``potential(x)`` and ``add_gradient(x, out)``, as in
    the example. From Python, ``model.potential(x)`` and ``model.gradient(x)`` are then what they are for every model.

    Everything else follows from these (`pdmp.models.derived`, which has what there is for ArviZ too). A model defines
    what it can compute faster, and states what it knows of its curvature and of bounds, for the clocks, by the methods
    in the table of `pdmp.models.capabilities`, which has the signature, the meaning and the users of each.
    ``model.has("curvature_bound")`` tells whether a model has one.

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
        The point from which the mode is sought; zeros when omitted.
    transforms : dict of str to pdmp.models.transforms.Transform, optional
        For parts of x that are not natural parameters: ``{"sigma": Log()}`` says that the part `sigma` of x is log σ.
        Names and draws for ArviZ follow it; the potential is that of x, and contains the Jacobian.

    Examples
    --------
    >>> import numpy as np, pdmp
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

    _set_by_base, _kind, _is_target = "variables", "model", True
    _kind_defaults, _kind_moved = Derived, MOVED

    def __init__(
        self,
        dim: int,
        n_data: int = 0,
        variables: Mapping[str, tuple[int, ...]] | None = None,
        initial: ArrayLike | None = None,
        transforms: Mapping[str, Transform] | None = None,
    ) -> None:
        check_is_target(type(self))
        self.dim = count("dim", dim)
        self.n_data = count("n_data", n_data, 0)
        check_size(f"`dim` = {self.dim:,}", 8.0 * self.dim)
        self.variables = {"x": (self.dim,)} if variables is None else dict(variables)
        for name, shape in self.variables.items():
            if np.ndim(shape) != 1:
                raise TypeError(f"`variables`: the shape of {name!r} must be a tuple, such as (2,), got {shape!r}.")
        if sum(int(np.prod(s)) for s in self.variables.values()) != self.dim:
            raise ValueError(f"`variables` {self.variables} do not add up to the dimension {self.dim}.")
        self.transforms = check_transforms(transforms, self.variables)
        self.initial = np.zeros(self.dim) if initial is None else self.check(initial, "initial")

    def __init_subclass__(cls, **kwargs):
        take_whole_target(cls, Model)
        super().__init_subclass__(**kwargs)
        check_model_class(cls, Model)

    def _keeps(self, attribute):
        value = getattr(self, attribute, None)
        if attribute in ("dim", "n_data"):
            return isinstance(value, (int, np.integer))
        if attribute in ("variables", "transforms"):
            return isinstance(value, Mapping)
        if attribute == "initial":
            return np.shape(value) == (self.dim,)
        if attribute == "divisible":
            return isinstance(value, (bool, np.bool_))
        if attribute == "resolution":  # relative, of the numbers that U is computed in
            return isinstance(value, float) and 0.0 < value < COARSEST
        return True

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
    def add_gradient(self, x, out):
        """Add ∇U(x) to `out`."""
        self.add_prior_gradient(x, out)
        self.add_block_gradient(x, 0, self.n_data, out)

    # -- Python ---------------------------------------------------------------------------------------------------

    def has(self, *names: str) -> bool:
        """Whether the model defines these methods itself, rather than has the default.

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
            if getattr(cls, name, None) in (None, getattr(Model, name, getattr(Derived, name, None))):
                return False
        return True

    @property
    def by_address(self) -> Called:
        """As samplers see it that are compiled once for all models."""
        return Called(self)

    @property
    def model(self) -> Model:
        """Itself: a model is its own exact gradient."""
        return self

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x.

        Parameters
        ----------
        draws : array_like, shape (..., dim)

        Returns
        -------
        dict of str to ndarray, shape ``(..., *shape)``
            The parts of x by their names in `variables`, each through its transform. A model that overrides this may
            return others.
        """
        return split(draws, self.variables, self.transforms)

    # -- Python: what is computed with the compiled methods ------------------------------------------------------

    def potential(self, x: ArrayLike) -> float:
        """U(x) = -log density up to a constant; x of shape (dim,)."""
        x, ranges = self.check(x), row_chunks(self)
        if len(ranges) == 1:
            return total_potential(record_of(self, POTENTIAL), x)
        native = self.native
        with readable(type(self).__name__):
            total = _prior_potential(native, x)
            for part in each(lambda first, stop: _block_potential(native, x, first, stop), ranges):
                total += part
            return total

    def gradient(self, x: ArrayLike) -> np.ndarray:
        """∇U(x), shape (dim,): the gradient of the potential, of all terms and the prior."""
        x, out = self.check(x), np.zeros(self.dim)
        if len(row_chunks(self)) > 1:
            return prior_gradient(self, x) + data_gradient(self, x)
        add_gradient(record_of(self, GRADIENT), x, out)
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

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """`x` as a float array of shape (dim,), or a `ValueError` that names it."""
        refuse_unreal(name, x)
        array = np.array(x, dtype=float)
        if array.shape != (self.dim,):
            raise ValueError(f"`{name}` must have shape ({self.dim},), got {array.shape}.")
        return array

    def check_gradient(self, points: int = 5, data: int = 10, seed: int = 0) -> None:
        """Raise a `ValueError` if a gradient is not that of its potential.

        The gradients of the prior and of single terms are compared, in plain Python, with central differences of their
        potentials at random points; what is already in `out` must stay there; and what the class computes in a faster
        way of its own (``add_batch_gradient``, ``total_potential``, …) must be what its terms add up to: of ways that
        take data, for up to 1,000 drawn at random, and a batch's gradient for all. The step is ε^(1/3), or ε^(1/5)
        where rounding would spoil that, ε the rounding error of one number, and the tolerance 10⁻⁴ of what is compared,
        besides what rounding and the next term of the expansion may spoil. At a kink a derivative between the slopes to
        the left and to the right is right. All data are compared as well, compiled, at two points: in blocks of 32
        along one direction, some of these where there are above 5,000,000 / d data; and their sum in every coordinate,
        of above 80,000 data several at a time, and of above 500,000 all together. Where rounding hides a slope of U, a
        warning says so. The first run of a model of your own calls this with a few points and data, and each run
        compares slopes where it went, see `pdmp.engine.visited`.

        Parameters
        ----------
        points : int, default 5
            Number of points, drawn around `initial`, where U is finite.
        data : int, default 10
            Number of terms to look at: the first, the last, and others drawn at random.
        seed : int, default 0
            Of points, terms and, above 12 dimensions, of the coordinates that are compared at a time.

        Raises
        ------
        ValueError
            Naming the method, the coordinate, the point and the two values; or when U is finite at no point.

        Examples
        --------
        >>> import pdmp
        >>> pdmp.models.Funnel(3).check_gradient()
        """
        points, data, seed = count("points", points), count("data", data), count("seed", seed, least=0)
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

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at x, shape (dim, dim), by central differences of the gradient unless the model knows better."""
        x = self.check(x)
        steps = np.diag(1e-5 * np.maximum(1.0, np.abs(x)))
        hessian = np.array([(self.gradient(x + e) - self.gradient(x - e)) / (2.0 * e.max()) for e in steps])
        return 0.5 * (hessian + hessian.T)

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """Minimum of U, shape (dim,), one of them if there are several; None when none was found.

        From 100,000 data on some models find it to a thousandth of a standard deviation of the posterior.
        """
        return searched_mode(self, initial)


@entry
def _prior_potential(model, x):
    return model.prior_potential(x)


@entry
def _block_potential(model, x, first, stop):
    return model.block_potential(x, first, stop)


@entry
def _add_term_gradients(model, x, rows, out):
    for k in range(rows.shape[0]):
        model.add_term_gradient(x, rows[k], out[k])
