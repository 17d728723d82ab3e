"""Scores ∇log π of a target at draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import Provider, as_provider
from pdmp.models.base import Model
from pdmp.native.classes import by_name, entry
from pdmp.process import KINDS


@entry
def _scores(provider, x, memory, rng, out, counts):
    for i in range(x.shape[0]):
        provider.gradient(x[i], memory, rng, out[i], counts)
        for j in range(out.shape[1]):
            out[i, j] = -out[i, j]


def scores(target: Model | Provider, x: ArrayLike, seed: int = 0) -> np.ndarray:
    """Scores ∇log π = -∇U at draws.

    Parameters
    ----------
    target : Model, or any of `pdmp.gradients`
        A model gives the exact scores, mini-batches unbiased estimates of them.
    x : array_like, shape (P, d)
        Draws.
    seed : int, default 0
        Seed of the mini-batches.

    Returns
    -------
    ndarray, shape (P, d)

    Raises
    ------
    TypeError
        If `target` is neither a model nor a gradient provider.
    ValueError
        If `x` has another shape.
    Exception
        What a Python function of the model raises.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.diagnostics.scores(pdmp.models.Gaussian([0.0], [4.0]), [[0.5], [-1.0]])
    array([[-2.],
           [ 4.]])
    """
    provider = as_provider(target)
    x = np.ascontiguousarray(x, dtype=float)
    if x.ndim != 2 or x.shape[1] != provider.dim:
        raise ValueError(f"`x` must have shape (draws, {provider.dim}), got {x.shape}.")
    rng = np.random.Generator(np.random.PCG64(seed))
    out, model = np.zeros(x.shape), provider.model
    if model.failure is not None:  # of before
        model.failure = None
    _scores(provider.native, x, by_name(provider.memory(rng)), rng, out, np.zeros(KINDS, np.int64))
    if (error := model.failure) is not None:
        model.failure = None
        raise error
    return out
