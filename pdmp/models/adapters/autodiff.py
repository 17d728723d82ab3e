"""Log densities written in JAX or PyTorch, with the gradients that these packages derive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.adapters.function import FunctionModel, needed

if TYPE_CHECKING:
    from pdmp.models.base import Model


class JaxFunction:
    """(U, ∇U) of a log density in JAX, compiled when it is first called; pickled as the log density."""

    of_log_density = True

    def __init__(self, log_density, single):
        self.log_density, self.single, self._compiled = log_density, single, None

    def __reduce__(self):
        return JaxFunction, (self.log_density, self.single)

    def __call__(self, x):
        if self._compiled is None:
            self._compiled = self._compile(x)
        potential, gradient = self._compiled(x.astype(np.float32) if self.single else x)
        return np.asarray(potential), np.asarray(gradient)

    def anew(self, x):
        """U at x of what the log density reads by now, without machine code."""
        import jax.numpy as jnp

        return -self.log_density(jnp.asarray(x, np.float32 if self.single else np.float64))

    def _compile(self, x):
        import jax

        if not self.single and not jax.config.jax_enable_x64:
            raise ValueError(
                "JAX computes in single precision: say jax.config.update('jax_enable_x64', True) before any other use "
                "of it, or `single_precision=True` if seven digits of U are enough."
            )
        kind = np.float32 if self.single else np.float64
        found = jax.eval_shape(self.log_density, jax.ShapeDtypeStruct(x.shape, kind))
        if getattr(found, "shape", None) != ():
            raise ValueError(f"`log_density` must return one number, got {found}.")
        both = jax.value_and_grad(lambda y: -self.log_density(y))
        return jax.jit(both)


class TorchFunction:
    """(U, ∇U) of a log density in PyTorch."""

    of_log_density = True

    def __init__(self, log_density):
        self.log_density = log_density

    def __call__(self, x):
        import torch

        with torch.enable_grad():
            here = torch.from_numpy(x).requires_grad_(True)
            found = self.log_density(here)
            if not isinstance(found, torch.Tensor) or found.ndim != 0:
                kind = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
                raise ValueError(f"`log_density` must return a tensor with one number, got {kind}.")
            if not found.requires_grad:
                raise ValueError("`log_density` must be computed from x by PyTorch's functions: it has no gradient.")
            (gradient,) = torch.autograd.grad(found, here)
        return -found.item(), -gradient.numpy()


def from_jax(
    log_density: Callable,
    dim: int,
    initial: ArrayLike | None = None,
    variables: dict[str, tuple[int, ...]] | None = None,
    transforms: dict | None = None,
    n_data: int = 0,
    single_precision: bool = False,
) -> Model:
    """A model from a log density in JAX, jitted together with its gradient.

    One gradient in a compiled loop was measured to cost 15 µs on eight schools (10 dimensions), nearly all of it JAX's
    way from Python to its machine code and back; it does not grow with `dim` until the arithmetic does. Chains in
    threads take turns.

    Parameters
    ----------
    log_density : callable
        f(x) -> log density up to a constant, a number, for a JAX array x of shape (dim,). Not the potential: U = -f.
        Its machine code has the arrays that f names as they are now; if they have changed by the time of a run, it is
        refused.
    dim : int
    initial, variables, transforms, n_data
        As of `from_function` and `pdmp.Model`. `log_density` is that of x, so it holds the Jacobians of transforms.
    single_precision : bool, default False
        Compute in float32. By default everything is float64, which JAX must have been told to allow.

    Returns
    -------
    FunctionModel

    Raises
    ------
    ValueError
        If JAX is not set to double precision, or what `log_density` returns is not one number.

    Examples
    --------
    >>> import jax, pdmp                                                      # doctest: +SKIP
    >>> jax.config.update("jax_enable_x64", True)                             # doctest: +SKIP
    >>> model = pdmp.models.from_jax(lambda x: -0.5 * (x ** 2).sum(), dim=3)  # doctest: +SKIP
    """
    _check(log_density)
    needed("jax", "from_jax")
    function = JaxFunction(log_density, single_precision)
    checked = not single_precision  # what stops a gradient, or rounds, is no derivative of the density
    return FunctionModel(function, dim, initial, variables, n_data, check_gradient=checked, transforms=transforms)


def from_torch(
    log_density: Callable,
    dim: int,
    initial: ArrayLike | None = None,
    variables: dict[str, tuple[int, ...]] | None = None,
    transforms: dict | None = None,
    n_data: int = 0,
) -> Model:
    """A model from a log density in PyTorch, with the gradient by its automatic differentiation, in float64.

    One gradient in a compiled loop was measured to cost 0.26 ms on eight schools (10 dimensions): PyTorch records each
    operation anew in every call. Chains in threads take turns.

    Parameters
    ----------
    log_density : callable
        f(x) -> log density up to a constant, a tensor of shape (), for a float64 tensor x of shape (dim,). Not the
        potential: U = -f. Data that it uses should be float64 tensors.
    dim : int
    initial, variables, transforms, n_data
        As of `from_function` and `pdmp.Model`. `log_density` is that of x, so it holds the Jacobians of transforms.

    Returns
    -------
    FunctionModel

    Raises
    ------
    ValueError
        If what `log_density` returns is not a tensor with one number that depends on x.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.from_torch(lambda x: -0.5 * (x @ x), dim=2)  # doctest: +SKIP
    """
    _check(log_density)
    needed("torch", "from_torch")
    function = TorchFunction(log_density)
    return FunctionModel(function, dim, initial, variables, n_data, transforms=transforms)


def _check(log_density):
    if not callable(log_density):
        raise TypeError(f"`log_density` must be a function x -> log density, got a {type(log_density).__name__}.")
