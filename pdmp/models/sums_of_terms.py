r"""Posteriors that are sums of terms of linear functionals: one expression for a datum, everything else derived.

    U(x) = Σᵢ l(y_i; η_i1, …, η_im) + Σⱼ priorⱼ(xⱼ),    η_ik = a_ik·x + o_ik

`terms` makes the rows of one expression l, `sum_of_terms` adds rows of several kinds and independent priors. Gradients,
Hessians and, for exact sub-sampling, enclosures of third derivatives come from the expression (`pdmp.expressions`).
Whatever runs a model of this kind is compiled once: an expression is data.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pdmp.errors import warn
from pdmp.expressions import nodes
from pdmp.expressions.derivatives import Derivatives
from pdmp.expressions.functionals import Block, Functional, Parameters, in_one_precision
from pdmp.expressions.nodes import FUNCTION_NAMES, trace
from pdmp.expressions.tape import BEGIN, CURVATURE, DEPENDENT, LANES, RESULT, SECOND, STOP, Rows, enclose_part
from pdmp.models.derived import Derived, PriorOfEach
from pdmp.models.expression_rows import ExpressionRows
from pdmp.models.numerical import prior_gradient
from pdmp.models.priors import Flat, Prior, log_masses, second_derivatives
from pdmp.models.sums_of_squares import Cells, reduced, squares_of, varying_functional
from pdmp.models.transforms import Log, Transform
from pdmp.native.arguments import one_of, real, refuse_unreal, same_rows
from pdmp.native.classes import compiled, entry, inlined, readable
from pdmp.native.threads import added, chunks, each

#: Columns of `SumOfTerms.layout`: the first row of a kind; functionals; entries of a row; where columns and values
#: begin, and how far apart those of two rows are, 0 if all rows share them; where the data begin, and how many a row
#: has; where `start` begins.
FIRST, COUNT, WIDTH, COLUMNS, COLUMN_STEP, VALUES, VALUE_STEP, DATA, DATA_STEP, START = range(10)
SLACK = 1e-12  #: share by which computed bounds are raised, above their rounding errors
DENSE_HESSIAN = 20_000  #: dimensions up to which a Hessian is made


class Terms(Derivatives):
    """Rows of one expression, made by `pdmp.terms`."""

    #: What rows made by `pdmp.Family.rows` know of their responses; and a block that must ascend, with where it begins.
    observed: Any = None
    ascending: tuple[Block, np.ndarray] | None = None

    def __init__(self, loss: Callable, data: Sequence[ArrayLike], at: Sequence[Functional]) -> None:
        if isinstance(data, np.ndarray) or not isinstance(data, Sequence):
            raise TypeError(f"`data` must be a list of arrays, one for each first argument, got {type(data).__name__}.")
        if isinstance(at, Functional) or not isinstance(at, Sequence) or not len(at):
            raise TypeError("`at` must be a list of functionals: at=[X @ p.rate, p.log_shape].")
        for k, functional in enumerate(at):
            if not isinstance(functional, Functional):
                kind = type(functional).__name__
                raise TypeError(f"`at[{k}]` must be a functional such as X @ p.rate or p.effect[g], got {kind}.")
            if isinstance(functional, Block) and functional.size > 1:
                name = functional.name
                raise TypeError(
                    f"`at[{k}]`: {name} has {functional.size} coordinates: write X @ p.{name} or p.{name}[index]."
                )
            if not functional.is_of(at[0].sizes):
                raise ValueError("`at` has functionals of different `pdmp.Parameters`.")
        same_rows(
            **{f"data[{j}]": values for j, values in enumerate(data)},
            **{f"at[{k}]": functional for k, functional in enumerate(at)},
        )
        arrays = [_read_data(j, values) for j, values in enumerate(data)]
        lengths = {len(a) for a in arrays} | {f.n for f in at if f.n > 1}
        if len(lengths) > 1:
            said = "; what is the same in all rows is a number in the loss" * (1 in lengths)
            raise ValueError(f"`data` and `at` must have equally many rows, got {sorted(lengths)}{said}.")
        self.loss, self.at, self.n = loss, tuple(at), lengths.pop() if lengths else 1
        self.own_data = len(arrays) > 0  #: beside offsets
        offsets = [k for k, f in enumerate(at) if f.offset is not None]
        self.data = [*arrays, *(np.asarray(at[k].offset) for k in offsets)]
        place = {k: len(arrays) + position for position, k in enumerate(offsets)}

        q = len(self.data)

        def shifted(*arguments):
            own, further, eta = arguments[: len(arrays)], arguments[:q], arguments[q:]
            return loss(*own, *(e + further[place[k]] if k in place else e for k, e in enumerate(eta)))

        own, _ = trace(loss, len(arrays), len(at))  # whose messages count arguments as the user does
        unused = [f"data[{j}]" for j in range(len(arrays)) if j not in own.data()]
        unused += [f"at[{k}]" for k in range(len(at)) if k not in own.depends]
        if unused:
            warn(f"the loss `{getattr(loss, '__name__', 'loss')}` does not use {', '.join(unused)}: was it forgotten?")
        self.shifted = shifted
        self.expression, self.m = trace(shifted, q, len(at))
        self.name = getattr(loss, "__name__", "loss")

    def __reduce__(self):
        raise TypeError("rows of `pdmp.terms` cannot be pickled; the model made of them can.")

    def with_the_same_sum(self) -> Terms | None:
        """Fewer rows that have the same sum, see `pdmp.models.sums_of_squares`; None if there are none."""
        z = varying_functional(self.at, self.expression, self.n)
        cells = Cells.of(self.at[z].columns) if z is not None else None
        if cells is None or not cells.are_few(self.n, self.at[z].columns.shape[1]):
            return None
        data = np.array([np.broadcast_to(column, self.n) for column in self.data]).reshape(-1, self.n)
        known = squares_of(self.expression, data, self.m, z)
        if known is None:
            return None
        functional, target = reduced(self.at[z], cells, known)
        # Offsets are among the data of a row.
        at = [functional if k == z else Functional(f.columns, f.values, None, f.sizes) for k, f in enumerate(self.at)]
        usual, other = (data[:, i].tolist() for i in (known.usual, known.other))
        centres = [float(known.target[i]) for i in (known.usual, known.other)]

        def loss(target, constant, *rest):
            eta = rest[-len(at) :]

            def beyond(row, z_there):
                return self.shifted(*row, *(z_there if k == z else one for k, one in enumerate(eta)))

            squared = beyond(usual, centres[0] - (target - eta[z])) - beyond(usual, centres[0])
            alone = rest[0] * beyond(other, centres[1]) if known.times else 0.0
            return squared + alone + constant

        first = np.eye(1, len(target))[0]
        loss.__name__ = self.name
        return Terms(loss, [target, known.constant * first, *[known.times * first] * (known.times != 0.0)], at)


def terms(loss: Callable, data: Sequence[ArrayLike] = (), at: Sequence[Functional] = ()) -> Terms:
    r"""Rows of a likelihood, or of any sum: one expression at functionals of the parameters.

    Parameters
    ----------
    loss : callable
        l(data…, functionals…) -> minus the log density of one datum, up to a constant: a Python function of numbers,
        which is called once, with symbols. Beside + - * / \*\* and comparisons of data it may call the functions that
        `terms` has as attributes, ``pdmp.terms.exp`` and so on, or those of NumPy and `scipy.special` by these names,
        and Python's own abs: exp, log, log1p, expm1, sqrt, tanh, sin, cos, expit, softplus, logaddexp, log1mexp, lgamma
        (gammaln), digamma, erf, log_ndtr, xlogy, and ``where(test, a, b)`` with a test of data.
    data : sequence of array_like, shape (N,) each
        The first arguments, a number of each for each row.
    at : sequence of Functional
        The other arguments: ``X @ p.rate``, ``p.effect[group]``, ``p.log_shape``, and sums and multiples of these.
        An X of 256 MB or more is not copied: do not change it afterwards. One of float32 is kept as it is, and computed
        with in double.

    Returns
    -------
    Terms
        For `pdmp.models.sum_of_terms`.

    Raises
    ------
    TypeError
        For what cannot be traced, such as a branch on a parameter: the line of the function is named.
    ValueError
        For data that are not finite, or rows that do not match.

    See Also
    --------
    pdmp.Parameters : The blocks of coordinates.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> p = pdmp.Parameters(beta=2, log_sigma=1)
    >>> X, y = np.column_stack([np.ones(50), np.arange(50.0)]), np.arange(50.0) % 7
    >>> rows = pdmp.terms(lambda y, m, s: s + 0.5 * (y - m) ** 2 * np.exp(-2 * s), [y], [X @ p.beta, p.log_sigma])
    >>> rows.n
    50
    """
    return Terms(loss, data, at)


def sum_of_terms(
    parameters: Parameters,
    terms: Sequence[Terms],
    priors: Mapping[str, Prior | Sequence[Prior]] | None = None,
    *,
    transforms: Mapping[str, Transform] | None = None,
    initial: Mapping[str, ArrayLike] | ArrayLike | None = None,
) -> SumOfTerms:
    """A posterior from rows of expressions and independent priors.

    Parameters
    ----------
    parameters : Parameters
    terms : sequence of Terms
        Each made by `pdmp.terms`, at functionals of these parameters.
    priors : dict of str to Prior, or to a sequence of them, optional
        Of the coordinates of a block, by its name; `Flat` where there is none. A prior of a positive number, such as
        `HalfNormal`, is that of e^x of the coordinate x, which is then reported as e^x.
    transforms : dict of str to pdmp.models.transforms.Transform, optional
        What else is reported of a block; its prior is that of the coordinate.
    initial : dict of str to array_like, or array_like of shape (dim,), optional
        Where to look for the mode from; by default where the priors are centred.

    Returns
    -------
    SumOfTerms
        A model. ``pdmp.sample(model)`` samples it at one row a proposal where that is exact and costs less.

    Raises
    ------
    TypeError, ValueError
        For names of blocks that there are not, and priors that do not fit.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import Normal
    >>> p = pdmp.Parameters(beta=1)
    >>> rows = pdmp.terms(lambda y, z: np.exp(z) - y * z, [[2.0, 3.0, 1.0]], [np.ones((3, 1)) @ p.beta])
    >>> model = pdmp.models.sum_of_terms(p, [rows], priors={"beta": Normal(0.0, 2.5)})
    >>> np.round(model.mode(), 3)
    array([0.675])
    """
    return SumOfTerms(parameters, terms, priors, transforms=transforms, initial=initial)


class SumOfTerms(PriorOfEach, ExpressionRows):
    """A posterior of rows of expressions and independent priors; made by `sum_of_terms`, with the same arguments."""

    layout: np.ndarray  #: (kinds, 10)
    columns: np.ndarray
    values: np.ndarray  #: of float64 or float32; what is computed with them is in double
    data: np.ndarray
    start: np.ndarray  #: where the entries of each functional begin in a row
    #: (kinds of the data, 2) first and last rows that have the sum of all: its own, or fewer beyond those of the data.
    stretches: np.ndarray

    def __init__(self, parameters, terms, priors=None, *, transforms=None, initial=None):
        if not isinstance(parameters, Parameters):
            raise TypeError(f"`parameters` must be a pdmp.Parameters, got {type(parameters).__name__}.")
        terms = [terms] if isinstance(terms, Terms) else list(terms)
        if not terms:
            raise ValueError("`terms` must have at least one entry, made by pdmp.terms.")
        for k, rows in enumerate(terms):
            if any(rows is other for other in terms[:k]):
                raise ValueError(f"`terms[{k}]` stands in the list before, so that its rows would count twice.")
            if not isinstance(rows, Terms):
                raise TypeError(f"`terms[{k}]` must be made by pdmp.terms, got {type(rows).__name__}.")
            if not rows.at[0].is_of(parameters.sizes):
                raise ValueError(
                    f"`terms[{k}]` is at functionals of other parameters, with the blocks {_listed(rows.at[0].sizes)}; "
                    f"`parameters` has {_listed(parameters.sizes)}."
                )
        #: What reports natural parameters in the units of a table, and predicts: of a regression by formula.
        self.reported: Any = None
        laws = _read_priors(parameters, priors)
        self.kinds = np.array([law.coded()[0] for law in laws], np.int64)
        self.numbers = np.array([law.coded()[1:] for law in laws]).reshape(-1, 3)
        self._lay_out(terms)
        sizes = parameters.sizes
        known = dict(transforms or {})
        place = 0
        for name, size in sizes.items():
            if laws[place].positive and known.setdefault(name, Log()) != Log():
                raise ValueError(
                    f"`transforms` makes {name!r} {known[name]}, and {laws[place]} is of the e^x that is reported: "
                    "leave out one of the two."
                )
            place += size
        start = np.array([math.log(law.typical()) if law.positive else law.typical() for law in laws])
        ordered = [rows.ascending for rows in terms if rows.ascending is not None]
        for block, values in ordered:
            start[block.first : block.first + block.size] = values
        start = _read_initial(parameters, start, initial)
        for block, _ in ordered:
            own = np.ravel(start)[block.first : block.first + block.size]
            if np.any(np.diff(own) <= 0.0):
                raise ValueError(f"`initial`: {block.name} are cuts, which ascend; got {own.tolist()}.")
        super().__init__(
            dim=parameters.dim,
            n_data=sum(rows.n for rows in terms),
            variables={name: (size,) if size > 1 else () for name, size in sizes.items()},
            initial=start,
            transforms=known,
        )

    def _lay_out(self, terms):
        """All rows of all kinds in flat arrays, and their tapes one after the other."""
        columns, values, data, start = [], [], [], []
        summed = [rows.with_the_same_sum() for rows in terms]
        every = [*terms, *(rows for rows in summed if rows is not None)]
        self.layout = np.zeros((len(every), 10), np.int64)
        places = dict.fromkeys(("columns", "values", "data", "start", "row"), 0)
        for k, rows in enumerate(every):
            own_columns, own_values, widths = _stacked(rows.at, rows.n)
            q, width = len(rows.data), own_columns.shape[1]
            table = np.empty((rows.n, q))
            for j, column in enumerate(rows.data):
                table[:, j] = column
            self.layout[k] = (
                places["row"], rows.m, width, places["columns"], width if len(own_columns) > 1 else 0,
                places["values"], width if len(own_values) > 1 else 0, places["data"], q, places["start"],
            )  # fmt: skip
            start.append(np.r_[0, np.cumsum(widths)])
            places["row"] += rows.n
            for name, list_, array in (
                ("columns", columns, own_columns), ("values", values, own_values), ("data", data, table),
            ):  # fmt: skip
                list_.append(array.reshape(-1))
                places[name] += array.size
            places["start"] += len(widths) + 1
        self.start = np.concatenate(start).astype(np.int64)
        # Writable, as those of several functionals are: one type for the compiler.
        self.columns = np.require(_one(columns), np.int64, "W")
        self.values, self.data = _one(values), _one(data)
        q = max(1, *(len(rows.data) for rows in every))
        self._keep_tapes([rows.tapes for rows in every], max(rows.m for rows in every), q)
        ends = [*self.layout[1:, FIRST], places["row"]]
        further = iter(range(len(terms), len(every)))
        #: The kinds whose rows have the sum of all.
        self.summed_kinds = [k if other is None else next(further) for k, other in enumerate(summed)]
        self.stretches = np.array([(self.layout[k, FIRST], ends[k]) for k in self.summed_kinds], np.int64)
        self._derivatives = [Derivatives(rows.expression, rows.m) for rows in terms]
        self.names = [rows.name for rows in terms]
        self.own_data = [rows.own_data for rows in terms]
        #: Of each kind what `pdmp.Family.rows` knows of the responses, or None.
        self.observed = [rows.observed for rows in terms]

    @property
    def enclosures(self) -> list[tuple]:
        """Of each kind the tapes for enclosures of third derivatives, without and with the fourth.

        They are derived where they are asked for, as there are many of a loss of many functionals.
        """
        return [(one.third, one.third_and_fourth) for one in self._derivatives]

    # -- compiled: rows -------------------------------------------------------------------------------------------

    @compiled
    def n_stretches(self, first, last):
        return self.stretches.shape[0] if first == 0 and last == self.n_data else 1

    @compiled
    def stretch(self, k, first, last):
        if first == 0 and last == self.n_data:
            return self.stretches[k, 0], self.stretches[k, 1]
        return first, last

    @compiled
    def kind_of(self, i):
        k = 0
        while k + 1 < self.layout.shape[0] and i >= self.layout[k + 1, FIRST]:
            k += 1
        return k

    @compiled
    def count_of(self, k):
        return self.layout[k, COUNT]

    @compiled
    def entries_of(self, k, i):
        """Where the columns and the values of row i, which is of kind k, begin."""
        layout, row = self.layout, i - self.layout[k, FIRST]
        return layout[k, COLUMNS] + row * layout[k, COLUMN_STEP], layout[k, VALUES] + row * layout[k, VALUE_STEP]

    @compiled
    def write_row(self, x, k, i, lane, data, eta):
        self.read(k, i, lane, data)
        self.place(x, k, i, lane, eta)

    @compiled
    def place(self, x, k, i, lane, eta):
        """Write the functionals of row i, which is of kind k, into a lane."""
        layout, (c, v) = self.layout, self.entries_of(k, i)
        for f in range(layout[k, COUNT]):
            total = 0.0
            for j in range(self.start[layout[k, START] + f], self.start[layout[k, START] + f + 1]):
                total += self.values[v + j] * x[self.columns[c + j]]
            eta[f, lane] = total

    @compiled
    def read(self, k, i, lane, data):
        """Write the data of row i, which is of kind k, into a lane."""
        q = self.layout[k, DATA_STEP]
        d = self.layout[k, DATA] + (i - self.layout[k, FIRST]) * q
        for j in range(q):
            data[j, lane] = self.data[d + j]

    @compiled
    def distribute(self, x, k, i, place, lane, room, out):
        layout, (c, v) = self.layout, self.entries_of(k, i)
        for f in range(layout[k, COUNT]):
            weight = room[self.results[place + f], lane]
            for j in range(self.start[layout[k, START] + f], self.start[layout[k, START] + f + 1]):
                out[self.columns[c + j]] += weight * self.values[v + j]

    @compiled
    def remainder_along(self, there, x, v, i, scratch, rho):
        """v·Rᵢ(x), Rᵢ what the gradient of row i is beyond its expansion at `there`.

        rho (m,) = ∇l(η) - ∇l(η₀) - H(η₀) (η - η₀) are its parts by the functionals.
        """
        k, eta, total = self.kind_of(i), scratch.eta, 0.0
        self.write_row(x, k, i, 0, scratch.data, eta)
        self.place(there, k, i, 0, scratch.there)
        self.expand_row(k, i, scratch, rho)
        self.place(v, k, i, 0, eta)
        for f in range(self.layout[k, COUNT]):
            total += eta[f, 0] * rho[f]
        return total

    @compiled
    def remainder_along_places(self, there, x, v, i, places, count, support, scratch, rho):
        return self.remainder_along(there, x, v, i, scratch, rho)

    @compiled
    def add_remainder(self, i, rho, out):
        """out += Rᵢ of these parts."""
        k = self.kind_of(i)
        layout, (c, v) = self.layout, self.entries_of(k, i)
        for f in range(layout[k, COUNT]):
            for j in range(self.start[layout[k, START] + f], self.start[layout[k, START] + f + 1]):
                out[self.columns[c + j]] += rho[f] * self.values[v + j]

    # -- compiled: curvature along a piece of path, enclosed ----------------------------------------------------------

    @compiled
    def lanes_from(self, k, i, last):
        n = min(LANES, last - i)
        return min(n, self.layout[k + 1, FIRST] - i) if k + 1 < self.layout.shape[0] else n

    @compiled
    def enclose_curvature(self, k, i, n, x, v, s, slope, low_eta, high_eta, data, square, low, high):
        """Enclose the Hessians of rows i … i + n - 1 over x + uv, 0 <= u <= s; `slope` is that of the functionals."""
        for lane in range(n):
            self.read(k, i + lane, lane, data)
            self.place(x, k, i + lane, lane, low_eta)
            self.place(v, k, i + lane, lane, slope)
        for f in range(self.layout[k, COUNT]):
            for lane in range(n):
                begin, end = low_eta[f, lane], low_eta[f, lane] + s * slope[f, lane]
                rounding = SLACK * (abs(begin) + abs(end))
                low_eta[f, lane], high_eta[f, lane] = min(begin, end) - rounding, max(begin, end) + rounding
        tape = self.tapes[k, SECOND]
        enclose_part(
            self.code, self.number, tape[BEGIN], tape[DEPENDENT], tape[STOP], n, data, low_eta, high_eta, low_eta,
            square, math.inf, low, high,
        )  # fmt: skip

    @compiled(allocates=True, inline=False)
    def curvature_bound_within(self, x, v, s):
        """At least v·H(x + uv)v for 0 <= u <= s: each functional moves in an interval."""
        m, total, i = self.n_functionals, 0.0, 0
        for j in range(self.dim):
            total += self.prior_curvature_within(x, v, s, j)
        slope, low_eta, high_eta = np.empty((m, LANES)), np.empty((m, LANES)), np.empty((m, LANES))
        data, square = np.empty((self.n_columns, LANES)), np.empty((m, m, LANES))
        low, high = np.empty((self.registers, LANES)), np.empty((self.registers, LANES))
        while i < self.n_data:
            k = self.kind_of(i)
            n, place = self.lanes_from(k, i, self.n_data), self.tapes[k, SECOND, RESULT]
            self.enclose_curvature(k, i, n, x, v, s, slope, low_eta, high_eta, data, square, low, high)
            for f in range(self.layout[k, COUNT]):
                for g in range(f, self.layout[k, COUNT]):
                    r, times = self.results[place], 1.0 if f == g else 2.0
                    place += 1
                    for lane in range(n):
                        total += largest_product(times * slope[f, lane] * slope[g, lane], low[r, lane], high[r, lane])
            i += n
        return total

    @compiled(allocates=True, inline=False)
    def partial_curvature_bounds_within(self, x, v, s, out):
        """out[i] at least vᵢ Σⱼ Hᵢⱼ(x + uv) vⱼ for 0 <= u <= s."""
        m, i = self.n_functionals, 0
        for j in range(self.dim):
            out[j] = self.prior_curvature_within(x, v, s, j)
        slope, low_eta, high_eta = np.empty((m, LANES)), np.empty((m, LANES)), np.empty((m, LANES))
        data, square = np.empty((self.n_columns, LANES)), np.empty((m, m, LANES))
        low, high = np.empty((self.registers, LANES)), np.empty((self.registers, LANES))
        while i < self.n_data:
            k = self.kind_of(i)
            n, layout, first = self.lanes_from(k, i, self.n_data), self.layout, self.tapes[k, SECOND, RESULT]
            self.enclose_curvature(k, i, n, x, v, s, slope, low_eta, high_eta, data, square, low, high)
            for lane in range(n):
                place, (c, w) = first, self.entries_of(k, i + lane)
                for f in range(layout[k, COUNT]):
                    for g in range(f, layout[k, COUNT]):
                        r = self.results[place]
                        place += 1
                        for turn in range(1 if f == g else 2):
                            a, b = (f, g) if turn == 0 else (g, f)
                            for q in range(self.start[layout[k, START] + a], self.start[layout[k, START] + a + 1]):
                                j = self.columns[c + q]
                                along = v[j] * self.values[w + q] * slope[b, lane]
                                out[j] += largest_product(along, low[r, lane], high[r, lane])
            i += n

    @compiled
    def prior_curvature_within(self, x, v, s, j):
        """At least vⱼ² times the second derivative of the prior of coordinate j."""
        if v[j] == 0.0:
            return 0.0
        bound = self.curvature_bound_of_prior_until(j, max(x[j], x[j] + s * v[j]))
        return bound * v[j] * v[j]

    # -- compiled: the prior ----------------------------------------------------------------------------------------

    @compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += self.potential_of_prior(j, x[j])
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.prior_partial(x, j)

    @compiled
    def prior_partial(self, x, j):
        return self.derivative_of_prior(j, x[j])

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return self.curvature_bound_of_prior(j) * v[j] * v[j] if v[j] != 0.0 else 0.0

    # -- Python -----------------------------------------------------------------------------------------------------

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of each term, and of the prior of each coordinate, in compressed rows."""
        sizes, columns = [[0]], []
        for k, layout in enumerate(self.kinds_of_rows):
            n, width = self.rows_of(k), layout[WIDTH]
            wide = n if layout[COLUMN_STEP] else 1
            table = np.sort(self.columns[layout[COLUMNS] :][: wide * width].reshape(wide, width), axis=1)
            first = np.diff(table, axis=1, prepend=-1) > 0
            sizes.append(np.broadcast_to(first.sum(axis=1), n))
            columns.append(np.tile(table[first], 1 if wide == n else n))
        return np.cumsum(np.concatenate([*sizes, np.ones(self.dim, np.int64)])), np.concatenate(
            [*columns, np.arange(self.dim)]
        )

    def observed_data(self) -> dict[str, np.ndarray]:
        """The responses (n,) of all rows of families, by name; empty if there are none."""
        name = "y" if self.reported is None else self.reported.response
        return {name: np.concatenate([o.y for _, o in self._families()])} if self._families() else {}

    def as_effects(self) -> SumOfTerms:
        """See `MixedRegression.as_effects`."""
        return self

    @property
    def constrains(self) -> bool:
        return self.reported is not None

    def images(self, x: np.ndarray) -> list[np.ndarray]:
        """Points that the likelihood does not tell from x (dim,), as far as it is known to have symmetries."""
        return [] if self.reported is None else self.reported.images(x)

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        return super().constrain(draws) if self.reported is None else self.reported.constrain(draws)

    def omitted(self) -> float:
        """See `Derived.omitted`: constants of priors and families; a loss of `pdmp.terms` is as it is written."""
        if self.reported is not None and self.reported.imputed:  # values of a column are data of some rows only
            return math.nan
        found, own, cuts = 0.0, np.ones(self.dim, bool), set()
        for _, observed in self._families():
            found += float(observed.constant().sum())
            if observed.family.has_ascending_cuts:
                cuts.add(tuple(int(cut.columns[0, 0]) for cut in observed.at[1:]))
        for places in map(list, cuts):  # priors of cuts that ascend have one order of them all, if they are alike
            alike = np.ptp(self.kinds[places]) == 0 and np.all(np.ptp(self.numbers[places], axis=0) == 0.0)
            found += math.lgamma(len(places) + 1.0) if alike else math.nan
        for one in [] if self.reported is None else self.reported.effect_sets():  # normal, in terms or elsewhere
            own[one.effects] = False
            found -= 0.5 * one.effects.size * math.log(math.tau)
        return found - log_masses(self.kinds[own], self.numbers[own])

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        """log p(y | x) of each row of a family, with all constants, (..., n); without families, minus each term."""
        found = Derived.pointwise_log_likelihood(self, draws)
        if not self._families():
            return found
        parts = []
        for k, observed in self._families():
            first = int(self.layout[k, FIRST])
            parts.append(found[..., first : first + self.rows_of(k)] + observed.constant())
        return np.concatenate(parts, axis=-1)

    def predict(
        self, x: ArrayLike, rows: Terms | None = None, *, kind: str = "mean", seed: int | None = None
    ) -> np.ndarray:
        """Expected responses, or responses drawn with their noise, of the rows of families.

        Parameters
        ----------
        x : array_like, shape (..., dim)
            One position, or several.
        rows : Terms, optional
            Other rows, by `pdmp.Family.rows` at functionals of the same parameters, whose responses do not matter; the
            model's own when omitted.
        kind : {"mean", "response"}, default "mean"
        seed : int, optional
            Of the noise.

        Returns
        -------
        ndarray, shape (..., n)

        Raises
        ------
        ValueError
            For rows that know no mean or draw.
        """
        one_of("kind", kind, ("mean", "response"))
        x = real("x", x, self.dim)
        known = [observed for _, observed in self._families()] if rows is None else [rows.observed]
        if not known or known[0] is None:
            raise ValueError("there are no rows of a family: make them by pdmp.Family.rows or pdmp.families.")
        sizes = {name: math.prod(shape) for name, shape in self.variables.items()}
        if rows is not None and not rows.at[0].is_of(sizes):
            raise ValueError(
                f"`rows` is at functionals of other parameters, with the blocks {_listed(rows.at[0].sizes)}; the "
                f"model has {_listed(sizes)}."
            )
        rng, flat = None if kind == "mean" else np.random.default_rng(seed), x.reshape(-1, self.dim)
        if rows is None and self.reported is not None:
            return self.reported.predict(known[0], x, rng)
        found = np.concatenate([observed.predict(flat, rng) for observed in known], axis=-1)
        return found.reshape(*x.shape[:-1], -1)

    def _families(self):
        return [(k, observed) for k, observed in enumerate(self.observed) if observed is not None]

    usual_thinning = "hessian"

    blocks = None  #: passes over rows in files; the rows of this model are in memory

    def row_width(self) -> int | None:
        # Few rows that have the sum of all are summed sooner than parts of all.
        return self._width() if self.rows_summed == self.n_data else None

    def _width(self):
        return int((self.layout[:, WIDTH] + self.layout[:, DATA_STEP]).max())

    def pieces(self, summed: bool = False) -> list[tuple[int, int, int]]:
        """Kind, first and stop of chunks of rows of one kind each; of those that have the sum of all, if `summed`."""
        return [
            (k, int(self.layout[k, FIRST]) + a, int(self.layout[k, FIRST]) + b)
            for k in (self.summed_kinds if summed else range(len(self.names)))
            for a, b in chunks(self.rows_of(k), self._width())
        ]

    def name_of_row(self, i: int) -> str:
        k = int(np.searchsorted(self.layout[:, FIRST], i, "right")) - 1
        return f"row {i - self.layout[k, FIRST]} of {self.names[k]}"

    def row_block(self, k: int, first: int, stop: int, x: np.ndarray, root: np.ndarray) -> Rows:
        """Functionals at x (m, n), data (q, n), S (m, m, n) and weights (0,) of rows.

        S is for LLᵀ, `root` being L, or its diagonal (d,).
        """
        return Rows(*self.functionals(k, first, stop, x), self._squares(k, first, stop, root), np.zeros(0))

    def _squares(self, k, first, stop, root):
        """S of rows, (m, m, n)."""
        m, out = int(self.layout[k, COUNT]), np.zeros((self.layout[k, COUNT],) * 2 + (stop - first,))
        if self.layout[k, COLUMN_STEP]:
            covariance = np.diag(root**2) if root.ndim == 1 else root @ root.T
            _square_rows(self.native, k, first, covariance, out)
            return out
        parts = []
        for f in range(m):
            columns, values = self.matrix_of(k, f, first, stop)
            if root.ndim == 1:
                whole = np.zeros((stop - first, self.dim))
                np.add.at(whole, (slice(None), columns), values * root[columns])
                parts.append(whole)
            else:
                parts.append(values @ root[columns])
        for f in range(m):
            for g in range(f + 1):
                out[f, g] = out[g, f] = np.einsum("ij,ij->i", parts[f], parts[g])
        return out

    def matrix_of(self, k: int, f: int, first: int, stop: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Columns and values (n, w) of functional f of rows of kind k that share their columns; else None."""
        layout, (begin, end) = self.layout[k], self._entries(k, f)
        if layout[COLUMN_STEP]:
            return None
        columns = self.columns[layout[COLUMNS] + begin : layout[COLUMNS] + end]
        if layout[VALUE_STEP]:
            table = self.values[layout[VALUES] :][: self.rows_of(k) * layout[WIDTH]].reshape(-1, layout[WIDTH])
            return columns, table[first - layout[FIRST] : stop - layout[FIRST], begin:end]
        values = self.values[layout[VALUES] + begin : layout[VALUES] + end]
        return columns, np.broadcast_to(values, (stop - first, end - begin))

    @property
    def kinds_of_rows(self) -> np.ndarray:
        """The layout without those kinds whose rows only have the sum of others."""
        return self.layout[: len(self.names)]

    @property
    def rows_summed(self) -> int:
        """How many rows have the sum of all."""
        return int(np.diff(self.stretches).sum())

    def rows_of(self, k: int) -> int:
        """How many rows kind k has."""
        stops = [*self.layout[1:, FIRST], max(self.n_data, self.stretches.max())]
        return int(stops[k] - self.layout[k, FIRST])

    def _entries(self, k, f):
        return self.start[self.layout[k, START] + f : self.layout[k, START] + f + 2]

    def some_rows(self, rows: np.ndarray) -> SumOfTerms:
        other, place = copy.copy(self), 0
        other.layout, parts = self.kinds_of_rows.copy(), {"columns": [], "values": [], "data": []}
        sizes = dict.fromkeys(parts, 0)
        for k, layout in enumerate(other.layout.copy()):
            own = rows[(rows >= layout[FIRST]) & (rows < layout[FIRST] + self.rows_of(k))] - layout[FIRST]
            other.layout[k, FIRST] = place
            place += len(own)
            for name, begin, width, step in (
                ("columns", COLUMNS, layout[WIDTH], layout[COLUMN_STEP]),
                ("values", VALUES, layout[WIDTH], layout[VALUE_STEP]),
                ("data", DATA, layout[DATA_STEP], layout[DATA_STEP]),
            ):
                shared = layout[begin] + np.zeros(1, np.int64) if step == 0 else layout[begin] + own * step
                part = getattr(self, name)[(shared[:, None] + np.arange(width)).reshape(-1)]
                other.layout[k, begin] = sizes[name]
                sizes[name] += len(part)
                parts[name].append(part)
        other.columns, other.values, other.data = (_one(parts[name]) for name in ("columns", "values", "data"))
        other.n_data, other.observed = len(rows), [None] * len(self.observed)
        other.summed_kinds, other.stretches = list(range(len(self.names))), np.array([[0, len(rows)]])
        return other

    def terms_with_data(
        self, most: int | None, kinds: Sequence[int] | None = None, priors: bool = False
    ) -> tuple[SumOfTerms, dict[int, np.ndarray]]:
        """At most so many rows of some kinds; and which coordinates each of these kinds uses.

        `kinds`: those that have data when omitted. The independent priors are left out unless `priors`.
        """
        kinds = [k for k, own in enumerate(self.own_data) if own] if kinds is None else kinds
        rows, used = [], {}
        for k, layout in enumerate(self.kinds_of_rows):
            if k in kinds:
                n, width = self.rows_of(k), layout[WIDTH]
                rows.append(layout[FIRST] + np.unique(np.linspace(0, n - 1, min(n, most or n)).astype(int)))
                used[k] = np.zeros(self.dim, bool)
                used[k][self.columns[layout[COLUMNS] :][: width * (n if layout[COLUMN_STEP] else 1)]] = True
        other = self.some_rows(np.concatenate(rows))
        if not priors:
            other.kinds = np.full_like(self.kinds, Flat().coded()[0])
        return other, used

    def hessian(self, x: ArrayLike) -> np.ndarray:
        return self.gradient_and_hessian(x)[1]

    def gradient_and_hessian(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        x = self.check(x)
        gradient, hessian = self.data_sums(x)
        return gradient + prior_gradient(self, x), hessian + np.diag(self._prior_curvatures(x))

    def _prior_curvatures(self, x):
        return second_derivatives(self.kinds, self.numbers, x)

    def sparse_hessian(self, x: ArrayLike) -> sparse.csc_array:
        """The Hessian as a sparse array (dim, dim): it has an entry for two coordinates that are in one row."""

        def upper(places, values):
            return sparse.csc_array((values, places), shape=(self.dim, self.dim))

        x = self.check(x)
        found = self._sums(x, upper)[1]
        return found + sparse.triu(found, 1).T + sparse.diags_array(self._prior_curvatures(x), format="csc")

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (d,) and Hessian (d, d) of the sum of all terms, in one pass over the rows."""
        if self.dim > DENSE_HESSIAN:
            raise ValueError(f"a Hessian is a matrix, and {self.dim:,} dimensions are too many for one.")

        def upper(places, values):
            out = np.zeros((self.dim, self.dim))
            np.add.at(out.reshape(-1), places[0] * self.dim + places[1], values)
            return out

        gradient, hessian = self._sums(x, upper)
        return gradient, hessian + np.triu(hessian, 1).T

    def _sums(self, x, upper):
        """Gradient of all terms, and the upper triangle of their Hessian, which `upper` makes of its entries."""
        native = self.native

        def part(k, first, stop):
            gradient, m = np.zeros(self.dim), int(self.layout[k, COUNT])
            second = np.empty((m * (m + 1) // 2, stop - first))
            _add_curvatures(native, x, first, stop, gradient, second, *self.scratch(LANES))
            return gradient, upper(*self._products(k, first, stop, second))

        with readable("SumOfTerms"):
            return added(each(part, self.pieces(summed=True)))

    def _products(self, k, first, stop, second):
        """Places (2, n) and values (n,) of the upper triangle of Σ h_fg a_f a_gᵀ over rows; of one place, several."""
        m, layout = int(self.layout[k, COUNT]), self.layout[k]
        if layout[COLUMN_STEP]:
            widths = np.diff(self.start[layout[START] : layout[START] + m + 1])
            most = (stop - first) * sum(
                (1 + (f != g)) * int(widths[f] * widths[g])
                for f, g in itertools.combinations_with_replacement(range(m), 2)
            )
            places, values = np.empty((2, most), np.int64), np.empty(most)
            n = _write_products(self.native, k, first, stop, second, places, values)
            return places[:, :n], values[:n]
        parts = [self.matrix_of(k, f, first, stop) for f in range(m)]
        found: list = []
        for place, (f, g) in enumerate(itertools.combinations_with_replacement(range(m), 2)):
            (rows, left), (columns, right) = parts[f], parts[g]
            a, b = np.broadcast_arrays(rows[:, None], columns)
            product = left.T @ (second[place][:, None] * right)
            for one, other in ((a, b), (b, a))[: 1 + (f != g)]:
                above = one <= other
                found.append((np.array([one[above], other[above]]), product[above]))
        return np.concatenate([p for p, _ in found], axis=1), np.concatenate([v for _, v in found])


@entry
def _square_rows(model, k, first, covariance, out):
    """The same where columns differ from row to row."""
    layout = model.layout
    for i in range(out.shape[2]):
        c, v = model.entries_of(k, first + i)
        for f in range(out.shape[0]):
            for g in range(f + 1):
                total = 0.0
                for j in range(model.start[layout[k, START] + f], model.start[layout[k, START] + f + 1]):
                    for q in range(model.start[layout[k, START] + g], model.start[layout[k, START] + g + 1]):
                        product = np.float64(model.values[v + j]) * model.values[v + q]
                        total += product * covariance[model.columns[c + j], model.columns[c + q]]
                out[f, g, i], out[g, f, i] = total, total


@entry
def _add_curvatures(model, x, first, stop, gradient, second, eta, there, data, room):
    """Add the gradient of rows of one kind, and write the second derivatives by the functionals, (…, rows)."""
    i, k = first, model.kind_of(first)
    m = model.layout[k, COUNT]
    while i < stop:
        n = min(LANES, stop - i)
        model.write_rows(x, k, i, n, data, eta)
        place = model.run(k, CURVATURE, n, data, eta, room)
        for p in range(second.shape[0]):
            for lane in range(n):
                second[p, i - first + lane] = room[model.results[place + m + p], lane]
        for lane in range(n):
            model.distribute(x, k, i + lane, place, lane, room, gradient)
        i += n


@entry
def _write_products(model, k, first, stop, second, places, values):
    """The entries of Σ h_fg a_f a_gᵀ over rows whose columns differ, in the upper triangle; their number."""
    layout, m, n = model.layout, model.layout[k, COUNT], 0
    for i in range(first, stop):
        c, v = model.entries_of(k, i)
        place = 0
        for f in range(m):
            for g in range(f, m):
                h = second[place, i - first]
                place += 1
                for j in range(model.start[layout[k, START] + f], model.start[layout[k, START] + f + 1]):
                    a, one = model.columns[c + j], h * model.values[v + j]
                    if one == 0.0:
                        continue
                    for q in range(model.start[layout[k, START] + g], model.start[layout[k, START] + g + 1]):
                        b, product = model.columns[c + q], one * model.values[v + q]
                        if a <= b:
                            places[0, n], places[1, n], values[n] = a, b, product
                            n += 1
                        if f != g and b <= a:
                            places[0, n], places[1, n], values[n] = b, a, product
                            n += 1
    return n


@inlined
def largest_product(q, low, high):
    """At least q h for low <= h <= high; 0 where q is, whatever h."""
    if q == 0.0:
        return 0.0
    product = q * (high if q > 0.0 else low)
    return product + SLACK * abs(product)


def _stacked(at, n):
    """Columns (1 or n, W) and values (1 or n, W) of all functionals side by side, and the width of each."""
    wide = n if any(len(f.columns) > 1 for f in at) else 1
    long = n if any(len(f.values) > 1 for f in at) else 1
    if len(at) == 1:
        return np.broadcast_to(at[0].columns, (wide, at[0].columns.shape[1])), at[0].values, [at[0].columns.shape[1]]
    columns = np.hstack([np.broadcast_to(f.columns, (wide, f.columns.shape[1])) for f in at])
    values = np.hstack([np.broadcast_to(v, (long, v.shape[1])) for v in in_one_precision([f.values for f in at])])
    return columns, values, [f.columns.shape[1] for f in at]


def _listed(sizes):
    """Blocks in words."""
    return ", ".join(f"{name} ({size})" for name, size in sizes.items())


def _one(arrays):
    """The arrays one after the other, without a copy if there is only one."""
    return np.ascontiguousarray(arrays[0]) if len(arrays) == 1 else np.concatenate(in_one_precision(arrays))


def _read_data(j, values):
    refuse_unreal(f"data[{j}]", values)
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim > 1:
        raise TypeError(
            f"`data[{j}]` must be an array of numbers, one for each row, got {array.dtype} of {array.shape}."
        )
    array = array.astype(float).reshape(-1)
    if not array.size:
        raise ValueError(f"`data[{j}]` must have at least one row.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`data[{j}]` must be finite, and has {np.sum(~np.isfinite(array))} values that are not.")
    return array


def _read_priors(parameters, priors):
    """A prior for each coordinate."""
    laws: list[Prior] = []
    given = dict(priors or {})
    for name in given.keys() - parameters.sizes.keys():
        raise ValueError(f"`priors` names {name!r}, which is no block; there are {', '.join(parameters.sizes)}.")
    for name, size in parameters.sizes.items():
        own = given.get(name, Flat())
        own = [own] * size if isinstance(own, Prior) else list(own) if isinstance(own, Sequence) else [own]
        for law in own:
            if not isinstance(law, Prior):
                raise TypeError(f"`priors[{name!r}]` must be one of pdmp.models.priors, got {type(law).__name__}.")
        if len(own) != size or len({law.positive for law in own}) > 1:
            raise ValueError(
                f"`priors[{name!r}]` must be one prior, or {size} of them, all of positive numbers or none."
            )
        laws += own
    return laws


def _read_initial(parameters, start, initial):
    if not isinstance(initial, Mapping):
        return start if initial is None else initial
    for name in initial.keys() - parameters.sizes.keys():
        raise ValueError(f"`initial` names {name!r}, which is no block; there are {', '.join(parameters.sizes)}.")
    place = 0
    for name, size in parameters.sizes.items():
        if name in initial:
            own = np.asarray(initial[name], float)
            if own.shape not in ((), (size,)) and own.size != 1:
                raise ValueError(f"`initial[{name!r}]` must have {size} numbers, got shape {own.shape}.")
            start[place : place + size] = own
        place += size
    return start


for _name in FUNCTION_NAMES:
    setattr(terms, _name, getattr(nodes, _name))
