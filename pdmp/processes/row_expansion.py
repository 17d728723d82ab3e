"""The data of a regression, expanded at an anchor for processes of single rows: sums over rows, and their weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.gradients.alias import AliasBlocks, table_of_block
from pdmp.models.numerical import row_chunks
from pdmp.models.regressions.blocks import Chunks, Crossing, by_group, is_crossed, sums_of_rows
from pdmp.models.regressions.design import products
from pdmp.native.threads import added, each
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import BY_FUNCTIONAL, in_pieces, in_shells, together


class Sums(NamedTuple):
    """Sums over the rows at the anchor; E coefficients of groups, m shared coordinates, of which all rows depend."""

    pull: np.ndarray  #: (d,) Σ ∇Uᵢ
    inner: np.ndarray  #: (m, m) Hessian of the shared coordinates
    border: np.ndarray  #: (E, m) of these and the coefficients
    own: np.ndarray  #: (E, W) of coefficients of one group, those of each in the order of the group columns
    bulge: np.ndarray  #: (E, m) Σ θᵢ of each coefficient, where squares are in the expansion, else (0, m)


class Layout(NamedTuple):
    """Which group columns belong together; empty without groups."""

    head: np.ndarray  #: (K,) the first column of the grouping
    end: np.ndarray  #: (K,) one after the last column of effect k
    width: int  #: W, the most columns of a grouping
    units: np.ndarray  #: (U, 3) of each group of each grouping: first column, one after the last; place in the grouping
    first_unit: np.ndarray  #: (K,) of the grouping


def layout_of(model) -> Layout:
    """The layout of a model; all rows are one group where it has none."""
    if not model.n_groups:
        none = np.zeros(0, np.int64)
        return Layout(none, none, 0, np.zeros((1, 3), np.int64), none)
    units, first_unit, K = [], np.zeros(model.n_groups, np.int64), 0
    for columns in model.groupings():
        k, groups = columns[0], int(model.first[columns[0] + 1] - model.first[columns[0]])
        first_unit[list(columns)] = sum(map(len, units))
        units.append(np.column_stack([np.full(groups, k), np.full(groups, k + len(columns)), np.arange(groups)]))
        K = max(K, len(columns))
    return Layout(model.head, model.end, K, np.concatenate(units), first_unit)


def units_of(model, layout):
    """The group of each row in each grouping, (groupings, N)."""
    if not model.n_groups:
        return np.zeros((1, model.n_data), np.int32)
    heads = np.unique(layout.head)
    moved = (layout.first_unit[heads] - model.first[heads]).astype(np.int32)
    return np.ascontiguousarray((model.level[:, heads] + moved).T)


def sorted_by_units(model, layout):
    """The rows of each grouping in the order of their groups, (N,) each, and where in all of these a group begins."""
    units, order, first = units_of(model, layout), [], np.zeros(len(layout.units) + 1, np.int64)
    for own in units:
        rows, begin = by_group(own, len(layout.units))
        order.append(rows)
        first += begin
    return order, first


class Weights(NamedTuple):
    """Of rows, what bounds them."""

    parts: np.ndarray  #: (n, N) ωᵢ by the functionals; with squares (1 + n, N), those of coefficients first
    drawn: np.ndarray  #: (groupings, N) Σⱼ σⱼ ωᵢⱼ in the clock of their group
    factors: np.ndarray  #: (groups, shells)


def weigh(model, layout, plan, anchor, speed, scale, shared, typical, thirds, reach, joint=(), alone=False) -> Weights:
    """Weights of all rows, on threads, or in this one `alone`.

    `typical` is r̂, and `reach` what distances of coefficients are measured in, with squares: D̂ of crossed groups.
    `thirds` (n, N) are θᵢ by the functionals, without rows where squares are not in the expansion; `joint` (n,) is not
    0 where products of coefficients are in it as well, see `same_shape`.
    """
    own = model.dim - model.n_dispersions
    fixed, m = shared[: len(shared) - model.n_dispersions], model.n_functionals

    def sizes(rows):
        """Σ σⱼ |Aⱼ| of the shared coordinates by the functionals, (n, rows), and of each grouping."""
        of_shared, of_groups = np.empty((m, len(model.target[rows]))), []
        of_shared[0] = np.abs(model.design.data[rows][:, fixed]) @ speed[fixed]
        of_shared[1:] = speed[own:, None]
        for k in range(model.n_groups):
            size = speed[model.level[rows, k]] * np.abs(model.value[rows, k])
            if layout.head[k] == k:
                of_groups.append(size)
            else:
                of_groups[-1] = of_groups[-1] + size
        return of_shared, np.array(of_groups).reshape(-1, of_shared.shape[1])

    def part(k, first, stop):
        return plan.norms(model.enclosures[k], model.row_block(k, first, stop, anchor, scale), BY_FUNCTIONAL)

    # Of many rows the norms are the largest arrays of all: there is one copy of them, and the rest is computed again.
    where = [(0, *rows) for rows in in_pieces(model.n_data)] if alone else model.pieces()
    done = (part(*rows) for rows in where) if alone else each(part, where)
    found, share = np.empty((len(plan.radii), m, model.n_data)), np.empty((m, model.n_data))
    for (_, first, stop), norms in zip(where, done, strict=True):
        rows = slice(first, stop)
        found[..., rows] = norms
        share[:, rows], of_groups = sizes(rows)
        share[0, rows] += of_groups.sum(axis=0)
    bounds, groups = in_shells(found, share, units_of(model, layout), len(layout.units)), len(np.unique(layout.head))
    del found, share
    parts = by = 0.5 * typical**2 * bounds.weights
    if len(thirds):
        parts = np.vstack([by[:1], by])
        by = parts[1:]
    drawn = np.zeros((max(groups, 1), model.n_data))
    for _, first, stop in where:
        rows = slice(first, stop)
        if len(thirds):
            size = np.abs(scale[model.level[rows]] * model.value[rows])
            square, all_products = np.sum(size**2, axis=1), np.sum(size, axis=1) ** 2
            square = np.where(joint[:, None] != 0.0, all_products, square)
            by[:, rows] += np.abs(thirds[:, rows]) * (reach**2 * square)
        of_shared, of_groups = sizes(rows)
        drawn[:groups, rows] = of_groups * parts[0, rows]
        drawn[0, rows] += np.sum(of_shared * by[:, rows], axis=0)
    return Weights(parts, drawn, bounds.factors)


def mean_squares(model, speed):
    """Of the fixed columns, (p,), and of what the speeds of the groups' coordinates add to a linear predictor."""
    squares, of_groups = (
        _squares(model, None, 0, speed) if model.blocks is None else model.blocks.total(_squares, speed)
    )
    return squares / model.n_data, of_groups / model.n_data


def _squares(block, files, first, speed):
    of_groups = sum(np.sum((speed[j] * z) ** 2) for j, z in zip(block.level.T, block.value.T, strict=True))
    return np.square(block.design.data[:, : block.n_fixed]).sum(axis=0), float(of_groups)


def surveyed(model, anchor, shared, squares):
    """Of all rows in memory `Sums` and θ (n, N); of crossed groups also the coefficients' Hessian, and `same_shape`."""
    if len(row_chunks(model)) == 1:
        sums, curvature, thirds = survey_rows(model, anchor, shared, squares)
        if not is_crossed(model):
            return sums, thirds, None, np.zeros(len(thirds))
        across = Crossing(model).matrix(curvature)
        return sums, thirds, (across + across.T).tocsr(), same_shape(curvature, thirds)
    return Sums(*added(Chunks(model).map(_survey_chunk, anchor, shared))), np.zeros((0, 0)), None, np.zeros(0)


def same_shape(curvature, thirds):
    """θᵢ / ℓ''ᵢ by the functionals, (n,), of the dispersions for which it is the same for all rows, as of σ; else 0."""
    found = np.zeros(len(thirds))
    for f in range(1, len(thirds)):
        ratio = float(thirds[f] @ curvature / max(curvature @ curvature, 1e-300))
        if np.allclose(thirds[f], ratio * curvature, rtol=1e-9, atol=0.0):
            found[f] = ratio
    return found


def _survey_chunk(block, files, first, *args):
    return survey_rows(block, *args)[0]


def survey_rows(model, anchor, shared, squares=False):
    """Of some rows, in one thread: `Sums`, ℓ'' (N,), and where squares are asked for half its derivatives θ (n, N)."""
    found, own = sums_of_rows(model, anchor, loss=False, thirds=squares), model.dim - model.n_dispersions
    fixed, effects = shared[: len(shared) - model.n_dispersions], slice(int(model.first[0]), int(model.first[-1]))
    columns, across = np.r_[fixed, model.n_fixed + np.arange(model.n_dispersions)], found.laws[:, fixed]
    squares = products(model.design.data, found.curvatures, model.n_fixed)[np.ix_(fixed, fixed)]
    inner = np.block([[squares, across.T], [across, found.laws[:, own:]]])
    border = np.vstack([found.border[fixed], found.laws[:, effects]]).T
    bulge = found.bulge[:, columns] if len(found.thirds) else np.zeros((0, len(shared)))
    return Sums(found.gradient, inner, np.ascontiguousarray(border), found.own, bulge), found.curvatures, found.thirds


def tables_of_blocks(model, name, first, totals, further):
    """The tables in the file of this name, blocks beginning at `first`; all totals are NaN where one is not finite."""
    finite = np.isfinite(totals).all()
    sums = np.array(totals) if finite else np.ones(len(totals))
    tables = AliasBlocks(model.blocks.files.mapped(name), first, sums, model.design.asks, further)
    tables.totals[:] *= 1.0 if finite else math.nan
    return tables


def weigh_blocks(model, plan, width, weigh_block, *args):
    """Rows in files, or of `Columns`, block by block: weights and tables of rows in files are in files as well.

    ``weigh_block(block, *args)`` gives weights, `width` numbers a row, those by which rows are drawn, the factors of
    shells, and a tuple of sums. Returned are φ, the sums of all blocks, the names of the files of the tables, or with
    groups of the second weights, and of the first ones, where blocks begin, and the sums of their weights.
    """
    blocks, files, n = model.blocks, model.blocks.files, model.n_data
    names = files.unused("alias"), files.unused("weights")
    files.create(names[0], (n,) if model.n_groups else (n, 2))
    files.create(names[1], (n, *width))
    sums, factors, first, totals = [], [], [0], []
    for parts, of_block, rows, total in blocks.map(_weigh_block, names, weigh_block, args):
        sums = [a + b for a, b in zip(sums, parts, strict=True)] if sums else parts
        factors = [together(plan, [*factors, of_block])[1]]
        first.append(first[-1] + rows)
        totals.append(total)
    return Shells(*together(plan, factors)), sums, names, first, totals


def _weigh_block(block, files, first, names, weigh_block, args):
    weights, drawn, factors, sums = weigh_block(block, *args)
    total = float(drawn.sum())
    files.write(names[1], first, weights)
    if block.n_groups:
        files.write(names[0], first, drawn)
    elif math.isfinite(total):
        table, total = table_of_block(drawn)
        files.write(names[0], first, table)
    return sums, factors, block.n_data, total


def survey_block(block, layout, plan, anchor, speed, scale, shared, typical):
    """What `weigh_blocks` asks, with `Sums`; groups are not crossed."""
    found = weigh(block, layout, plan, anchor, speed, scale, shared, typical, np.zeros((0, 0)), 0.0, alone=True)
    return found.parts.T, found.drawn[0], found.factors, survey_rows(block, anchor, shared)[0]
