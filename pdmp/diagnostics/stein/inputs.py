"""Checks of draws, scores, weights and preconditioners before a discrepancy is computed."""

from __future__ import annotations

import numpy as np

from pdmp.errors import warn
from pdmp.native.arguments import refuse_unreal

FARTHEST = 1e60  #: a discrepancy of larger draws or scores is infinite: sums of their fourth powers would overflow


def check_draws(x, scores):
    """`x` and `scores` as float arrays (P, d), or a `ValueError`; warns of too few draws and of constant ones."""
    refuse_unreal("x", x)
    refuse_unreal("scores", scores)
    x, scores = np.asarray(x, dtype=float), np.asarray(scores, dtype=float)
    if x.ndim == 1 and scores.ndim == 1:
        x, scores = x[:, None], scores[:, None]
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"`x` must have shape (draws, d), got {x.shape}.")
    if scores.shape != x.shape:
        raise ValueError(
            f"`scores` must have the shape of `x`, {x.shape}, got {scores.shape}: one score ∇log π a draw."
        )
    for what, array in (("x", x), ("scores", scores)):
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            raise ValueError(
                f"`{what}` must be finite; {len(bad)} of {len(array)} draws are not, the first is {bad[0]}."
            )
    n, d = x.shape
    if 1 < n < d:
        warn(f"{n} draws in {d} dimensions are too few for a Stein discrepancy: take more draws.")
    if n > 1:
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0.0)
        if len(constant):
            warn(f"coordinates {constant.tolist()} of `x` are constant: they never moved.")
    return x, scores


def overflows(x, scores):
    """Whether draws or scores are so large that a discrepancy of them overflows."""
    return max(np.abs(x).max(), np.abs(scores).max()) > FARTHEST


def check_weights(weights, n):
    """`weights` as an array (n,) with sum 1, or a `ValueError`; equal ones for None."""
    if weights is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,):
        raise ValueError(f"`weights` must have shape ({n},), one for each draw, got {weights.shape}.")
    total = weights.sum()
    if not abs(total - 1.0) < 1e-6:
        raise ValueError(f"`weights` must sum to 1, they sum to {total:.6g}.")
    return weights


def cholesky(preconditioner, x):
    """L of Γ = LLᵀ; None for the identity."""
    if preconditioner is None:
        return None
    d, what, least = x.shape[1], "`preconditioner` must be positive definite.", 0.0
    if isinstance(preconditioner, str):
        if preconditioner != "covariance":
            raise ValueError(f'`preconditioner` must be None, "covariance" or an array, got {preconditioner!r}.')
        preconditioner = np.cov(x.T) if len(x) > 1 else np.zeros((d, d))
        least = 1e-10  # least part of a coordinate's variance that the coordinates before it leave unexplained
        what = (
            f"the covariance of the {len(x)} draws is not positive definite: there are too few, or a coordinate does "
            "not move by itself; give another `preconditioner`, or None."
        )
    gamma = np.array(preconditioner, dtype=float)
    gamma = np.diag(np.broadcast_to(gamma, (d,))) if gamma.ndim < 2 else gamma
    if gamma.shape != (d, d):
        raise ValueError(f"`preconditioner` must be a number or of shape ({d},) or ({d}, {d}), got {gamma.shape}.")
    try:
        factor = np.linalg.cholesky(gamma)
    except np.linalg.LinAlgError:
        raise ValueError(what) from None
    if np.any(np.diag(factor) ** 2 < least * np.diag(gamma)):
        raise ValueError(what)
    return factor
