"""Averages over the rows of a table: of what is expected with a column set to each level, and of slopes by it.

All rows are given the value in turn, their other columns staying what they are, so that averages of two levels are over
the same rows (standardisation, or the g-formula).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.errors import warn
from pdmp.formulas.effects import SCALES
from pdmp.formulas.estimates import Estimates, shown
from pdmp.formulas.grids import check_at, check_groups, check_single, chosen_values, columns_of, names_of
from pdmp.formulas.table import numbers, read_table
from pdmp.native.arguments import count, one_of

if TYPE_CHECKING:
    from pdmp.formulas.fit import Fit

NUMBERS = 2_000_000  #: most predictions in memory at a time
STEP = 1e-5  #: of a derivative, in ranges of the column
NARROWER = 16  #: times smaller steps, at which a difference is compared with that of the step
FEW = 16  #: draws of which they are compared
ROUNDING = 1e-12  #: relative error of what is expected, with a margin


class Over(NamedTuple):
    """Over which rows, draws and values of other columns averages are."""

    fit: Fit
    rows: Any  #: pandas.DataFrame
    weights: np.ndarray  #: (rows,) how many rows each counts as
    x: np.ndarray  #: (draws, dim)
    kind: str  #: what `Fit.predicted` calls the scale
    effects: str
    entropy: int  #: of drawn effects, the same in all rows
    share: float  #: of the rows of the table
    note: str

    def predicted(self, rows: Any) -> np.ndarray:
        """Draws of what is expected of some rows, (draws, rows)."""
        rng = np.random.default_rng(self.entropy)
        return self.fit.predicted(self.x, rows, self.kind, "error", rng, self.effects)

    def average(self, values: Callable[[Any], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the average over the rows, (draws,), and the mean of each row over the draws, (rows,).

        `values` gives (draws, rows) of a part of the rows.
        """
        size, total, of_rows = max(NUMBERS // len(self.x), 1), np.zeros(len(self.x)), []
        for first in range(0, len(self.rows), size):
            found = values(self.rows.iloc[first : first + size])
            total += found @ self.weights[first : first + size]
            of_rows.append(found.mean(axis=0))
        return total / self.weights.sum(), np.concatenate(of_rows)

    def said(self, of_rows: np.ndarray) -> str:
        """The note; and what it adds to errors that rows were drawn, of values by row (rows, …)."""
        if self.share == 1.0:
            return self.note
        of_rows = of_rows.reshape(len(of_rows), -1)
        weights = self.weights[:, None] / self.weights.mean()
        spread = (weights * (of_rows - np.average(of_rows, axis=0, weights=self.weights))).std(axis=0).max()
        error = np.sqrt((1.0 - self.share) / len(of_rows)) * spread
        return f"{self.note}, which adds errors of up to {error:.2g}"


def over(
    fit: Fit,
    at: Mapping[str, Any] | None,
    data: Any,
    effects: str,
    scale: str,
    draws: int,
    seed: int | None,
    varied: tuple[str, ...],
) -> tuple[Over, dict[str, Any]]:
    """What averages are over, and the values of `at` for the columns that are varied."""
    one_of("scale", scale, tuple(SCALES))
    one_of("effects", effects, ("fitted", "zero", "draw"))
    at, kept, share = check_at(at, fit), fit.kept, 1.0
    if data is None:
        if fit.in_batches:
            raise ValueError("the rows of the fit were read in batches: give a table of some of them as `data`.")
        rows, share = kept.rows, len(kept.rows) / kept.n
        weights = fit.row_weights[kept.places] if len(fit.row_weights) else np.ones(len(rows))
    else:
        rows = read_table(data, "`data`")
        weights = np.ones(len(rows))
    note = f"averages over {len(rows):,} rows" + f", drawn from {kept.n:,}" * (share < 1.0)
    check_groups(at, fit, effects)
    lists = {name: at.pop(name) for name in varied if name in at}
    check_single(at)
    entropy = int(np.random.default_rng(seed).integers(2**62))
    x = fit.some_draws(count("draws", draws))
    return Over(fit, rows.assign(**at) if at else rows, weights, x, SCALES[scale], effects, entropy, share, note), lists


def check_by(by: str | None, fit: Fit, name: str) -> tuple[str, ...]:
    """The column that `by` names, as a tuple."""
    if by is None:
        return ()
    if not isinstance(by, str):
        raise TypeError(f"`by` must be the name of a column, got {by!r}.")
    if by == name:
        raise ValueError(f"`by` must be another column than {name!r}.")
    return tuple(names_of([by], fit, "`by`"))


def means_by_level(fit, column, by, at, data, effects, scale, draws, seed, asked):
    """What averages are over; levels; names and values of `by`; averages (draws, bys, levels) and by row (rows, …)."""
    (name,) = names_of([column], fit, f"`{asked}`")
    others = check_by(by, fit, name)
    for one in (name, *others):
        if one in fit.kept.groupings and effects != "fitted":
            raise ValueError(f'`{asked}`: effects of the groups {one!r} need effects="fitted".')
    on, lists = over(fit, at, data, effects, scale, draws, seed, (name, *others))
    levels = chosen_values(name, fit, lists, f"`{asked}`")
    bys = [chosen_values(one, fit, lists, "`by`") for one in others]
    if len(levels) < 2 and asked == "contrasts":
        raise ValueError(f"`contrasts`: {name!r} has one value only, {levels[0]!r}.")
    found = []
    for values in itertools.product(*bys, levels):
        given = dict(zip((*others, name), values, strict=True))
        found.append(on.average(lambda rows, given=given: on.predicted(rows.assign(**given))))
    shape = -1, len(found) // len(levels), len(levels)
    of_draws, of_rows = (np.stack(part, axis=-1).reshape(shape) for part in zip(*found, strict=True))
    return on, levels, dict(zip(others, bys, strict=True)), of_draws, of_rows


def by_level(found, named, by, column, probability, note):
    """Estimates of draws (draws, bys, levels): `by` says the names and the values of the column before."""
    keys = {name: [value for value in values for _ in named] for name, values in by.items()}
    keys[column] = list(named) * found.shape[1]
    return Estimates(keys, found.reshape(len(found), -1), probability, note=note)


def marginal_means(
    self: Fit,
    column: str,
    *,
    by: str | None = None,
    at: Mapping[str, Any] | None = None,
    data: Any = None,
    effects: str = "fitted",
    scale: str = "response",
    probability: float = 0.95,
    draws: int = 1_000,
    seed: int | None = None,
) -> Estimates:
    """What is expected on average over the rows, if all of them had one level of a column, for each level.

    Parameters
    ----------
    column : str
        A category, a column of up to five distinct numbers, or one whose values `at` lists.
    by : str, optional
        Another such column: its values are given to all rows too, one after the other.
    at : dict, optional
        One value for other columns, which all rows get, and lists for `column` and `by`.
    data : table, dict of columns or path, optional
        The rows, each counting once; those of the fit when omitted, by their `weights`, 10,000 of them, drawn,
        where there are more: the note below the table says what that adds to errors. Of a fit that was read in
        batches it must be given.
    effects : {"fitted", "zero", "draw"}, default "fitted"
        Effects of groups: those of each row's group, 0, or of one new group.
    scale : {"response", "link"}, default "response"
        Whether averages are of expected responses, or of linear predictors.
    probability : float, default 0.95
        Of the intervals.
    draws : int, default 1,000
        Of all chains together.
    seed : int, optional
        Of drawn effects.

    Returns
    -------
    Estimates
        It prints as a table; ``.to_dataframe()`` has the values of the columns, "estimate", "error" (of the
        posterior), "lower" and "upper".

    Raises
    ------
    TypeError, ValueError
        For columns that the formula does not have or whose values are too many, and where `predict` has none.

    Examples
    --------
    >>> fit.marginal_means("area", by="treated")  # doctest: +SKIP
    """
    asked = self, column, by, at, data, effects, scale, draws, seed, "marginal_means"
    on, levels, others, found, of_rows = means_by_level(*asked)
    return by_level(found, levels, others, column, probability, on.said(of_rows))


def contrasts(
    self: Fit,
    column: str,
    *,
    by: str | None = None,
    compare: str = "difference",
    at: Mapping[str, Any] | None = None,
    data: Any = None,
    effects: str = "fitted",
    scale: str = "response",
    probability: float = 0.95,
    draws: int = 1_000,
    seed: int | None = None,
) -> Estimates:
    """Differences or ratios of the `marginal_means` of all pairs of levels of a column.

    Parameters
    ----------
    column, by, at, data, effects, scale, probability, draws, seed
        As of `marginal_means`.
    compare : {"difference", "ratio"}, default "difference"
        The later level's less the earlier one's, or over it.

    Returns
    -------
    Estimates
        Its column of the name of `column` says which levels, such as "rural - city".

    Raises
    ------
    TypeError, ValueError
        As of `marginal_means`.

    Examples
    --------
    >>> fit.contrasts("area")  # doctest: +SKIP
    """
    one_of("compare", compare, ("difference", "ratio"))
    asked = self, column, by, at, data, effects, scale, draws, seed, "contrasts"
    on, levels, others, found, of_rows = means_by_level(*asked)
    first, second = map(list, zip(*itertools.combinations(range(len(levels)), 2), strict=True))
    sign = {"difference": "-", "ratio": "/"}[compare]
    named = [f"{shown(levels[j])} {sign} {shown(levels[i])}" for i, j in zip(first, second, strict=True)]
    if compare == "ratio":
        return by_level(found[..., second] / found[..., first], named, others, column, probability, on.note)
    note = on.said(of_rows[..., second] - of_rows[..., first])
    return by_level(found[..., second] - found[..., first], named, others, column, probability, note)


def slopes(
    self: Fit,
    column: str,
    *,
    by: str | None = None,
    at: Mapping[str, Any] | None = None,
    data: Any = None,
    effects: str = "fitted",
    scale: str = "response",
    probability: float = 0.95,
    draws: int = 1_000,
    seed: int | None = None,
) -> Estimates:
    """Derivative of what is expected by a column of numbers, on average over the rows: average marginal effects.

    By differences over 10⁻⁵ of the column's range to both sides, or to one side at its ends.

    Where the formula steps, as in ``I(age >= 65)``, it has no slope: rows on the step count with the slope beside
    it, and a warning says how many they are. What the step does, `contrasts` gives.

    Parameters
    ----------
    column : str
        Of numbers, which the formula may have in functions and products too.
    by, at, data, effects, scale, probability, draws, seed
        As of `marginal_means`; `at` may have a value of `column` too, at which the derivative is then.

    Returns
    -------
    Estimates

    Raises
    ------
    TypeError, ValueError
        As of `marginal_means`, for a category, and where the formula is infinitely steep, as ``np.sqrt(x)`` at 0.

    Examples
    --------
    >>> fit.slopes("age", by="treated")  # doctest: +SKIP
    """
    (name,) = names_of([column], self, "`slopes`")
    known = columns_of(self).get(name)
    if known is None or known.levels is not None:
        raise ValueError(f"`slopes`: {name!r} is a category: ask for contrasts({name!r}).")
    others = check_by(by, self, name)
    on, lists = over(self, at, data, effects, scale, draws, seed, others)
    values = numbers(on.rows, name, "`data`")
    # Not beyond the smallest and the largest value, where a function of the formula may not be defined.
    low, high = min(known.low, float(values.min())), max(known.high, float(values.max()))
    step = STEP * (high - low)
    bys = chosen_values(others[0], self, lists, "`by`") if others else [None]
    found, of_rows, lying = [], [], 0
    for value in bys:
        given, on_steps = ({others[0]: value} if others else {}), []

        def derivative(rows, given=given, on_steps=on_steps):
            values, stepping = derivatives(on, rows, name, given, step, low, high)
            on_steps.append(stepping)
            return values

        average, by_row = on.average(derivative)
        found.append(average)
        of_rows.append(by_row)
        lying = max(lying, sum(on_steps))
    if lying:
        warn(
            f"`slopes`: {lying:,} of {len(on.rows):,} rows lie on a step of the formula in {name!r}, where there is no "
            "slope. The average has the slopes beside the step, not the step itself: for that ask for "
            f"contrasts({name!r}, at={{{name!r}: [...]}}) with values on both of its sides."
        )
    keys = {one: list(bys) for one in others} | {"slope": [name] * len(bys)}
    return Estimates(keys, np.stack(found, axis=-1), probability, note=on.said(np.stack(of_rows, axis=-1)))


def derivatives(on, rows, name, given, step, low, high):
    """Derivatives by a column, (draws, rows), and how many of the rows lie on a step of the formula.

    A difference that is halved with its step is a derivative. Where that fails at some draws, at a kink or a step
    nearby, the derivative is of a far smaller step; where a difference stays what it is, its step spans one of the
    formula, and the slope is what the difference grows by as the step widens.
    """

    def difference(on, rows, share):
        here = rows[name].to_numpy(dtype=float)
        left, right = (here + share * (np.clip(here + side, low, high) - here) for side in (-step, step))
        at_right = on.predicted(rows.assign(**{**given, name: right}))
        return at_right - on.predicted(rows.assign(**{**given, name: left})), right - left

    def sizes(share, rows):
        return np.abs(difference(few, rows, share)[0]).mean(axis=0)

    few = on._replace(x=on.x[:: -(-len(on.x) // FEW)])
    whole, width = difference(on, rows, 1.0)
    found = whole / width
    wide, less = difference(few, rows, 1.0)[0], difference(few, rows, 1.0 / NARROWER)[0]
    noise = ROUNDING * np.abs(few.predicted(rows.assign(**given))).mean(axis=0)
    apart = np.abs(NARROWER * less - wide).mean(axis=0)
    doubtful = np.flatnonzero(apart > 0.05 * np.abs(wide).mean(axis=0) + noise)
    if not len(doubtful):
        return found, 0
    some, noise = rows.iloc[doubtful], noise[doubtful]
    least, less = sizes(1.0 / NARROWER**2, some), np.abs(less[:, doubtful]).mean(axis=0)
    steep = NARROWER * least > 1.5 * less + noise
    jumps = steep & (2.0 * least > np.abs(wide[:, doubtful]).mean(axis=0))
    if np.any(steep & ~jumps):
        raise ValueError(
            f"`slopes`: the formula is infinitely steep in {name!r} at {np.sum(steep & ~jumps):,} rows, such as at "
            f"{shown(some[name].iloc[np.argmax(steep & ~jumps)])}: give `data` without them, or ask for "
            f"contrasts({name!r})."
        )
    smooth, jumping = doubtful[~steep], doubtful[jumps]
    if len(smooth):
        inner, narrow = difference(on, rows.iloc[smooth], 1.0 / NARROWER**2)
        found[:, smooth] = inner / narrow
    if len(jumping):
        inner, narrow = difference(on, rows.iloc[jumping], 1.0 / NARROWER)
        found[:, jumping] = (whole[:, jumping] - inner) / (width[jumping] - narrow)
    return found, len(jumping)
