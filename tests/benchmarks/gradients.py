"""SGLD on logistic regression, side by side with BlackJAX in one process and on one core: steps per second.

Each round times one side and then the other on the same data with the same batch size; printed are the medians
over the rounds and the median of the rounds' ratios. BlackJAX's `sgld` runs in a jitted `lax.scan` that draws its own
i.i.d. batch and keeps nothing of the path; ours keeps its moments. Neither time has compilation in it, or the checks
and copies before a run. Needs the `bench` extra::

    python tests/benchmarks/gradients.py [--rounds 7] [--terms 5000000]
"""

import os

# Before anything that starts threads is imported: one core for both sides.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import time  # noqa: E402

import blackjax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import discrete  # noqa: E402
import pdmp  # noqa: E402

N, D, STEP = 10**6, 10, 1e-8


def ours(X, y, dtype, size, draw, steps):
    """A function that makes the steps and returns the seconds, those of the chain: what starts a run is not in it."""
    model = pdmp.models.LogisticRegression(X, y, dtype=dtype)
    process = discrete.SGLD(pdmp.gradients.Minibatch(model, size, draw=draw), step=STEP)
    options = {"initial": np.zeros(D), "seed": 1, "store": "moments"}

    def run():
        return pdmp.sample(process, steps=steps, **options).stats["seconds"]

    run()
    return run


def theirs(X, y, dtype, size, steps):
    jax.config.update("jax_enable_x64", np.dtype(dtype) == np.float64)
    X, y = jnp.asarray(X, dtype), jnp.asarray(y, dtype)

    def gradient(x, batch):
        features, labels = batch
        return N / size * (features.T @ (labels - jax.nn.sigmoid(features @ x))) - x

    algorithm = blackjax.sgld(gradient)

    @jax.jit
    def scan(x, keys, X, y):
        def body(x, key):
            draw, noise = jax.random.split(key)
            rows = jax.random.randint(draw, (size,), 0, N)
            return algorithm.step(noise, x, (X[rows], y[rows]), STEP), None

        return jax.lax.scan(body, x, keys)[0]

    x, keys = jnp.zeros(D, dtype), jax.random.split(jax.random.key(1), steps)

    def run():
        start = time.perf_counter()
        scan(x, keys, X, y).block_until_ready()
        return time.perf_counter() - start

    run()
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--terms", type=int, default=5 * 10**6, help="data terms that one timing looks at")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(D)))).astype(float)
    print(f"SGLD, logistic regression, N = {N:,}, d = {D}; blackjax {blackjax.__version__}, jax {jax.__version__}")
    print(
        f"{'storage':8} {'batch':>6} {'draw':10} {'steps/s':>10} {'blackjax':>10} {'ratio':>6}   ns/term: ours, theirs"
    )
    for dtype in (np.float64, np.float32):
        for size in (1_000, 10_000):
            steps = options.terms // size
            other = theirs(X, y, dtype, size, steps)
            for draw in ("iid", "reshuffle"):
                run = ours(X, y, dtype, size, draw, steps)
                times = np.array([(run(), other()) for _ in range(options.rounds)]) / steps
                a, b = np.median(times, axis=0)
                ratio = np.median(times[:, 1] / times[:, 0])
                print(
                    f"{np.dtype(dtype).name:8} {size:6} {draw:10} {1 / a:10.0f} {1 / b:10.0f} {ratio:6.2f}   "
                    f"{a / size * 1e9:.1f}, {b / size * 1e9:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
