"""Models whose terms are rows of expressions: tapes are carried out for some rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdmp.expressions.tape import BEGIN, DEPENDENT, GRADIENT, LANES, LOSS, RESULT, STOP, Scratch, Tape, evaluate, expand
from pdmp.models.base import Model
from pdmp.models.priors import (
    derivative,
    potential,
    second_derivative,
    second_derivative_bound,
    second_derivative_bound_until,
)
from pdmp.native.classes import compiled, entry, positive_part


class ExpressionRows(Model):
    """Base of models whose term i is an expression of the data and the functionals of row i.

    A class of this kind has the compiled methods ``write_row(x, k, i, lane, data, eta)``, which writes data and
    functionals of row i, of kind k, into a lane, ``distribute(x, k, i, place, lane, room, out)``, which adds its
    gradient, the derivatives by the functionals being the results from `place` on, and ``remainder_along``; and where
    rows are of several kinds or have weights, `kind_of`, `lanes_from`, `count_of` and `weight_of`.
    """

    code: np.ndarray
    number: np.ndarray
    results: np.ndarray
    tapes: np.ndarray  #: (kinds, tapes, 4)
    registers: int
    n_functionals: int  #: at most of a row: parts of its remainder
    n_columns: int  #: data of a row, at most
    kinds: np.ndarray  #: of the priors, independent ones of single coordinates
    numbers: np.ndarray  #: (…, 3) of them

    def _keep_tapes(self, kinds: Sequence[Sequence[Tape]], n_functionals: int, n_columns: int) -> None:
        """The tapes of all kinds one after the other."""
        every, code, results = [tape for tapes in kinds for tape in tapes], 0, 0
        self.tapes = np.zeros((len(kinds), len(kinds[0]), 4), np.int64)
        for place, tape in zip(self.tapes.reshape(-1, 4), every, strict=True):
            place[[BEGIN, STOP, RESULT, DEPENDENT]] = code, code + len(tape.code), results, code + tape.fixed
            code, results = code + len(tape.code), results + len(tape.results)
        self.code, self.number = np.concatenate([t.code for t in every]), np.concatenate([t.number for t in every])
        self.results = np.concatenate([t.results for t in every])
        self.registers = max(tape.registers for tape in every)
        self.n_functionals, self.n_columns = n_functionals, n_columns

    @compiled
    def n_stretches(self, first, last):
        """Over how many stretches of rows the sum over rows first … last - 1 is taken."""
        return 1

    @compiled
    def stretch(self, k, first, last):
        """Where stretch k of these begins and ends."""
        return first, last

    @compiled
    def kind_of(self, i):
        """Of which kind row i is."""
        return 0

    @compiled
    def lanes_from(self, k, i, last):
        """How many rows of kind k are taken together from row i on."""
        return min(LANES, last - i)

    @compiled
    def count_of(self, k):
        """How many functionals a row of kind k has."""
        return self.n_functionals

    @compiled
    def weight_of(self, i):
        """What row i's loss is multiplied by."""
        return 1.0

    @compiled
    def write_rows(self, x, k, i, n, data, eta):
        """Write data and functionals of rows i … i + n - 1, which are of kind k, into the first n lanes."""
        for lane in range(n):
            self.write_row(x, k, i + lane, lane, data, eta)

    @compiled
    def run(self, k, which, n, data, eta, room):
        """Carry out a tape of kind k for n lanes; the place of its first result in `results`."""
        evaluate(self.code, self.number, self.tapes[k, which, BEGIN], self.tapes[k, which, STOP], n, data, eta, room)
        return self.tapes[k, which, RESULT]

    @compiled
    def expand_row(self, k, i, scratch, rho):
        """Parts by the functionals of what the gradient of row i is beyond its expansion.

        Functionals, those where it is expanded, and data are in the scratch.
        """
        m = self.count_of(k)
        expand(
            self.code, self.number, self.results, self.tapes[k], m, scratch.data, scratch.eta, scratch.there,
            scratch.room, rho,
        )  # fmt: skip
        for f in range(m):
            rho[f] *= self.weight_of(i)

    @compiled(allocates=True, inline=False)
    def term_potential(self, x, i):
        k = self.kind_of(i)
        data, eta = np.empty((self.n_columns, 1)), np.empty((self.n_functionals, 1))
        room = np.empty((self.registers, 1))
        self.write_row(x, k, i, 0, data, eta)
        return self.weight_of(i) * room[self.results[self.run(k, LOSS, 1, data, eta, room)], 0]

    @compiled(allocates=True, inline=False)
    def add_term_gradient(self, x, i, out):
        k = self.kind_of(i)
        data, eta = np.empty((self.n_columns, 1)), np.empty((self.n_functionals, 1))
        room = np.empty((self.registers, 1))
        self.write_row(x, k, i, 0, data, eta)
        self.distribute(x, k, i, self.run(k, GRADIENT, 1, data, eta, room), 0, room, out)

    @compiled(allocates=True, inline=False)
    def block_potential(self, x, first, last):
        data, eta = np.empty((self.n_columns, LANES)), np.empty((self.n_functionals, LANES))
        room, total = np.empty((self.registers, LANES)), 0.0
        for part in range(self.n_stretches(first, last)):
            i, stop = self.stretch(part, first, last)
            while i < stop:
                k = self.kind_of(i)
                n = self.lanes_from(k, i, stop)
                self.write_rows(x, k, i, n, data, eta)
                out = self.results[self.run(k, LOSS, n, data, eta, room)]
                for lane in range(n):
                    total += self.weight_of(i + lane) * room[out, lane]
                i += n
        return total

    @compiled(inline=False)
    def total_potential(self, x):
        return self.prior_potential(x) + self.block_potential(x, 0, self.n_data)

    @compiled(allocates=True, inline=False)
    def add_block_gradient(self, x, first, last, out):
        data, eta = np.empty((self.n_columns, LANES)), np.empty((self.n_functionals, LANES))
        room = np.empty((self.registers, LANES))
        for part in range(self.n_stretches(first, last)):
            i, stop = self.stretch(part, first, last)
            while i < stop:
                k = self.kind_of(i)
                n = self.lanes_from(k, i, stop)
                self.write_rows(x, k, i, n, data, eta)
                place = self.run(k, GRADIENT, n, data, eta, room)
                for lane in range(n):
                    self.distribute(x, k, i + lane, place, lane, room, out)
                i += n

    @compiled(allocates=True, inline=False)
    def add_batch_gradient(self, x, rows, n, out):
        data, eta = np.empty((self.n_columns, LANES)), np.empty((self.n_functionals, LANES))
        room, done = np.empty((self.registers, LANES)), 0
        while done < n:
            k, lanes = self.kind_of(rows[done]), 0
            while lanes < LANES and done + lanes < n and self.kind_of(rows[done + lanes]) == k:
                self.write_row(x, k, rows[done + lanes], lanes, data, eta)
                lanes += 1
            place = self.run(k, GRADIENT, lanes, data, eta, room)
            for lane in range(lanes):
                self.distribute(x, k, rows[done + lane], place, lane, room, out)
            done += lanes

    # -- compiled: prior q at its coordinate x, as of `pdmp.models.priors` --------------------------------------------

    @compiled
    def potential_of_prior(self, q, x):
        n = self.numbers
        return potential(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x)

    @compiled
    def derivative_of_prior(self, q, x):
        n = self.numbers
        return derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x)

    @compiled
    def second_derivative_of_prior(self, q, x):
        n = self.numbers
        return second_derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x)

    @compiled
    def curvature_bound_of_prior(self, q):
        n = self.numbers
        return second_derivative_bound(self.kinds[q], n[q, 0], n[q, 1], n[q, 2])

    @compiled
    def curvature_bound_of_prior_until(self, q, x):
        n = self.numbers
        return second_derivative_bound_until(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x)

    @compiled(allocates=True, inline=False)
    def remainder_rates(self, there, x, v):
        """Σᵢ (v·Rᵢ(x))₊."""
        m, total = self.n_functionals, 0.0
        scratch = Scratch(
            np.empty((m, 1)), np.empty((m, 1)), np.empty((self.n_columns, 1)), np.empty((self.registers, 1))
        )
        rho = np.empty(m)
        for i in range(self.n_data):
            total += positive_part(self.remainder_along(there, x, v, i, scratch, rho))
        return total

    # -- Python -----------------------------------------------------------------------------------------------------

    def prior_derivatives(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """First and second derivatives of the priors q (n,) at coordinates x (n,), and bounds on the second, (3, n)."""
        found = np.empty((3, len(q)))
        _write_prior_derivatives(self.native, q, x, found)
        return found

    def scratch(self, lanes: int = 1) -> Scratch:
        """What evaluating so many rows at once needs."""
        heights = self.n_functionals, self.n_functionals, self.n_columns, self.registers
        return Scratch(*(np.zeros((height, lanes)) for height in heights))

    def functionals(self, k: int, first: int, stop: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functionals at x (m, n) and data (q, n) of rows of kind k."""
        eta = np.empty((self.native.count_of(k), stop - first))
        data = np.empty((self.n_columns, stop - first))
        _write_rows(self.native, k, x, first, eta, data)
        return eta, data


@entry
def _write_rows(model, k, x, first, eta, data):
    model.write_rows(x, k, first, eta.shape[1], data, eta)


@entry
def _write_prior_derivatives(model, q, x, found):
    for k in range(q.shape[0]):
        found[0, k] = model.derivative_of_prior(q[k], x[k])
        found[1, k] = model.second_derivative_of_prior(q[k], x[k])
        found[2, k] = model.curvature_bound_of_prior(q[k])
