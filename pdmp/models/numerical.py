"""What Python computes with a model beside its own methods: parts of the gradient, the mode, bounds of single terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.descent import find_mode
from pdmp.native.classes import entry, readable
from pdmp.native.threads import chunks, each

if TYPE_CHECKING:
    from pdmp.models.base import Model

MANY_ROWS = 100_000  #: data from which on the search for a mode begins with some of them, where the model can
SOME_ROWS = 20_000  #: and with how many at least
SHARE_OF_ROWS = 100  #: of very many rows it begins with one in so many
RUN = 64  #: these being neighbours, so many at a time: in a file they are on one page
NEWTON_ERROR = 1e-3  #: standard deviations of the posterior by which the mode may then be off
NEWTON_STEPS = 8
SADDLES = 5  #: searches that end where U is concave along a line, by more than this share of the largest curvature
CONCAVE = 1e-6


def mode_by_rows(model: Model, x: np.ndarray) -> np.ndarray | None:
    """The mode of some of many rows, and Newton steps with all of them from there; None where these do not serve.

    The Hessian of the first step serves the others too: with N rows the mode of n of them is about √(N / n)
    standard deviations off, over which the Hessian changes little. Three or four passes over the rows find the mode
    to `NEWTON_ERROR` of a standard deviation.
    """
    part = model.some_rows(_spread_rows(model.n_data))
    found = None if part is None else part.mode(x)
    if found is None:
        return None
    x, last = found, np.inf
    gradient, hessian = model.gradient_and_hessian(x)
    try:
        np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        return None
    for k in range(NEWTON_STEPS):
        gradient = gradient if k == 0 else model.gradient(x)
        step = np.linalg.solve(hessian, gradient)
        size = np.sqrt(max(float(step @ gradient), 0.0))
        if not size < 0.5 * last:  # also where it is not finite
            return None
        x = x - step
        if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:
            return x
        last = size
    return None


def searched_mode(model: Model, initial: ArrayLike | None) -> np.ndarray | None:
    """A minimum of U from `initial`, or from the model's own start, as `Model.mode` has it."""
    from scipy import optimize

    if model.searches_by_batches:
        found = find_mode(model, initial)
        return found.x if found.reached else None
    x = model.initial if initial is None else model.check(initial, "initial")
    if model.n_data >= MANY_ROWS and model.dim <= 200:
        by_rows = mode_by_rows(model, x)
        if by_rows is not None:
            return by_rows
    for k in range(SADDLES):
        with np.errstate(all="ignore" if k else None):  # from a maximum of what falls without end
            result = optimize.minimize(
                model.potential, x, jac=model.gradient, method="L-BFGS-B", options={"maxiter": 2000}
            )
        if not np.all(np.isfinite(result.x)) or not np.isfinite(result.fun):
            return None
        x = result.x
        lower = below_saddle(model, x) if model.dim <= 200 else None
        if lower is None:
            break
        x = lower
    if model.dim <= 200:  # polish: a quasi-Newton stops early where U is large
        for _ in range(20):
            gradient, hessian = model.gradient(x), model.hessian(x)
            try:
                step = np.linalg.solve(hessian, gradient)
                np.linalg.cholesky(hessian)
            except np.linalg.LinAlgError:
                break
            if not model.potential(x - step) <= model.potential(x) + 1e-9:
                break
            x = x - step
            if step @ gradient < 1e-16:
                break
        # A minimum at infinity (separable data without a prior): U is flat where the search gave up.
        largest = np.abs(model.hessian(x)).max()
        if largest < 1e-8 * np.abs(model.hessian(model.initial if initial is None else initial)).max():
            return None
    scale = np.sqrt(max(model.curvature(x), 0.0)) if model.dim <= 200 else 1.0
    return x if np.linalg.norm(model.gradient(x)) <= 1e-3 * max(scale, 1.0) * np.sqrt(model.dim) else None


def below_saddle(model: Model, x: np.ndarray) -> np.ndarray | None:
    """A point lower than a level x (d,) on the line along which U is most concave there; None where there is none.

    A search that begins where U is symmetric, as with the two parts of a mixture alike, ends between its modes.
    """
    hessian = model.hessian(x)
    if not np.all(np.isfinite(hessian)):
        return None
    values, vectors = np.linalg.eigh(hessian)
    largest = float(np.abs(values).max())
    level = np.linalg.norm(model.gradient(x)) <= 1e-3 * max(np.sqrt(largest), 1.0) * np.sqrt(model.dim)
    if not level or not values[0] < -CONCAVE * largest:
        return None
    v = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0]) / np.sqrt(-values[0])
    points = [x + side * v for side in (1.0, -1.0)]
    potentials = [model.potential(point) for point in points]
    k = int(np.argmin(potentials))  # the first of two that are equal
    return points[k] if potentials[k] < model.potential(x) else None


def row_chunks(model: Model) -> list[tuple[int, int]]:
    """First and stop of the terms of each chunk in which passes over all terms are made."""
    return chunks(model.n_data, model.row_width())


def prior_gradient(model: Model, x: np.ndarray) -> np.ndarray:
    """The gradient of the prior, shape (dim,)."""
    out = np.zeros(model.dim)
    with readable(type(model).__name__):
        _add_prior_gradient(model.native, x, out)
    return out


def data_gradient(model: Model, x: ArrayLike) -> np.ndarray:
    """Σᵢ ∇Uᵢ(x), shape (dim,): without the prior."""
    x, native, out = model.check(x), model.native, np.zeros(model.dim)

    def part(first, stop):
        total = np.zeros(model.dim)
        _add_data_gradient(native, x, first, stop, total)
        return total

    with readable(type(model).__name__):
        for total in each(part, row_chunks(model)):
            out += total
    return out


def quick_mode(model: Model) -> np.ndarray | None:
    """The mode where `mode` searches with all the data, else None: where a run starts by itself."""
    return None if model.searches_by_batches else model.mode()


def term_partial_bounds(model: Model, first: int, last: int) -> np.ndarray | None:
    """Bounds on |∂ⱼUᵢ(x)| over all x of the terms first <= i < last, (last - first, dim); None when none are known."""
    return _of_terms(model, first, last, _term_gradient_bounds) if model.has("term_gradient_bounds") else None


def term_partial_lipschitz(model: Model, first: int, last: int, scale: ArrayLike | None = None) -> np.ndarray | None:
    """Lᵢⱼ with |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale|₂ for all x and y, of the terms first <= i < last.

    (last - first, dim), with a scale (dim,) of ones when omitted; None when none are known.
    """
    if not model.has("term_lipschitz"):
        return None
    scale = np.ones(model.dim) if scale is None else model.check(scale, "scale")
    return _of_terms(model, first, last, _term_lipschitz, scale)


def _of_terms(model, first, last, write, *args):
    """What is written of each term first <= i < last, (last - first, dim)."""
    if not 0 <= first <= last <= model.n_data:
        raise ValueError(f"`first` and `last` must lie in 0 … {model.n_data} in this order, got {first}, {last}.")
    out = np.zeros((int(last) - int(first), model.dim))
    with readable(type(model).__name__):
        write(model.native, int(first), *args, out)
    return out


def _spread_rows(n):
    """Some of n rows from all over the data: so many that Newton's method needs two steps or three from their mode."""
    some = n // SHARE_OF_ROWS
    if some <= SOME_ROWS:
        return np.linspace(0, n - 1, SOME_ROWS).astype(np.int64)
    runs = np.linspace(0, n - RUN, some // RUN).astype(np.int64)
    return (runs[:, None] + np.arange(RUN)).ravel()


@entry
def _add_prior_gradient(model, x, out):
    model.add_prior_gradient(x, out)


@entry
def _add_data_gradient(model, x, first, stop, out):
    model.add_block_gradient(x, first, stop, out)


@entry
def _term_gradient_bounds(model, first, out):
    for k in range(out.shape[0]):
        model.term_gradient_bounds(first + k, out[k])


@entry
def _term_lipschitz(model, first, scale, out):
    for k in range(out.shape[0]):
        model.term_lipschitz(first + k, scale, out[k])
