"""The sliced kernelised Stein discrepancy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.stein.adam import maximise
from pdmp.diagnostics.stein.inputs import check_draws, overflows
from pdmp.diagnostics.stein.kernels import SteinKernel, array_profile, as_kernel, median_distance
from pdmp.diagnostics.stein.pairs import TILE, row_sums_preconditioned, tiled
from pdmp.native.arguments import one_of

SLICE_DRAWS = 200  #: number of draws, about, for which the slices are optimised


def sliced_ksd(
    x: ArrayLike,
    scores: ArrayLike,
    slices: ArrayLike | None = None,
    optimise: bool = True,
    *,
    kernel: str | SteinKernel = "imq",
    statistic: str = "v",
    iterations: int = 50,
    rate: float = 0.05,
) -> float:
    r"""Sliced kernelised Stein discrepancy, for dimensions in which `ksd` hardly depends on the draws.

    For each coordinate direction r = eⱼ the score is projected on r, and the draws on a direction gᵣ of unit length::

        ξ(x, y) = sʳ s'ʳ k + (r·g) s'ʳ ∂₁k + (r·g) sʳ ∂₂k + (r·g)² ∂₁∂₂k,    k of x·g and y·g

    and the discrepancy is the sum over r of the double sums of ξ.

    Parameters
    ----------
    x, scores : array_like, shape (P, d)
        As of `ksd`.
    slices : array_like, shape (d, d), optional
        Row j is gᵣ for r = eⱼ; by default eⱼ itself.
    optimise : bool, default True
        Choose the slices that maximise the discrepancy of every second draw, by Adam, and evaluate on the other draws
        (maxSKSD-g), so that the search itself does not make the result larger.
    kernel, statistic
        As of `ksd`; the kernel of draws on a line, in units of their median distance there.
    iterations, rate : int, float, default 50 and 0.05
        Number of iterations and step of Adam.

    Returns
    -------
    float
        Infinite for draws or scores beyond 1e60.

    Raises
    ------
    ValueError
        As `ksd`; and for slices of another shape or length 0, and fewer than four draws with `optimise`.

    Notes
    -----
    Gong, Li & Hernández-Lobato (2021), eqs 9 and 13. O(P² d) operations, O(P d) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import sliced_ksd
    >>> x = np.array([[-1.0, 0.5], [0.0, -1.0], [1.0, 0.5]])
    >>> sliced_ksd(x + 2.0, -(x + 2.0), optimise=False) > sliced_ksd(x, -x, optimise=False)
    True
    """
    x, scores = check_draws(x, scores)
    n, d = x.shape
    one_of("statistic", statistic, ("v", "u"))
    g = np.eye(d) if slices is None else np.array(slices, dtype=float)
    if g.shape != (d, d) or not np.all(np.isfinite(g)) or np.any(np.linalg.norm(g, axis=1) == 0.0):
        raise ValueError(f"`slices` must be of shape ({d}, {d}) with rows that are not zero, got shape {g.shape}.")
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    if optimise and n < 4:
        raise ValueError("`optimise` needs at least four draws: it searches on a half of them.")
    if overflows(x, scores):
        return math.inf
    if optimise:
        g = _optimise_slices(x[::2], scores[::2], g, kernel, iterations, rate)
        x, scores = x[1::2], scores[1::2]
    total = sum(_slice(x @ g[j], scores[:, j], g[j, j], kernel, statistic) for j in range(d))
    return math.sqrt(max(total, 0.0)) if statistic == "v" else total


def _kernel_on_line(kernel, u):
    """The kernel for draws `u` on a line, and their median distance, its unit."""
    width = median_distance(u[:, None])
    return as_kernel(kernel, u[:, None] / width), width


def _slice(u, s, aligned, kernel, statistic):
    """The mean of ξ over pairs, for draws `u` on a line and scores `s` along r, with r·g = `aligned`."""
    n = len(u)
    kernel, width = _kernel_on_line(kernel, u)
    a = aligned / width
    y, t, weights = tiled(((u - u.mean()) / width)[None]), tiled(s[None]), tiled(np.full((1, n), 1.0 / n))[:, 0]
    out, buffer = np.zeros(weights.shape), np.empty((4, TILE))
    for q in range(len(out)):
        row_sums_preconditioned(kernel.native, y, a * t, t, a * y, weights, a * a, q, out, buffer)
    off = 2.0 * float(out.ravel()[:n].mean())
    if statistic == "u":
        return off * n / (n - 1)
    phi, first, _ = kernel.native.profile(0.0)
    return off + float(np.mean(phi * s * s - 2.0 * first * a * a)) / n


def _optimise_slices(x, scores, g, kernel, iterations, rate):
    """The slices that maximise the double sums of at most about `SLICE_DRAWS` draws."""
    every = max(len(x) // SLICE_DRAWS, 1)
    x, scores = x[::every], scores[::every]
    found = np.empty_like(g)
    for j in range(len(g)):
        on_line, width = _kernel_on_line(kernel, x @ g[j])

        def gradient(direction, j=j, on_line=on_line, width=width):
            return _slice_gradient(direction, x, scores[:, j], j, on_line, width)

        found[j] = maximise(gradient, g[j], iterations, rate)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _slice_gradient(direction, x, s, j, kernel, width):
    """Gradient in g of Σ ξ over pairs of different draws, which does not depend on the length of g."""
    length = np.linalg.norm(direction)
    unit = direction / length
    u, a = x @ unit / width, unit[j] / width
    delta, apart = u[:, None] - u, s[:, None] - s
    rho = delta * delta
    _, first, second, third = array_profile(kernel, rho)
    by_delta = 2.0 * delta * first * np.outer(s, s) - 2.0 * a * apart * (first + 2.0 * rho * second)
    by_delta -= a * a * delta * (12.0 * second + 8.0 * rho * third)
    by_a = -2.0 * first * delta * apart - 4.0 * a * first - 8.0 * a * second * rho
    np.fill_diagonal(by_a, 0.0)
    by_unit = 2.0 * by_delta.sum(axis=1) @ x / width
    by_unit[j] += by_a.sum() / width
    return (by_unit - (by_unit @ unit) * unit) / length
