"""What a regression expects along one or two columns, the others being held fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.formulas.estimates import Estimates, shown
from pdmp.formulas.grids import check_at, check_groups, grid, names_of, typical, values_of
from pdmp.formulas.kept import DISTINCT
from pdmp.formulas.smooths import is_smooth
from pdmp.native.arguments import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pdmp.formulas.fit import Fit

SCALES = {"response": "mean", "link": "link"}  #: and what `Fit.predict` calls each
COLOURS = ("#0072B2", "#D55E00", "#5EAF94", "#5E2843", "#43AFCA", "#794328", "#282894", "#0DCA5E")


class ConditionalEffects(Estimates):
    """What `Fit.conditional_effects` returns: `Estimates`, and a picture of them.

    Parameters
    ----------
    names : sequence of str
        One or two of the keys: along the axis, and by colour.
    label : str
        Of the vertical axis.
    *args, **kwargs
        Of `Estimates`.

    Examples
    --------
    >>> effects = fit.conditional_effects("age:treated")  # doctest: +SKIP
    >>> effects.to_dataframe()  # doctest: +SKIP
    >>> effects.plot()  # doctest: +SKIP
    """

    def __init__(self, names: Sequence[str], label: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.names, self.label = list(names), label

    def plot(self, ax: Axes | None = None) -> Axes:
        """Lines with ribbons along a column of numbers; points with intervals of a category.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure of pyplot's when omitted.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")[1]
        first, second = np.array(self.keys[self.names[0]], dtype=object), None
        if len(self.names) > 1:
            second = np.array(self.keys[self.names[1]], dtype=object)
        values = list(dict.fromkeys(first))
        parts = [None] if second is None else list(dict.fromkeys(second))
        line = len(values) > DISTINCT and all(isinstance(v, (int, float, np.number)) for v in values)
        for k, part in enumerate(parts):
            rows = np.arange(len(first)) if second is None else np.flatnonzero([value == part for value in second])
            colour, label = COLOURS[k % len(COLOURS)], None if part is None else shown(part)
            middle, low, high = self.estimate[rows], self.lower[rows], self.upper[rows]
            if line:
                x = first[rows].astype(float)
                order = np.argsort(x, kind="stable")
                ax.fill_between(x[order], low[order], high[order], color=colour, alpha=0.2, lw=0.0)
                ax.plot(x[order], middle[order], color=colour, lw=1.6, label=label)
            else:
                x = np.array([values.index(value) for value in first[rows]], dtype=float)
                x += 0.12 * (k - 0.5 * (len(parts) - 1))
                errors = [np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)]
                ax.errorbar(x, middle, errors, fmt="o", color=colour, ms=4.5, lw=1.4, capsize=2.5, label=label)
        if not line:
            ax.set_xticks(range(len(values)), [shown(value) for value in values])
            ax.set_xlim(-0.5, len(values) - 0.5)
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.label)
        ax.spines[["top", "right"]].set_visible(False)
        if second is not None:
            ax.legend(title=self.names[1], frameon=False)
        return ax


def conditional_effects(
    self: Fit,
    term: str | Sequence[str],
    *,
    at: Mapping[str, Any] | None = None,
    effects: str = "zero",
    scale: str = "response",
    probability: float = 0.95,
    draws: int = 1_000,
    seed: int | None = None,
) -> ConditionalEffects:
    """Expected responses along one column of the table, or two; the others at their mean or reference level.

    Parameters
    ----------
    term : str or sequence of str
        ``"age"``, ``"age:treated"`` or ``["age", "treated"]``: columns of the table, whether the formula has them
        as they are or in functions. The first has 100 values from its smallest to its largest, the second its mean
        and one standard deviation to both sides; columns of up to five distinct numbers have these, and
        categories their levels.
    at : dict, optional
        Other values: lists for the columns of `term`, one value for others, ``{"age": [30, 60], "area": "city"}``.
        Columns that are not named are at their mean over the rows, which count once whatever their `weights`,
        offset and exposure too, truth values at False and categories at the level that the others are compared
        with.
    effects : {"zero", "draw", "fitted"}, default "zero"
        Effects of groups: 0, those of a group in the middle; of a new group, drawn from their law, so that
        intervals have their spread; or of a group that `term` or `at` names.
    scale : {"response", "link", "probability"}, default "response"
        Whether expected responses, linear predictors, or the probability of each category, along one column; which
        it is for categories without an order.
    probability : float, default 0.95
        Of the intervals.
    draws : int, default 1,000
        Of all chains together.
    seed : int, optional
        Of drawn effects.

    Returns
    -------
    ConditionalEffects
        It prints as a table; ``.to_dataframe()`` has the values of the columns, "estimate", "error" (of the
        posterior), "lower" and "upper"; ``.plot()`` draws them, and ``.draws`` are all draws.

    Raises
    ------
    TypeError, ValueError
        For columns that the formula does not have, and where `predict` has none.

    Notes
    -----
    Of a fit whose rows were read in batches, means and ranges are those of its first rows: name others in `at`.

    Examples
    --------
    >>> effects = fit.conditional_effects("age:treated")  # doctest: +SKIP
    >>> effects.plot()  # doctest: +SKIP
    """
    one_of("scale", scale, (*SCALES, "probability"))
    if scale == "response" and self.family.is_nominal:
        scale = "probability"
    one_of("effects", effects, ("fitted", "zero", "draw"))
    design = self.design
    names, at = names_of(term, self), check_at(at, self)
    if len(names) > 2:
        raise ValueError(f"`term` must name one or two columns, got {len(names)}: give values of others in `at`.")
    for name in names:
        if name in design.kept.groupings and effects != "fitted":
            raise ValueError(f'`term` names the groups {name!r}: their effects need effects="fitted".')
    if scale == "probability" and len(names) > 1:
        raise ValueError("`term` must name one column, along which probabilities are: give a value of others in `at`.")
    check_groups(at, self, effects)
    values = [values_of(name, self, at, first=k == 0) for k, name in enumerate(names)]
    varied = {name: at.pop(name, None) for name in names}
    others = typical(self, at | {name: values[k][0] for k, name in enumerate(varied)}, effects)
    table = grid(names, values, others)
    found = self.predict(table, kind=SCALES.get(scale, scale), effects=effects, draws=draws, seed=seed)
    held = [f"{name} = {shown(table[name].iloc[0])}" for name in table if name not in names]
    held += {"zero": ["effects of groups = 0"], "draw": ["effects of a new group"]}.get(effects, []) * (
        not all(is_smooth(g) for g in self.groups)
    )
    note = f"with {', '.join(held)}" if held else ""
    if self.in_batches:
        note = f"{note}\nmeans and ranges are those of the first {self.kept.n:,} rows that were read".strip()
    words = {"response": "expected", "link": "linear predictor of", "probability": "probability of"}
    label, keys = f"{words[scale]} {design.response}", {name: table[name].tolist() for name in names}
    if scale == "probability":
        labels = self.categories
        keys = {name: [one for one in column for _ in labels] for name, column in keys.items()}
        name = design.response if design.response not in keys else "category"
        keys[name], names = labels * len(table), [*names, name]
        found = found.reshape(len(found), -1)
    return ConditionalEffects(names, label, keys, found, probability, note=note)
