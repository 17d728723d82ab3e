"""The exact gradient, and what a bare model stands for."""

from __future__ import annotations

import functools

import numpy as np

from pdmp.gradients.provider import Provider, at_least, clear, dot
from pdmp.models.base import Model
from pdmp.native.classes import ByAddress, Compiled, compiled
from pdmp.process import DATA


class AllTerms(Provider):
    """Base of the providers that use all terms, from a copy of the data in the layout that is fastest for that."""

    model: Model
    packed: Compiled

    @functools.cached_property
    def packed(self) -> Model:
        """The model that gives the gradient: a copy with its data in blocks, if the model has such a layout."""
        return self.model.rearranged(np.arange(self.n_data)) or self.model

    @compiled
    def _exact(self, x, out, counts):
        clear(out)
        self.packed.add_gradient(x, out)
        counts[DATA] += max(self.packed.n_data, 1)


class Full(AllTerms):
    """The exact gradient ∇U(x), from all terms.

    One call counts `n_data` data terms, one for a model that is not a sum over data. If the model can arrange its
    data in blocks (`Derived.rearranged`), the gradient comes from such a copy, made when the first run starts.

    Parameters
    ----------
    model : pdmp.Model
        The target.

    Raises
    ------
    TypeError
        If `model` is not a model.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> full = pdmp.gradients.Full(model)
    >>> full.exact, full.terms_per_call
    (True, 3)
    """

    exact = True

    @functools.cached_property
    def by_address(self) -> Full:
        """The same for samplers that ask for potential and gradient alone, and are compiled once for all models."""
        return _ByAddress(self)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self._exact(x, out, counts)

    @compiled
    def gradient_again(self, x, memory, out, counts):
        self._exact(x, out, counts)

    @compiled
    def gradient_and_projection(self, x, v, memory, rng, out, counts):
        self.gradient(x, memory, rng, out, counts)
        g = dot(v, out)
        return g, at_least(0.0, g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        self.gradient(x, memory, rng, out, counts)
        clear(sd)


class _ByAddress(Full):
    model: ByAddress
    packed: ByAddress

    def __init__(self, full):
        super().__init__(full.model)
        self.full = full

    @property
    def packed(self):
        return self.full.packed

    @property
    def by_address(self):
        return self


def as_provider(target: Provider | Model, name: str = "target") -> Provider:
    """The provider that `target` is or stands for.

    Parameters
    ----------
    target : Provider or pdmp.Model
        A model stands for its exact gradient, `Full`.
    name : str, default "target"
        The argument that an error names.

    Returns
    -------
    Provider

    Raises
    ------
    TypeError
        If it is neither.

    Examples
    --------
    >>> import pdmp
    >>> type(pdmp.gradients.as_provider(pdmp.models.Gaussian([0.0], [1.0]))).__name__
    'Full'
    """
    if isinstance(target, Provider):
        return target
    if isinstance(target, Model):
        return Full(target)
    raise TypeError(f"`{name}` must be a pdmp.Model or one of pdmp.gradients, got {type(target).__name__}.")
