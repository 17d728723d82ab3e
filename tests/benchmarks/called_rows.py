"""Samplers that look at rows or factors, compiled for the model, beside the same with a call for each of these.

    python -m tests.benchmarks.called_rows

Nanoseconds a row, or an event of local processes, the least of five runs in turns. The call is of a C function at an
address; what looks at whole targets is in `tests.benchmarks.addresses`.
"""

import argparse
import ctypes
import warnings

import numpy as np
from numba import carray, cfunc, config, types

import discrete
import pdmp
from pdmp.native.classes import compiled
from pdmp.process import DATA, EVENTS

ROWS = np.random.default_rng(1).standard_normal((10_000, 6))  #: five features and a response


DIM = 1_000  #: of the chain
MADE = []  #: own the code at the addresses


def _add_row(x_pointer, i, out_pointer):
    x, out, error = carray(x_pointer, (5,)), carray(out_pointer, (5,)), -ROWS[i, 5]
    for j in range(5):
        error += ROWS[i, j] * x[j]
    for j in range(5):
        out[j] += error * ROWS[i, j]


def _add_factor(x_pointer, f, out_pointer):
    x, out = carray(x_pointer, (DIM,)), carray(out_pointer, (DIM,))
    if f < DIM:
        out[f] += 0.1 * x[f] + 0.1 * x[f] ** 3
    else:
        out[f - DIM] += x[f - DIM] - x[f - DIM + 1]
        out[f - DIM + 1] += x[f - DIM + 1] - x[f - DIM]


def _at_address(function):
    """A C function (x, i, out), called where its address is."""
    signature = types.void(types.CPointer(types.float64), types.intp, types.CPointer(types.float64))
    made = cfunc(signature)(function)
    MADE.append(made)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(made.address)


ROW_AT, FACTOR_AT = (None, None) if config.DISABLE_JIT else map(_at_address, (_add_row, _add_factor))


class Squares(pdmp.Model):
    """Σᵢ (xᵀaᵢ - yᵢ)² / 2."""

    rows: np.ndarray

    def __init__(self):
        super().__init__(5, n_data=len(ROWS))
        self.rows = ROWS

    @compiled
    def term_potential(self, x, i):
        error = -self.rows[i, 5]
        for j in range(self.dim):
            error += self.rows[i, j] * x[j]
        return 0.5 * error * error

    @compiled
    def add_term_gradient(self, x, i, out):
        error = -self.rows[i, 5]
        for j in range(self.dim):
            error += self.rows[i, j] * x[j]
        for j in range(self.dim):
            out[j] += error * self.rows[i, j]

    @compiled
    def term_lipschitz(self, i, scale, out):
        square = 0.0
        for j in range(self.dim):
            square += (self.rows[i, j] * scale[j]) ** 2
        for j in range(self.dim):
            out[j] = abs(self.rows[i, j]) * np.sqrt(square)


class CalledSquares(Squares):
    """The same by calls of a C function."""

    @compiled
    def add_term_gradient(self, x, i, out):
        ROW_AT(x.ctypes, i, out.ctypes)


class Chain(pdmp.Model):
    """Σ xᵢ²/20 + xᵢ⁴/40 + Σ (xᵢ - xᵢ₊₁)²/2."""

    def __init__(self):
        super().__init__(DIM)

    @compiled
    def potential(self, x):
        total = 0.0
        for i in range(self.dim):
            total += 0.05 * x[i] ** 2 + 0.025 * x[i] ** 4
        for i in range(self.dim - 1):
            total += 0.5 * (x[i] - x[i + 1]) ** 2
        return total

    @compiled
    def add_gradient(self, x, out):
        for f in range(2 * self.dim - 1):
            self.add_factor_gradient(x, f, out)

    @compiled
    def add_factor_gradient(self, x, f, out):
        i = f - self.dim
        if i < 0:
            out[f] += 0.1 * x[f] + 0.1 * x[f] ** 3
        else:
            out[i] += x[i] - x[i + 1]
            out[i + 1] += x[i + 1] - x[i]

    def factors(self):
        return [[i] for i in range(self.dim)] + [[i, i + 1] for i in range(self.dim - 1)]


class CalledChain(Chain):
    """The same by calls of a C function."""

    @compiled
    def add_factor_gradient(self, x, f, out):
        FACTOR_AT(x.ctypes, f, out.ctypes)


BY_ROWS = {
    f"SGLD, batches of {n:,}": lambda model, n=n: discrete.SGLD(pdmp.gradients.Minibatch(model, size=n), step=1e-6)
    for n in (10, 100, 1_000)
} | {
    "ZigZag by importance": lambda model: pdmp.ZigZag(
        pdmp.gradients.ControlVariate(model, size=1, anchor=np.zeros(5), draw="importance")
    )
}


BY_FACTORS = {
    "local BPS, d = 1,000": lambda model: pdmp.LocalBPS(model, refresh_rate=0.1),
    "local ZigZag, d = 1,000": lambda model: pdmp.ZigZag(model, thinning="grid"),
}


def compare(name, processes, counted):
    """A line: the one by calls, the one that is compiled for the model."""
    options = {"initial": np.zeros(processes[0].dim), "seed": 1, "store": "moments", "progress": False}
    least = [np.inf, np.inf]
    for process in processes:
        pdmp.sample(process, events=50, **options)
    for _ in range(5):
        for k, process in enumerate(processes):
            (record,) = pdmp.sample(process, seconds=0.5, **options).records
            least[k] = min(least[k], 1e9 * record.seconds / record.counts[counted])
    print(f"{name:36}{least[0]:14.1f}{least[1]:15.1f}{least[0] / least[1]:7.2f}")


def main():
    warnings.simplefilter("ignore")
    print(f"{'':36}{'ns by address':>14}{'for the model':>15}{'ratio':>7}")
    for name, make in BY_ROWS.items():
        compare(name, [make(model()) for model in (CalledSquares, Squares)], DATA)
    for name, make in BY_FACTORS.items():
        compare(name, [make(model()) for model in (CalledChain, Chain)], EVENTS)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
