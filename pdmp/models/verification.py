"""Whether a model is what it says: its gradient that of its potential, its bounds bounds.

`check_gradient` compares gradients with difference quotients of potentials, part by part, in plain Python, and what a
model computes in a faster way with the plain way. `check_bounds` looks for a point where a capability is wrong: at
random, and from the worst that was found by a random search that goes uphill.

Both are functions of the model and the seed alone.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pdmp.errors import warn
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.transforms import coordinate_names
from pdmp.native.classes import entry, readable

#: A difference is an error where it exceeds this share of what is compared: errors of sign, of a factor, or of a column
#: are far above it, what is lost by differences that are not infinitely small is far below.
TOLERANCE = 1e-4
BOUND_TOLERANCE = 1e-6  #: likewise for bounds, many of which are attained exactly
#: Directions along which a gradient is compared at a point: of more coordinates than that, several to a direction.
DIRECTIONS = 12
#: The same of a function, which may be slow, and of the sum over all data where they are many: then `PASSES` data in
#: all, or, of more data than a tenth of that, two gradients and eight potentials.
FEW_DIRECTIONS, PASSES = 6, 10_000_000
#: Data whose sums are compared one by one: one datum that is off by a hundredth of its slope shows among so many. And
#: how many numbers all data may have before only some blocks are compared.
BLOCK, BLOCK_NUMBERS = 32, 5_000_000
LONGEST = 0.01  #: step of a coordinate whose slope is small beside others, in its scale, at most
#: A comparison is blind where rounding hides errors of this share of a slope, if it hides changes of U of this size.
BLIND, BLIND_CHANGE = 0.05, 0.01
HIDDEN, SEEN = 1, 2  #: slopes that were compared; 0: U was not finite beside the point
MOST_DATA = 1_000  #: data up to which faster ways to a sum over all data are compared with the plain sum
MOST_COMPARED = 500  #: of the coordinates, or factors, of which a model computes one at a time


def shown(vector):
    """A vector in an error text."""
    numbers = ", ".join(f"{value:.4g}" for value in vector[:6])
    return f"[{numbers}, …]" if len(vector) > 6 else f"[{numbers}]"


@contextlib.contextmanager
def _as_compiled():
    """Plain Python raises where compiled code gives infinity or NaN: then this is skipped."""
    with np.errstate(all="ignore"), contextlib.suppress(ArithmeticError, ValueError):
        yield


def _value(function, *arguments):
    """A number from a compiled method called in plain Python, NaN where Python raises an `ArithmeticError`."""
    with np.errstate(all="ignore"):
        try:
            return float(function(*arguments))
        except (ArithmeticError, ValueError):
            return np.nan


def _vector(function, dim, *arguments, start=None):
    """What a method adds to `out`, here to zeros or to `start`."""
    out = np.zeros(dim) if start is None else start.copy()
    with np.errstate(all="ignore"):
        try:
            function(*arguments, out)
        except (ArithmeticError, ValueError):
            return np.full(dim, np.nan)
    return out


def _points(model, rng, n, potential):
    """`n` random points around `model.initial` where U is finite: fewer where there are not so many."""
    centre, found = np.asarray(model.initial, float), []
    scale = np.maximum(1.0, np.abs(centre))
    for k in range(n):
        step = (1.0, 0.3, 3.0)[k % 3] * scale * rng.standard_normal(model.dim)
        for _ in range(20):
            if np.isfinite(potential(centre + step)):
                found.append(centre + step)
                break
            step *= 0.5
    return found


# -- gradients --------------------------------------------------------------------------------------------------------


def check_gradient(model: Any, points: int, data: int, seed: int, seconds: float = np.inf) -> bool:
    """See `pdmp.Model.check_gradient`; after `seconds` no comparison begins but the first of each part.

    Returns whether U was finite at any point, so that something was compared.
    """
    end = time.perf_counter() + seconds
    rng, native, name, dim = np.random.default_rng(seed), model.native, type(model).__name__, model.dim
    by_parts = model.divisible
    with readable(name):
        parts = []
        if by_parts and model.has("add_prior_gradient"):
            written = (model._methods[m].__name__ for m in ("prior_potential", "add_prior_gradient"))
            parts.append((*written, native.prior_potential, native.add_prior_gradient, (), ""))
        if by_parts and model.n_data:
            rows = {0, model.n_data - 1, *rng.integers(0, model.n_data, max(data - 2, 0)).tolist()}
            for i in sorted(rows):
                methods = native.term_potential, native.add_term_gradient
                parts.append(("term_potential", "add_term_gradient", *methods, (i,), f" of datum {i}"))
        if not by_parts:
            parts.append(("potential", "gradient", model.potential, _adding(model.gradient), (), ""))

        def potential(x):
            return sum(_value(part[2], x, *part[4]) for part in parts)

        found = _points(model, rng, points, potential)
        for k, x in enumerate(found):
            for part in parts:
                if k == 0 or time.perf_counter() < end:
                    _compare(name, dim, rng, model.resolution, end, x, *part)
            if by_parts and time.perf_counter() < end:
                _compare_ways(model, rng, x)
    seen = np.zeros(dim, np.int8)
    if found and by_parts:
        for x in found[:2]:
            _compare_sum(model, rng, x, seen)
        warn_of_blindness(model, seen)
        if model.n_data:
            _compare_rows(model, rng, found[0])
    return bool(found)


def _adding(gradient):
    def add(x, out):
        out += gradient(x)

    return add


def _compare(name, dim, rng, resolution, end, x, of_value, of_gradient, value, add, row, where):
    """Compare one part's gradient with difference quotients of its potential, at x."""
    gradient, here = _vector(add, dim, x, *row), _value(value, x, *row)
    if not (np.all(np.isfinite(gradient)) and np.isfinite(here)):
        return
    start = 1.0 + rng.random(dim)
    added = _vector(add, dim, x, *row, start=start) - start
    wrong = np.abs(added - gradient) > 1e-9 * (1.0 + np.abs(gradient))
    if np.any(wrong):
        j = int(np.argmax(wrong))
        raise ValueError(
            f"`{of_gradient}` of {name} overwrites `out` in coordinate {j}{where}: it must add to what `out` holds, "
            f"`out[{j}] += …`."
        )
    groups, lengths = directions(gradient, x, DIRECTIONS, resolution)
    v, of = rng.choice([-1.0, 1.0], dim) * lengths, functools.partial(_value, value)
    differs = functools.partial(slopes_differ, lambda y: of(y, *row), x, here, gradient, v, resolution)
    for k, group in enumerate(groups):
        if k and time.perf_counter() > end:
            return
        found = first_wrong(differs, group)
        if found is not None:
            j, slope, quotient = found
            raise ValueError(
                f"`{of_gradient}` of {name} is not the gradient of `{of_value}`: coordinate {j}{where}, at x = "
                f"{shown(x)}, is {slope:.6g}, a difference quotient of `{of_value}` {quotient:.6g}."
            )


def _compare_sum(model, rng, x, seen):
    """Compare ∇U with difference quotients of U over all data, compiled, at x or nearer to `initial` where U is finite.

    `_compare` looks at a few terms, for a short time: here every one counts, and every coordinate.
    """
    for _ in range(20):
        here = _value(model.potential, x)
        if np.isfinite(here):
            break
        x = 0.5 * (x + model.initial)
    if model.n_data:
        _compare_blocks(model, rng, x)
    most = max(1, min(DIRECTIONS, PASSES // (10 * max(model.n_data, 1))))
    found = wrong_slope(model, x, rng, most, here, seen=seen)
    if found is not None:
        j, slope, quotient = found
        raise ValueError(
            f"the gradient of {type(model).__name__}{', over all data,' if model.n_data else ''} is not that of its "
            f"potential: coordinate {j}, at x = {shown(x)}, is {slope:.6g}, a difference quotient of the potential "
            f"{quotient:.6g}."
        )


def _compare_blocks(model, rng, x):
    """Compare Σ∇Uᵢ of each block of neighbouring data with differences of ΣUᵢ, along one direction; and name the datum.

    In a sum over all data an error of a few drowns.
    """
    name, dim, n = type(model).__name__, model.dim, model.n_data
    h, v = model.resolution ** (1.0 / 3.0), np.maximum(1.0, np.abs(x)) * rng.choice([-1.0, 1.0], dim)
    points = x + h * np.multiply.outer([-2.0, -1.0, 0.0, 1.0, 2.0], v)

    def excess(starts, size):
        found = np.full((len(starts), 6), np.nan)
        with _as_compiled(), readable(name):
            _block_slopes(model.native, points, v, starts, size, np.empty(dim), found)
        quotient, slack, _ = _quotient(found[:, :5].T, found[:, 5], h, model.resolution)
        return np.nan_to_num(np.abs(quotient - found[:, 5]) - slack, nan=-1.0, posinf=-1.0)

    starts = np.arange(0, n, BLOCK * (1 + n * dim // BLOCK_NUMBERS))
    beyond = excess(starts, BLOCK)
    if not beyond.max() > 0.0:
        return
    first = int(starts[np.argmax(beyond)])
    i = first + int(np.argmax(excess(np.arange(first, min(first + BLOCK, n)), 1)))
    methods = ("term_potential", "add_term_gradient")
    with readable(name):
        functions = (getattr(model.native, method) for method in methods)
        _compare(name, dim, rng, model.resolution, np.inf, x, *methods, *functions, (i,), f" of datum {i}")


@entry
def _block_slopes(model, points, v, starts, size, gradient, out):
    """Of each block of data: ΣUᵢ at five points, and v·Σ∇Uᵢ at the third."""
    for k in range(starts.shape[0]):
        first, last = starts[k], min(starts[k] + size, model.n_data)
        for p in range(5):
            out[k, p] = model.block_potential(points[p], first, last)
        gradient[:] = 0.0
        model.add_block_gradient(points[2], first, last, gradient)
        out[k, 5] = 0.0
        for j in range(model.dim):
            out[k, 5] += v[j] * gradient[j]


def wrong_slope(model, x, rng, most, here=None, scale=None, seen=None):
    """What `first_wrong` finds of a model at x, of all data and all coordinates, in at most so many directions."""
    potential = functools.partial(_value, model.potential)
    here = potential(x) if here is None else here
    gradient = _vector(_adding(model.gradient), model.dim, x)
    resolution = model.resolution * math.sqrt(max(model.n_data, 1))
    groups, lengths = directions(gradient, x, most, resolution, scale)
    v = rng.choice([-1.0, 1.0], model.dim) * lengths
    return first_of(functools.partial(slopes_differ, potential, x, here, gradient, v, resolution, seen=seen), groups)


def evaluated(model, x):
    """(U, ∇U) of a model, NaN where its methods raise."""
    return _value(model.potential, x), _vector(_adding(model.gradient), model.dim, x)


def first_of(differs, groups):
    """`first_wrong` of the first group that has one."""
    return next((found for found in (first_wrong(differs, group) for group in groups) if found is not None), None)


def warn_of_blindness(model, seen):
    """Warn if in some coordinates (d,) every comparison was blind; `seen` is what `slopes_differ` writes."""
    blind = seen == HIDDEN
    if blind.any():
        names = coordinate_names(model.variables, model.transforms)
        some = ", ".join(names[j] for j in np.flatnonzero(blind)[:3]) + (", …" if blind.sum() > 3 else "")
        warn(
            f"the gradient of {type(model).__name__} could not be compared with its potential in {some}: U is so large "
            "that rounding hides its slope. Leave constants out of U, or compute it in double precision."
        )


def directions(gradient, x, most, resolution, scale=None):
    """All coordinates in at most so many groups, arrays of int, and lengths (d,) that make their slopes alike.

    So none drowns in another. A step is at most `LONGEST` of a coordinate's scale, which is its size unless given.
    """
    scale = np.maximum(1.0, np.abs(x)) if scale is None else scale
    slopes = np.abs(gradient) * scale
    with np.errstate(all="ignore"):
        times = np.nan_to_num(slopes.max(initial=0.0) / slopes, nan=1.0, posinf=math.inf)
    times = np.clip(times, 1.0, max(1.0, LONGEST / resolution ** (1.0 / 3.0)))
    order = np.arange(len(x)) if len(x) <= most else np.argsort(slopes * times, kind="stable")
    return np.array_split(order, min(len(x), most)), scale * times


def first_wrong(differs, group):
    """(j, ∂ⱼU as given, a difference quotient) of the first coordinate of a group that is wrong by itself; or None.

    A group is halved while `differs` says that the slopes along it do.
    """
    found = differs(group)
    if found is None or len(group) == 1:
        return None if found is None else (int(group[0]), *found)
    half = len(group) // 2
    return first_wrong(differs, group[:half]) or first_wrong(differs, group[half:])


def slopes_differ(value, x, here, gradient, v, resolution, group, seen=None):
    """(v·∇U, a difference quotient of U along v) if they differ, of v (d,) the coordinates of a group; else None.

    At x, where U is `here`. Of one coordinate they are those of its partial derivative. With signs at random no two
    wrong partial derivatives cancel at every point. Where rounding hides much at small steps a longer one is tried, and
    `seen` (d,), at first 0, becomes `HIDDEN` where it hides the slope and `SEEN` where it does not.
    """
    whole, v = v, np.zeros(len(v))
    v[group] = whole[group]
    size, slope, best = v[group[0]] if len(group) == 1 else 1.0, float(v @ gradient), (math.nan, math.inf)
    for h in (resolution ** (1.0 / 3.0), resolution ** (1.0 / 5.0)):  # rounding is of the size of the cubic term of U
        ends = np.array([here if k == 0 else value(x + k * h * v) for k in (-2, -1, 0, 1, 2)])
        quotient, slack, rounding = _quotient(ends, slope, h, resolution)
        if not math.isfinite(quotient):
            break
        best = best if slack > best[1] else (quotient, slack)
        largest = max(abs(quotient), abs(slope))
        if seen is not None:
            hides = rounding > max(BLIND * abs(slope), BLIND_CHANGE)
            seen[group] = np.maximum(seen[group], HIDDEN if hides else SEEN)
        if rounding <= TOLERANCE * largest:
            break
    return None if math.isnan(best[0]) or abs(best[0] - slope) <= best[1] else (slope / size, best[0] / size)


def _quotient(ends, slope, h, resolution):
    """A difference quotient of five values of U at steps of h, how far the slope may be from it, and that by rounding.

    The quotient is Richardson's, whose error is of the order h⁴. At a kink a derivative lies between the slopes to both
    sides, whose difference does not grow with the step as that of a smooth U does.
    """
    with np.errstate(all="ignore"):
        near, far = (ends[3] - ends[1]) / (2.0 * h), (ends[4] - ends[0]) / (4.0 * h)
        kink = np.abs((ends[4] - 2.0 * ends[2] + ends[0]) / (2.0 * h) - 2.0 * (ends[3] - 2.0 * ends[2] + ends[1]) / h)
        rounding = 64.0 * resolution * np.abs(ends).max(axis=0) / h
        slack = np.abs(near - far) + kink + rounding + TOLERANCE * np.maximum(np.abs(near), np.abs(slope)) + 1e-12
        return near + (near - far) / 3.0, slack, rounding


def _compare_ways(model, rng, x):
    """Compare what the model computes in a way of its own with what the base makes of its terms and its prior."""
    dim, n, zeros = model.dim, model.n_data, np.zeros
    calls = {}
    if n <= MOST_DATA:
        calls["total_potential"] = (x,)
        calls["add_gradient"] = (x, zeros(dim))
        calls["potential_and_gradient"] = (x, zeros(dim))
    if n:
        first = int(rng.integers(n))
        calls["add_block_gradient"] = (x, first, min(first + 70, n), zeros(dim))
        rows = rng.integers(0, n, 8)  # of which a batch is the first five
        calls |= _calls_of_rows(model, rng, x, rows, 5) | _calls_of_row(model, rng, x, int(rows[0]))
    for method, arguments in calls.items():
        _compare_way(model, x, method, arguments)


def _compare_rows(model, rng, x):
    """The same of the ways that take rows, with `MOST_DATA` of the rows or all, and of the gradient with every row.

    What a few rows show may hold of most alone: of those that are seen, or of small counts.
    """
    n, dim = model.n_data, model.dim
    rows = rng.permutation(n)[:MOST_DATA]
    for first in range(0, len(rows), BLOCK):
        some = rows[first : first + BLOCK]
        for method, arguments in _calls_of_rows(model, rng, x, some, len(some)).items():
            _compare_way(model, x, method, arguments)
    for i in rows if model.has("term_partial") or model.has("term_partial_difference") else ():
        for method, arguments in _calls_of_row(model, rng, x, int(i)).items():
            _compare_way(model, x, method, arguments)
    if n > MOST_DATA and model.has("add_batch_gradient"):
        plain = model.native.add_block_gradient

        def blockwise(x, rows, size, out):
            plain(x, rows[0], rows[0] + size, out)

        for first in range(0, n, MOST_DATA * (1 + n * dim // BLOCK_NUMBERS)):
            last = min(first + MOST_DATA, n)
            arguments = (x, np.arange(first, last), last - first, np.zeros(dim))
            _compare_way(model, x, "add_batch_gradient", arguments, blockwise, sums=last - first)


def _calls_of_rows(model, rng, x, rows, size):
    """Arguments of the methods that take rows, of which a batch is the first `size`."""
    dim, zeros = model.dim, np.zeros
    y, v = x + 0.1 * rng.standard_normal(dim), rng.standard_normal(dim)
    return {
        "add_batch_gradient": (x, rows, size, zeros(dim)),
        "batch_difference": (x, y, rows, size, zeros(dim), zeros(dim)),
        "weighted_difference": (x, y, rows, rng.random(len(rows)), size, zeros(dim), zeros(dim)),
        "add_batch_projection": (x, v, rows, size, zeros(dim), zeros(dim)),
        "add_batch_squares": (x, rows, size, zeros(dim), zeros(dim), zeros(dim)),
    }


def _calls_of_row(model, rng, x, i):
    """Those of the methods that take one, for a coordinate at random."""
    y, j, scratch = x + 0.1 * rng.standard_normal(model.dim), int(rng.integers(model.dim)), np.zeros(model.dim)
    return {"term_partial": (x, i, j, scratch), "term_partial_difference": (x, y, i, j, scratch)}


def _compare_way(model, x, method, arguments, plain=None, sums=1):
    """One of these, if it is the model's own, with `plain`, or the method of `Model`.

    A sum of many rows, `sums`, may differ by more, as one in single precision loses about as many of its digits.
    """
    if not model.has(method):
        return
    if plain is None:
        # That of the class furthest up that has it: it imports this module.
        base = next(c for c in reversed(type(model).__mro__) if "add_batch_gradient" in getattr(c, "_methods", ()))
        plain = functools.partial(base._methods[method], model.native)
    results = []
    for function in (getattr(model.native, method), plain):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        with _as_compiled():
            returned = function(*copies)
            answer = [np.ravel(returned)] if returned is not None else []
            # The arrays that a method may write come last; scratch memory holds what it likes.
            written = copies[-2:] if method == "add_batch_squares" else copies[-1:]
            results.append(np.concatenate(answer + ([] if method.startswith("term_partial") else written)))
    if len(results) < 2 or method == "total_potential" and not np.all(np.isfinite(results[1])):
        return
    own, plain = (np.atleast_1d(np.asarray(r, float)) for r in results)
    if method == "total_potential":
        own, plain = own[:1], plain[:1]
    scale = np.abs(plain).max(initial=0.0) + 1e-8
    wrong = np.abs(own - plain) > 1e-6 * max(1.0, sums / 100.0) * scale
    if np.all(np.isfinite(plain)) and np.any(wrong | ~np.isfinite(own)):
        k = int(np.argmax(wrong | ~np.isfinite(own)))
        raise ValueError(
            f"`{method}` of {type(model).__name__} differs from what its terms and its prior add up to: entry {k}, "
            f"at x = {shown(x)}, is {own[k]:.9g}, not {plain[k]:.9g}."
        )


# -- bounds -----------------------------------------------------------------------------------------------------------


class Case:
    """One try: positions and velocities that the search may move, and choices that it may not."""

    def __init__(self, model, rng, x):
        self.x, self.v, self.y = x, rng.standard_normal(model.dim), x + rng.standard_normal(model.dim)
        if rng.random() < 0.5:  # of signs, as Zig-Zag's
            self.v = np.sign(self.v)
        self.s, self.part = float(rng.exponential()), float(rng.random())
        self.i = int(rng.integers(model.n_data)) if model.n_data else 0
        self.j = int(rng.integers(model.dim))
        self.sign = float(rng.choice([-1.0, 1.0]))
        self.age = rng.random(model.dim)
        self.scale = np.exp(rng.standard_normal(model.dim))
        self.f = float(rng.random())

    def moved(self, rng, size):
        """A copy a step away."""
        other = copy.copy(self)
        for name in "xvy":
            value = getattr(self, name)
            setattr(other, name, value + size * np.maximum(0.1, np.abs(value)) * rng.standard_normal(len(value)))
        return other


def check_equations(model: Any, most_data: int) -> None:
    """Raise a `ValueError` for a capability that is not what it must equal; factors up to so many data.

    Bounds that are too low are seen while a run goes on; a wrong product with a Hessian is another law. Factors with a
    gradient of their own are left to the process that uses them, which names the coordinate.
    """
    names = [name for name, (_, relation) in CHECKS.items() if relation == "="]
    if model.n_data > most_data or model.has("add_factor_gradient"):
        names.remove("factors")
    if any(map(model.has, names)):
        check_bounds(model, points=3, steps=0, names=names)


def check_bounds(
    model: Any, points: int = 30, steps: int = 60, seed: int = 0, names: Sequence[str] | None = None
) -> None:
    """See `pdmp.Model.check_bounds`; `names` are the capabilities that are tried, all when omitted."""
    rng, name = np.random.default_rng(seed), type(model).__name__

    def potential(x):
        with _as_compiled():
            return model.potential(x)
        return np.nan

    with readable(name):
        starts = _points(model, rng, points, potential)
        if not starts:
            raise ValueError(f"the potential of {name} is not finite at any point near `initial`: nothing to try.")
        for capability, (check, relation) in CHECKS.items():
            if not model.has(capability) or (names is not None and capability not in names):
                continue
            worst, most = None, -np.inf
            for x in starts:
                case = Case(model, rng, x.copy())
                found = _excess(model, check, relation, case)
                if found is not None and found[0] > most:
                    worst, (most, *told) = case, found
            if worst is None:
                continue
            size = 0.5
            for _ in range(steps):
                if most > 0.0:
                    break
                case = worst.moved(rng, size)
                found = _excess(model, check, relation, case)
                if found is not None and found[0] > most:
                    worst, (most, *told) = case, found
                    size *= 1.5
                else:
                    size *= 0.9
            if most > 0.0:
                claimed, actual, of = told
                raise ValueError(
                    f"`{capability}` of {name} does not hold ({CAPABILITIES[capability].meaning}): at x = "
                    f"{shown(worst.x)}, v = {shown(worst.v)} it says {claimed:.8g}, and {actual:.8g} was found{of}."
                )


def _excess(model, check, relation, case):
    """How far, relatively, what was found is beyond what is claimed; with the two numbers, and of which part they are.

    None where there is nothing to compare.
    """
    answer = None
    with _as_compiled():
        answer = check(model, case)
    if answer is None:
        return None
    claimed, actual, slack = (np.atleast_1d(np.asarray(a, float)) for a in answer[:3])
    claimed, actual, slack = map(np.ravel, np.broadcast_arrays(claimed, actual, slack))
    usable = np.isfinite(actual) & np.isfinite(slack) & (claimed != np.inf)
    if not np.any(usable):
        return None
    beyond = np.abs(actual - claimed) if relation == "=" else actual - claimed
    sizes = np.maximum(np.abs(claimed), np.abs(actual))
    beyond = beyond - slack - BOUND_TOLERANCE * sizes - 1e-9
    beyond = np.where(np.isnan(claimed), np.inf, beyond / (sizes + 1e-9))
    k = int(np.argmax(np.where(usable, beyond, -np.inf)))
    parts = answer[3] if len(answer) > 3 else [""]
    return beyond[k], claimed[k], actual[k], parts[k * len(parts) // len(beyond)]


def _along(gradient, x, v, resolution):
    """H(x)v by differences of the gradient, and how far it may be off."""
    size = np.abs(v).max()
    h = resolution ** (1.0 / 3.0) * max(1.0, np.abs(x).max()) / (size if size > 0.0 else 1.0)
    ends = {k: gradient(x + k * h * v) for k in (-2, -1, 1, 2)}
    near, far = (ends[1] - ends[-1]) / (2.0 * h), (ends[2] - ends[-2]) / (4.0 * h)
    top = max(np.abs(end).max() for end in ends.values())
    return near, 2.0 * np.abs(near - far) + BOUND_TOLERANCE * np.abs(near).max() + 256.0 * resolution * top / h


def _prior(model):
    return lambda x: _vector(model.native.add_prior_gradient, model.dim, x)


def _term(model, i, x):
    return _vector(model.native.add_term_gradient, model.dim, x, i)


def _out(model, method, *arguments):
    """What a capability writes to `out`."""
    return _vector(getattr(model.native, method), model.dim, *arguments)


def _bends(model, c, claimed, x=None, gradient=None):
    """A claim on v·Hv or, of an array, on each vⱼ(Hv)ⱼ, at c.x unless `x` is given."""
    found, slack = _along(gradient or model.gradient, c.x if x is None else x, c.v, model.resolution)
    if np.ndim(claimed):
        return claimed, c.v * found, np.abs(c.v) * slack
    return claimed, c.v @ found, np.abs(c.v) @ slack


def _bends_within(model, c, claimed):
    return _bends(model, c, claimed, c.x + c.part * c.s * c.v)


def _hessian_product(model, c):
    found, slack = _along(model.gradient, c.x, c.v, model.resolution)
    return _out(model, "hessian_product", c.v), found, slack


def _affine_partial(model, c):
    now = 1.0
    y = c.x + c.v * (now - c.age)
    found, slack = _along(model.gradient, y, c.v, model.resolution)
    gradient = model.gradient(y)
    chosen = _several(c.j, model.dim, model.dim)
    claimed = np.array([model.native.affine_partial(c.x, c.v, c.age, now, j) for j in chosen])
    rounding = np.full(len(chosen), 1e-9 * np.abs(gradient).max())
    actual, slacks = np.stack([gradient, found], 1)[chosen], np.stack([rounding, slack[chosen]], 1)
    return claimed, actual, slacks, [f", of coordinate {j}" for j in chosen]


def _several(first, count, dim):
    """Which of `count` parts are compared: all, or from one at random on so many that few vectors of `dim` are made."""
    return [int(k) % count for k in range(first, first + max(1, min(count, MOST_COMPARED, 2_000_000 // dim)))]


def _neighbours(model, c):
    """∂ᵢU must not change with the coordinates outside row i: of all i where they are few, and of one where many."""
    (indptr, indices), dim, here = model.neighbours(), model.dim, model.gradient(c.x)
    chosen = (c.j + np.arange(max(1, min(dim, 64, 20_000 // dim)))) % dim
    there, size = np.empty(len(chosen)), np.abs(here).max()
    for k, j in enumerate(chosen):
        y, row = c.x + c.v, indices[indptr[j] : indptr[j + 1]]
        y[row] = c.x[row]
        gradient = model.gradient(y)
        there[k], size = gradient[j], max(size, np.abs(gradient).max())
    return here[chosen], there, 1e-9 * size


def _sparse_hessian(model, c):
    found, slack = _along(model.gradient, c.x, c.v, model.resolution)
    return _square(model.sparse_hessian(c.x), model, "sparse_hessian") @ c.v, found, slack


def _square(matrix, model, name):
    """A matrix of d x d, else a `TypeError`: the `ValueError` of a product would be taken for one of arithmetic."""
    if np.shape(matrix) != (model.dim, model.dim):
        raise TypeError(
            f"`{name}` of {type(model).__name__} must return {model.dim} x {model.dim} numbers, got an array of shape "
            f"{np.shape(matrix)}."
        )
    return matrix


def _between(model, c, name, gradient):
    """The two matrices of a capability, below and above what the gradient has."""
    bounds = getattr(model, name)()
    if bounds is None:
        return None
    low, high = (c.v @ np.asarray(_square(matrix, model, name)) @ c.v for matrix in bounds)
    found, slack = _along(gradient, c.x, c.v, model.resolution)
    return (high, -low), (c.v @ found, -(c.v @ found)), np.abs(c.v) @ slack


def _prior_partial_curvature_bound(model, c):
    found, slack = _along(_prior(model), c.x, c.v, model.resolution)
    return model.native.prior_partial_curvature_bound(c.v, c.j), c.v[c.j] * found[c.j], np.abs(c.v[c.j]) * slack[c.j]


def _prior_partial(model, c):
    gradient, chosen = _prior(model)(c.x), _several(c.j, model.dim, model.dim)
    claimed = [model.native.prior_partial(c.x, j) for j in chosen]
    return claimed, gradient[chosen], 1e-9 * np.abs(gradient).max(), [f", of coordinate {j}" for j in chosen]


def _signed_term_bound(model, c):
    bound = model.native.signed_term_bound(c.i, c.j, c.sign)
    return bound if bound >= 0.0 else np.nan, c.sign * _term(model, c.i, c.x)[c.j], 0.0


def _term_lipschitz(model, c):
    there, here = _term(model, c.i, c.y), _term(model, c.i, c.x)
    constants = _out(model, "term_lipschitz", c.i, c.scale)
    rounding = 1e-13 * np.maximum(np.abs(there), np.abs(here)).max()
    return constants * np.linalg.norm((c.x - c.y) / c.scale), np.abs(here - there), rounding


def _rows_of(model):
    """The coordinates of each factor."""
    rows = model.factors()
    if rows is None:
        return None
    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[0], np.ndarray):
        return [rows[1][a:b] for a, b in zip(rows[0][:-1], rows[0][1:], strict=True)]
    return rows


def _factor(model, f, x):
    return _vector(model.native.add_factor_gradient, model.dim, x, f)


def _factors(model, c):
    """The factors add up to the gradient, and each has none outside its coordinates, nor depends on them."""
    rows = _rows_of(model)
    if rows is None:
        return None
    parts = np.array([_factor(model, f, c.x) for f in range(len(rows))])
    f = min(int(c.f * len(rows)), len(rows) - 1)
    outside = np.setdiff1d(np.arange(model.dim), rows[f])
    y = c.x.copy()
    y[outside] = c.y[outside]
    claimed = np.concatenate([parts.sum(axis=0), np.zeros(len(outside)), parts[f]])
    actual = np.concatenate([model.gradient(c.x), parts[f][outside], _factor(model, f, y)])
    return claimed, actual, 1e-9 * np.abs(parts).max()


def _affine_factor(model, c):
    count = len(_rows_of(model))
    y, claimed, actual, slacks = c.x + c.v * (1.0 - c.age), [], [], []
    chosen = _several(min(int(c.f * count), count - 1), count, model.dim)
    for f in chosen:
        found, slack = _along(functools.partial(_factor, model, f), y, c.v, model.resolution)
        gradient = _factor(model, f, y)
        claimed.append(model.native.affine_factor(c.x, c.v, c.age, 1.0, f))
        actual.append((c.v @ gradient, c.v @ found))
        slacks.append((1e-9 * np.abs(c.v) @ np.abs(gradient), np.abs(c.v) @ slack))
    return claimed, actual, slacks, [f", of factor {f}" for f in chosen]


def _factor_rate_bound(model, c):
    f = min(int(c.f * len(_rows_of(model))), len(_rows_of(model)) - 1)
    a, b = model.native.factor_rate_bound(c.x, c.v, f)
    gradient = _factor(model, f, c.x + c.s * c.v)
    return a + b * c.s, c.v @ gradient, 1e-9 * np.abs(c.v) @ np.abs(gradient)


def _rays(model, c):
    """Derivatives where the ray is, twice, with a turn between; the gradient there."""
    native, ray, x, v, claimed, actual, slacks = model.native, np.zeros(model.ray_room()), c.x, c.v, [], [], []
    native.ray_begin(x, v, ray)
    for s, after in ((0.5 * c.s, c.y - c.x), (c.s, None)):
        x = x + s * v
        found, slack = _along(model.gradient, x, v, model.resolution)
        gradient, written = model.gradient(x), np.zeros(model.dim)
        claimed.extend(native.ray_derivatives(s, ray))
        native.ray_gradient(x, s, ray, written)
        claimed.extend(written)
        actual.extend([v @ gradient, v @ found, *gradient])
        rounding = 1e-9 * np.abs(gradient).max()
        slacks.extend([rounding * np.abs(v).sum(), np.abs(v) @ slack, *np.full(model.dim, rounding)])
        if after is not None:
            native.ray_turn(x, s, after, ray)
            v = after
    return claimed, actual, slacks


def _ray_bound(model, c):
    native, ray = model.native, np.zeros(model.ray_room())
    native.ray_begin(c.x, c.v, ray)
    first = native.ray_derivatives(0.5 * c.s, ray)[0]
    claimed = [first + native.ray_bound(0.5 * c.s, h, ray) * c.part * c.s for h in (c.s, np.inf)]
    gradient = model.gradient(c.x + (0.5 + c.part) * c.s * c.v)
    return claimed, c.v @ gradient, 1e-9 * np.abs(c.v) @ np.abs(gradient)


def _parts_at(add, m, x, v, *row):
    out = np.zeros((m, 3))
    add(x, v, *row, out)
    return out


def _parts(gradient, add, model, c, *row):
    """The parts add up to the rates; the convex part is below its chord, the concave part below its tangent."""
    claimed, actual = [], []
    for m in (1, model.dim):
        here, middle, there = (_parts_at(add, m, c.x + t * c.s * c.v, c.v, *row) for t in (0.0, c.part, 1.0))
        rates = c.v * gradient(c.x)
        rates = rates if m > 1 or model.dim == 1 else np.array([rates.sum()])
        total = here[:, 0] + here[:, 1]
        chord = (1.0 - c.part) * here[:, 0] + c.part * there[:, 0]
        tangent = here[:, 1] + c.s * here[:, 2]
        claimed += [total, -total, chord, tangent]
        actual += [rates, -rates, middle[:, 0], there[:, 1]]
    claimed, actual = np.concatenate(claimed), np.concatenate(actual)
    return claimed, actual, 1e-9 * np.abs(claimed).max()


def _coefficients(gradient, add, model, c, *row):
    claimed, actual = [], []
    rates = c.v * gradient(c.x + c.s * c.v)
    for m in (1, model.dim):
        out = np.zeros((m, 12))
        add(c.x, c.v, *row, out)
        claimed.append(out @ c.s ** np.arange(12))
        actual.append(rates if m > 1 or model.dim == 1 else np.array([rates.sum()]))
    claimed, actual = np.concatenate(claimed), np.concatenate(actual)
    return claimed, actual, 1e-9 * np.abs(rates).max()


#: How each capability is tried: what it claims, what was found, how far that may be off; bounds and equations. Those
#: that others are computed from come first.
CHECKS = {
    "hessian_product": (_hessian_product, "="),
    "affine_partial": (_affine_partial, "="),
    "curvature_bound": (lambda m, c: _bends(m, c, m.native.curvature_bound(c.v)), "<="),
    "partial_curvature_bounds": (lambda m, c: _bends(m, c, _out(m, "partial_curvature_bounds", c.v)), "<="),
    "curvature_bound_within": (lambda m, c: _bends_within(m, c, m.native.curvature_bound_within(c.x, c.v, c.s)), "<="),
    "partial_curvature_bounds_within": (
        lambda m, c: _bends_within(m, c, _out(m, "partial_curvature_bounds_within", c.x, c.v, c.s)),
        "<=",
    ),
    "directional_derivative_bound": (
        lambda m, c: (m.native.directional_derivative_bound(c.v), c.v @ m.gradient(c.x), 0.0),
        "<=",
    ),
    "partial_derivative_bounds": (
        lambda m, c: (_out(m, "partial_derivative_bounds", c.v), c.v * m.gradient(c.x), 0.0),
        "<=",
    ),
    "neighbours": (_neighbours, "="),
    "sparse_hessian": (_sparse_hessian, "="),
    "hessian_bounds": (lambda m, c: _between(m, c, "hessian_bounds", m.gradient), "<="),
    "prior_partial": (_prior_partial, "="),
    "prior_partial_curvature_bound": (_prior_partial_curvature_bound, "<="),
    "prior_curvature_bound": (lambda m, c: _bends(m, c, m.native.prior_curvature_bound(c.v), gradient=_prior(m)), "<="),
    "prior_hessian_bounds": (lambda m, c: _between(m, c, "prior_hessian_bounds", _prior(m)), "<="),
    "add_prior_parts": (lambda m, c: _parts(_prior(m), m.native.add_prior_parts, m, c), "<="),
    "add_prior_coefficients": (lambda m, c: _coefficients(_prior(m), m.native.add_prior_coefficients, m, c), "="),
    "term_gradient_bounds": (
        lambda m, c: (_out(m, "term_gradient_bounds", c.i), np.abs(_term(m, c.i, c.x)), 0.0),
        "<=",
    ),
    "term_lipschitz": (_term_lipschitz, "<="),
    "signed_term_bound": (_signed_term_bound, "<="),
    "largest_term_gradient": (lambda m, c: (m.largest_term_gradient(), np.linalg.norm(_term(m, c.i, c.x)), 0.0), "<="),
    "add_term_parts": (lambda m, c: _parts(functools.partial(_term, m, c.i), m.native.add_term_parts, m, c, c.i), "<="),
    "add_term_coefficients": (
        lambda m, c: _coefficients(functools.partial(_term, m, c.i), m.native.add_term_coefficients, m, c, c.i),
        "=",
    ),
    "factors": (_factors, "="),
    "affine_factor": (_affine_factor, "="),
    "factor_rate_bound": (_factor_rate_bound, "<="),
    "ray_derivatives": (_rays, "="),
    "ray_bound": (_ray_bound, "<="),
}
