"""Observed responses against responses that the fit would draw, as numbers and as pictures.

Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., ch. 6; rootograms of counts are those of Kleiber & Zeileis
(2016): bars of the square roots of observed frequencies hang from those that are expected, so that the bottom is at 0
where they agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.engine.export import NUMBERS
from pdmp.formulas.estimates import check_probability, shown
from pdmp.formulas.kept import ROWS
from pdmp.formulas.table import import_pandas
from pdmp.native.arguments import count, one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pdmp.formulas.fit import Fit

KINDS = ("density", "rootogram", "groups", "statistic")
POINTS = 200  #: at which densities are drawn
LINES = 50  #: densities of replicated responses in a picture
MOST_VALUES = 60  #: different counts that a rootogram has room for
MOST_BARS = 400  #: counts that a rootogram shows; those above are left out
MOST_GROUPS = 1_000  #: whose means are compared
BINS = 40  #: of a histogram of a statistic
OBSERVED, REPLICATED = "#D55E00", "#0072B2"
STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda y: y.mean(axis=-1),
    "sd": lambda y: y.std(axis=-1),
    "median": lambda y: np.median(y, axis=-1),
    "min": lambda y: y.min(axis=-1),
    "max": lambda y: y.max(axis=-1),
    "zeros": lambda y: np.mean(y == 0.0, axis=-1),
}


@dataclass(eq=False, repr=False)
class PredictiveCheck:
    """What `Fit.pp_check` returns: observed and replicated responses, a table of them, and a picture.

    Parameters
    ----------
    kind : {"density", "rootogram", "groups", "statistic"}
    name : str
        Of the response.
    observed : ndarray, shape (n,)
    replicated : ndarray, shape (draws, n)
    probability : float
        Of the intervals.
    groups : ndarray of shape (n,), optional
        The group of each row.
    statistic : callable, optional
        Of arrays (…, n).
    words : dict of str to str
        Names of "groups" and of "statistic".
    note : str
        Which rows these are, if not all.

    Examples
    --------
    >>> check = fit.pp_check("statistic", statistic="zeros")  # doctest: +SKIP
    >>> check.p_value, check.plot()  # doctest: +SKIP
    """

    kind: str
    name: str
    observed: np.ndarray
    replicated: np.ndarray
    probability: float
    groups: np.ndarray | None = None
    statistic: Callable[[np.ndarray], np.ndarray] | None = None
    words: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def _interval(self, values):
        tail = 0.5 * (1.0 - self.probability)
        lower, upper = np.quantile(values, [tail, 1.0 - tail], axis=0)
        return {"replicated": values.mean(axis=0), "lower": lower, "upper": upper}

    def _table(self):
        if self.kind == "density":
            low = min(self.observed.min(), *np.quantile(self.replicated, [0.001]))
            high = max(self.observed.max(), *np.quantile(self.replicated, [0.999]))
            points = np.linspace(low, high, POINTS)
            each = np.array([_density(y, points) for y in self.replicated[:LINES]])
            return {self.name: points, "observed": _density(self.observed, points)} | self._interval(each)
        if self.kind == "rootogram":
            first = min(self.observed.min(), self.replicated.min())
            last = max(self.observed.max(), np.quantile(self.replicated, 0.999))
            values = np.arange(first, min(last, first + MOST_BARS - 1.0) + 1.0)
            each = np.array([_frequencies(y, values) for y in self.replicated])
            return {self.name: values, "observed": _frequencies(self.observed, values)} | self._interval(each)
        if self.kind == "groups":
            labels, place = np.unique(self.groups, return_inverse=True)
            sizes = np.bincount(place)

            def means(y):
                return np.bincount(place, y, minlength=len(labels)) / sizes

            each = np.array([means(y) for y in self.replicated])
            columns = {self.words["groups"]: labels, "rows": sizes, "observed": means(self.observed)}
            return columns | self._interval(each)
        return {"statistic": [self.words["statistic"]], "observed": [self.value], "p_value": [self.p_value]} | {
            name: [float(value)] for name, value in self._interval(self.values).items()
        }

    @property
    def value(self) -> float:
        """The statistic of the observed responses."""
        return float(self.statistic(self.observed))

    @property
    def values(self) -> np.ndarray:
        """The statistic of each replication, (draws,)."""
        return np.asarray(self.statistic(self.replicated), dtype=float)

    @property
    def p_value(self) -> float:
        """The share of replications whose statistic is above the observed one, equal ones counted half."""
        return float(np.mean(self.values > self.value) + 0.5 * np.mean(self.values == self.value))

    def to_dataframe(self) -> Any:
        """A ``pandas.DataFrame`` of what the picture shows: "observed", and mean and interval of what is replicated.

        Of "density" a row for each place, of "rootogram" for each count, whose columns are numbers of rows; of "groups"
        for each group, whose columns are means; and one of a "statistic", with its "p_value".

        Raises
        ------
        ImportError
            Without pandas.
        """
        return import_pandas().DataFrame({name: list(values) for name, values in self._table().items()})

    def __repr__(self) -> str:
        text = repr(self.to_dataframe())
        return f"{text}\n{self.note}" if self.note else text

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it.

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
        getattr(self, f"_draw_{self.kind}")(ax, self._table())
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8)
        if self.note:
            ax.set_title(self.note, fontsize=8, color="0.35", loc="left")
        return ax

    def _draw_density(self, ax, table):
        points = table[self.name]
        for k, y in enumerate(self.replicated[:LINES]):
            label = f"{min(LINES, len(self.replicated))} replications" if k == 0 else None
            ax.plot(points, _density(y, points), color=REPLICATED, alpha=0.25, lw=0.7, label=label)
        ax.plot(points, table["observed"], color=OBSERVED, lw=1.8, label="observed")
        ax.set_xlabel(self.name)
        ax.set_ylabel("density")
        ax.set_ylim(bottom=0.0)

    def _draw_rootogram(self, ax, table):
        x, expected = table[self.name], np.sqrt(table["replicated"])
        seen, upper, lower = (np.sqrt(table[name]) for name in ("observed", "upper", "lower"))
        ax.bar(x, seen, bottom=expected - seen, width=0.8, color="0.8", label="observed, hanging")
        band = f"{self.probability:.0%} of bottoms, if the fit is right"
        ax.bar(x, upper - lower, bottom=expected - upper, width=1.0, color=REPLICATED, alpha=0.2, label=band)
        ax.plot(x, expected, "o-", color=REPLICATED, ms=3.5, lw=1.2, label="expected")
        ax.axhline(0.0, color="0.3", lw=0.8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])  # room for the legend
        ax.set_xlabel(self.name)
        ax.set_ylabel("square root of rows")
        above = float(np.mean(self.replicated > x[-1]))
        if above > 0.001:
            ax.set_xlabel(f"{self.name} ({100.0 * above:.2g} % of what is replicated is above)")

    def _draw_groups(self, ax, table):
        labels, x = table[self.words["groups"]], np.arange(len(table["observed"]))
        middle = table["replicated"]
        errors = [middle - table["lower"], table["upper"] - middle]
        ax.errorbar(
            x,
            middle,
            errors,
            fmt="o",
            color=REPLICATED,
            ms=4,
            lw=1.3,
            capsize=2,
            label=f"replicated, {self.probability:.0%}",
        )
        ax.plot(x, table["observed"], "x", color=OBSERVED, ms=6, mew=1.6, label="observed")
        if len(x) <= 30:
            ax.set_xticks(x, [shown(label) for label in labels], rotation=90 if len(x) > 12 else 0)
        else:
            ax.set_xticks([])
        low, high = ax.get_ylim()
        ax.set(xlim=(-0.5, len(x) - 0.5), ylim=(low, high + 0.25 * (high - low)), xlabel=self.words["groups"])
        ax.set_ylabel(f"mean of {self.name}")

    def _draw_statistic(self, ax, table):
        values = self.values
        ax.hist(values, bins=min(BINS, max(len(np.unique(values)), 2)), color=REPLICATED, alpha=0.5, label="replicated")
        ax.axvline(self.value, color=OBSERVED, lw=1.8, label=f"observed, p = {self.p_value:.3f}")
        ax.set_xlabel(f"{self.words['statistic']} of {self.name}")
        ax.set_ylabel("replications")


def _density(y, points):
    """Kernel density of responses at some points; 0 where all are the same."""
    from scipy.stats import gaussian_kde

    return gaussian_kde(y)(points) if np.ptp(y) > 0.0 else np.zeros(len(points))


def _frequencies(y, values):
    """How many responses are each of the whole numbers `values`."""
    inside = (y >= values[0]) & (y <= values[-1])
    return np.bincount((y[inside] - values[0]).astype(np.int64), minlength=len(values)).astype(float)


def pp_check(
    self: Fit,
    kind: str | None = None,
    *,
    by: str | None = None,
    statistic: str | Callable[[np.ndarray], float] = "mean",
    probability: float = 0.95,
    draws: int = 200,
    seed: int | None = None,
) -> PredictiveCheck:
    """Observed responses against those that the fit would draw.

    Parameters
    ----------
    kind : {"density", "rootogram", "groups", "statistic"}, optional
        Densities; square roots of the frequencies of counts, bars hanging from those that are expected; means of
        groups of rows; or the law of a statistic. By default "groups" with `by`, "rootogram" of whole numbers that
        differ by less than 60, and else "density".
    by : str, optional
        Of "groups": a column of the table.
    statistic : {"mean", "sd", "median", "min", "max", "zeros"} or callable, default "mean"
        Of "statistic": a name, "zeros" being the share of zeros, or a function of an array of responses.
    probability : float, default 0.95
        Of the intervals.
    draws : int, default 200
        Replications of the table.
    seed : int, optional
        Of the replications.

    Returns
    -------
    PredictiveCheck
        ``.plot()`` draws it, ``.to_dataframe()`` has its numbers, ``.observed`` (n,) and ``.replicated`` (draws, n)
        the responses, and ``.p_value`` is that of the statistic. Of more than 20 million numbers 10,000 rows are
        drawn, and "groups" are of at most 10,000 rows, which the picture says.

    Raises
    ------
    TypeError, ValueError
        For a rootogram of what are no counts, a column that the formula does not have, and responses that are
        censored.

    Examples
    --------
    >>> fit.pp_check("rootogram").plot()  # doctest: +SKIP
    """
    kept = self.kept
    if "censored" in self.beside:
        raise ValueError(
            "`pp_check` compares responses with drawn ones, and of cens(...) it is not known when a drawn one would "
            'have been censored: compare curves of survival, of fit.predict(kind="response") and by Kaplan and Meier, '
            "such as statsmodels.api.SurvfuncRight."
        )
    check_probability(probability)
    if by is not None and kind is None:
        kind = "groups"
    y = np.asarray(self.observed, dtype=float)
    whole = bool(np.all(y == np.floor(y)))
    kind = kind or ("rootogram" if whole and np.ptp(y) < MOST_VALUES else "density")
    one_of("kind", kind, KINDS)
    if kind == "rootogram" and not whole:
        raise ValueError(
            f'`kind`: a rootogram is of counts, and {self.design.response!r} has other numbers; "density".'
        )
    if kind == "rootogram" and np.ptp(y) >= MOST_BARS:
        raise ValueError(
            f"`kind`: {self.design.response!r} has counts from {y.min():g} to {y.max():g}, more than the {MOST_BARS} "
            'bars of a rootogram; "density".'
        )
    groups = None
    rows: np.ndarray | None = None
    draws = count("draws", draws)
    if kind == "groups":
        if self.in_batches:
            raise ValueError("`kind`: of rows that were read in batches no column is at hand to group them by.")
        known = [name for name in kept.rows.columns if name not in self.design.model.response.term.var_names]
        if by is None or by not in known:
            raise ValueError(f"`by` must name a column of the formula, {', '.join(known)}, got {by!r}.")
        groups, rows = kept.rows[by].to_numpy(), kept.places if len(kept.places) < len(y) else None
        values = len(np.unique(groups))
        if values > MOST_GROUPS or (groups.dtype.kind == "f" and values > len(groups) // 2):
            raise ValueError(f"`by`: {by!r} has {values:,} values in {len(groups):,} rows: too many.")
    elif by is not None:
        raise ValueError(f'`by` is for kind="groups", not {kind!r}.')
    elif draws * len(y) > NUMBERS:
        size = max(min(ROWS, NUMBERS // draws), 1)
        rows = np.sort(np.random.default_rng(0).choice(len(y), size, replace=False))
    name = statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")
    if isinstance(statistic, str):
        one_of("statistic", statistic, tuple(STATISTICS))
        function = STATISTICS[statistic]
    elif callable(statistic):
        own = statistic

        def function(values):
            return np.apply_along_axis(lambda one: float(own(one)), -1, values)
    else:
        raise TypeError(f"`statistic` must be a name or a function of an array, got {type(statistic).__name__}.")
    rng = np.random.default_rng(seed)
    drawn = self.predicted(self.some_draws(draws), None, "response", "error", rng, rows=rows)
    note = "" if rows is None else f"{len(rows):,} of {len(y):,} rows, drawn"
    words = {"statistic": name} | ({"groups": by} if by else {})
    seen = y if rows is None else y[rows]
    return PredictiveCheck(kind, self.design.response, seen, drawn, probability, groups, function, words, note)
