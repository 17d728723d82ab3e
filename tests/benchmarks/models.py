"""Mini-batch gradients of the regressions, side by side with numpy and with JAX, on one core: nanoseconds for a datum.

All three sum the gradients of the same rows, drawn i.i.d. before the clock starts, at the same place: numpy as one
writes it first (rows gathered, two matrix products), JAX the same jitted, in a `lax.scan` over batches so that no
dispatch counts. Printed are medians of alternating rounds, and the median of the rounds' ratios of the better of the
two to this package: above 1 this package is faster. The three gradients are compared before. Needs the `bench` extra::

    python tests/benchmarks/models.py [--rounds 7] [--quick] [poisson probit …]
"""

import os

# Before anything that starts threads is imported: one core for all sides.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy import sparse, special  # noqa: E402

from pdmp import models  # noqa: E402
from pdmp.native.classes import entry  # noqa: E402

D = 10
R, NU = 2.0, 4.0  #: successes of the negative binomial law, degrees of freedom of Student's


def mills(z):
    return np.exp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(z))


def jax_mills(z):
    return jnp.exp(-0.5 * z * z - 0.5 * jnp.log(2.0 * jnp.pi) - jax.scipy.special.log_ndtr(z))


#: The model, its kind of target, and the slope of a term by its margin: in numpy and in JAX.
CASES = {
    "logistic": (
        models.LogisticRegression,
        "binary",
        lambda z, y: special.expit(z) - y,
        lambda z, y: jax.nn.sigmoid(z) - y,
    ),
    "probit": (
        models.ProbitRegression,
        "binary",
        lambda z, y: -(2.0 * y - 1.0) * mills((2.0 * y - 1.0) * z),
        lambda z, y: -(2.0 * y - 1.0) * jax_mills((2.0 * y - 1.0) * z),
    ),
    "poisson": (models.PoissonRegression, "count", lambda z, y: np.exp(z) - y, lambda z, y: jnp.exp(z) - y),
    "negative binomial": (
        lambda X, y: models.NegativeBinomialRegression(X, y, size=R),
        "count",
        lambda z, y: (y + R) * special.expit(z - np.log(R)) - y,
        lambda z, y: (y + R) * jax.nn.sigmoid(z - jnp.log(R)) - y,
    ),
    "student t": (
        lambda X, y: models.StudentTRegression(X, y, degrees=NU),
        "real",
        lambda z, y: -(NU + 1.0) * (y - z) / (NU + (y - z) ** 2),
        lambda z, y: -(NU + 1.0) * (y - z) / (NU + (y - z) ** 2),
    ),
    "normal inverse gamma": (models.NormalInverseGammaRegression, "real", None, None),
}


@entry
def sum_gradients(model, x, batches, out):
    for k in range(batches.shape[0]):
        model.add_batch_gradient(x, batches[k], batches.shape[1], out)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def ours(model, x, batches):
    out = np.zeros(model.dim)
    kernel = model.native

    def run():
        out[:] = 0.0
        sum_gradients(kernel, x, batches, out)
        return out

    return run


def in_numpy(X, y, slope, x, batches):
    def run():
        total = np.zeros(len(x))
        for rows in batches:
            B, t = X[rows], y[rows]
            if slope is not None:
                total += B.T @ slope(B @ x, t)
            else:
                r, e = t - B @ x[:-1], np.exp(-x[-1])
                total[:-1] -= e * (B.T @ r)
                total[-1] += 0.5 * (len(rows) - e * (r @ r))
        return total

    return run


def in_jax(X, y, slope, x, batches):
    X, y, x, batches = (jnp.asarray(a) for a in (X, y, x, batches))

    @jax.jit
    def scan(X, y, x, batches):
        def body(total, rows):
            B, t = X[rows], y[rows]
            if slope is not None:
                return total + B.T @ slope(B @ x, t), None
            r, e = t - B @ x[:-1], jnp.exp(-x[-1])
            return total + jnp.append(-e * (B.T @ r), 0.5 * (len(rows) - e * (r @ r))), None

        return jax.lax.scan(body, jnp.zeros(len(x)), batches)[0]

    return lambda: np.asarray(scan(X, y, x, batches).block_until_ready())


def in_scipy(X, y, slope, x, batches):
    """Of a sparse matrix."""

    def run():
        total = np.zeros(len(x))
        for rows in batches:
            B = X[rows]
            total += B.T @ slope(B @ x, y[rows])
        return total

    return run


def compare(label, size, sides, terms, rounds):
    values = [run() for run in sides]
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-8, atol=1e-8 * np.abs(values[0]).max())
    times = np.array([[timed(run) for run in sides] for _ in range(rounds)]) / terms * 1e9
    ratio = np.median(times[:, 1:].min(axis=1) / times[:, 0])
    cells = "".join(f"{t:10.1f}" for t in np.median(times, axis=0)) + " " * 10 * (3 - len(sides))
    print(f"{label:24}{size:8,}{cells}{ratio:9.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="some of the models")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, three rounds")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    n, terms = (10**5, 10**5) if args.quick else (10**6, 10**6)
    rounds = 3 if args.quick else args.rounds
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    z = X @ rng.standard_normal(D) * 0.3
    targets = {
        "binary": (z + rng.logistic(size=n) > 0.0).astype(float),
        "count": rng.poisson(np.exp(z)).astype(float),
        "real": z + rng.standard_normal(n),
    }
    print(f"gradients of mini-batches, N = {n:,}, d = {D}, float64; jax {jax.__version__}; ns for a datum")
    print(f"{'model':24}{'batch':>8}{'pdmp':>10}{'numpy':>10}{'jax':>10}{'ratio':>9}")
    for name, (make, kind, slope, jax_slope) in CASES.items():
        if args.names and name not in args.names:
            continue
        y = targets[kind]
        model = make(X, y)
        x = 0.1 * rng.standard_normal(model.dim)
        for size in (100, 1_000, 10_000):
            batches = rng.integers(0, n, (terms // size, size))
            sides = (
                ours(model, x, batches),
                in_numpy(X, y, slope, x, batches),
                in_jax(X, y, jax_slope, x, batches),
            )
            compare(name, size, sides, terms, rounds)
    if not args.names or "sparse" in args.names:
        wide = sparse.random_array((n, 1_000), density=0.01, format="csr", rng=rng)
        make, kind, slope, _ = CASES["poisson"]
        model, y = make(wide, targets[kind]), targets[kind]
        x = 0.1 * rng.standard_normal(model.dim)
        batches = rng.integers(0, n, (terms // 1_000, 1_000))
        print("Poisson with 1,000 columns, ten entries a row, scipy.sparse in the column of numpy:")
        compare(
            "poisson, sparse", 1_000, (ours(model, x, batches), in_scipy(wide, y, slope, x, batches)), terms, rounds
        )


if __name__ == "__main__":
    main()
