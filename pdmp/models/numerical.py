"""What Python computes with a model: values, derivatives, the mode, bounds of single terms, checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.called import GRADIENT, POTENTIAL, add_gradient, total_potential
from pdmp.models.descent import find_mode
from pdmp.models.verification import check_bounds, check_gradient
from pdmp.native.addresses import record_of
from pdmp.native.arguments import count, refuse_unreal
from pdmp.native.classes import entry, readable
from pdmp.native.explanations import explained_methods
from pdmp.native.threads import chunks, each

if TYPE_CHECKING:
    from pdmp.models.base import Model

MANY_ROWS = 100_000  #: data from which on the search for a mode begins with some of them, where the model can
SOME_ROWS = 20_000  #: and with how many at least
SHARE_OF_ROWS = 100  #: of very many rows it begins with one in so many
RUN = 64  #: these being neighbours, so many at a time: in a file they are on one page
NEWTON_ERROR = 1e-3  #: standard deviations of the posterior by which the mode may then be off
NEWTON_STEPS = 8
#: What methods of the past are called.
MOVED = {
    name.rpartition(".")[2]: f"pdmp.models.{name}(model, ...)"
    for name in "find_mode numerical.data_gradient numerical.term_partial_bounds numerical.term_partial_lipschitz "
    "capabilities.require".split()
}


@explained_methods
class Numerical:
    """Methods of a model that Python calls. They run its compiled methods."""

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
            return self._prior_gradient(x) + data_gradient(self, x)
        add_gradient(record_of(self, GRADIENT), x, out)
        return out

    def _prior_gradient(self, x):
        out = np.zeros(self.dim)
        with readable(type(self).__name__):
            _add_prior_gradient(self.native, x, out)
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

        The gradients of the prior and of single terms are compared, in plain Python, with central differences of
        their potentials at random points; what is already in `out` must stay there; and what the class computes in
        a faster way of its own (``add_batch_gradient``, ``total_potential``, …) must be what its terms add up to. The
        step is ε^(1/3), or ε^(1/5) where rounding would spoil that, ε the rounding error of one number, and the
        tolerance 10⁻⁴ of what is compared, besides what rounding and the next term of the expansion may spoil. At a
        kink a derivative between the slopes to the left and to the right is right. All data are compared as well,
        compiled, at two points: in blocks of 32 along one direction, some of these where there are above 5,000,000 / d
        data; and their sum in every coordinate, of above 80,000 data several at a time, and of above 500,000 all
        together. Where rounding hides a slope of U, a warning says so. The first run of a model of your own calls this
        with a few points and data, and each run compares slopes where it went, see `pdmp.engine.visited`.

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
        step = 1e-5 * np.maximum(1.0, np.abs(x))
        columns = []
        for j in range(self.dim):
            e = np.zeros(self.dim)
            e[j] = step[j]
            columns.append((self.gradient(x + e) - self.gradient(x - e)) / (2.0 * step[j]))
        hessian = np.array(columns)
        return 0.5 * (hessian + hessian.T)

    def _mode_by_rows(self, x: np.ndarray) -> np.ndarray | None:
        """The mode of some of many rows, and Newton steps with all of them from there; None where these do not serve.

        The Hessian of the first step serves the others too: with N rows the mode of n of them is about √(N / n)
        standard deviations off, over which the Hessian changes little. Three or four passes over the rows find the mode
        to `NEWTON_ERROR` of a standard deviation.
        """
        part = self.some_rows(_spread_rows(self.n_data))
        found = None if part is None else part.mode(x)
        if found is None:
            return None
        x, last = found, np.inf
        gradient, hessian = self.gradient_and_hessian(x)
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            return None
        for k in range(NEWTON_STEPS):
            gradient = gradient if k == 0 else self.gradient(x)
            step = np.linalg.solve(hessian, gradient)
            size = np.sqrt(max(float(step @ gradient), 0.0))
            if not size < 0.5 * last:  # also where it is not finite
                return None
            x = x - step
            if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:
                return x
            last = size
        return None

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """Minimum of U, shape (dim,), one of them if there are several; None when none was found.

        From 100,000 data on some models find it to a thousandth of a standard deviation of the posterior.
        """
        from scipy import optimize

        if self.searches_by_batches:
            found = find_mode(self, initial)
            return found.x if found.reached else None
        x = self.initial if initial is None else self.check(initial, "initial")
        if self.n_data >= MANY_ROWS and self.dim <= 200:
            by_rows = self._mode_by_rows(x)
            if by_rows is not None:
                return by_rows
        result = optimize.minimize(self.potential, x, jac=self.gradient, method="L-BFGS-B", options={"maxiter": 2000})
        if not np.all(np.isfinite(result.x)) or not np.isfinite(result.fun):
            return None
        x = result.x
        if self.dim <= 200:  # polish: a quasi-Newton stops early where U is large
            for _ in range(20):
                gradient, hessian = self.gradient(x), self.hessian(x)
                try:
                    step = np.linalg.solve(hessian, gradient)
                    np.linalg.cholesky(hessian)
                except np.linalg.LinAlgError:
                    break
                if not self.potential(x - step) <= self.potential(x) + 1e-9:
                    break
                x = x - step
                if step @ gradient < 1e-16:
                    break
            # A minimum at infinity (separable data without a prior): U is flat where the search gave up.
            largest = np.abs(self.hessian(x)).max()
            if largest < 1e-8 * np.abs(self.hessian(self.initial if initial is None else initial)).max():
                return None
        scale = np.sqrt(max(self.curvature(x), 0.0)) if self.dim <= 200 else 1.0
        return x if np.linalg.norm(self.gradient(x)) <= 1e-3 * max(scale, 1.0) * np.sqrt(self.dim) else None


def row_chunks(model: Model) -> list[tuple[int, int]]:
    """First and stop of the terms of each chunk in which passes over all terms are made."""
    return chunks(model.n_data, model.row_width())


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
    """Bounds on the partial derivatives of single terms.

    Parameters
    ----------
    first, last : int
        The terms first <= i < last.

    Returns
    -------
    ndarray of shape (last - first, dim) or None
        A bound on |∂ⱼUᵢ(x)| over all x; None when the model knows none.
    """
    if not model.has("term_gradient_bounds"):
        return None
    first, last = _check_range(model, first, last)
    out = np.zeros((last - first, model.dim))
    with readable(type(model).__name__):
        _term_gradient_bounds(model.native, first, out)
    return out


def term_partial_lipschitz(model: Model, first: int, last: int, scale: ArrayLike | None = None) -> np.ndarray | None:
    """Lipschitz constants of the partial derivatives of single terms.

    Parameters
    ----------
    first, last : int
        The terms first <= i < last.
    scale : array_like of shape (dim,), optional
        Units in which distances are measured, coordinate by coordinate; ones when omitted.

    Returns
    -------
    ndarray of shape (last - first, dim) or None
        Lᵢⱼ with |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale|₂ for all x and y; None when the model knows none.
    """
    if not model.has("term_lipschitz"):
        return None
    first, last = _check_range(model, first, last)
    scale = np.ones(model.dim) if scale is None else model.check(scale, "scale")
    out = np.zeros((last - first, model.dim))
    with readable(type(model).__name__):
        _term_lipschitz(model.native, first, scale, out)
    return out


def _check_range(model, first, last):
    if not 0 <= first <= last <= model.n_data:
        raise ValueError(f"`first` and `last` must lie in 0 … {model.n_data} in this order, got {first}, {last}.")
    return int(first), int(last)


def _spread_rows(n):
    """Some of n rows from all over the data: so many that Newton's method needs two steps or three from their mode."""
    some = n // SHARE_OF_ROWS
    if some <= SOME_ROWS:
        return np.linspace(0, n - 1, SOME_ROWS).astype(np.int64)
    runs = np.linspace(0, n - RUN, some // RUN).astype(np.int64)
    return (runs[:, None] + np.arange(RUN)).ravel()


@entry
def _prior_potential(model, x):
    return model.prior_potential(x)


@entry
def _block_potential(model, x, first, stop):
    return model.block_potential(x, first, stop)


@entry
def _add_prior_gradient(model, x, out):
    model.add_prior_gradient(x, out)


@entry
def _add_data_gradient(model, x, first, stop, out):
    model.add_block_gradient(x, first, stop, out)


@entry
def _add_term_gradients(model, x, rows, out):
    for k in range(rows.shape[0]):
        model.add_term_gradient(x, rows[k], out[k])


@entry
def _term_gradient_bounds(model, first, out):
    for k in range(out.shape[0]):
        model.term_gradient_bounds(first + k, out[k])


@entry
def _term_lipschitz(model, first, scale, out):
    for k in range(out.shape[0]):
        model.term_lipschitz(first + k, scale, out[k])
