"""A fitted regression: its table, predictions, pictures and comparisons."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pdmp.automatic.tempering.answers import evidence_of_draws
from pdmp.data.formats import listed
from pdmp.data.memory import in_words
from pdmp.diagnostics.averages import diagnostic_draws
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.diagnostics.summary import Summary
from pdmp.engine.export import NUMBERS
from pdmp.errors import warn
from pdmp.formulas import averages, effects, exported, hypotheses, predictive_checks
from pdmp.formulas import loo as leave_one_out
from pdmp.formulas.beside import CENSORING, columns_beside, predicts, read_for_predictions
from pdmp.formulas.checks import check_options
from pdmp.formulas.inclusion import Inclusion, inclusion_of_units
from pdmp.formulas.predictors import correlated_sets
from pdmp.formulas.smooths import is_smooth
from pdmp.formulas.table import check_roles, import_pandas, linear_offset, read_table
from pdmp.formulas.updating import refused
from pdmp.models.families import LINKS, responses
from pdmp.models.priors import LKJ, Flat
from pdmp.models.regressions.moved_coordinates import coordinates_of, innermost, natural_of
from pdmp.models.regressions.standardised_effects import cholesky_factors
from pdmp.native.arguments import count, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdmp.automatic.tempering.evidence import LogEvidence
    from pdmp.engine.result import Run
    from pdmp.formulas.design import Design
    from pdmp.formulas.predictors import Together
    from pdmp.models.families import Family
    from pdmp.models.priors import Prior
    from pdmp.models.regressions.mixed import GroupColumn, MixedRegression

UNSEEN = ("error", "zero", "draw")
EFFECTS = ("fitted", "zero", "draw")


class Fit:
    """A regression that was sampled; `pdmp.regression` makes it.

    Parameters
    ----------
    formula : str
    family : Family
    model : MixedRegression
        The target, in standardised coordinates; ``model.constrain`` gives natural parameters.
    run : Run
    design : Design
        How the columns were coded.
    priors : dict of str to Prior
        By parameter, in the units of the data.
    notes : sequence of str
        What was left out, coded or found, and how it was sampled.
    columns : dict of str to str
        Names of the columns `offset` and `exposure`.
    beside : dict of str to str
        What stands beside the response, by the family's names for it: columns and numbers.

    Examples
    --------
    >>> import pdmp
    >>> table = {"y": [1, 3, 2, 8, 9], "x": [0, 1, 2, 3, 4]}
    >>> fit = pdmp.regression("y ~ x", table, family="poisson", seed=1)  # doctest: +SKIP
    >>> fit["x"].shape  # doctest: +SKIP
    (4, 1000)
    """

    def __init__(
        self,
        formula: str,
        family: Family,
        model: MixedRegression,
        run: Run,
        design: Design,
        priors: Mapping[str, Prior],
        notes: Sequence[str],
        columns: Mapping[str, str | None],
        beside: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.formula, self.family, self.model, self.run = formula, family, model, run
        self.design, self.priors, self.notes, self.columns = design, dict(priors), list(notes), dict(columns)
        self.beside = dict(beside)
        self.kept = design.kept  #: what is known of the table's columns, and some of its rows
        self.with_rows: Callable[[Fit, Any, int | None, Mapping[str, Any]], Fit] | None = None  #: see `update`

    def __repr__(self) -> str:
        return repr(self.summary())

    def replaced(self, **changed: Any) -> Self:
        """The same with other attributes."""
        other = copy.copy(self)
        other.__dict__.pop("log_evidence", None)  # of the other run
        other.__dict__.update(changed)
        return other

    @property
    def base(self) -> Any:
        """The model in coordinates that its rows are linear in."""
        return innermost(self.model)

    @property
    def n_rows(self) -> int:
        """Rows of the table that were used."""
        return self.model.n_data

    @property
    def categories(self) -> list:
        """Of a family of more than two categories: what they are called, in order; else empty."""
        return []

    @property
    def groups(self) -> Sequence[GroupColumn]:
        """Columns of effects of groups, called as they are reported."""
        return [g._replace(name=prefix + g.name) for prefix, g in self.group_columns]

    @property
    def predictors(self) -> Sequence[Any]:
        """Linear predictors: each has a `prefix` of names, `columns`, their `centre`, `intercept` and `groups`."""
        return [self.base]

    @property
    def group_columns(self) -> Sequence[tuple[str, GroupColumn]]:
        """The same with what their names begin with as parameters."""
        return [(one.prefix, g) for one in self.predictors for g in one.groups]

    @property
    def intercepts(self) -> list[str]:
        """Parameters whose priors are for rows at the means of the other columns."""
        return [one.prefix + one.columns[one.intercept] for one in self.predictors if one.intercept is not None]

    @property
    def constants(self) -> Sequence[str]:
        """Parameters of the family without a formula."""
        return self.base.likelihood.dispersions

    def from_priors(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Natural parameters but effects, (n,) each, of draws of what the priors are of."""
        of_constants = {
            name: LINKS[self.family.links[name]].inverse(values[name])
            for name in self.constants
            if self.prior_name(name) != name
        }
        values = {**values, **of_constants}
        moved = {name: self.uncentred({name: 1.0}) for name in self.intercepts}
        natural = values | {
            name: sum(weight * values[one] for one, weight in weights.items()) for name, weights in moved.items()
        }
        for both in self.correlated:
            natural |= both.correlations(np.stack([values[name] for name in both.correlation_names], axis=-1))
        return natural

    @property
    def correlated(self) -> Sequence[Together]:
        """Effects that are correlated, of one linear predictor or several."""
        return correlated_sets(self.group_columns)

    @property
    def laws(self) -> Mapping[str, Prior]:
        """Independent laws of which draws of the priors are made; of correlations those of canonical partial ones."""
        found = dict(self.priors)
        for both in self.correlated:
            names = both.correlation_names
            found |= zip(names, found[names[0]].partial(both.width), strict=True)
        return found

    def effects_of_law(
        self, natural: Mapping[str, np.ndarray], standard: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Effects (n, groups) of standard normal numbers, given the other natural parameters (n,)."""
        spreads = {prefix + g.name: natural[prefix + g.sd_name] for prefix, g in self.group_columns}
        found = {name: spread[:, None] * standard[name] for name, spread in spreads.items()}
        for both in self.correlated:
            wide = np.stack([np.log(natural[name]) for name in both.sd_names], axis=-1)
            z = np.stack([standard[name] for name in both.names], axis=-1)
            u = np.einsum("sij,sgj->sgi", cholesky_factors(wide, both.partials(natural)), z)
            found |= {name: u[..., i] for i, name in enumerate(both.names)}
        return found

    def unconstrained(self, natural: Mapping[str, np.ndarray]) -> np.ndarray:
        """Coordinates of the model (..., dim) of natural parameters, effects included."""
        return coordinates_of(self.model, self.base.unconstrained(natural))

    @property
    def in_batches(self) -> bool:
        """Whether the rows were read in batches, so that no table of them was in memory."""
        return getattr(self.base, "coded", None) is not None

    @property
    def observed(self) -> np.ndarray:
        """The responses as the family takes them, (rows,)."""
        return self.base.y

    @property
    def row_weights(self) -> np.ndarray:
        """What the log-likelihoods of rows are multiplied by, (rows,), or (0,) for nothing."""
        return self.base.weight

    @property
    def further(self) -> Sequence[Any]:
        """Further data of the rows, in the order of ``family.data``: (rows,) each, or a number for all."""
        return self.base.likelihood.data(self.base.given)

    @property
    def probable(self) -> np.ndarray:
        """Which responses have a probability, and not a density whose value depends on their unit, (rows,)."""
        if self.family.arrange is not None or self.family.response in ("count", "label"):
            return np.ones(self.n_rows, dtype=bool)
        return (self.observed == 0.0) & self.family.response.endswith("or 0")

    def unlike(self, other: Fit) -> str | None:
        """Why the likelihoods of this fit and another one, of the same response, have no ratio; None if they have."""
        both = (self, other)
        if self.n_rows != other.n_rows:
            return (
                f"{other.n_rows:,} rows for {self.n_rows:,}: fit both to the rows without missing values in the "
                "columns of either"
            )
        which = [one.probable for one in both]
        if np.any(which[0] != which[1]):
            counted, measured = both if np.any(which[0] > which[1]) else both[::-1]
            what = "each response" if counted.probable.all() else "a response that is 0"
            return (
                f"{counted.family.name} gives a probability of {what}, and {measured.family.name} a density, whose "
                "value depends on the response's unit; take families of the same kind"
            )
        same = [("responses", self.observed, other.observed), ("weights", self.row_weights, other.row_weights)]
        further = [dict(zip(one.family.data, one.further, strict=False)) for one in both]
        usual = self.family.data | other.family.data
        for name, what in (("censored", "censoring"), ("upper", "ends of intervals"), ("trials", "trials")):
            a, b = (np.broadcast_to(one.get(name, usual.get(name, 0.0)), self.n_rows) for one in further)
            if name == "upper":  # the same rows have one
                a, b = (np.where(same[-1][1] == CENSORING["interval"], values, 0.0) for values in (a, b))
            same.append((what, a, b))
        for what, a, b in same:
            if not np.array_equal(a, b):
                return f"the {what} of the rows differ: fit both to the same rows in the same order"
        return None

    def names_of_columns(self) -> set[str]:
        """Columns that predictions need, but those that only groups are named by."""
        beside = {name: text for name, text in self.beside.items() if predicts(name)}
        found = self.design.names_of_columns()["fixed"] | set(columns_beside(beside).values())
        return found | {name for name in self.columns.values() if name}

    def knows_prior(self, name: str) -> bool:
        """Whether the prior of a parameter is of the parameter itself, and of it alone."""
        return self.prior_name(name) == name and not isinstance(self.priors.get(name), LKJ)

    def prior_name(self, name: str) -> str:
        """What the prior of a parameter is of: itself, or its value on the scale of a link."""
        link = self.family.links.get(name, "log") if name in self.constants else "log"
        return name if link in ("log", "identity") else f"{link}({name})"

    def __getitem__(self, name: str) -> np.ndarray:
        """1,000 draws of a parameter, (chains, 1000, *shape), by its name in the summary, or ``"1|g"``."""
        return self.run[name]

    @functools.cached_property
    def log_evidence(self) -> LogEvidence:
        """log of the marginal likelihood, all constants included: ``value``, standard ``error``, a ``second`` estimate.

        By bridge sampling [1]_ between a normal law, fitted to the first half of each chain, and draws of the second
        half; from so many passes over the rows as there are points, 800 or more. Of a tempered fit it is
        `Run.log_evidence`. `pdmp.evidence` compares two fits.

        Raises
        ------
        ValueError
            For a flat prior, coefficients that may be 0, imputed values, and too short a run.

        Warns
        -----
        UserWarning
            Where the error is large, or both sides of the bridge differ by more than it.

        References
        ----------
        .. [1] Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity: a theoretical
           exploration, Statist. Sinica 6, equation 4.1; its error as in Frühwirth-Schnatter (2004), Econom. J. 7.
        """
        if getattr(self.base, "inclusion", None) is not None:
            raise ValueError(
                "`log_evidence` is for fits without `select`, whose coefficients may be 0: the probabilities of all "
                "models together are in fit.inclusion()."
            )
        if math.isnan(self.model.omitted()):
            flat = [name for name, prior in self.priors.items() if isinstance(prior, Flat)]
            why = f"the prior of {listed(flat, 5)} is flat: give a proper one in `priors`"
            why = why if flat else "imputed values of a column are data of some rows only: leave out `mi()`"
            raise ValueError(f"`log_evidence` is not known: {why}.")
        if any("rungs/betas" in record.accumulated for record in self.run.records):
            return self.run.log_evidence
        return evidence_of_draws(self.run, self.model)

    def summary(self, effects: bool = False) -> Summary:
        """Mean, sd, 95 % interval, Monte Carlo error, ESS and R-hat of each parameter; priors, notes and warnings.

        Parameters
        ----------
        effects : bool, default False
            Whether to list the effects of all groups too.

        Raises
        ------
        ValueError
            For a run of fewer than four draws.
        """
        found = self.run.summary()  # before there is a copy of the draws here
        draws = diagnostic_draws(self.run)
        if draws is None:
            raise ValueError("the run is too short for a summary: sample longer.")
        columns = self._named(draws, effects)
        x = np.stack(list(columns.values()), axis=-1)
        with np.errstate(all="ignore"):
            ess, rhat = draws_ess(x, "mean"), draws_rhat(x, "rank")
        low, high = np.quantile(x, [0.025, 0.975], axis=(0, 1))
        sd = x.std(axis=(0, 1))
        parts = (x.mean(axis=(0, 1)), sd, low, high, sd / np.sqrt(ess), ess, rhat)
        rows = [
            dict(zip(Summary.COLUMNS, row, strict=True))
            for row in zip(columns, *(part.tolist() for part in parts), strict=True)
        ]
        head = f"{self.formula}, {self.family.described}, {self.n_rows:,} rows"
        at_means = " (Intercept at the means of the other columns)" if self.intercepts else ""
        said = ", ".join(f"{self.prior_name(name)} ~ {prior}" for name, prior in self.priors.items())
        priors = f"priors: {said}{at_means}"
        return Summary(rows, head, [priors, *(f"{note}." for note in self.notes)], found.warnings, found.said)

    def _named(self, draws, effects):
        """Draws (chains, n) of the parameters by their names in the summary, and of effects by the labels of groups."""
        natural = self.run.constrain(draws)
        columns = {name: natural[name] for name in self.priors}
        if effects:
            for g in self.groups:
                columns |= {f"{g.name}[{label}]": natural[g.name][..., k] for k, label in enumerate(g.levels)}
        return columns

    def to_dataframe(self, n: int = 1_000, effects: bool = False) -> Any:
        """A ``pandas.DataFrame`` of n draws of each chain: "chain", "draw", and parameters in the units of the data.

        Parameters
        ----------
        n : int, default 1,000
            Draws of each chain, equally spaced in time.
        effects : bool, default False
            Whether to add the effects of all groups, with the columns "1|g[label]".
        """
        n = count("n", n)
        columns = {"chain": np.repeat(np.arange(self.run.chains), n), "draw": np.tile(np.arange(n), self.run.chains)}
        named = self._named(self.run.draws(n), effects)
        return import_pandas().DataFrame(columns | {name: values.reshape(-1) for name, values in named.items()})

    def predict(
        self,
        new: Any = None,
        *,
        kind: str = "mean",
        unseen: str = "error",
        effects: str = "fitted",
        draws: int = 1_000,
        seed: int | None = None,
    ) -> np.ndarray:
        """Posterior draws of expected responses, linear predictors or responses, of the rows of a table.

        Parameters
        ----------
        new : table, dict of columns or path, optional
            With the columns of the formula but the response, and those of offset and exposure; the data of the fit
            when omitted.
        kind : {"mean", "link", "response", "probability"}, default "mean"
            The expected response, the linear predictor, which is its link, a response drawn with its noise, or, of
            families of categories, the probability of each, in the order of `categories`.
        unseen : {"error", "zero", "draw"}, default "error"
            For groups that the fit has not seen: refuse them, take their effects as 0, or draw these from the law of
            effects, the same for all rows of a group.
        effects : {"fitted", "zero", "draw"}, default "fitted"
            Effects of groups: those of the groups that `new` names; 0; or those of one new group, the same for all
            rows, drawn from their law. But for the first `new` needs no columns that groups are named by.
        draws : int, default 1,000
            Of all chains together.
        seed : int, optional
            Of the noise and of drawn effects.

        Returns
        -------
        ndarray, shape (draws, n), or (draws, n, categories)
            ``.mean(axis=0)`` is the prediction.

        Raises
        ------
        ValueError
            For a missing column or value, a level of a category that the fit has not seen, a formula with a function
            of a whole column, such as ``x - np.mean(x)``, and for more than 20 million numbers.

        Warns
        -----
        UserWarning
            Where the fit has seen none of the groups of a grouping: they may be written otherwise.
        """
        one_of("kind", kind, ("mean", "link", "response", "probability"))
        if kind == "probability" and not self.categories:
            raise ValueError(
                "`kind` = 'probability' is for families of more than two categories, such as cumulative and "
                f"categorical; of {self.family.name} ask for the mean."
            )
        one_of("unseen", unseen, UNSEEN)
        one_of("effects", effects, EFFECTS)
        draws, rng = count("draws", draws), np.random.default_rng(seed)
        table = None if new is None else read_table(new, "`new`")
        rows = (self.n_rows if table is None else len(table)) * (len(self.categories) if kind == "probability" else 1)
        if draws * rows > NUMBERS:
            most = max(NUMBERS // rows, 1)
            raise ValueError(
                f"`draws` = {draws:,} of {rows:,} rows are {in_words(8.0 * draws * rows)}, above "
                f"{in_words(8.0 * NUMBERS)}: give draws={most:,}, or some of the rows at a time as `new`."
            )
        if table is None and effects != "fitted":
            raise ValueError(f"`effects` = {effects!r} is for a table: give that of the fit as `new`.")
        return self.predicted(self.some_draws(draws), table, kind, unseen, rng, effects)

    def some_draws(self, n: int) -> np.ndarray:
        """Draws of x, (n, dim), of all chains in turn, equally spaced in time."""
        return self.run.draws(-(-n // self.run.chains)).reshape(-1, self.run.dim)[:n]

    def predicted(
        self,
        x: np.ndarray,
        table: Any,
        kind: str,
        unseen: str,
        rng: np.random.Generator,
        effects: str = "fitted",
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """As `predict`, at draws of x (draws, dim): of a pandas.DataFrame, or for None of the fit or of some rows."""
        model, x, noise = self.base, natural_of(self.model, x), rng if kind == "response" else None
        if table is None:
            model = model if rows is None else model.some_rows(rows)
            z, further = model.margins(x), model.likelihood.data(model.given)
        else:
            further = list(read_for_predictions(self.family, self.beside, table, kind == "response").values())
            z = self.predictor_of(model, self.design, table, model.constrain(x), unseen, effects, rng, {})
        if kind == "link":
            return z
        dispersions = [values[:, None] for values in model.dispersions(x)[: model.n_dispersions]]
        return responses(self.family, [z, *dispersions], further, noise)

    def centred(self, x: np.ndarray) -> tuple[Fit, np.ndarray]:
        """The fit and draws of x in coordinates from which a row is computed without the effects of all groups."""
        return self.replaced(model=self.base), natural_of(self.model, x)

    def log_likelihoods(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """log p(y) of some rows, times their weights, all constants included: (..., rows) at draws of x (..., dim)."""
        return self.model.some_rows(rows).pointwise_log_likelihood(x)

    def uncentred(self, weights: Mapping[str, float]) -> dict[str, float]:
        """A weighted sum of parameters as one of those that have priors: the intercept's is for rows at the means."""
        found = dict(weights)
        for one in self.predictors:
            names = [one.prefix + name for name in one.columns]
            if one.intercept is not None and (slope := found.get(names[one.intercept])):
                for j, name in enumerate(names):
                    if j != one.intercept:
                        found[name] = found.get(name, 0.0) - slope * float(one.centre[j])
        return {name: value for name, value in found.items() if value != 0.0}

    def predictor_of(
        self,
        one: Any,
        design: Design,
        table: Any,
        natural: Mapping[str, np.ndarray],
        unseen: str,
        effects: str,
        rng: np.random.Generator,
        drawn: dict[str, np.ndarray],
    ) -> np.ndarray:
        """The linear predictor `one` of a new table, (draws, n); to the first one the columns of the fit are added.

        `drawn` has what `with_effects` drew for other predictors of these draws, and is added to.
        """
        named = effects == "fitted"
        if design is self.design:
            check_roles(self.columns, table, "`new`")
        X, offset, groups = design.new(table, named)
        if one.intercept is None and design.intercept is not None:  # which the cuts are
            X = np.delete(X, design.intercept, axis=1)
        z = np.zeros((len(next(iter(natural.values()))), len(table))) + offset
        if one.columns:
            z += np.stack([natural[one.prefix + name] for name in one.columns], axis=-1) @ X.T
        if design is self.design:
            z += linear_offset(table, self.columns["offset"], self.columns["exposure"])
        sets = {name: both for both in self.correlated for name in both.names}
        unseen = unseen if named else effects
        return with_effects(z, natural, one, groups, design, table, unseen, rng, named, sets, drawn)

    # What draws say, each in a module of its own.
    conditional_effects = effects.conditional_effects
    marginal_means = averages.marginal_means
    contrasts = averages.contrasts
    slopes = averages.slopes
    hypothesis = hypotheses.hypothesis
    pp_check = predictive_checks.pp_check
    compare = leave_one_out.compare
    loo = leave_one_out.loo
    to_arviz = exported.to_arviz

    def inclusion(self) -> Inclusion:
        """Posterior probabilities that coefficients are not 0, by column or term, of a fit with `select`.

        Returns
        -------
        Inclusion
            A dict of str to float of those that may be 0: fractions of time along the exact path. It prints as a table
            with Monte Carlo errors, Bayes factors and the probabilities of single chains, and has ``median_model``.

        Raises
        ------
        ValueError
            For a fit without `select`, or a run of fewer than four draws.
        """
        prior = self.model.prior_inclusion()
        if prior is None:
            raise ValueError('inclusion is for a regression with `select="all"` or names of columns.')
        whole = {j: name for name, places in self.model.together.items() for j in places}
        names = [whole.get(j, name) for j, name in enumerate(self.model.columns) if prior[j] < 1.0]
        places = np.flatnonzero(prior < 1.0)
        first = np.sort([names.index(name) for name in dict.fromkeys(names)])
        return inclusion_of_units(self.run, [names[k] for k in first], places[first], prior[places[first]])

    def update(self, new: Any, *, seed: int | None = None, **options: Any) -> Fit:
        """A fit of the rows of this one and further ones, of which only these are read and coded.

        The prior is that of this fit: defaults are not computed anew, and stay what `priors` has. The run begins where
        the posterior of this one is. Columns stay centred and scaled as they were, so that the law is that of a fit of
        all rows with these priors, and the draws are not the same bits; the intercept's prior is for rows at the
        means of the first rows.

        Parameters
        ----------
        new : table, dict of columns or path
            With the columns of the formula, its response too, and those of offset, exposure and weights. Rows with a
            missing value are left out. Groups may be new: their effects come behind the others'.
        seed : int, optional
            The same seed gives the same fit.
        **options
            Of `pdmp.sample`; those that this fit was given where they are not, but `initial` and `checkpoint`. A budget
            or a goal replaces all those that it was given.

        Returns
        -------
        Fit
            This one stays as it is.

        Raises
        ------
        TypeError, ValueError
            For a missing column, another type of one, a level of a category or a label of the response that this fit
            has not seen, a response that the family has not, functions of whole columns, and a fit whose rows were
            read in batches.

        Examples
        --------
        >>> fit = fit.update(pandas.read_parquet("2026-11.parquet"))  # doctest: +SKIP
        """
        if self.with_rows is None:
            raise refused(self)
        check_options(options)
        return self.with_rows(self, new, seed, options)

    def plot(self) -> Figure:
        """Draw means with 50 % and 95 % intervals of the parameters in the summary; a matplotlib figure."""
        from matplotlib import pyplot

        natural = self.run.constrain(diagnostic_draws(self.run))
        names = [name for name in self.priors if name != "Intercept"] or list(self.priors)
        figure, axes = pyplot.subplots(figsize=(6.0, 1.3 + 0.32 * len(names)), layout="constrained")
        for row, name in enumerate(reversed(names)):
            values = natural[name].ravel()
            low, lower, upper, high = np.quantile(values, [0.025, 0.25, 0.75, 0.975])
            axes.plot([low, high], [row, row], color="#0072B2", lw=1.0, label="95 %")
            axes.plot([lower, upper], [row, row], color="#0072B2", lw=3.5, solid_capstyle="butt", label="50 %")
            axes.plot(values.mean(), row, "o", color="white", mec="#0072B2", ms=5, label="mean")
        axes.axvline(0.0, color="0.6", lw=0.8, zorder=0)
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_title(self.formula)
        axes.legend(handles=axes.lines[:3], ncols=3, loc="upper left", bbox_to_anchor=(0.0, 0.0), borderaxespad=2.2)
        return figure


def with_effects(
    z: np.ndarray,
    natural: Mapping[str, np.ndarray],
    one: Any,
    groups: Sequence[GroupColumn],
    design: Design,
    table: Any,
    unseen: str,
    rng: np.random.Generator,
    named: bool,
    sets: Mapping[str, Together],
    drawn: dict[str, np.ndarray],
) -> np.ndarray:
    """A linear predictor z (draws, n) of a new table with the effects of groups, as `Fit.predict` says.

    `natural` are draws by name, `one` is the predictor, and `groups` are those of the table; unless `named`, it lacks
    the columns that groups are named by, and all rows are of one new group. `sets` are those that correlate, by the
    name of a column; `drawn` has effects of new groups of these, with standard deviations of one.
    """
    prefix = one.prefix
    for g, fitted in zip(groups, one.groups, strict=True):
        if is_smooth(g):
            z += natural[prefix + g.name] @ g.value.T
            continue
        level = g.level.reshape(len(table), -1)  # several of a row by mm(g, h)
        new = level < 0
        effects = natural[prefix + g.name][:, np.where(new, 0, level)]
        if new.any():
            labels = design.labels(table, g.grouping) if named else np.zeros(level.shape)
            texts = {str(known): known for known in fitted.levels} if named else {}
            for label in dict.fromkeys(labels[new].ravel().tolist()):
                if str(label) in texts:
                    kind = "text" if isinstance(texts[str(label)], str) else "no text"
                    raise ValueError(
                        f"`new`: the group {label} of {g.grouping!r} is {kind} in the data, and in the new table it is "
                        "of another type: convert the column."
                    )
            if unseen == "error":
                raise ValueError(
                    f"`new`: the group {labels[new][0]!r} of {g.grouping!r} was not in the data; "
                    'unseen="zero" or "draw" predicts for it.'
                )
            if new.all() and named and prefix + g.name == (fitted.partners or (prefix + g.name,))[0]:
                warn(
                    f"`new`: the fit has seen none of the groups of {g.grouping!r}, such as {labels[0, 0]!r}; it has "
                    f"{listed(fitted.levels[:3])}."
                )
            effects[:, new] = 0.0
            if unseen == "draw":
                names, place = np.unique(labels[new].astype(str), return_inverse=True)
                both, shape = sets.get(prefix + g.name), (len(effects), len(names))
                if both is not None and prefix + g.name not in drawn:
                    roots = np.linalg.cholesky(both.matrix(natural))
                    jointly = np.einsum("sij,jsg->isg", roots, rng.standard_normal((both.width, *shape)))
                    drawn |= zip(both.names, jointly, strict=True)
                own = rng.standard_normal(shape) if both is None else drawn[prefix + g.name]
                effects[:, new] = (own * natural[prefix + fitted.sd_name][:, None])[:, place.ravel()]
        z += np.einsum("snm,nm->sn", effects, g.value.reshape(len(table), -1))
    return z
