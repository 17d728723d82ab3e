"""What a target is: a potential U = -log density, usually a prior plus a sum of terms, one for each datum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pdmp.data.memory import check_size
from pdmp.models.called import Called
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.definition import check_model_class, take_whole_target
from pdmp.models.derived import Derived
from pdmp.models.numerical import MOVED, Numerical
from pdmp.models.transforms import Transform, check_transforms, split
from pdmp.native.arguments import count
from pdmp.native.classes import Compiled, compiled
from pdmp.native.explanations import explained


class Model(Numerical, Compiled):
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

    _set_by_base, _kind = "variables", "model"
    _kind_defaults, _kind_moved = Derived, MOVED

    def __init__(
        self,
        dim: int,
        n_data: int = 0,
        variables: Mapping[str, tuple[int, ...]] | None = None,
        initial: ArrayLike | None = None,
        transforms: Mapping[str, Transform] | None = None,
    ) -> None:
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

    @explained
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
