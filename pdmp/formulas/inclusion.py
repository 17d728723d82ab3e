"""Which coefficients of a regression are not 0: posterior probabilities, what they are worth, and Bayes factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.data.formats import listed
from pdmp.diagnostics.averages import diagnostic_draws
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.diagnostics.summary import LARGE, UNSURE, Summary
from pdmp.diagnostics.variable_selection import inclusion

if TYPE_CHECKING:
    from pdmp.engine.result import Run


class InclusionSummary(Summary):
    """The table of `Inclusion`; prints as text."""

    COLUMNS = ("name", "prior", "probability", "mcse", "bayes factor", "lowest", "highest", "ess", "rhat")

    def _table(self):
        forms = {"prior": "{:.3g}", "probability": "{:.3f}", "mcse": "{:.2g}", "bayes factor": "{:.3g}"}
        forms |= {"lowest": "{:.3f}", "highest": "{:.3f}", "ess": "{:.0f}", "rhat": "{:.3f}"}
        rows = [
            [row["name"], *("-" if math.isnan(row[c]) else forms[c].format(row[c]) for c in forms)]
            for row in self.rows[: self.SHOWN]
        ]
        return [["", *forms], *rows]


class Inclusion(dict[str, float]):
    """Posterior inclusion probabilities by name: a dict of str to float that prints as a table.

    Attributes
    ----------
    rows : list of dict
        "name"; "prior", the prior probability; "probability", the fraction of time; "mcse", its Monte Carlo error
        √(p (1 - p) / ess), where "ess" is the effective number of draws of the indicator, of draws along the path, so
        that it is no less than the error of the fraction of time, and no more than changes from 0 and back allow;
        "bayes factor", posterior by prior odds; "lowest" and "highest", of single chains; "rhat" of the
        indicator. Of an indicator that never changed mcse, ess and rhat are NaN: its probability is nearer to 0 or 1
        than the run can tell, and its Bayes factor 0 or infinite.
    median_model : tuple of str
        The median probability model: names of probability 1/2 or more [1]_.
    warnings : list of str
        Names whose probabilities are not to be trusted yet, or on which the median model depends by less than two
        errors.

    References
    ----------
    .. [1] Barbieri & Berger (2004), Optimal predictive model selection, Ann. Statist. 32.
    """

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        super().__init__((row["name"], row["probability"]) for row in rows)
        self.rows = list(rows)
        self.median_model = tuple(row["name"] for row in rows if row["probability"] >= 0.5)
        few = [r["name"] for r in rows if r["mcse"] > UNSURE]
        apart = [r["name"] for r in rows if r["rhat"] > LARGE]
        near = [r["name"] for r in rows if abs(r["probability"] - 0.5) < 2.0 * r["mcse"]]
        said = [
            (few, f"the Monte Carlo error of these probabilities is above {UNSURE}: {{}}; sample longer"),
            (apart, f"chains disagree, R-hat is above {LARGE}, on the probabilities of these: {{}}; sample longer"),
            (near, "the median model may be another, as these are within two Monte Carlo errors of 1/2: {}"),
        ]
        self.warnings = [text.format(listed(names)) for names, text in said if names]

    def summary(self) -> InclusionSummary:
        """The table, with the median probability model and the warnings below."""
        model = f"median probability model: {', '.join(self.median_model) or 'none of these'}"
        return InclusionSummary(self.rows, "", [model], self.warnings)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def inclusion_of_units(run: Run, names: Sequence[str], places: Sequence[int], prior: Sequence[float]) -> Inclusion:
    """`Inclusion` of a run of a sticky process, with draws.

    `names` are those of the columns or terms that may be 0, `places` a coordinate of each, whose being 0 says that the
    whole is, and `prior` probabilities that they are not.
    """
    places = np.asarray(places, dtype=np.int64)
    known = inclusion(run, errors=True)
    found, error = known.value[places], known.error[places]
    records = [r for r in run.records if r.length > 0.0]
    chains = np.array([r.accumulated["included"][places] / r.length for r in records])
    draws = diagnostic_draws(run)
    if draws is None:
        raise ValueError("the run is too short for inclusion probabilities: sample longer.")
    moving = 1.0 * (draws[..., places] != 0.0)
    with np.errstate(all="ignore"):
        ess, rhat = draws_ess(moving, "mean"), draws_rhat(moving, "rank")
        constant = np.all(moving == moving[:1, :1], axis=(0, 1))
        # In as often as out, an indicator is everywhere as far from its median; its ranks are linear in it.
        even = np.isnan(rhat) & ~constant
        if even.any():
            rhat[even] = draws_rhat(moving[..., even], "split")
        ess, rhat = np.where(constant, np.nan, ess), np.where(constant, np.nan, rhat)
        mcse = np.where(constant, np.nan, np.fmax(np.sqrt(found * (1.0 - found) / ess), error))
        ess = found * (1.0 - found) / mcse**2
        factor = found / (1.0 - found) / (np.asarray(prior) / (1.0 - np.asarray(prior)))
    parts = (prior, found, mcse, factor, chains.min(axis=0), chains.max(axis=0), ess, rhat)
    return Inclusion(
        [
            dict(zip(InclusionSummary.COLUMNS, row, strict=True))
            for row in zip(names, *(np.asarray(part, dtype=float).tolist() for part in parts), strict=True)
        ]
    )
