"""Missing predictors, y ~ mi(x) + z with a formula of x, x | mi() ~ z: missing values are coordinates of the posterior.

A column x of numbers has a normal law of its own, x ~ N(a + b·z, σ²), over all rows, and its missing values are sampled
with everything else (Little & Rubin, 2019, Statistical Analysis with Missing Data, 3rd ed., ch. 10). Products of mi(x)
with other columns are linear in x; its functions are not, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from pdmp.data.formats import listed
from pdmp.formulas.design import Described, Design
from pdmp.formulas.predictors import Imputed
from pdmp.formulas.table import numbers
from pdmp.formulas.words import mi
from pdmp.models.families import Family


def named_in(text: str) -> list[str]:
    """Columns x of the terms mi(x) of one side of a formula."""
    return [name.strip().strip("`") for name in re.findall(r"(?<![\w.`])mi\(([^()]*)\)", text)]


def check_imputed(
    family: Family, sides: Mapping[str, str], imputed: Mapping[str, str], response: str, environment: Any
) -> None:
    """Refuse terms mi(x) without a formula of x, and the reverse.

    `sides` are right sides by parameter, `imputed` those of columns that are imputed. A function ``mi`` of the user's
    code is called as any other.
    """
    if environment.namespace["mi"] is not mi:
        if imputed:
            raise ValueError("`formula`: `mi` is a function of your code, and imputes nothing: rename it.")
        return
    used = [name for text in (*sides.values(), *imputed.values()) for name in named_in(text)]
    for name in dict.fromkeys(used):
        if name == response:
            raise ValueError(f"`formula`: {name!r} is the response, and in mi({name}) too.")
        if name not in imputed:
            raise ValueError(
                f"`formula`: mi({name}) needs a formula of {name}, of which its missing values are imputed: "
                f'{{"{response}": "{response} ~ mi({name}) + z", "{name}": "{name} | mi() ~ z"}}; without one rows '
                f"with missing values are left out: write {name}."
            )
    for name in imputed:
        if name not in used:
            raise ValueError(f"`formula`: {name!r} has a formula, {name} | mi() ~ …, and mi({name}) is in no other.")
        if name in family.named:
            raise ValueError(f"`formula`: the column {name!r} is called as a parameter of {family.name}: rename it.")
    if imputed and family.arrange is not None:
        raise ValueError(f"`formula`: mi(...) is not for {family.name}: fill the missing values in beforehand.")
    known: set[str] = set()
    while waiting := [name for name in imputed if name not in known]:
        ready = [name for name in waiting if set(named_in(imputed[name])) <= known]
        if not ready:
            raise ValueError(f"`formula`: {listed(waiting)} are imputed from each other: leave mi() out of one.")
        known |= set(ready)


def check_terms(
    described: Mapping[str, Described], imputed: Mapping[str, str], roles: Mapping[str, str | None]
) -> None:
    """Refuse an imputed column that stands elsewhere than in mi(x), and that in a function, a group or twice.

    And a response in the formula of an imputed column: two laws given each other need not be those of any joint one.
    """
    names, response = set(imputed), set(next(iter(described.values())).model.response.term.var_names)
    for role, name in roles.items():
        if name in names:
            raise ValueError(f"`{role}`: the column {name!r} is imputed, and must have all values there.")
    for name in imputed:
        for found in response & described[name].names:
            raise ValueError(f"`formula`: {found!r} is the response, and the formula of {name!r} has it too.")
    for one in described.values():
        _check_terms(one, names)


def _check_terms(described, names):
    for one in described.smooths:
        for name in names & one.names:
            raise ValueError(f"`formula`: {one.name} of the imputed column {name!r} is no term here.")
    for term in [*described.columns, *described.factors]:
        own = [part for part in getattr(term, "components", ()) if names & set(part.var_names)]
        alone = [part for part in own if hasattr(part, "call") and part.call.callee == "mi"]
        of_group = any(term in (both.expr, both.factor) for both in described.model.group_terms)
        if own and (of_group or len(own) > 1 or len(alone) < len(own)):
            name = sorted(names & set(own[0].var_names))[0]
            raise ValueError(
                f"`formula`: the imputed column {name!r} stands as mi({name}) between + or in products with other "
                f"columns, and not in a function, in effects of groups or beside another mi(...), got {term.name}."
            )


def read_imputed(name: str, table: Any) -> Imputed:
    """The column of a table; a `ValueError` for one without missing values, with too few others, or not of numbers."""
    missing = table[name].isna().to_numpy()
    if not missing.any():
        raise ValueError(f"`formula`: the column {name!r} of mi({name}) has no missing values: write {name}.")
    column = np.full(len(table), np.nan)
    if not missing.all():
        column[~missing] = numbers(table[~missing], name, "`formula`")
    if (~missing).sum() < 2 or np.nanstd(column) == 0.0:
        raise ValueError(f"`formula`: the column {name!r} of mi({name}) needs two different values that are known.")
    return Imputed(name, column, table.index)


def slopes_of(design: Design, table: Any, one: Imputed) -> np.ndarray:
    """By how much the columns of a design rise with the values of an imputed one, (n, p)."""
    moved = design.new(table.assign(**{one.name: table[one.name] + one.unit}))[0]
    return (moved - design.X) / one.unit
