r"""Whether exp(-U) can be normalised, or U falls without end: along rays, before a run.

Along lines in one direction v through nearly every point p, exp(-U(p + tv)) has a finite integral over t (Fubini): U
grows faster than log t. Along rays from one point in nearly every direction it grows faster than d log t, as shells
grow like t^(d-1). Where U falls to -∞ it does so slower than -log |xⱼ| towards xⱼ = 0, and than -d log |x| towards 0.

Rays begin at random points near `initial`, and what is found must hold from a second one: `initial` itself is often
symmetric, and through it U of a hierarchy with a spread falls without end though its density is proper. A ray ends as
soon as U grows, mostly at its first place; one along which U falls is followed to 1e100.

That a hierarchy is improper, with a flat prior on the logarithm of a spread, shows on no ray. Where a coordinate makes
others narrower, these are integrated out by Laplace's method at three places of it, and further out where the density
falls off like a power, as along the ridge of (xy - 1)². Nor is it seen far out on a ray that U tends to a limit where
its terms cancel, as those of log ν do: differences on the way must get ever smaller.

The sign of a log likelihood beside a prior that grows faster shows in the data alone, see `find_wrong_sign`.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pdmp.errors import silenced
from pdmp.models.priors import Flat
from pdmp.models.transforms import Identity, Interval, Ordered, Upper, coordinate_names
from pdmp.models.verification import check_gradient

#: Places on a ray, in units of max(1, |x|).
PLACES = (1e1, 1e2, 1e3, 1e4, 1e6, 1e8, 1e10, 1e12, 1e16, 1e24, 1e32, 1e48, 1e64, 1e100)
#: The last of them where U does not fall: in a direction that was computed, which rounding limits, and of a coordinate.
FAR, EXACT = 1e10, 1e16
ROUND = 1e3  #: from here on it is seen whether U along a direction that was computed is more than rounding
#: Where U cannot be computed any more after a fall, it must have fallen between these, too: rounding goes up and down.
BETWEEN = (10.0, 15.0, 25.0, 40.0, 60.0, 90.0)
#: A ray ends where U grows by so much times log t, for each dimension of the shell, from one place to the next.
GROWS = 12.0
LEVEL = 0.05  #: where U changes by less than this times log t it is level: rounding changes it as well, far out
MARGIN = 1.01  #: how much faster than the limit U must grow, relatively
COORDINATES = 12  #: coordinates with rays of their own
DENSE = 200  #: the largest dimension of which differences of gradients along all coordinates are computed
#: Evaluations are at most about `TERMS` terms in all, or, of more data than a sixtieth of that, a dozen of U.
TERMS = 10_000_000
STEPS = 20  #: steps of the search for the mode, of which the direction is tried
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  #: whose multiples are spread over the unit interval
#: Singular values up to this times the largest may be 0; and where on a ray the direction is made more exact.
FLAT, REFINED = 1e-5, (1e4, 1e8)
WHOLE = 12  #: entries of a direction are taken for ratios of whole numbers up to this one
MENTIONED = 4  #: so many directions are enough
#: U that jumps by so much within so short a distance, in units of max(1, |x|), has a penalty for a wall.
PENALTY, THIN = 1e5, 1e-9
SPIKE = 10.0  #: U has a spike at 0 where it is lower by so much at 1e-12
#: How far away the marginal density of a coordinate is computed, beyond 0 and the start; by less than `LEVEL` times the
#: distance of the last three it changes where flat.
NECK = (0.0, 5.0, 7.5, 10.0)
NARROW, SLOW = (1e2, 1e4, 1e6, 1e8, 1e10), 1.5  #: and further out, where it may be a power
#: No start further out than this counts: beyond 13, where precisions are e^26, wide directions are lost in rounding.
BEGINS = 3.0
NECKS = 1000  #: evaluations for that, ten times the dimension if that is more, or fewer of many data
NEWTON = 8  #: steps of Newton's method to each mode
#: Places of a coordinate, in units of its width, where its marginal density is computed to the end; and by how much its
#: powers between the last ones differ, relatively.
MARGINAL, SAME = 10.0 ** np.arange(0.5, 5.1, 0.5), 0.02
NARROWER = 30.0  #: by what factor a derivative along another coordinate grows to the last of these places, at least
#: Far beyond where U grows on a ray it must grow at these places as well, of a direction that was computed nearer.
BEYOND, COMPUTED = (1e13, 1e14, 1e15), (1e8, 1e9, 1e10)
#: Or fall there by so much times the distance; a plateau that is higher than this above a start is rounding, of e^-x
#: that is 0 or 1 - e^-x that is 1, or nothing that a run gets to.
FALL, HEIGHT, HUGE = 1e-3, 30.0, 1e200
#: Places of a coordinate, beyond 0 and the start, between which U changes ever less where it tends to a limit: each
#: time by less than a third of the last change, in the end by less than `SETTLED`, or by rounding and `ROUNDED`.
APPROACH, LESS, SETTLED, ROUNDED = np.arange(6.0, 80.0, 2.0), 1.0 / 3.0, 1e-6, 1e-2
SHIFTS = (1e-4, 1e-3, 3e-3)  #: steps by which a coordinate is moved to see rounding
#: Rows of each kind, directions, and places on the rays in each, where the sign of data is looked at.
SIGNED_ROWS, SIGNED_DIRECTIONS, SIGNED_PLACES = 1_000, 16, (3.0, 6.0, 12.0, 25.0, 50.0, 1e2, 1e3, 1e4)
#: Points from which it falls to one side; and how much more it falls at least, from one place to ten times it, where it
#: falls linearly: a logarithm falls as much again.
SIGNED_POINTS, LINEAR, FASTER = 4, 3.0, 20.0
FURTHER = (1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e12)  #: where what has fallen as far as these is looked at once more
#: Where it is seen whether U is a straight line; and values of coordinates that single rows of a class may cost.
STRAIGHT_PLACES, ROW_VALUES = np.array([-1e4, -1e2, -10.0, 0.0, 10.0, 1e2, 1e4]), 20_000
STRAIGHT = (
    "is a straight line in all that it depends on, which minus the log density of data never is: the datum and what "
    "depends on parameters may be in the wrong order, as in loss(z, y) for loss(y, z)."
)
STEEP = 1e6  #: what goes up incomparably faster than linearly
FURTHEST = 30.0  #: beyond which the exponential of a coordinate may be no float, and no edge is looked for
NORMAL = 1e-6  #: where a Newton step takes the decrement to less than this, or this times what it was, it was the last


class Improper(NamedTuple):
    """What was found."""

    text: str
    certain: bool  #: U falls at least linearly, as far as numbers go
    of_density: bool = True  #: it is of all of it, not of a part whose sign may be wrong


class Ray(NamedTuple):
    """How U goes along a ray: it "grows", or is "flat", "heavy" (grows too slowly), or "falls"; "" where unknown.

    It falls "beyond" where it grows first.
    """

    kind: str
    rate: float = math.nan  #: of what is heavy: U is like that times log t
    certain: bool = False


def find_improper(model: Any, x: np.ndarray, inside: Callable | None = None) -> tuple[Improper | None, int]:
    """What shows that exp(-U) cannot be normalised, or None; and how often U and its gradient were evaluated for it.

    Rays begin near x (d,); `inside` tells of a point whether a process can get there.
    """
    with silenced(), np.errstate(all="ignore"):
        search = _Search(model, np.array(x, float), inside)
        return search.result(), search.count


def unlike_a_density(model: Any, text: str) -> ValueError:
    """The error `text` for a model without a mode or a normal law there, or what shows that U falls without end.

    Or that its gradient is not that of its potential, which no search for a mode survives.
    """
    try:
        with silenced():
            check_gradient(model, points=3, data=6, seed=0, seconds=0.2)
    except ValueError as error:
        return error
    found = find_improper(model, model.initial)[0]
    return ValueError(found.text if found is not None and found.certain else text)


def find_wrong_sign(model: Any, x: np.ndarray, inside: Callable | None = None) -> Improper | None:
    """The sentence for a part of U that has the sign of a log density, or None.

    Minus the log density of data, as a function of what it depends on, is bounded below, but for points and edges where
    it fits data exactly. So along a line it falls without end towards one side at most. Where the terms with data fall
    in all of some directions of a block, drawn at random, they are a log density, whatever priors or other terms add.

    Where a part falls that another part may be split from, this is no proof, and the sentence says what else it may be:
    one kind of data beside another, as a constant of truncation log Φ; the terms of a class of the user's, or its
    prior; and terms with data that fall at least linearly as one coordinate goes to one side, as where log σ is
    subtracted and not added. A prior may fall to one side, linearly or slower, as a Jacobian does, but not to both.

    The arguments are those of `find_improper`.
    """
    with silenced(), np.errstate(all="ignore"):
        of = _wrong_sign_of_terms if hasattr(model, "own_data") else _wrong_sign_of_parts
        found = _takes_a_coordinate_for_its_number(model, x, inside) or of(model, lambda part: _Search(part, x, inside))
        return None if found is None else found._replace(of_density=False)


def marginal_power(model: Any, centre: np.ndarray, scale: np.ndarray, j: int) -> float:
    """The power like which the marginal density of coordinate j falls off, infinite where it is none.

    All else is integrated out by Laplace's method, at places of the coordinate that are ever further out: a scale that
    grows with it makes its tail heavy, as that of a mean with few data, and no ray shows that. `centre` and `scale`
    (d,) are where the density is, and how wide.
    """
    rest, found = np.delete(np.arange(len(centre)), j), []
    with silenced(), np.errstate(all="ignore"):
        for side in (1.0, -1.0):
            search, x = _Search(model, centre, None), centre.copy()
            search.scale, search.last, levels = scale, math.inf, []
            for r in MARGINAL:
                x[j] = centre[j] + side * r * scale[j]
                levels.append(search.marginal(x, rest))
            near, far = (levels[k] - levels[k - 2] for k in (-3, -1))
            found.append(far / math.log(MARGINAL[-1] / MARGINAL[-3]) if abs(far - near) < SAME * far else math.inf)
    return min(found)


def _wrong_sign_of_terms(model, search):
    """The same of a `SumOfTerms`."""
    everything = range(len(model.own_data))
    data, used = model.terms_with_data(SIGNED_ROWS) if any(model.own_data) else (None, {})
    data = None if data is None else search(data)
    blocks = list(_blocks(model, np.any([*used.values()], axis=0)))
    for name, block in blocks:
        if _falls_whichever_way(data, block):
            k = next(k for k, own in used.items() if np.any(own & block))
            return Improper(
                f"the loss `{model.names[k]}` of `terms[{k}]` falls without end whichever way {name} goes, as the "
                "log density of data does: a loss is minus the log density, so give -f. (Where it is to fall, "
                "write it and what it is added to as one loss.)",
                True,
            )
    whole = search(model.terms_with_data(SIGNED_ROWS, everything)[0])
    for k, own in used.items():
        loss = f"the loss `{model.names[k]}` of `terms[{k}]`"
        alone = search(model.terms_with_data(SIGNED_ROWS, [k])[0])
        for name, block in blocks if len(used) > 1 else ():
            if np.any(block & own) and _falls_whichever_way(alone, block & own):
                return Improper(
                    f"{loss} falls without end whichever way {name} goes, as the "
                    "log density of data does, and other terms hide it: a loss is minus the log density, so give -f. "
                    "(Where it is to fall, as the constant of a truncated density, write it and what it is added to "
                    "as one loss.)",
                    False,
                )
        if _is_straight(alone, own) and any(_is_straight(whole, block & own) for _, block in _blocks(model, own)):
            return Improper(f"{loss} {STRAIGHT}", False)
        if model.observed[k] is None:
            n = alone.model.n_data
            places = np.linspace(0, model.rows_of(k) - 1, n).astype(int)
            found = _rows_that_fall(alone, [block & own for _, block in _blocks(model, own)], np.arange(n))
            if found:
                return Improper(f"{loss} falls {_some_rows(places[found], n)}", False)
    # Other terms may make up for what falls, such as the integral of an intensity, but hardly where it is steep behind.
    found = None if data is None else _falls_to_one_side(data, whole) or _falls_to_one_side(data, data, STEEP)
    if found is not None:
        return Improper(f"the terms with data fall {_one_sided(found)}", False)
    without = [k for k in everything if not model.own_data[k]]
    if without:
        alone, prior = (search(model.terms_with_data(None, without, priors)[0]) for priors in (False, True))
        found = _falls_unlike_a_prior(prior)
        if found is not None:
            return Improper(f"terms without data fall {found}", False)
        for name, block in _blocks(model, np.any([*model.terms_with_data(1, without)[1].values()], axis=0)):
            if _falls_whichever_way(alone, block, FASTER):
                return Improper(
                    f"terms without data fall faster than linearly whichever way {name} goes, {HIDDEN}", False
                )
        found = _falls_to_one_side(alone, whole, 1.0)
        if found is not None:
            return Improper(f"the terms without data fall {_one_sided(found)}", False)
    return None


def _takes_a_coordinate_for_its_number(model, x, inside):
    """The sentence for U of a natural parameter, such as a positive number, whose coordinate is another: its logarithm.

    It is no number beyond where the parameter may be, or infinite from there on, where any coordinate may be.
    """
    search = _Search(model, x, inside)
    for name, own in _blocks(model, np.ones(model.dim, bool)):
        transform, j = model.transforms.get(name, Identity()), int(np.flatnonzero(own)[0])
        if isinstance(transform, Identity):
            continue
        begins = (x, *(np.where(own, value, x) for value in (0.5, 0.5 / own.sum())))
        begin = next((y for y in begins if math.isfinite(search.potential(y))), None)
        if begin is None:
            continue

        def at(value, begin=begin, j=j):
            return search.potential(np.where(np.arange(len(begin)) == j, value, begin))

        label = transform.label(f"{name}[0]" if model.variables[name] else name)
        says = (
            f"By its prior or its transform the coordinate of {name}, x or p.{name} in a loss, is {label}, which may "
            f"be any number: write {transform.formula()} where {name} itself is meant. (U has the Jacobian of "
            "`transforms=` too; priors bring theirs.)"
        )
        ends = [
            (edge, side, u) for edge, side in _ends(transform) if (u := _beyond(at, begin[j], edge, side)) is not None
        ]
        several = len(ends) == 2 or not isinstance(transform, Interval)
        if ends and (several or math.isnan(ends[0][2])):
            edge, side, u = ends[0]
            how, where = "not a number" if math.isnan(u) else "infinite", "below" if side < 0.0 else "above"
            right = "let U be inf, not NaN, there." if math.isnan(u) else "all is well."
            return Improper(
                f"U is {how} where {label} is {where} {edge:g}. {says} If the density ends there, {right}",
                several and math.isnan(u),
            )
    return None


def _ends(transform):
    """(edge, side) of where a natural parameter ends; of a number that is known to be below another, 0 as well.

    An interval must have both: a share that is known to be above 1/2 ends at a logit of 0, too.
    """
    if isinstance(transform, Interval):
        return (transform.lower, -1.0), (transform.upper, 1.0)
    if isinstance(transform, Upper):
        return (transform.upper, 1.0), (0.0, -1.0)
    return () if isinstance(transform, Ordered) else ((getattr(transform, "lower", 0.0), -1.0),)


def _beyond(potential, begin, edge, side):
    """What U (of one coordinate) is beyond an edge if it is no finite number from there on; else None."""
    a, b = begin, edge + 0.05 * side
    u = potential(b)
    if abs(edge) > FURTHEST or math.isfinite(u):
        return None
    for _ in range(60):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if math.isfinite(potential(middle)) else (a, middle)
    return u if abs(a - edge) < 1e-9 * max(1.0, abs(edge)) else None


def _wrong_sign_of_parts(model, search):
    """The same of a model with methods for its terms and its prior."""
    if not (model.divisible and model.n_data and model.has("prior_potential")):
        return None
    name, prior = type(model).__name__, _Prior(model, model.native.prior_potential)
    data, prior = search(_Part(model, lambda y: model.potential(y) - prior.potential(y))), search(prior)
    every = np.ones(model.dim, bool)
    for part, method, ratio in ((data, "term_potential", 0.0), (prior, "prior_potential", LINEAR)):
        if _falls_whichever_way(part, every, ratio):
            return Improper(
                f"`{method}` of {name} falls without end whichever way x goes, as a log density does, and what it is "
                "added to hides it: a potential is minus the log density, so give -f and minus its gradient.",
                False,
            )
    if _is_straight(data, every):
        return Improper(f"`term_potential` of {name} {STRAIGHT}", False)
    lines = np.eye(model.dim, dtype=bool)[np.unique(np.linspace(0, model.dim - 1, COORDINATES).astype(int))]
    n = min(SIGNED_ROWS, model.n_data, max(1, ROW_VALUES // (len(lines) * model.dim)))
    rows = np.linspace(0, model.n_data - 1, n).astype(int)
    found = _rows_that_fall(data, lines, rows)
    if found:
        return Improper(f"`term_potential` of {name} falls {_some_rows(rows[found], n)}", False)
    found = _falls_to_one_side(data, data)
    if found is not None:
        return Improper(f"`term_potential` of {name} falls {_one_sided(found)}", False)
    found = _falls_unlike_a_prior(prior)
    return None if found is None else Improper(f"`prior_potential` of {name} falls {found}", False)


def _one_sided(where):
    """How the sentence on terms that fall to one side of a coordinate goes on."""
    return (
        f"without end as {where}, where no density of data grows without end: the sign of a part may be wrong, such as "
        "that of a constant, log σ, which is to be added to minus the log density of a normal variable."
    )


def _some_rows(rows, n):
    """How the sentence on some rows that fall goes on."""
    shown = ", ".join(str(i) for i in rows[:MENTIONED])
    return (
        f"without end in some rows only ({len(rows):,} of {n:,} looked at: {shown}{' …' * (len(rows) > MENTIONED)}), "
        "where minus the log density of a datum is bounded below: a sign that depends on data may be wrong."
    )


class _Part(NamedTuple):
    """A part of a model in its place, of which a `_Search` evaluates the potential."""

    model: Any
    potential: Callable

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class _Prior(_Part):
    """The prior of a model alone."""

    n_data = 0

    def gradient(self, x):
        out = np.zeros(len(x))
        self.model.native.add_prior_gradient(x, out)
        return out


def _blocks(model, used):
    """(name, coordinates as truth values) of each variable, without coordinates that are not used."""
    place = 0
    for name, shape in model.variables.items():
        place, first = place + math.prod(shape), place
        block = (np.arange(model.dim) >= first) & (np.arange(model.dim) < place) & used
        if block.any():
            yield name, block


def _first_of_each(model):
    """Coordinates, the first one of each variable, then the second ones, …: a spread may stand behind many effects."""
    blocks = [np.flatnonzero(block) for _, block in _blocks(model, np.ones(model.dim, bool))]
    return [int(j) for part in itertools.zip_longest(*blocks) for j in part if j is not None]


def _direction(search, block):
    """A random one along the coordinates of a block."""
    return np.where(block, search.rng.choice([-1.0, 1.0], search.dim) * search.rng.uniform(0.3, 1.0, search.dim), 0.0)


def _falls_whichever_way(search, block, ratio=0.0):
    """Whether U falls without end in every one of some directions of a block."""
    return all(_falls(search, _direction(search, block), ratio) for _ in range(SIGNED_DIRECTIONS))


def _falls_from_all(search, v, ratio):
    """Whether U falls in the direction v from every one of some points."""
    return all(_falls(search, v, ratio) for _ in range(SIGNED_POINTS)) and not _rises_further_out(search, v)


def _falls_to_one_side(data, whole, steep=-math.inf):
    """A coordinate and a side of it towards which two sums fall, at least linearly, from random points; or None.

    Only where U goes up on the other side `steep` times as far, as the square does beside -log σ.
    """
    names = data.names()
    for j in _first_of_each(data.model)[: min(COORDINATES, TERMS // (20 * max(data.model.n_data, 1)))]:
        for side in (1.0, -1.0):
            v = side * (np.arange(data.dim) == j)
            if not all(_falls_from_all(search, v, LINEAR) for search in (data, whole)) or _is_straight(whole, v != 0.0):
                continue
            p = whole.near()
            here, there, back = (whole.potential(p + t * v) for t in (0.0, 100.0, -100.0))
            if back - here > steep * (here - there):
                return f"{names[j]} → {'-' if side < 0.0 else ''}∞"
    return None


def _falls_unlike_a_prior(search):
    """How the sentence on a prior that falls faster than linearly, or both ways, goes on; None of any other."""
    if not search.begin():
        return None
    how, found = "faster than linearly", [v for v, _, _ in search.rays() if _falls_from_all(search, v, FASTER)]
    if not found:
        how, found = "without end", [v for v in _lines(search) if _falls_both_ways(search, v)]
        found += [-v for v in found]
    if not found:
        return None
    found.sort(key=np.count_nonzero)
    return f"{how} along {search.where(found[0], found)}, {HIDDEN}"


#: How a sentence on what falls beside other parts ends.
HIDDEN = (
    "as no prior does, and other parts hide it: the sign of a part may be wrong, as a potential is minus the log "
    "density. (Where it is to fall, as the constant of a truncated density, write it and what it is added to as one "
    "term with data.)"
)


def _lines(search):
    """Directions along some coordinates, the first of each variable among them."""
    first = np.cumsum([0, *map(math.prod, search.model.variables.values())])[:-1]
    some = np.unique([*np.linspace(0, search.dim - 1, COORDINATES).astype(int), *first])
    for j in some[: TERMS // (20 * max(search.model.n_data, 1))]:
        yield 1.0 * (np.arange(search.dim) == j)


def _falls_both_ways(search, v):
    """Whether U falls without end to both sides of a coordinate, however slowly; not from a pole at 0, as -log |x|."""
    if not all(_falls_from_all(search, w, 0.0) for w in (v, -v)):
        return False
    p = search.near()
    nearer, near = (search.potential(np.where(v != 0.0, t * search.scale, p)) for t in (1e-12, 1e-9))
    return not nearer - near > LEVEL * math.log(1e3)


def _is_straight(search, block):
    """Whether U is a straight line, and not level, in random directions of a block, as the Jacobian of a logarithm."""
    for _ in range(2):
        p, v = search.near(), _direction(search, block)
        values = np.array([search.potential(p + t * search.scale * v) for t in STRAIGHT_PLACES])
        known = ~np.isnan(values)  # 0 times an exponential, far out
        slopes = np.diff(values[known]) / np.diff(STRAIGHT_PLACES[known])
        if len(slopes) < 4 or not np.all(np.abs(slopes - slopes[0]) < 1e-6 * np.abs(slopes[0])):
            return False
    return True


def _rows_that_fall(search, blocks, rows):
    """Places in `rows` of those that fall without end in directions in which they bend, if the most do not fall."""
    found = set()
    for block in blocks:
        along = _direction(search, block)
        for v in (along, -along):
            for place, i in enumerate(rows.tolist()):
                row = search.of_row(i)
                if place in found or not _falls(row, v, 0.0):
                    continue
                # Of a thousand rows that go up and down without end, one may look so once.
                if all(_row_falls(row, v) for _ in range(SIGNED_POINTS)) and not _is_straight(row, block):
                    found.add(place)
    return sorted(found) if 2 * len(found) < len(rows) else []


def _row_falls(row, v):
    """Whether it falls in the direction v at least linearly, or both ways."""
    return _falls_from_all(row, v, LINEAR) or all(_falls_from_all(row, w, 0.0) for w in (v, -v))


def _falls(search, v, ratio):
    """Whether U falls without end from a random point in the direction v; each time by so much more, if linearly."""
    p = search.near()
    values = [search.potential(p)]
    if search.potential(p + SIGNED_PLACES[-1] * search.scale * v) >= values[0]:
        return False
    for t in SIGNED_PLACES:
        if not math.isfinite(values[-1]):
            break
        values.append(search.potential(p + t * search.scale * v))
    if math.isnan(values[-1]):
        values.pop()
    falls = [a - b for a, b in itertools.pairwise(values[-4:])]
    if len(falls) < 3 or not all(fall > LEVEL for fall in falls) or not values[-1] < values[0]:
        return False
    return falls[-1] > ratio * falls[-2]


def _rises_further_out(search, v):
    """Whether U rises beyond where `_falls` looks, as that of data of 100,000 and more does."""
    p = search.near()
    values = np.array([search.potential(p + t * search.scale * v) for t in (SIGNED_PLACES[-1], *FURTHER)])
    return bool(np.any(np.diff(values) > 0.0))


class _Search:
    def __init__(self, model, x, inside):
        self.model, self.x, self.inside, self.dim = model, x, inside, model.dim
        self.scale, self.rng = np.maximum(1.0, np.abs(x)), np.random.default_rng(0)
        passes = TERMS // max(model.n_data, 1)
        self.few, self.count = passes < 5 * COORDINATES, 0
        self.risen = []  #: points and U there, and points along a coordinate with U much higher or lower
        self.unclear = []  #: coordinates and sides where U far out is rounding
        self.dense = self.dim <= DENSE and passes >= 10 * self.dim
        kinds = getattr(model, "kinds", None)
        self.flat = None if kinds is None else kinds == Flat().coded()[0]  #: which priors of a sum of terms are
        self.most = min(max(NECKS, 10 * self.dim), passes // 2)

    def potential(self, x):
        """U(x), NaN where it cannot be computed, infinite outside."""
        return float(self.evaluate(self.model.potential, x, math.inf, math.nan))

    def gradient(self, x):
        """∇U(x), NaN where it cannot be computed."""
        nothing = np.full(self.dim, math.nan)
        return np.asarray(self.evaluate(self.model.gradient, x, nothing, nothing), float)

    def evaluate(self, function, x, outside, failed):
        if self.inside is not None and not self.inside(x):
            return outside
        self.count += 1
        try:
            return function(x)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a function of the user's, far outside of where it is meant for
            return failed

    def point(self):
        """A random point near x where U is finite, and U there; None if there is none."""
        away = self.scale * self.rng.choice([-1.0, 1.0], self.dim) * self.rng.uniform(0.3, 1.0, self.dim)
        if self.inside is not None and not self.inside(self.x + 0.01 * away):  # x may lie on a wall
            for j in range(self.dim):
                alone = self.x.copy()
                alone[j] += 0.01 * away[j]
                away[j] *= 1.0 if self.inside(alone) else -1.0
        for size in (1.0, 0.1, 0.01):
            y = self.x + size * away
            u = self.potential(y)
            if math.isfinite(u):
                return y, u
        return None

    def near(self):
        """A random point near x, wherever that is."""
        return self.x + 0.3 * self.scale * self.rng.uniform(-1.0, 1.0, self.dim)

    def of_row(self, i):
        """The same of the term of one datum."""
        row = copy.copy(self)
        row.model = _Part(self.model, lambda x: self.model.native.term_potential(x, i))
        return row

    def begin(self):
        """Find two points to begin rays at; whether there are."""
        self.points = self.point(), self.point()
        return None not in self.points

    def result(self):
        if not self.begin():
            return None
        found, tried = [], set()
        for v, shell, last in self.rays():
            if (key := (shell, *np.round(v, 9) + 0.0)) in tried:  # 0, not -0
                continue
            tried.add(key)
            ray = self.along_both(v, shell, last)
            if ray.kind not in ("grows", ""):
                found.append((v, shell, ray))
            if ray.certain or len(found) == MENTIONED:
                break
        wall = None if any(ray.certain for _, _, ray in found) else self.penalty()
        if wall is None and found:
            return self.say(*min(found, key=lambda f: not f[2].certain), found)
        return wall or self.spike() or self.neck() or self.limit()

    # -- rays ------------------------------------------------------------------------------------------------------

    def rays(self):
        """(direction in units of the scale, exponent of the shells, last place): the cheapest first."""
        p, d = self.points[0][0], self.dim
        gradient = self.gradient(p) * self.scale
        steepest = np.abs(gradient).max()
        if 0.0 < steepest < math.inf:
            yield -gradient / steepest, 1, EXACT
        signs = self.rng.choice([-1.0, 1.0], d)
        if d > 1:
            for v in (signs, -signs):
                yield v, d, EXACT
        for j in self.coordinates(signs)[: 2 if self.few else COORDINATES]:
            for side in (1.0, -1.0):
                yield side * (np.arange(d) == j), 1, EXACT
        if self.few or d == 1:
            return
        if self.dense:
            # Far out curvature has fallen off where tails are heavy. Coordinates differ there, and their sums too.
            apart = signs * (1.0 + np.arange(d) * GOLDEN % 1.0)
            for far in (0.0, 1e8):
                for v in self.flat_directions(far, apart):
                    yield v, 1, FAR
                    yield -v, 1, FAR
        v = self.downhill()
        if v is not None:
            yield v, 1, EXACT

    def coordinates(self, signs):
        """Those with rays of their own: of many the ones along which U grows least, further out."""
        if self.dim <= COORDINATES:
            return np.arange(self.dim)
        further = self.gradient(self.points[0][0] + 10.0 * self.scale * signs) * self.scale * signs
        return np.argsort(np.nan_to_num(further, nan=math.inf), kind="stable")[:COORDINATES]

    def flat_directions(self, far, signs):
        """The one of the most negative curvature, and those in which no coordinate that moves changes the gradient.

        These are orthogonal to all differences of gradients, to rounding, and not only where U is quadratic.
        """
        p, columns = self.points[0][0] + far * self.scale * signs, []
        gradient = self.gradient(p) * self.scale
        for j in range(self.dim if np.all(np.isfinite(gradient)) else 0):
            y = p.copy()
            y[j] += max(far, 1.0) * self.scale[j]
            columns.append(self.gradient(y) * self.scale - gradient)
        columns = np.array(columns).T
        if not np.all(np.isfinite(columns)) or not np.any(columns):
            return
        curvatures, vectors = np.linalg.eigh(0.5 * (columns + columns.T))
        if curvatures[0] < -1e-9 * np.abs(columns).max():
            yield vectors[:, 0] / vectors[largest_first(vectors[:, 0])[0], 0]
        yield from self.simple(columns)  # before those that rounding has moved
        sizes = np.maximum(np.abs(columns).max(axis=0), 1e-300)
        left, values, right = np.linalg.svd(columns / sizes)
        known, least = values > FLAT * values[0], [*zip(left.T, values / values[0], strict=True)][-COORDINATES:]
        for v, value in least:
            if value <= 1e-9:
                yield v / v[largest_first(v)[0]]  # whose sign is not that of a library of linear algebra
        for v, value in least:
            if value <= FLAT and far == 0.0:  # gradients by differences leave v inexact
                for t in REFINED:
                    change = (self.gradient(p + t * self.scale * v) * self.scale - gradient) / t
                    v = v - right.T[:, known] @ ((change @ left[:, known]) / values[known]) / sizes  # noqa: PLW2901
                if np.all(np.isfinite(v)):
                    yield v / v[largest_first(v)[0]]

    def simple(self, columns):
        """Directions of small whole numbers that span what is orthogonal to columns (d, n), or what is nearest to it.

        Most ridges are of this kind: all skills together, an intercept against its groups. From gradients by
        differences they come inexact, and far out there is no telling them from what is not flat.
        """
        sizes = np.abs(columns).max(axis=0)  # the least of which may be rounding
        left, values, _ = np.linalg.svd(columns / np.maximum(sizes, FLAT * sizes.max()))
        rows = left.T[values <= FLAT * values[0]][-COORDINATES:] * self.scale
        for i in range(len(rows)):
            rows[i:] /= np.abs(rows[i:]).max(axis=1, keepdims=True)
            j = int(largest_first(rows[i])[0])
            rows[i] /= rows[i, j]
            others = np.arange(len(rows)) != i
            rows[others] -= np.outer(rows[others, j], rows[i])
        for row in rows:
            whole = np.round(WHOLE * row / np.abs(row).max()) / WHOLE
            if np.count_nonzero(whole) > 1:
                v = whole / self.scale
                yield v / v[largest_first(v)[0]]

    def downhill(self):
        """From a point to where a search for the mode gets in a few steps (Barzilai & Borwein's), or None."""
        p, z = self.points[0][0], np.zeros(self.dim)
        gradient, step = self.gradient(p) * self.scale, 0.0
        for _ in range(STEPS):
            largest = np.abs(gradient).max()
            if not 0.0 < largest < math.inf:
                break
            step = min(step, 1e100) or 1.0 / largest
            before, z = gradient, z - step * gradient
            gradient = self.gradient(p + self.scale * z) * self.scale
            change = gradient - before
            curvature = -(before @ change) / (before @ before)
            step = 1.0 / curvature if curvature > 0.0 else 10.0 * step
        size = np.abs(z).max()
        return z / size if 0.0 < size < math.inf else None

    def along_both(self, v, shell, last):
        """How U goes along a ray from the first point, and if it does not grow, along one from the second as well."""
        ray = self.to_the_end(self.points[0], v, shell, last)
        if ray.kind == "grows":
            return ray
        w = v if shell == 1 else v * self.rng.uniform(0.5, 1.0, self.dim)  # another direction, nearby
        other = self.to_the_end(self.points[1], w, shell, last)
        if ray.kind == "" or other.kind in ("grows", ""):
            if np.count_nonzero(v) == 1:
                self.unclear.append((int(np.flatnonzero(v)[0]), float(np.sum(v))))
            return other if other.kind == "grows" else Ray("")
        return other._replace(certain=other.certain and ray.certain) if ray.kind == "falls" else ray

    def to_the_end(self, point, v, shell, last):
        """How U goes from a point in the direction v, and far beyond where it grows."""
        ray = self.along(point, v, shell, last)
        places = BEYOND if last == EXACT else COMPUTED
        return self.far_out(point, v, shell, places) if ray.kind == "grows" and not self.few else ray

    def along(self, point, v, shell, last):
        """How U goes from a point in the direction v."""
        p, before = point
        t_before, slopes, rate, falls = 1.0, [], 0.0, True
        for t in PLACES:
            u = self.potential(p + t * self.scale * v)
            if t == PLACES[0] and PENALTY < abs(u - before) < math.inf and np.count_nonzero(v) == 1:
                self.risen.append((p, before, p + t * self.scale * v, u))
            if math.isnan(u) or u == -math.inf:
                # Where a part has underflowed, e^x in log e^x, neither says much, unless U has been falling before.
                certain = t >= 1e3 if u == -math.inf else t > EXACT
                if falls and (u == u or len(slopes) > 1):  # a fall to the first place says where a mode is
                    between = () if u == u else [self.potential(p + s * self.scale * v) for s in BETWEEN if s < t]
                    if all(b < a - LEVEL for a, b in itertools.pairwise(between)):
                        return Ray("falls", certain=certain and bool(slopes))
                return Ray("")
            if t > (ROUND if last == FAR else PLACES[0]) and LEVEL < abs(u - before) < math.inf:
                again = self.potential(p + (1.0 + 1e-6) * t * self.scale * v)
                if not abs(again - u) < 0.1 * abs(u - before):  # rounding, of terms that cancel
                    if len(slopes) < 3:
                        return Ray("")
                    break
            slopes.append((u - before) / math.log(t / t_before))
            if slopes[-1] > GROWS * shell:
                return Ray("grows")
            steeper = (before - u) / (t - t_before)
            fell, falls = falls, steeper > 0.5 * rate and slopes[-1] < -LEVEL
            if t >= last and not (falls or fell):  # after a fall one more: a minimum may be between the two
                break
            before, t_before, rate = u, t, steeper
        else:
            return Ray("falls", certain=True)
        if max(slopes[-3:]) > MARGIN * shell:
            return Ray("grows")
        if max(slopes[-3:]) > LEVEL:
            return Ray("heavy", slopes[-1])
        return Ray("flat" if min(slopes[-3:]) > -LEVEL else "falls")

    def far_out(self, point, v, shell, places):
        """How U goes far beyond where it grows: it may fall there, or be level at a height that runs get to."""
        (p, start), slopes, before = point, [], math.nan
        for t in places:
            u = self.potential(p + t * self.scale * v)
            if not abs(u) < HUGE:  # as exponentials, whose differences say nothing
                return Ray("grows" if u == math.inf else "")
            slopes.append((u - before) / math.log(places[1] / places[0]))
            if slopes[-1] > MARGIN * shell:
                return Ray("grows")
            before = u
        if u > start + HEIGHT:
            return Ray("")
        if slopes[-1] < -LEVEL:
            return Ray("beyond" if u < start - FALL * t else "grows")  # or rounding
        return Ray("heavy" if slopes[-1] > LEVEL else "flat", slopes[-1])

    def penalty(self):
        """A coordinate along which U jumps so high that it is meant to be a wall, as by 1e10 outside of x > 0."""
        for p, low, q, high in self.risen:
            height, a, b = abs(high - low), p, q
            j = int(np.argmax(np.abs(q - p)))
            if abs(self.potential(2.0 * q - p) - high) > 0.5 * height:  # it goes on rising
                continue
            while abs(high - low) > 0.5 * height:
                middle = 0.5 * (a + b)
                if abs(b[j] - a[j]) < THIN * self.scale[j]:
                    place = middle[j].round(6) + 0.0
                    return Improper(
                        f"U of {self.name} jumps by {height:.3g} at {self.names()[j]} = {place:.6g}, which no "
                        "gradient shows, so that samplers cross it or stay behind it: where the density is to be 0, "
                        "U must be infinite, so return inf there, or bound the coordinate by `transforms=` or "
                        "pdmp.Bounded.",
                        False,
                    )
                u = self.potential(middle)
                if abs(u - low) > abs(high - u):
                    b, high = middle, u
                else:
                    a, low = middle, u
        return None

    # -- spikes, necks and limits -----------------------------------------------------------------------------------

    def spike(self):
        """U falls to -∞ like c log |xⱼ| towards xⱼ = 0, with c at least 1, or towards 0 with c at least d."""
        each = np.eye(self.dim, dtype=bool) if 1 < self.dim <= COORDINATES and not self.few else []
        for members in (np.ones(self.dim, bool), *each):
            limit = int(members.sum())
            rate = self.spike_rate(self.points[0], members, limit)
            if rate > 0.0 and self.spike_rate(self.points[1], members, limit) > 0.0:
                where = f"{self.names()[int(np.argmax(members))]} = 0" if limit < self.dim else "x = 0"
                return Improper(
                    f"U of {self.name} falls like {rate:.3g} log|x| towards {where}, and may fall slower than "
                    f"{limit} log|x| only: the density has a spike there that cannot be normalised, and the posterior "
                    "is improper; give another prior.",
                    False,
                )
        return None

    def spike_rate(self, point, members, limit):
        """c with U like c log |x| where the `members` of a point go to 0, if that is too much; else 0."""
        (p, before), rates = point, []
        for t in (1e-12, 1e-9, 1e-6):
            u = self.potential(np.where(members, t * p, p))
            if not rates and not before - u > SPIKE or rates and not (u - before) / math.log(1e3) >= limit / MARGIN:
                return 0.0
            rates.append((u - before) / math.log(1e3))
            before = u
        return rates[-1] if rates[-1] < 2.0 * rates[-2] else 0.0  # not where U is steep there, near a far mode

    def neck(self):
        """A coordinate that makes others narrower, and whose density without them does not fall off.

        All else is held fixed: of what is proper nearly every conditional density is. Which get narrower is seen at a
        random point, away from where they are narrow to: derivatives along them bend.
        """
        if not self.dense or self.dim == 1:
            return None
        p, found = self.points[0][0], []
        here = self.gradient(p)
        wide = np.maximum(np.abs(here), 1e-9 * np.abs(here).max())
        for j, step in enumerate(np.diag(np.abs(p) + NECK[-1])):
            up, down = self.gradient(p + step), self.gradient(p - step)
            bends = np.nan_to_num(np.abs(up - here + down - here) / wide, posinf=0.0)  # 0 where U is quadratic
            bends[j] = 0.0
            k = int(np.argmax(bends))
            found.append((bends[k], j, 1.0 if abs(up[k]) > abs(down[k]) else -1.0, np.flatnonzero(bends > NARROWER)))
        self.last = self.count + self.most
        for _, j, narrow, rest in sorted(found, key=lambda f: -f[0]):
            if len(rest) == 0 or self.count > self.last:
                break
            if self.flat is not None and not self.flat[j]:
                continue
            for side in (narrow, -narrow):
                how = self.falls_too_slowly(j, side, rest)
                if how is None:
                    continue
                return Improper(
                    f"the posterior is improper where {self.names()[j]} → {'-' if side < 0.0 else ''}∞: its density "
                    f"{how}; give it a proper prior.",
                    False,
                )
        return None

    def falls_too_slowly(self, j, side, rest):
        """How the density of coordinate j goes with `rest` integrated out, if that is too slow; else None."""
        x, start, before = self.x.copy(), min(max(side * self.x[j], 0.0), BEGINS), math.nan
        flat, slopes = True, []
        for t in (*NECK, *NARROW):
            if len(slopes) == len(NECK) - 1 and flat:
                return (
                    "does not fall off there once all else is integrated out, as that of the logarithm of a spread "
                    "with a flat prior"
                )
            last, x[j] = max(abs(x[j]), 1.0), side * (start + t)
            level = self.marginal(x, rest)
            if math.isnan(level):
                if t > NECK[0] or self.count > self.last:
                    return None
                x = self.x.copy()  # flat at 0 alone, it may be
            if t > NECK[0]:
                slopes.append((level - before) / math.log(abs(x[j]) / last))
            if t > NECK[1]:  # the first is on the way
                flat = flat and abs(level - before) < LEVEL * (NECK[2] - NECK[1])
                if not (flat or LEVEL < slopes[-1] < (SLOW if t <= NECK[-1] else MARGIN)):
                    return None
            before = level
        return f"falls off like |x|^-{slopes[-1]:.3g} once all else is integrated out, and must do so faster than 1/|x|"

    def marginal(self, x, rest):
        """-log of the integral over the coordinates `rest` by Laplace's method, up to a constant; NaN without a mode.

        `x` is moved to the mode, near which the next begins: far from it, narrow ones are lost in rounding.
        """
        here, gradient = self.potential(x), self.gradient(x)[rest]
        for _ in range(NEWTON):
            hessian = np.empty((len(rest), len(rest)))
            for row, i in enumerate(rest):
                y = x.copy()
                y[i] += 1e-4 * self.scale[i]
                hessian[row] = (self.gradient(y)[rest] - gradient) / (y[i] - x[i])
            if self.count > self.last or not np.all(np.isfinite(hessian)):
                break
            values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
            inverse = vectors / np.maximum(np.abs(values), 1e-12 * np.abs(values).max()) @ vectors.T
            before, step, decrement = x[rest], inverse @ gradient, gradient @ inverse @ gradient
            for size in 0.5 ** np.arange(10):
                x[rest] = before - size * step
                below = self.potential(x)
                if below <= here + NORMAL:
                    break
            here, gradient = below, self.gradient(x)[rest]
            if values[0] > 0.0 and gradient @ inverse @ gradient <= NORMAL * max(1.0, decrement):
                return here + 0.5 * float(np.log(values).sum())
        return math.nan

    def limit(self):
        """A coordinate along which U tends to a limit, where far out it is rounding alone."""
        for j, side in self.unclear:
            if self.flat is None or self.flat[j]:
                if all(self.tends(p, j, side) for p, _ in self.points):
                    return Improper(
                        f"U of {self.name} tends to a limit along {self.names()[j]} → {'-' if side < 0.0 else ''}∞, as "
                        "minus a log likelihood does in degrees of freedom, a dispersion or a component of a mixture: "
                        "with a flat prior the posterior is improper; give a proper one.",
                        False,
                    )
        return None

    def tends(self, p, j, side):
        """Whether U changes ever less from place to place towards one side of coordinate j, until rounding is all."""
        y, start, before, change, smaller = p.copy(), max(side * p[j], 0.0), math.nan, math.nan, 0
        for t in APPROACH:
            y[j] = side * (start + t)
            u = self.potential(y)
            last, change, before = change, abs(u - before), u
            if not math.isfinite(u):
                return False
            if math.isnan(last):
                continue
            if change <= SETTLED:
                break
            if change > LESS * last:
                if smaller > 2 and last < ROUNDED and any(abs(self.moved(y, j, e) - u) > 0.1 * change for e in SHIFTS):
                    break  # rounding
                smaller = -1
            smaller += 1
        else:
            return False
        return not self.moved(y, j, side * 1e4) == math.inf  # a wall

    def moved(self, x, j, step):
        """U with coordinate j moved."""
        y = x.copy()
        y[j] += step
        return self.potential(y)

    # -- words -----------------------------------------------------------------------------------------------------

    @property
    def name(self):
        return type(self.model).__name__

    def names(self):
        return coordinate_names(self.model.variables, self.model.transforms)

    def say(self, v, shell, ray, found):
        """The sentence for a ray, of all that were found."""
        where = self.where(v, [w for w, _, r in found if r.kind == ray.kind])
        if ray.kind == "falls":
            cure = "a potential is minus the log density, so give -f and minus its gradient"
            if getattr(self.model, "of_log_density", False):
                cure = "`log_density` has the sign of a potential, so give -f"
            text = (
                f"U of {self.name} falls without end along {where}: {cure}; or the posterior is improper in that "
                "direction and needs a proper prior there."
            )
        elif ray.kind == "beyond":
            text = (
                f"U of {self.name} grows along {where}, and far beyond that falls without end: the posterior is "
                "improper, and a run is of what is near its start only; a term of high order may have the wrong sign."
            )
        elif ray.kind == "flat":
            text = (
                f"U of {self.name} does not grow along {where}: the posterior is improper in that direction, where a "
                "prior is flat and the data say nothing; give a proper prior."
            )
        elif not ray.rate > LEVEL:
            text = (
                f"U of {self.name} is bounded along {where}: the tails cannot be normalised and the posterior is "
                "improper; give a proper prior."
            )
        else:
            text = (
                f"U of {self.name} grows like {ray.rate:.3g} log|x| along {where}, and must grow faster than {shell} "
                "log|x|: the tails cannot be normalised and the posterior is improper; give a proper prior."
            )
        return Improper(text, ray.certain)

    def where(self, v, others):
        """The direction in words, with others along coordinates."""
        if np.count_nonzero(v) > 1:
            along = v * self.scale
            return in_words(along / np.abs(along).max(), self.names())
        names, sides = self.names(), {}
        for w in others:
            if np.count_nonzero(w) == 1:
                j = int(np.flatnonzero(w)[0])
                sides.setdefault(j, set()).add(w[j] > 0.0)
        return ", ".join(f"{names[j]} → {'±' if len(s) == 2 else '' if True in s else '-'}∞" for j, s in sides.items())


def in_words(v: np.ndarray, names: list[str]) -> str:
    """A direction (d,) by its largest entries."""
    parts = [f"{v[j]:+.2g} {names[j]}" for j in largest_first(v)[:3] if abs(v[j]) > 1e-6]
    return f"the direction {' '.join(parts)}{' …' if len(v) > 3 else ''}"


def largest_first(v):
    """Places of the entries by their absolute values, those that differ by rounding alone in their order."""
    return np.argsort(-np.round(np.abs(v) / np.abs(v).max(), 6), kind="stable")
