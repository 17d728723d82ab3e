r"""Curves of a formula, s(x), s(x, z), s(x, by=z), t2(x, z), gp(x), gp(x, z), mo(x) and mo(x):z, as effects.

A thin-plate regression spline [1]_ has knots t and functions η(r) = r³ / 12 of one column, r² log r / 8π of two,

    f(x) = α₀ + α·x + Σⱼ η(|x - tⱼ|) δⱼ,     Σⱼ δⱼ = Σⱼ δⱼ tⱼ = 0,     penalty δ·Eδ,     E = η(|tᵢ - tⱼ|),

δ being in the span of the eigenvectors of E with the k largest eigenvalues: natural cubic splines of one column, whose
penalty is ∫f″². With knots at k quantiles, and all eigenvectors, it is bs="cr". What the penalty is 0 for, α, are
coefficients; the rest is δ = P b with P of which the penalty is |b|², so that with b ~ N(0, τ²) the mode is the
penalised fit with the factor σ² / τ² [2]_. Columns are about their means over the rows of the fit, and those of b are
divided by one number, so that τ, "sd(s(x))", is the standard deviation of that part of f in a usual row. t2(x, z) [3]_
has products of the two parts of x with those of z: a coefficient each where both are not penalised, and else three
groups of effects, with a standard deviation each: what bends along x alone, along z alone, and along both.

References
----------
.. [1] Wood (2003), Thin plate regression splines, JRSS B 65, section 3.
.. [2] Wood (2017), Generalized Additive Models, 2nd ed., section 5.8.
.. [3] Wood, Scheipl & Faraway (2013), Straightforward intermediate rank tensor product smoothing in mixed models, Stat.
   Comput. 23, section 3.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pdmp.data.formats import is_number, listed
from pdmp.formulas.table import import_pandas, labels_of, numbers, places
from pdmp.formulas.words import column_of, keywords, parts_between, pieces_between, read_call
from pdmp.models.priors import Gamma
from pdmp.models.regressions.mixed import GroupColumn

MOST = 10_000  #: functions of a curve
KINDS = {"s": (1, 2), "t2": (2, 2), "gp": (1, 2), "mo": (1, 1)}  #: and how many columns they take
OPTIONS = {"s": ("k", "bs", "by"), "t2": ("k", "bs", "by"), "gp": ("k", "c", "by", "iso"), "mo": ()}
#: Functions of a smooth of one or two columns; of t2 and gp for each of them.
K = {"s": (10, 30), "t2": (5, 5), "gp": (25, 12), "mo": (0,)}
C = 2.0  #: half-width of the interval of a Gaussian process, in that of the data
NARROW = 0.05  #: range of a column of a Gaussian process, in that of the other
LENGTH = Gamma(4.0, 0.125)  #: of its length scale, in the same unit: 0.14 to 1.1 in 95 of 100 cases
MOST_STEPS = 1_000  #: of a monotonic effect
MOST_KNOTS = 1_000  #: of thin-plate splines with more distinct values so many of these are taken


class Said(NamedTuple):
    """What a formula says of a smooth."""

    name: str  #: "s(x)"
    kind: str
    columns: tuple[str, ...]
    by: str | None
    k: int
    basis: str  #: "tp" or "cr"
    c: float = C
    is_isotropic: bool = True  #: whether a Gaussian process has one length scale for all columns
    is_difference: bool = False  #: of a level of `by` from the first one, which has none of its own

    @property
    def names(self) -> set[str]:
        """Columns of the table."""
        return {*self.columns, *([self.by] if self.by else [])}


def effects_of(names: Iterable[str], values: Iterable[np.ndarray]) -> list[GroupColumn]:
    """Effects of smooths of these names, numbered from 1: each row has all of them, times its values (n, K)."""
    pairs = [(name, value, np.arange(value.shape[1])) for name, value in zip(names, values, strict=True)]
    return [GroupColumn(name, name, tuple((at + 1).tolist()), at[None], value, None) for name, value, at in pairs]


def taken_out(formula: str) -> tuple[str, tuple[Said, ...]]:
    """A formula without its smooths, and these; a `ValueError` for one in a product or another term."""
    left, tilde, right = formula.partition("~")
    kept, found, alone = [], [], []  # `alone`: what stands in a * besides
    for sign, piece in pieces_between(right):
        called, product = read_call(piece), _read_product(piece)
        is_smooth = called is not None and called[0] in KINDS
        if sign == "-" and (is_smooth or product):
            raise ValueError(f"{piece} cannot be taken away: leave it out.")
        if is_smooth:
            found.append(_read(piece, *called))
        elif product:
            steps, by, is_crossed = product
            found.append(steps._replace(name=f"{steps.name}:{column_of(by)}", by=column_of(by)))
            alone += [steps] if is_crossed else []
            kept += [(sign, by)] if is_crossed else []
        else:
            kept.append((sign, piece))
    found = [*(one for one in dict.fromkeys(alone) if one not in found), *found]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} stands there twice.")
    found = [one._replace(is_difference=one.name.rpartition(":")[0] in names) for one in found]
    rest = " ".join(f"{sign} {piece}" for sign, piece in kept).strip().removeprefix("+").strip() or "1"
    inside = re.search(rf"(?<![\w.`])({'|'.join(KINDS)})\(", rest)
    if inside:
        raise ValueError(
            f"{inside.group(1)}(...) stands alone between +, and in no product but mo(x):z or mo(x) * z of one column: "
            "a curve for each level of a category, or times a number, is s(x, by=a), one that varies between groups is "
            "no term here."
        )
    return (f"{left}{tilde} {rest}" if found else formula), tuple(found)


def _read_product(piece):
    """Of mo(x):z or mo(x) * z the monotonic effect, z, and whether both stand for themselves too; None of others."""
    for mark in ":*":
        parts = [part.strip() for part in parts_between(piece, mark)]
        calls = [read_call(part) for part in parts]
        own = [call is not None and call[0] == "mo" for call in calls]
        if len(parts) == 2 and sum(own) == 1:
            steps = _read(parts[own.index(True)], *calls[own.index(True)])
            by = parts[own.index(False)]
            if re.fullmatch(r"`[^`]+`|(?!\d)\w+", by) is None:
                return None
            if column_of(by) in steps.columns:
                raise ValueError(f"{piece} has a column twice.")
            return steps, by, mark == "*"
    return None


def _read(piece, kind, given):
    columns = [column_of(one) for one in given if "=" not in one]
    options = dict(keywords(given))
    if len({*columns}) < len(columns):
        raise ValueError(f"{piece} has a column twice.")
    least, most = KINDS[kind]
    if not least <= len(columns) <= most:
        number = "two columns" if least == 2 else "one column" if most == 1 else "one or two columns"
        raise ValueError(f"{piece} takes {number}.")
    for name, plain in zip(columns, (one for one in given if "=" not in one), strict=True):
        if not name.isidentifier() and not plain.startswith("`") or is_number(name):
            raise ValueError(f"{piece} takes columns of the table as they are: make {plain} a column first.")
    for name in options:
        if name not in OPTIONS[kind]:
            by = f": its product with a column is mo({columns[0]}):{options[name]}" if name == "by" else ""
            raise ValueError(f"{piece} knows {listed(OPTIONS[kind]) or 'no options'}, not {name!r}{by}.")
    c = options.get("c", str(C))
    if not is_number(c) or not 1.0 < float(c) < math.inf:
        raise ValueError(f"{piece}: c is how far beyond the data its interval goes, above 1, got {c}.")
    basis = options.get("bs", '"tp"' if kind == "s" else '"cr"').strip("\"'")
    if basis not in ("tp", "cr") or (basis == "cr" and kind == "s" and len(columns) == 2):
        raise ValueError(f'{piece}: bs is "tp" (thin plates) or, of single columns, "cr" (cubic), not {basis!r}.')
    k, dim = options.get("k", str(K[kind][len(columns) - 1])), len(columns) if kind == "s" else 1
    if not k.isdigit() or not (kind == "mo" or dim + 2 <= int(k[:9]) <= MOST):
        raise ValueError(f"{piece}: k is the number of functions, at least {dim + 2} and at most {MOST:,}, got {k}.")
    iso = options.get("iso", "True")
    if iso.lower() not in ("true", "t", "false", "f"):
        raise ValueError(f"{piece}: iso is True, for one length scale, or False, for one of each column, not {iso}.")
    by = column_of(options["by"]) if "by" in options else None
    if by in columns:
        raise ValueError(f"{piece}: a curve of {by} is not multiplied by it: leave out `by`.")
    inner = ", ".join([*columns, *([f"by={by}"] if by else [])])
    return Said(f"{kind}({inner})", kind, tuple(columns), by, int(k), basis, float(c), iso.lower()[0] == "t")


class Warp(NamedTuple):
    """Effects with another law than those of groups: of a Gaussian process, or steps of a monotonic effect."""

    parameter: str  #: their standard deviation, or the size of a monotonic effect
    lengths: Mapping[str, float]  #: length scales of a Gaussian process, with their units
    eigenvalues: np.ndarray = np.zeros((0, 0))  #: (K, lengths)
    dimension: int = 1  #: how many columns each length scale is of

    @property
    def is_monotonic(self) -> bool:
        """Whether they are steps."""
        return not self.lengths


class By:
    """What the functions of a smooth are multiplied by: 1, a number, or of each level of a category whether it is it.

    `levels` are those of the category, the first one first, ``(None,)`` without one; `names` those of the smooth at
    each; `is_slope` is whether `by` is a number z that the curve is multiplied by: a slope of z that changes with x.
    """

    def __init__(self, said: Said, table: Any) -> None:
        self.said, self.levels, self.is_slope = said, (None,), False
        if said.by is not None:
            column, types = table[said.by], import_pandas().api.types
            self.is_slope = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
            if not self.is_slope:
                self.levels = tuple(labels_of(column))
        self.own = self.levels[1:] if said.is_difference and self.levels != (None,) else self.levels
        self.names = [self._called(level) for level in self.own]

    def _called(self, level):
        name = self.said.name
        if level is None:
            return name
        return f"{name}[{level}]" if self.said.kind == "mo" else name.replace("by=", "", 1)[:-1] + f"={level})"

    def values(self, table: Any, asked: str) -> list[np.ndarray]:
        """Columns (n, 1), one for each name."""
        if self.said.by is None:
            return [np.ones((len(table), 1))]
        if self.is_slope:
            return [numbers(table, self.said.by, asked)[:, None]]
        given = table[self.said.by].to_numpy()
        unseen = ~np.isin(given.astype(object), list(self.levels))
        if unseen.any():
            raise ValueError(f"{asked}: {self.said.by!r} is {given[unseen][0]!r}, which the data of the fit have not.")
        return [(given == level).astype(float)[:, None] for level in self.own]


class Curve:
    """Base of smooths: a smooth of the rows of a fit, and of further tables with the same functions."""

    columns: Sequence[str] = ()  #: coefficients
    warps: Mapping[str, Warp] = MappingProxyType({})

    def _read(self, table, asked):
        return np.column_stack([numbers(table, name, asked) for name in self.said.columns])


class Process(Curve):
    """A Gaussian process of one or two columns, by products of sines on an interval or a square around the data."""

    def __init__(self, said: Said, table: Any) -> None:
        self.said, self.by = said, By(said, table)
        x = self._read(table, "`formula`")
        self.middle, self.half = 0.5 * (x.max(axis=0) + x.min(axis=0)), 0.5 * np.ptp(x, axis=0)
        for name, half in zip(said.columns, self.half, strict=True):
            if half == 0.0:
                raise ValueError(f"`formula`: the column {name!r} of {said.name} is the same in every row.")
            if said.is_isotropic and half < NARROW * self.half.max():
                raise ValueError(
                    f"`formula`: {said.name} has one length scale for both columns, and the range of {name!r} is "
                    f"{2.0 * half:.3g} where that of the other is {2.0 * self.half.max():.3g}: give them in units in "
                    "which they compare, or iso=False, for a length scale of each."
                )
        roots, d, of_each = np.arange(1, said.k + 1) * math.pi / (2.0 * said.c), x.shape[1], [""]
        self.roots = np.array(list(itertools.product(roots, repeat=d)))
        eigenvalues = self.roots**2
        if said.is_isotropic:
            self.half, eigenvalues = np.full(d, self.half.max()), eigenvalues.sum(axis=1, keepdims=True)
        elif d > 1:
            of_each = [f"[{name}]" for name in said.columns]
        units = dict(zip(of_each, self.half.tolist(), strict=False))
        self.warps = {
            name: Warp("", {f"length({name}){of}": unit for of, unit in units.items()}, eigenvalues, d // len(units))
            for name in self.by.names
        }

    def coded(self, table: Any, asked: str = "`formula`") -> tuple[np.ndarray, list[GroupColumn]]:
        """No columns, and the effects, of a table."""
        u, c = (self._read(table, asked) - self.middle) / self.half, self.said.c
        beyond = np.abs(u).max(axis=0) > c
        if beyond.any():
            j = int(np.argmax(beyond))
            ends = self.middle[j] + self.half[j] * np.array([-c, c])
            of = f" of {self.said.columns[j]!r}" * (len(beyond) - 1)
            raise ValueError(
                f"{asked}: {self.said.name} is known from {ends[0]:.4g} to {ends[1]:.4g}{of}: give it a larger c."
            )
        value = np.prod(np.sin(self.roots * (u[:, None] + c)) / math.sqrt(c), axis=2)
        return np.zeros((len(u), 0)), effects_of(self.by.names, [value * one for one in self.by.values(table, asked)])


class Monotonic(Curve):
    """A monotonic effect of whole numbers, or of an ordered category; times a number, or for levels of a category."""

    def __init__(self, said: Said, table: Any) -> None:
        self.said, self.by, self.labels, column = said, By(said, table), None, table[said.columns[0]]
        if getattr(column.dtype, "ordered", False):
            self.labels = list(column.cat.remove_unused_categories().cat.categories)
        self.low, self.high = -math.inf, math.inf
        x, mo = self._read(table, "`formula`"), f"mo({said.columns[0]})"
        self.low, self.high = int(x.min()), int(x.max())
        if self.high - self.low > MOST_STEPS:
            raise ValueError(
                f"`formula`: {mo} has a step between any two whole numbers from {self.low:,} to {self.high:,}, "
                f"and may have {MOST_STEPS:,}: a curve is s({said.columns[0]}), or give it in a larger unit, rounded."
            )
        if self.high - self.low < 2:
            raise ValueError(f"`formula`: {mo} needs three levels or more: with two it is {said.columns[0]}.")
        self.warps = {}
        for name, inside in zip(self.by.names, self.by.values(table, "`formula`"), strict=True):
            if not np.std((x - self.low) * inside[:, 0]):
                raise ValueError(f"`formula`: {name} is 0 in every row: leave it out.")
            self.warps[f"steps of {name}"] = Warp(name, {})

    def _read(self, table, asked):
        name = self.said.columns[0]
        if self.labels is not None:
            x = places(self.labels, table[name].to_numpy()).astype(float)
        else:
            x = numbers(table, name, asked)
            odd = x[x != np.floor(x)] if asked == "`formula`" else ()  # of new rows in between, on a line
            if len(odd):
                raise ValueError(
                    f"{asked}: {self.said.name} takes whole numbers or an ordered category, got {odd[0]:g}."
                )
        if x.min() < (0 if self.labels is not None else self.low) or x.max() > self.high:
            known = f"{self.low} to {self.high}" if self.labels is None else ", ".join(map(str, self.labels))
            raise ValueError(f"{asked}: {name!r} has levels that the data of the fit have not, which are {known}.")
        return x

    def coded(self, table: Any, asked: str = "`formula`") -> tuple[np.ndarray, list[GroupColumn]]:
        """No columns, and the steps up to the level of each row."""
        x, steps = self._read(table, asked), np.arange(1, self.high - self.low + 1)
        value = np.clip(x[:, None] - self.low - steps + 1.0, 0.0, 1.0)
        return np.zeros((len(x), 0)), effects_of(self.warps, [value * one for one in self.by.values(table, asked)])


class Basis:
    """A thin-plate regression spline of x (n, d) by k functions: d are linear, and the constant one is left out."""

    def __init__(self, x: np.ndarray, k: int, basis: str, name: str) -> None:
        self.centre, self.scale = x.mean(axis=0), float(np.sqrt(np.mean(x.var(axis=0)))) or 1.0
        points = np.unique((x - self.centre) / self.scale, axis=0)
        if len(points) < k:
            raise ValueError(
                f"`formula`: {name} has {k} functions, and its columns have {len(points)} distinct values: give k="
                f"{len(points)} or less, or leave out the smooth."
            )
        if basis == "cr":  # quantiles of distinct values, the smallest and the largest one among them
            points = points[np.round(np.linspace(0, len(points) - 1, k)).astype(int)]
        elif len(points) > MOST_KNOTS:
            taken = np.linspace(0, len(points) - 1, MOST_KNOTS).astype(int)
            if x.shape[1] > 1:
                taken = np.random.default_rng(0).choice(len(points), MOST_KNOTS, replace=False)
            points = points[taken]
        self.knots = points
        values, vectors = np.linalg.eigh(self._between(points))
        largest = np.argsort(-np.abs(values), kind="stable")[:k]
        null = np.column_stack([np.ones(len(points)), points])
        inside = np.linalg.qr(vectors[:, largest].T @ null, mode="complete")[0][:, null.shape[1] :]
        penalty = (inside.T * values[largest]) @ inside
        sizes, axes = np.linalg.eigh(penalty)
        if sizes[0] <= 1e-12 * sizes[-1]:
            raise ValueError(f"`formula`: the columns of {name} are on a line: leave one of them out.")
        #: P: the penalty of P b is |b|².
        self.by = vectors[:, largest] @ inside @ (axes / np.sqrt(sizes))

    def _between(self, x):
        r = np.sqrt(np.sum((x[:, None] - self.knots) ** 2, axis=-1))
        if x.shape[1] == 1:
            return r**3 / 12.0
        return r**2 * np.log(np.where(r > 0.0, r, 1.0)) / (8.0 * math.pi)

    def linear(self, x: np.ndarray) -> np.ndarray:
        """x about its means, (n, d), in its own units."""
        return x - self.centre

    def bent(self, x: np.ndarray) -> np.ndarray:
        """Functions of b, (n, k - d - 1)."""
        return self._between((x - self.centre) / self.scale) @ self.by


class Smooth(Curve):
    """A spline, or the product of two.

    Of a number z in `by`, the mean of the curve over the rows of the fit is the coefficient of z.
    """

    def __init__(self, said: Said, table: Any) -> None:
        self.said, self.by = said, By(said, table)
        x = self._read(table, "`formula`")
        bases = [x] if said.kind == "s" else [x[:, [j]] for j in range(x.shape[1])]
        self.bases = [Basis(one, said.k, said.basis, said.name) for one in bases]
        linear, bent = self._functions(x)
        self.means = [part.mean(axis=0) for part in (linear, *bent.values())]
        sizes = [np.sqrt(np.mean(np.sum((part - part.mean(axis=0)) ** 2, axis=1))) for part in bent.values()]
        self.sizes = [float(size) or 1.0 for size in sizes]
        names = [*said.columns, *([":".join(said.columns)] if said.kind == "t2" else [])]
        names = [*([said.by] if self.by.is_slope else []), *names]
        self.columns = [f"{own}.{name}" for own in self.by.names for name in names]
        self.parts = [f"{own}{one}" for own in self.by.names for one in bent]

    def _functions(self, x):
        """Those without a penalty, (n, p), and those of effects by what they are called."""
        if self.said.kind == "s":
            return self.bases[0].linear(x), {"": self.bases[0].bent(x)}
        (a, b), (x_, z_) = self.bases, (x[:, [0]], x[:, [1]])
        one, two, ones = a.linear(x_), b.linear(z_), np.ones((len(x), 1))
        bent = {
            f" along {self.said.columns[0]}": _products(a.bent(x_), np.hstack([ones, two / b.scale])),
            f" along {self.said.columns[1]}": _products(np.hstack([ones, one / a.scale]), b.bent(z_)),
            " along both": _products(a.bent(x_), b.bent(z_)),
        }
        return np.hstack([one, two, one * two]), bent

    def coded(self, table: Any, asked: str = "`formula`") -> tuple[np.ndarray, list[GroupColumn]]:
        """Columns (n, p) of the coefficients, and the effects, of a table."""
        linear, bent = self._functions(self._read(table, asked))
        whole = [linear - self.means[0]]
        whole += [
            (part - mean) / size for part, mean, size in zip(bent.values(), self.means[1:], self.sizes, strict=True)
        ]
        inside = self.by.values(table, asked)
        if self.by.is_slope:
            whole[0] = np.hstack([np.ones((len(linear), 1)), whole[0]])
        X = np.hstack([one * whole[0] for one in inside])
        return X, effects_of(self.parts, [one * part for one, part in itertools.product(inside, whole[1:])])


def smooth_of(said: Said, table: Any) -> Curve:
    """The smooth of the rows of a table."""
    return {"gp": Process, "mo": Monotonic}.get(said.kind, Smooth)(said, table)


def is_smooth(group: Any) -> bool:
    """Whether effects are those of a smooth, which have its name for a grouping, and of no groups."""
    return group.name == group.grouping


def whole(group: Any) -> np.ndarray:
    """What effects of a usual size are multiplied by in a row, (n,): of a smooth 1, of several groups their sum."""
    if is_smooth(group):
        return np.ones(len(group.value))
    return group.value if group.value.ndim == 1 else group.value.sum(axis=1)


def summed(level: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """Sums over the rows for each effect, (groups,), of values (n,) or (n, w)."""
    return np.bincount(np.broadcast_to(level, values.shape).ravel(), values.ravel(), groups)


def _products(a, b):
    """All products of a column of each, (n, p q)."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
