"""More rows for a fit: they alone are read and coded, in the coding, units and priors of the fit.

Default priors depend on the rows that a fit was made of. A fit of more rows that asked for them again would have
another prior, so that a posterior would not be the prior of the next rows: they stay what they were, as do the centres
and scales of columns, and with these what the intercept's prior is of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.data.formats import listed
from pdmp.engine.checkpoint import BUDGETS
from pdmp.engine.checks import check_seed
from pdmp.formulas.beside import columns_beside, without_gaps
from pdmp.formulas.smooths import is_smooth
from pdmp.formulas.table import check_names, complete_rows, linear_offset, read_table
from pdmp.models.regressions.mixed import GroupColumn

if TYPE_CHECKING:
    from pdmp.formulas.design import Design
    from pdmp.formulas.fit import Fit

#: Options of a run that are not those of the next one: they are of its coordinates, or of its file.
OWN = ("initial", "checkpoint")
ENDS = {*BUDGETS, "ess", "rhat"}  #: what ends a run: one of these replaces all that the fit had


class Origin(NamedTuple):
    """What a fit was made with, and its table does not say."""

    environment: Any
    roles: Mapping[str, str | None]  #: the columns "offset", "weights" and "exposure"
    options: Mapping[str, Any]  #: of the run
    notes: Sequence[str]  #: on the rows, not on the run
    selects: bool = False
    sampler: str = "auto"

    def further(self, notes: Sequence[str], options: Mapping[str, Any]) -> Origin:
        """That of the fit of more rows: options that are given come before those of the fit."""
        given = {name for name, value in options.items() if value is not None}
        dropped = {*OWN, *(ENDS if given & ENDS else ())}
        kept = {name: value for name, value in self.options.items() if name not in dropped}
        return self._replace(notes=notes, options={**kept, **options})

    @property
    def run_options(self) -> dict[str, Any]:
        """Options that say something."""
        return {name: value for name, value in self.options.items() if value is not None}


def read_further(fit: Fit, data: Any, origin: Origin, designs: Mapping[str, Design]) -> tuple[Any, list[str]]:
    """The new rows without missing values, and notes on them."""
    table = without_gaps(read_table(data, "`new`"), fit.beside)
    names = set(columns_beside(fit.beside).values()) | {name for name in origin.roles.values() if name is not None}
    for design in designs.values():
        names |= set().union(*design.names_of_columns().values()) | set(design.model.response.term.var_names)
    check_names({name for name in names if name}, table, "the fit", "`new`")
    table, said = complete_rows(table, names, "`new`", weights=origin.roles["weights"])
    added = f"{len(table):,} rows were added to {fit.n_rows:,}, whose priors and units are kept"
    return table, [added, *(f"of the new rows, {one}" for one in said)]


def added_to(
    design: Design, groups: Sequence[GroupColumn], table: Any, roles: Mapping[str, str | None] | None
) -> tuple[Design, np.ndarray, np.ndarray, list[GroupColumn], list[str]]:
    """A design of all rows, columns and offset of the new ones, group columns of all, and a note on new groups.

    `roles`: columns that are added to the predictor, of the first one.
    """
    design = design.extended(table)
    X, offset, new = design.new(table)
    if roles is not None:
        offset = offset + linear_offset(table, roles["offset"], roles["exposure"])
    joined, notes = [], {}
    for g, one in zip(groups, new, strict=True):
        level = g.level if is_smooth(one) else np.concatenate([g.level, one.level])
        value = np.concatenate([g.value, one.value])
        joined.append(g._replace(levels=one.levels, level=level, value=value, rows=None))
        more = len(one.levels) - len(g.levels)
        if more > 0:
            notes[g.grouping] = (
                f"{more:,} groups of {g.grouping} are new" if more > 1 else f"a group of {g.grouping} is new"
            )
    return design, X, offset, joined, list(notes.values())


def padded(natural: Mapping[str, np.ndarray], groups: Sequence[GroupColumn], prefix: str = "") -> dict[str, np.ndarray]:
    """Natural parameters with effects of 0 of the groups that are new."""
    found = dict(natural)
    for g in groups:
        effects = found[prefix + g.name]
        found[prefix + g.name] = np.concatenate([effects, np.zeros(len(g.levels) - len(effects))])
    return found


def with_rows(
    extended: Callable, sampled: Callable, origin: Origin, fit: Fit, data: Any, seed: int | None, options: Mapping
) -> Fit:
    """See `Fit.update`; `extended` says what is another then, and `sampled` samples the fit."""
    changed, notes = extended(origin, fit, data)
    origin = origin.further([*origin.notes, *notes], options)
    return sampled(fit.replaced(**changed, run=None, notes=origin.notes), origin, check_seed(seed, None))


def middle(fit: Fit) -> dict[str, np.ndarray]:
    """Natural parameters where the posterior is, at which the next run begins."""
    return fit.model.constrain(fit.some_draws(1_000).mean(axis=0))


def refused(fit: Fit) -> ValueError:
    """What is said where no rows can be added."""
    if fit.in_batches:
        return ValueError(
            "update is for tables in memory, and these rows were read in batches: fit all files, the old and the new."
        )
    if getattr(getattr(fit.model, "reported", None), "imputed", ()):
        return ValueError("update is not for fits with imputed columns: fit all rows, the old and the new.")
    return ValueError(f"update is for fits that pdmp.regression returned, not {listed([fit.formula])}.")
