"""Stein thinning: a subset of draws with a small Stein discrepancy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.stein.inputs import FARTHEST, check_draws, overflows
from pdmp.diagnostics.stein.kernels import SteinKernel
from pdmp.diagnostics.stein.pairs import Pairs
from pdmp.native.arguments import count


def stein_thin(
    x: ArrayLike,
    scores: ArrayLike,
    size: int,
    kernel: str | SteinKernel = "imq",
    *,
    preconditioner: ArrayLike | str | None = "covariance",
) -> np.ndarray:
    """Stein thinning: a subset of draws with a small Stein discrepancy, chosen one at a time.

    Parameters
    ----------
    x, scores : array_like, shape (P, d)
        As of `ksd`.
    kernel : {"imq", "gaussian"} or SteinKernel
        As of `ksd`.
    size : int
        Number of draws to choose. A draw can be chosen more than once.
    preconditioner : array_like or "covariance", default "covariance"
        As of `ksd`; by default the draws' covariance, so that units do not matter.

    Returns
    -------
    ndarray of int, shape (size,)
        Row numbers in `x`, in the order in which they were chosen.

    Raises
    ------
    ValueError
        As `ksd`; and for a `size` that is not a whole number from 1, or draws or scores beyond 1e60.

    Notes
    -----
    Each choice minimises k_π(xᵢ, xᵢ) / 2 + Σ k_π(xᵢ, chosen): O(size P d). Riabiz et al. (2022), algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import stein_thin
    >>> x = np.array([[-1.0], [0.1], [1.0], [9.0]])  # standard normal, and one far away
    >>> stein_thin(x, -x, size=3, preconditioner=None)
    array([1, 0, 2])
    """
    x, scores = check_draws(x, scores)
    size = count("size", size)
    if overflows(x, scores):
        raise ValueError(
            f"`x` and `scores` must lie within ±{FARTHEST:g}: leave out the draws of a chain that diverged."
        )
    pairs = Pairs(x, scores, kernel, preconditioner)
    objective, chosen = 0.5 * pairs.diagonal, np.zeros(size, np.int64)
    for k in range(size):
        chosen[k] = int(np.argmin(objective))
        pairs.add_row(chosen[k], objective)
    return chosen
