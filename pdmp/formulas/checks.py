"""What is wrong with columns, groups and names of a regression, before it is sampled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from pdmp.automatic.sampling import arguments
from pdmp.data.formats import listed
from pdmp.data.tables import did_you_mean
from pdmp.engine.checkpoint import BUDGETS
from pdmp.engine.checks import check_budget, check_goal, check_number
from pdmp.errors import warn
from pdmp.formulas.design import Design
from pdmp.formulas.smooths import is_smooth
from pdmp.formulas.totals import Totals
from pdmp.models.families import COUNTED, Family
from pdmp.models.priors import Flat, Prior
from pdmp.models.regressions.design import pieces
from pdmp.models.regressions.mixed import GroupColumn
from pdmp.native.arguments import count

COLLINEAR = 1e-10  #: share of a column's variance that other columns leave, below which it is their sum
CONSTANT = 1e-12  #: sd of a column over its largest value up to which it is a constant, as for `MixedRegression`
LARGEST = 1e140  #: of absolute values, whose squares are added
OF_DRAWS = ("chain", "draw")  #: columns of `Fit.to_dataframe` besides the parameters
COLUMNS = 1_000  #: up to which it is looked whether their sum is the response
EXACT = 1e-10  #: of a response's sd: what a sum of columns that is the response leaves
SEPARATION_ROWS = 20_000  #: most rows that are added at once to those where a sum that separates is looked for


def check_parameters(columns: Sequence[str], groups: Sequence[str], dispersions: Sequence[str]) -> None:
    """Refuse columns that are called as another parameter is: one of the two would be reported as the other.

    `columns` are names of coefficients and of terms, `groups` those of effects and their standard deviations.
    """
    taken = dict.fromkeys(groups, "effects of groups are called so")
    taken |= dict.fromkeys(dispersions, "a parameter of the family is called so")
    taken |= dict.fromkeys(OF_DRAWS, "tables of draws have a column of that name")
    for name in columns:
        if name in taken:
            raise ValueError(
                f"`formula`: the column {name!r} cannot be told apart, as {taken[name]}: rename the column."
            )


def check_sizes(design: Design, totals: Totals) -> None:
    """Refuse columns whose squares are not finite numbers, and a response whose squares are 0."""
    named = [*zip(design.columns, totals.largest, strict=True), (design.response, totals.y_largest)]
    named += [(g.name, size) for g, size in zip(design.groups, totals.value_largest, strict=True)]
    named.append(("weights", totals.weights[1]))
    for name, size in named:
        if size > LARGEST:
            raise ValueError(f"the column {name!r} has values of up to {size:.2g}: give it in a larger unit.")
    if 0.0 < totals.y_largest < 1.0 / LARGEST:
        size = totals.y_largest
        raise ValueError(
            f"the response {design.response!r} has values of at most {size:.2g}: give it in a smaller unit."
        )


def check_groups(groups: Sequence[GroupColumn], notes: list[str]) -> None:
    """Refuse a grouping of one group, and several of a row that are the same; note groups of one row."""
    for name in dict.fromkeys(g.grouping for g in groups if not is_smooth(g)):
        group = next(g for g in groups if g.grouping == name)
        several = group.level.T if group.level.ndim > 1 else ()
        if any(len(a) and np.array_equal(a, b) for a, b in itertools.combinations(several, 2)):
            raise ValueError(
                f"`formula`: two columns of {name} have the same group in every row: name each once, and of one column "
                "write (1 | g)."
            )
        if len(group.levels) == 1:
            raise ValueError(f"`formula`: {name!r} has one group only, {group.levels[0]!r}; effects need two or more.")
        single = int(np.sum(group.sizes == 1))
        if single:
            notes.append(f"{single:,} of {len(group.levels):,} groups of {name} have one row")


def independence(groups: Sequence[GroupColumn], prefix: str = "") -> list[str]:
    """Notes on groupings with effects of several columns that do not correlate, of names that begin with `prefix`."""
    found = []
    for name in dict.fromkeys(g.grouping for g in groups):
        own = [(prefix + g.name, g.partners or (prefix + g.name,)) for g in groups if g.grouping == name]
        if any({called for called, _ in own}.difference(partners) for _, partners in own):
            is_one = all(one.startswith(prefix) for part in dict(own).values() for one in part)
            said = [
                " and ".join(one.removeprefix(prefix if is_one else "") for one in part) for part in dict(own).values()
            ]
            said = "; ".join(dict.fromkeys(said))
            found.append(f"{prefix}effects of {name} are independent of each other, those of {said}, as by ||")
    return found


def check_identified(
    groups: Sequence[GroupColumn],
    noise: str | None,
    weights: str | None,
    weight: np.ndarray | None,
    given: Mapping[str, Any],
) -> None:
    """Refuse standard deviations that data cannot tell from another, unless a prior is given for one of the two.

    Of one row a group they cannot tell an effect from noise, whose parameter is called `noise`, but where one of the
    two varies; and two groupings with the same groups have one effect between them, as have two curves of columns with
    the same values. Of rows in files only intercepts are looked at.
    """
    for k, g in enumerate(groups):
        size = g.value**2 if len(g.value) else np.ones(1)
        if weight is not None and g.value.ndim == 1:
            size = size * weight
        known = g.value.ndim == 1 and (len(g.value) or (g.name.startswith("1|") and weights is None))
        alike = known and np.ptp(size) <= CONSTANT * np.max(size)
        if noise is not None and alike and np.all(g.sizes == 1) and not {g.sd_name, noise} & set(given):
            raise ValueError(
                f"`formula`: each group of {g.grouping!r} has one row, so that the data cannot tell {g.sd_name} from "
                f"{noise}: drop ({g.name.replace('|', ' | ')}), as {noise} has its effects too, or give {noise} a "
                "prior in `priors` that is as narrow as what is known of it."
            )
        for other in groups[:k]:
            if _are_same(g, other) and not {g.sd_name, other.sd_name} & set(given):
                what = "steps or functions" if is_smooth(g) else "groups"
                first, second = (one.name if g.grouping == other.grouping else one.grouping for one in (other, g))
                raise ValueError(
                    f"`formula`: {first!r} and {second!r} have the same {what}, so that the data "
                    f"cannot tell {other.sd_name} from {g.sd_name}: drop one of them, or give one a prior in "
                    "`priors`."
                )


def _are_same(g, other):
    """Whether two groups of effects are the same but for the order of groups and a factor of all values."""
    if g.value.shape != other.value.shape or not len(g.value) or len(g.levels) != len(other.levels):
        return False
    at = np.unravel_index(int(np.argmax(np.abs(g.value))), g.value.shape)
    if g.value.ndim == 1:
        if not np.allclose(g.value * other.value[at], other.value * g.value[at], rtol=CONSTANT, atol=0.0):
            return False
        return len(np.unique(g.level * np.int64(len(g.levels)) + other.level)) == len(g.levels)
    if is_smooth(g) != is_smooth(other):
        return False
    a, b = _multiplied(g), _multiplied(other)
    return abs(a - b).max() <= 1e-9 * abs(a).max()


def _multiplied(g):
    """What effects, several of a row, are multiplied by in each row, a sparse matrix (n, effects)."""
    from scipy import sparse

    level = np.broadcast_to(g.level, g.value.shape)
    rows = np.broadcast_to(np.arange(len(g.value))[:, None], level.shape)
    return sparse.csr_array((g.value.ravel(), (rows.ravel(), level.ravel())), shape=(len(g.value), len(g.levels)))


def absorbed(design: Design, groups: Sequence[GroupColumn], given: Mapping[str, Any]) -> str | None:
    """A warning that names effects of groups which fixed columns have too, one for each; unless a prior is given.

    Numbers drawn for the groups are then a sum of columns. And steps of a monotonic effect that are. Of rows in memory
    alone.
    """
    for g in groups:
        if not 0 < len(g.value) == len(design.X):
            continue
        if g.warp is not None and g.warp.is_monotonic:
            text = _steps_among(design, g, [other for other in groups if is_smooth(other) and other is not g])
            if text is not None:
                return text
        elif len(g.levels) <= design.X.shape[1] and g.sd_name not in given:
            drawn = np.random.default_rng(0).standard_normal(len(g.levels))[g.level] * g.value
            effects = drawn if drawn.ndim == 1 else drawn.sum(axis=1)
            rest = effects - design.X @ np.linalg.lstsq(design.X, effects, rcond=None)[0]
            if rest @ rest <= COLLINEAR * (effects @ effects):
                what = f"are every curve of {g.name}" if is_smooth(g) else f"have an effect of each group of {g.name}"
                return f"fixed columns {what} already: the data say nothing of {g.sd_name}, and its prior decides."
    return None


def _steps_among(design, g, smooths):
    """A warning that names columns, or curves, of which a sum is a sum of the steps of a monotonic effect."""
    names = [*design.columns, *(other.name for other in smooths for _ in other.levels)]
    columns = np.hstack([design.X, *(other.value for other in smooths)])
    if len(columns) <= columns.shape[1] + g.value.shape[1]:
        return None
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    steps = np.unique(g.value[:, np.any(g.value, axis=0)], axis=1)  # of levels that no row has, two are the same
    steps = steps / np.linalg.norm(steps, axis=0)
    left = steps - columns @ np.linalg.lstsq(columns, steps, rcond=None)[0]
    sizes, axes = np.linalg.eigh(left.T @ left)
    if sizes[0] > COLLINEAR:
        return None
    shares = np.linalg.lstsq(columns, steps @ axes[:, 0], rcond=None)[0]
    found = (names[k] for k in np.flatnonzero(np.abs(shares) > 1e-6) if k != design.intercept)
    return (
        f"a sum of the steps of {g.sd_name} is also one of {listed(list(dict.fromkeys(found)))}: the data cannot tell "
        "them apart, and their priors decide."
    )


def collinear(design: Design, priors: Sequence[Prior], totals: Totals) -> str | None:
    """A warning that names a column which is a sum of earlier ones; an error where a prior is flat.

    Of columns about their means where there is an intercept, so that one that is far from 0 is not taken for it.
    """
    norms = np.sqrt(np.diag(totals.products))
    varies = norms > CONSTANT * math.sqrt(totals.rows)
    known = np.where(varies, norms, 1.0)
    gram_matrix = totals.products / np.outer(known, known)
    size = np.where(totals.largest > 0.0, totals.largest, 1.0)
    kept, text = [], None
    root = np.zeros_like(gram_matrix)  # LLᵀ of the columns that are kept
    for j, column in enumerate(design.columns):
        if j == design.intercept:
            continue
        n = len(kept)
        across = solve_triangular(root[:n, :n], gram_matrix[kept, j], lower=True) if n else np.zeros(0)
        left = gram_matrix[j, j] - across @ across
        if varies[j] and left > COLLINEAR:
            root[n, :n], root[n, n] = across, math.sqrt(left)
            kept.append(j)
            continue
        part = solve_triangular(root[:n, :n], across, lower=True, trans="T") if n else across
        shares = {k: share for k, share in zip(kept, part, strict=True) if varies[j] and abs(share) > 1e-6}
        others = list(shares)
        if design.intercept is not None:  # what is left of the means
            of_means = [share * known[j] / known[k] * totals.mean[k] / size[k] for k, share in shares.items()]
            if abs(totals.mean[j] / size[j] - sum(of_means)) > 1e-6:
                others = sorted([design.intercept, *others])
        named = listed([design.columns[k] for k in others])
        what = f"is a sum of {named}" if others else "is 0 in every row"
        if any(isinstance(priors[k], Flat) for k in (j, *others)):
            raise ValueError(f"the column {column!r} {what}, and with a Flat prior nothing decides: leave it out.")
        if text is None:
            text = f"the column {column!r} {what}: the data say nothing of it alone, and its prior decides."
            if not varies[j] and others:
                text += " If it varies, the variation is lost beside its size: subtract a number near its mean."
    return text


class Thresholds:
    """Columns of ordered categories: a row for each row and threshold k, which has cut k less the predictor."""

    def __init__(self, X: np.ndarray, intercept: int | None, cuts: int) -> None:
        self.X, self.intercept, self.cuts = X, intercept, cuts
        self.shape = len(X) * cuts, X.shape[1] + cuts

    def __getitem__(self, rows: Any) -> np.ndarray:
        i, k = np.divmod(np.arange(self.shape[0])[rows], self.cuts)
        x = self.X[i]
        if self.intercept is not None:  # which the cuts are
            x[:, self.intercept] = 0.0
        return np.hstack([x, -np.eye(self.cuts)[k]])


def leanings(family: Family, name: str, y: np.ndarray, rest: Mapping[str, Any]) -> list[tuple[str, np.ndarray]]:
    """Whether the loss of each row falls without end in the predictor of this parameter: what is said if all do.

    1: if the predictor rises; -1: if it falls; 0: neither; NaN: the row says nothing of it. Of the reference of
    categories, whose name is "": if those of all others do.
    """
    kind, first, is_zero, (low, high) = family.name, family.named[0], y == 0.0, np.maximum(family.ends, 0.0)
    if "lb" in rest or "ub" in rest or kind.startswith("mixture"):
        return []
    if family.predictor is not None and name not in ("zi", "hu"):
        return []
    if family.is_nominal:
        if family.is_counted:
            of = {one: rest[COUNTED + one] for one in family.named}
            total = sum(of.values(), y)
        else:
            of, total = {one: 1.0 * (y == k + 1.0) for k, one in enumerate(family.named)}, np.ones(len(y))
        if name:
            return [(f"separate {name!r} from the other categories", _of_shares(of[name], total))]
        return [("separate the first category from the others", -_of_shares(sum(of.values()), total))]
    if family.arrange is not None and name == first:
        cuts = np.arange(y.max())
        above = np.where(y[:, None] > cuts, 1.0, -1.0)
        if kind == "sratio":
            above[y[:, None] < cuts] = np.nan
        return [("separate the categories", above.ravel())]
    if name in ("zi", "hu"):
        lean = np.where(is_zero, 1.0, -1.0)
        return [("separate the rows of 0 from others", np.where(rest.get("trials", 1.0) == 0.0, np.nan, lean))]
    if name != first:
        return []
    if family.response == "label":
        return [("separate the labels", np.where(y > 0.0, 1.0, -1.0))]
    if "trials" in rest:
        ends = "the fewest or most successes" if low > 0.0 or high < math.inf else "no success, or of no failure,"
        return [(f"separate rows of {ends} from others", _of_shares(y - low, np.minimum(rest["trials"], high) - low))]
    if "censored" in rest:
        lean = np.where(np.abs(rest["censored"]) == 1.0, rest["censored"], 0.0)
        return [("separate censored rows from others", lean)]
    if family.response == "count" and family.links.get(first) == "log":
        if kind.startswith("hurdle"):
            return [("separate rows of 1 from larger counts", np.where(is_zero, np.nan, np.where(y == 1.0, -1.0, 0.0)))]
        ends = f"{low:g}" if high == math.inf else f"{low:g} or {high:g}"
        return [(f"separate rows of {ends} from others", np.where(y == low, -1.0, np.where(y == high, 1.0, 0.0)))]
    return []


def _of_shares(y, total):
    return np.where(total == 0.0, np.nan, np.where(y == 0.0, -1.0, np.where(y == total, 1.0, 0.0)))


def separated(
    design: Design, priors: Sequence[Prior], totals: Totals, said: str, lean: np.ndarray, prefix: str = ""
) -> str | None:
    """A warning that names columns a sum of which lowers the loss of rows, and raises that of none.

    Of a large table some rows are looked at, and those added that the sum found for them has on the wrong side: what
    does not separate some of the rows does not separate all. `said` and `lean` are of `leanings`.
    """
    X: Any = design.X
    if len(lean) > len(X):
        X = Thresholds(X - X.mean(axis=0), design.intercept, len(lean) // len(X))
    own = [] if design.intercept is None else [design.intercept]
    known = ~np.isnan(lean)
    if X is design.X and not known.all() and (unseen := _unseen(design, priors, totals, known, prefix)):
        return unseen
    if not np.any(np.abs(lean) == 1.0):
        return None
    if own and abs(np.sum(lean[known])) == known.sum():
        alone = f"each row fits better the {'larger' if np.any(lean == 1.0) else 'smaller'} {prefix}the intercept is"
        if isinstance(priors[own[0]], Flat):
            raise ValueError(f"{alone}: a Flat prior leaves no posterior; give a proper one.")
        return f"{alone}: the likelihood has no maximum, and the prior decides how large it is."
    intercept, few = design.intercept if X is design.X else None, min(SEPARATION_ROWS, 1_000 + 5 * X.shape[1])
    rows, total = np.unique(np.linspace(0, len(lean) - 1, few).astype(np.int64)), None
    centre = np.zeros(X.shape[1])
    if intercept is not None:
        centre = X[rows].mean(axis=0)
        centre[intercept] = 0.0
    while True:
        some, side = X[rows] - centre, lean[rows]
        basis = _unchanged(some[side == 0.0], intercept)
        if not basis.size:
            return None
        if total is None:  # what a sum of columns has of all rows: few of them may be of a level
            of_pieces = [_sums(X[s] - centre, lean[s]) for s in pieces(X)]
            total, size = (np.sum(part, axis=0) for part in zip(*of_pieces, strict=True))
        found = _falls(some[np.abs(side) == 1.0] * side[np.abs(side) == 1.0][:, None], basis, total, size)
        if found is None:
            return None
        each = [(lean[s], (X[s] - centre) @ found) for s in pieces(X)]
        side, z = (np.concatenate(part) for part in zip(*each, strict=True))
        found, z = found / np.abs(z).max(), z / np.abs(z).max()
        more = np.setdiff1d(np.flatnonzero((side * z < -1e-9) | (side == 0.0) & (np.abs(z) > 1e-9)), rows)
        if len(more) == 0:
            break
        rows = np.union1d(rows, more[:SEPARATION_ROWS])
    if not np.any(side * z > 1e-6):
        return None
    spread = np.where(totals.sd > CONSTANT * totals.largest, totals.sd, totals.largest)
    places = [j for j in np.flatnonzero(np.abs(found[: len(spread)]) * spread > 1e-6) if j != design.intercept]
    named, they = listed([prefix + design.columns[j] for j in places]) or f"{prefix}the intercept", "they are"
    if len(places) < 2:
        said, they = said.replace("separate", "separates", 1), "it is"
    if any(isinstance(priors[j], Flat) for j in places or own):
        raise ValueError(f"{named} {said}: a Flat prior leaves no posterior; give a proper one.")
    return f"{named} {said}: the likelihood has no maximum, and the prior decides how large {they}."


def _unseen(design, priors, totals, known, prefix):
    """A warning that names columns which differ in no row that says something of the predictor, as one of 0 trials."""
    basis, before = (_unchanged(rows, design.intercept) for rows in (design.X[known], design.X))
    if basis.shape[1] <= before.shape[1]:
        return None
    places = np.flatnonzero(np.abs(basis).max(axis=1) * totals.largest > 1e-6)
    places = [j for j in places if j != design.intercept]
    named = listed([prefix + design.columns[j] for j in places]) or f"{prefix}the intercept"
    text = f"no row that could tell, of those with a positive response or with trials, says anything of {named}: "
    proper = [j for j in range(len(basis)) if not isinstance(priors[j], Flat)]
    sized = basis * np.reshape(totals.largest, (-1, 1))
    if np.linalg.matrix_rank(sized[proper], 1e-6 * np.abs(sized).max()) < basis.shape[1]:  # no prior falls off there
        raise ValueError(f"{text}a Flat prior leaves no posterior; give a proper one.")
    return f"{text}the prior decides."


def _sums(A, lean):
    """Σ lean · row of a piece of the rows, and of absolute values."""
    signed = np.where(np.abs(lean) == 1.0, lean, 0.0)
    return signed @ A, np.abs(signed) @ np.abs(A)


def _falls(signed, basis, total, size):
    """Coefficients b, of a basis, with `signed` b ≥ 0 and `total` · b > 0; None if there are none."""
    from scipy import optimize

    wide = size @ np.abs(basis)
    kept = np.abs(total @ basis) > 1e-9 * wide
    kept |= np.abs(signed @ basis).max(axis=0, initial=0.0) * len(signed) > 1e-9 * wide
    if not kept.any():
        return None
    basis = basis[:, kept] / np.maximum(np.abs(signed @ basis[:, kept]).max(axis=0, initial=0.0), 1e-9 * wide[kept])
    rise = total @ basis
    limits = {} if not len(signed) else {"A_ub": -signed @ basis, "b_ub": np.zeros(len(signed))}
    solved = optimize.linprog(-rise / np.abs(rise).max(), bounds=(-1.0, 1.0), **limits)
    # A cone, but for rounding: it reaches the bounds, or is 0.
    return basis @ solved.x if solved.status == 0 and solved.fun < -1e-9 and np.abs(solved.x).max() > 0.5 else None


def _unchanged(fixed, intercept):
    """A basis, (columns, m), of coefficients that change none of these rows."""
    scale, middle = np.ones(fixed.shape[1]), np.zeros(fixed.shape[1])
    if not len(fixed):
        return np.diag(scale)
    if intercept is not None:  # about their own means, so that what is far from 0 is not taken for a constant
        middle = fixed.mean(axis=0)
        middle[intercept] = 0.0
    about = fixed - middle
    largest, spread = np.abs(fixed).max(axis=0), np.sqrt((about**2).mean(axis=0))
    scale = np.where(spread > CONSTANT * largest, spread, np.where(largest > 0.0, largest, 1.0))
    about = about / scale
    values, vectors = np.linalg.eigh(about.T @ about / len(about))
    basis = vectors[:, values < COLLINEAR] / scale[:, None]
    if intercept is not None:
        basis[intercept] -= middle @ basis
    return basis


def fitted_exactly(design: Design, y: np.ndarray, groups: Sequence[GroupColumn] = ()) -> str | None:
    """A warning that a sum of columns is the response, less its offset, up to rounding, in more rows than columns.

    Or that it is the same in all rows of each group. `y`: the response as the predictor is, by the link.
    """
    X, n, p, limit = design.X, len(y), design.X.shape[1], EXACT * np.std(y)
    if not np.ptp(y):
        return None
    runs_off = "up to rounding: nothing is left for the noise, whose sd runs to 0."
    for g in groups:
        if g.level.ndim == 1 and len(g.value) == n and g.label == "1" and 1 < len(g.levels) <= n // 2:
            low, high = np.full(len(g.levels), np.inf), np.full(len(g.levels), -np.inf)
            np.minimum.at(low, g.level, y)
            np.maximum.at(high, g.level, y)
            if (high - low).max() <= limit:
                return f"{design.response!r} is the same in all rows of each group of {g.grouping!r}, {runs_off}"
    if n <= p or p > COLUMNS:
        return None
    for number in (p + 10, SEPARATION_ROWS):  # of most tables some rows show that they are not
        rows = np.unique(np.linspace(0, n - 1, number).astype(np.int64))
        some = X[rows]
        size = np.maximum(np.abs(some).max(axis=0), 1e-300)
        found = np.linalg.lstsq(some / size, y[rows], rcond=None)[0] / size
        if np.abs(y[rows] - some @ found).max() > limit:
            return None
    if any(np.abs(y[s] - X[s] @ found).max() > limit for s in pieces(X)):
        return None
    return (
        f"a sum of the columns gives {design.response!r} in every row, {runs_off} Leave out what the response was "
        "computed from, or what was computed from it."
    )


def tied(
    family: Family,
    designs: Mapping[str, Design],
    y: np.ndarray,
    offset: np.ndarray | None,
    constants: Mapping[str, Prior],
    weight: np.ndarray | None,
) -> str | None:
    """A warning that a component of a mixture has no proper posterior, as rows of equal columns have equal responses.

    Where such rows weigh W and its sd σ goes to 0 at their response, the density times the width of what fits them goes
    like σ^(1 - W), times the prior of σ. `y`: the response as it is stored; `offset`: of the first component.
    """
    for name, prior in constants.items():
        k = name.removeprefix("sigma")
        if not family.name.startswith("mixture") or name == k:
            continue
        design = designs.get(f"mu{k}")
        columns = [y if offset is None or k != "1" else y - offset]
        if design is not None:
            # Of a smooth the levels are those of each row, and values a row of its basis.
            own = [part for g in design.groups for part in (g.level, g.value) if len(part) == len(y)]
            columns += [*design.X.T, *(column for part in own for column in part.reshape(len(y), -1).T)]
        _, first, which = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
        weights = np.bincount(which.reshape(-1), weight)
        most, least = int(np.argmax(weights)), getattr(prior, "shape", 1.0) + 1.0
        if weights[most] >= least:
            return (
                f"rows of equal columns have the response {y[first[most]]:.6g}, as rounded ones do, and weigh "
                f"{weights[most]:.3g} together: the density grows without end where {name} goes to 0 there, and the "
                f"posterior is improper. Give a prior that keeps it from 0, priors={{{name!r}: Gamma(shape, scale)}} "
                f"with a shape above {weights[most] - 1.0:.3g} (pdmp.models.priors)."
            )
    return None


def suspected(
    design: Design,
    priors: Sequence[Prior],
    totals: Totals,
    groups: Sequence[GroupColumn],
    given: Mapping[str, Any],
    found: Sequence[tuple[str, np.ndarray]] = (),
    prefix: str = "",
    exact: np.ndarray | None = None,
) -> list[str]:
    """Where priors decide, each warned of: by columns, effects of groups, and the responses.

    `found`: what `leanings` has; `exact`: responses less the offset, where columns may be them.
    """
    lines = (
        collinear(design, priors, totals),
        absorbed(design, groups, given),
        next((line for one in found if (line := separated(design, priors, totals, *one, prefix)) is not None), None),
        None if exact is None else fitted_exactly(design, exact, groups),
    )
    texts = [text for text in lines if text is not None]
    for text in texts:
        warn(text)
    return [text.rstrip(".") for text in texts]


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that `pdmp.sample` does not have, and numbers that it would refuse, before the data are read."""
    known = [name for name in arguments() if name != "seed"]
    for name in options:
        if name not in known:
            raise TypeError(f"`regression` has no option {name!r}{did_you_mean(name, known)}")
    given = {name: value for name, value in options.items() if value is not None}
    chains = count("chains", given.get("chains", 4))
    goals = check_goal(chains, given.get("ess"), given.get("rhat"))
    budgets = {name: given[name] for name in BUDGETS if name in given and name not in goals}
    if budgets:
        check_budget(None, **budgets)
    if "warmup" in given and not 0.0 <= check_number("warmup", given["warmup"]) < 1.0:
        raise ValueError(f"`warmup` must be a fraction in [0, 1), got {given['warmup']}.")
    if given.get("store", "skeleton") not in ("skeleton", "grid"):
        raise ValueError(f'`store` must keep draws for a regression, "skeleton" or "grid", got {given["store"]!r}.')
