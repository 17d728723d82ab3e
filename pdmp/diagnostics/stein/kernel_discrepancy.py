"""The kernelised Stein discrepancy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.stein.inputs import check_draws, check_weights, overflows
from pdmp.diagnostics.stein.kernels import SteinKernel
from pdmp.diagnostics.stein.pairs import Pairs
from pdmp.native.arguments import count, one_of
from pdmp.native.threads import cpu_count


def ksd(
    x: ArrayLike,
    scores: ArrayLike,
    kernel: str | SteinKernel = "imq",
    statistic: str = "v",
    weights: ArrayLike | None = None,
    *,
    preconditioner: ArrayLike | str | None = None,
    threads: int | None = None,
) -> float:
    r"""Kernelised Stein discrepancy of draws from the target with the given scores.

    Parameters
    ----------
    x : array_like, shape (P, d)
        Draws.
    scores : array_like, shape (P, d)
        ∇log π at each of them, exact or unbiased estimates (see `scores`).
    kernel : "imq", "gaussian", or one of `imq` and `gaussian`
        By default (1 + ρ)^-½. The Gaussian's bandwidth is the median distance.
    statistic : {"v", "u"}
        "v": KSD = (Σᵢⱼ wᵢ wⱼ k_π(xᵢ, xⱼ))^½, never negative; for P independent draws from the target its square has
        the mean E[k_π(x, x)] / P. "u": KSD² without the terms i = j, unbiased, so it can be negative.
    weights : array_like, shape (P,), optional
        One for each draw, with sum 1; they may be signed. Equal by default.
    preconditioner : array_like or "covariance", optional
        Γ, by which distances are measured: a number, (d,), (d, d) or the draws' covariance; the identity by default.
    threads : int, optional
        All processors by default. The result does not depend on it.

    Returns
    -------
    float
        Infinite for draws or scores beyond 1e60, those of a chain that diverged.

    Raises
    ------
    ValueError
        For shapes that do not fit, draws or scores that are not finite, weights that do not sum to 1, a preconditioner
        that is not positive definite.

    Warns
    -----
    UserWarning
        For fewer draws than dimensions and for constant coordinates.

    See Also
    --------
    pdmp.diagnostics.fssd : Linear in the number of draws.
    pdmp.diagnostics.stein_thin : The draws that represent the others.

    Notes
    -----
    O(P² d) operations, O(P d) memory. Gorham & Mackey (2017), eq. 6 and section 4; Liu, Lee & Jordan (2016), eq. 14.

    Examples
    --------
    >>> from pdmp.diagnostics import ksd
    >>> x = [[-1.0], [0.0], [1.0]]  # draws of a standard normal law, whose score is -x
    >>> round(ksd(x, [[1.0], [0.0], [-1.0]]), 6)
    0.336365
    """
    x, scores = check_draws(x, scores)
    n = len(x)
    weights = check_weights(weights, n)
    one_of("statistic", statistic, ("v", "u"))
    if statistic == "u" and n < 2:
        raise ValueError('`statistic="u"` needs at least two draws.')
    if overflows(x, scores):
        return math.inf
    pairs = Pairs(x, scores, kernel, preconditioner)
    threads = cpu_count() if threads is None else count("threads", threads)
    off = 2.0 * float(np.dot(weights, pairs.row_sums(weights, threads)))
    if statistic == "v":
        return math.sqrt(max(off + float(np.dot(weights**2, pairs.diagonal)), 0.0))
    return off / float(weights.sum() ** 2 - np.dot(weights, weights))
