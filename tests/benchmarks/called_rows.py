"""Samplers that look at rows, whose gradients are compiled for the model, beside the same with a call for each row.

    python -m tests.benchmarks.called_rows

Nanoseconds a row, the least of five runs in turns. The call is of a C function at an address; what looks at whole
targets is in `tests.benchmarks.addresses`.
"""

import ctypes
import warnings

import numpy as np
from numba import carray, cfunc, types

import discrete
import pdmp
from pdmp.native.classes import compiled
from pdmp.process import DATA

ROWS = np.random.default_rng(1).standard_normal((10_000, 6))  #: five features and a response


@cfunc(types.void(types.CPointer(types.float64), types.intp, types.CPointer(types.float64)))
def _row(x_pointer, i, out_pointer):
    x, out, error = carray(x_pointer, (5,)), carray(out_pointer, (5,)), -ROWS[i, 5]
    for j in range(5):
        error += ROWS[i, j] * x[j]
    for j in range(5):
        out[j] += error * ROWS[i, j]


CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(_row.address)


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
        CALL(x.ctypes, i, out.ctypes)


BY_ROWS = {
    f"SGLD, batches of {n:,}": lambda model, n=n: discrete.SGLD(pdmp.gradients.Minibatch(model, size=n), step=1e-6)
    for n in (10, 100, 1_000)
} | {
    "ZigZag by importance": lambda model: pdmp.ZigZag(
        pdmp.gradients.ControlVariate(model, size=1, anchor=np.zeros(5), draw="importance")
    )
}


def main():
    warnings.simplefilter("ignore")
    options = {"initial": np.zeros(5), "seed": 1, "store": "moments", "progress": False}
    print(f"{'':36}{'ns by address':>14}{'for the model':>15}{'ratio':>7}")
    for name, make in BY_ROWS.items():
        processes, least = [make(model()) for model in (CalledSquares, Squares)], [np.inf, np.inf]
        for process in processes:
            pdmp.sample(process, events=50, **options)
        for _ in range(5):
            for k, process in enumerate(processes):
                (record,) = pdmp.sample(process, seconds=0.5, **options).records
                least[k] = min(least[k], 1e9 * record.seconds / record.counts[DATA])
        print(f"{name:36}{least[0]:14.1f}{least[1]:15.1f}{least[0] / least[1]:7.2f}")


if __name__ == "__main__":
    main()
