"""Gradients of mini-batches of the papers' large models, beside numpy and JAX; MNIST beside PyTorch.

Each line is one model: the time of its compiled mini-batch gradient, prior included, and that of the obvious numpy
version and of JAX, jitted, on the same batches. The sides take turns; printed are medians over the rounds, and the
medians of the rounds' ratios. Everything may use two threads. ``--mnist`` is a whole SGLD step of the network of 100
hidden units on batches of 600 images, ours and PyTorch's, in both precisions; ``--large`` a matrix of MovieLens 20M's
size, its memory and the time of a step on a batch of N/500. Needs jax, and torch for ``--mnist``::

    python tests/benchmarks/factorisations.py [--rounds 15] [--quick] [--mnist] [--large]
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "2")

import argparse  # noqa: E402
import gzip  # noqa: E402
import pathlib  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

import discrete  # noqa: E402
import pdmp  # noqa: E402
from pdmp.gradients import Minibatch  # noqa: E402
from pdmp.models import BPMF, ICA, PPMF, BayesianNN, MatrixFactorization  # noqa: E402
from pdmp.native.classes import entry  # noqa: E402


@entry
def gradient(model, x, rows, weight, out):
    """∇prior + weight Σ ∇Uᵢ over the rows, as `Minibatch` does it."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    model.add_batch_gradient(x, rows, rows.shape[0], out)
    for j in range(out.shape[0]):
        out[j] *= weight
    model.add_prior_gradient(x, out)


def softmax(xp, z):
    z = xp.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def add_at(xp, table, rows, values):
    if xp is np:
        np.add.at(table, rows, values)
        return table
    return table.at[rows].add(values)


# ---------------------------------------------------------------------------------------------------------------
# The same gradients for numpy and for JAX: a function of (x, the batch's data), the data, and the model


def ica(quick):
    rng, d, n = np.random.default_rng(0), 10, 17_730
    X = rng.logistic(size=(n, d)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    model = ICA(X)

    def other(xp, x, batch):
        w, X = x.reshape(d, d), batch[0]
        first = xp.tanh(0.5 * X @ w.T).T @ X - len(X) * xp.linalg.inv(w).T
        return (n / len(X) * first + w).ravel()

    return model, (model.data,), other, 100


def pairs(quick):
    rng = np.random.default_rng(0)
    n, users, items = 80_000, 943, 1_682
    return rng.integers(0, users, n), rng.integers(0, items, n), rng.integers(1, 6, n), users, items


def columns_of(model):
    return tuple(np.ascontiguousarray(model.data[name]) for name in ("user", "item", "rating"))


def mf(quick):
    users, items, ratings, m, n = pairs(quick)
    model = MatrixFactorization(users, items, ratings, 10, m, n)

    def other(xp, x, batch):
        i, j, r = batch
        w, h = x[: m * 10].reshape(m, 10), x[m * 10 :].reshape(n, 10)
        e = (r - (w[i] * h[j]).sum(axis=1))[:, None]
        scale = model.n_data / len(r)
        gw, gh = add_at(xp, xp.zeros_like(w), i, -e * h[j]), add_at(xp, xp.zeros_like(h), j, -e * w[i])
        return xp.concatenate([(scale * gw + w).ravel(), (scale * gh + h).ravel()])

    return model, columns_of(model), other, 800


def bpmf(quick):
    users, items, ratings, m, n = pairs(quick)
    model, k = BPMF(users, items, ratings, 20, m, n), 20

    def other(xp, x, batch):
        i, j, r = batch
        u, v = x[: m * k].reshape(m, k), x[m * k : (m + n) * k].reshape(n, k)
        means, logs = x[(m + n) * k :].reshape(4, k)[:2], x[(m + n) * k :].reshape(4, k)[2:]
        e = 3.0 * (r - (u[i] * v[j]).sum(axis=1))[:, None]
        scale = model.n_data / len(r)
        parts = []
        data = (
            add_at(xp, xp.zeros_like(u), i, -e * v[j]),
            add_at(xp, xp.zeros_like(v), j, -e * u[i]),
        )
        tables = []
        for table, mean, log, own in zip((u, v), means, logs, data, strict=True):
            p = xp.exp(log)
            difference = table - mean
            tables.append((scale * own + p * difference).ravel())
            sums, squares = difference.sum(axis=0), (difference**2).sum(axis=0)
            parts.append((-p * (sums - mean), p * (5.0 + 0.5 * mean**2 + 0.5 * squares) - 0.5 * (len(table) + 1) - 1.0))
        return xp.concatenate([*tables, parts[0][0], parts[1][0], parts[0][1], parts[1][1]])

    return model, columns_of(model), other, 800


def ppmf(quick):
    users, items, ratings, m, n = pairs(quick)
    k = 20 if quick else 100
    model = PPMF(users, items, ratings, k, m, n)

    def other(xp, x, batch):
        i, j, r = batch
        t, b = xp.exp(x[: m * k]).reshape(m, k), xp.exp(x[m * k : (m + n) * k]).reshape(n, k)
        e, v = xp.exp(x[(m + n) * k : -n])[:, None], xp.exp(x[-n:])[:, None]
        q = t[i] * b[j]
        q = (1.0 - r / q.sum(axis=1))[:, None] * q
        scale = model.n_data / len(r)
        gt, gb = add_at(xp, xp.zeros_like(t), i, q), add_at(xp, xp.zeros_like(b), j, q)
        return xp.concatenate(
            [
                (scale * gt + e * t - 0.3).ravel(),
                (scale * gb + v * b - 0.3).ravel(),
                e[:, 0] * (t.sum(axis=1) + 0.3) - 0.3 * k - 0.3,
                v[:, 0] * (b.sum(axis=1) + 0.3) - 0.3 * k - 0.3,
            ]
        )

    return model, columns_of(model), other, 800


def images(quick):
    """MNIST's training images if PDMP_DATA has them, else random ones."""
    folder = pathlib.Path(os.environ.get("PDMP_DATA", "")) / "mnist"
    if (folder / "train-images-idx3-ubyte.gz").is_file() and not quick:
        with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
            X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / np.float32(255.0)
        with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
            return X, np.frombuffer(file.read(), np.uint8, offset=8).astype(int)
    rng, n = np.random.default_rng(0), 6_000 if quick else 60_000
    return (rng.random((n, 784), np.float32) * (rng.random((n, 784), np.float32) < 0.19)), rng.integers(0, 10, n)


def network(dtype):
    def make(quick):
        X, y = images(quick)
        model = BayesianNN(X, y, 100, "softmax", dtype=dtype)

        def other(xp, x, batch):
            X, y = batch
            w1, b1 = x[:78_400].reshape(784, 100), x[78_400:78_500]
            w2, b2 = x[78_500:79_500].reshape(100, 10), x[79_500:]
            h = softmax(xp, X @ w1 + b1)
            z = softmax(xp, h @ w2 + b2) - (y[:, None] == xp.arange(10))
            s = z @ w2.T
            s = h * (s - (h * s).sum(axis=1, keepdims=True))
            scale = len(model.labels) / len(y)
            parts = (X.T @ s).ravel(), s.sum(axis=0), (h.T @ z).ravel(), z.sum(axis=0)
            return (scale * xp.concatenate(parts) + x).astype(x.dtype)

        return model, (model.data, model.labels), other, 600

    return make


MODELS = {
    "ICA": ica,
    "MatrixFactorization": mf,
    "BPMF": bpmf,
    "PPMF": ppmf,
    "BayesianNN float64": network(np.float64),
    "BayesianNN float32": network(np.float32),
}


def compare(name, make, rounds, quick):
    import jax
    import jax.numpy as jnp

    model, data, other, size = make(quick)
    dtype = np.float32 if name.endswith("32") else np.float64
    jax.config.update("jax_enable_x64", dtype == np.float64)
    x, rng, out = model.initial.copy(), np.random.default_rng(1), np.zeros(model.dim)
    batches = [rng.integers(0, model.n_data, size) for _ in range(20)]
    kernel, scale = model.native, model.n_data / size
    on_device = tuple(jnp.asarray(a) for a in data)
    jitted = jax.jit(lambda x, rows, data: other(jnp, x, tuple(a[rows] for a in data)))
    narrow, wide = x.astype(dtype), jnp.asarray(x, dtype)
    rows_there = [jnp.asarray(rows) for rows in batches]

    sides = {
        "ours": lambda k: gradient(kernel, x, batches[k], scale, out),
        "numpy": lambda k: other(np, narrow, tuple(a[batches[k]] for a in data)),
        "jax": lambda k: jitted(wide, rows_there[k], on_device).block_until_ready(),
    }
    sides["ours"](0)
    for side in ("numpy", "jax"):
        error = np.abs(np.asarray(sides[side](0)) - out).max() / np.abs(out).max()
        assert error < (1e-3 if dtype == np.float32 else 1e-9), (name, side, error)
    times = np.empty((rounds, 3))
    for r in range(rounds):
        for s, side in enumerate(sides.values()):
            start = time.perf_counter()
            for k in range(len(batches)):
                side(k)
            times[r, s] = (time.perf_counter() - start) / len(batches)
    a, b, c = np.median(times, axis=0) * 1e6
    ratios = np.median(times[:, 1:] / times[:, :1], axis=0)
    print(
        f"{name:20} {size:5} {model.dim:8,} {a:9.1f} {b:9.1f} {c:9.1f}   {ratios[0]:6.2f} {ratios[1]:6.2f}", flush=True
    )


def mnist(rounds, quick):
    """A whole step: a batch drawn, the gradient, noise for each weight, the update."""
    import torch

    torch.set_num_threads(2)
    X, y = images(quick)
    steps, size, gamma = 20, 600, 1e-6
    for dtype in (torch.float32, torch.float64):
        Xt, yt = torch.tensor(X, dtype=dtype), torch.tensor(y)
        precision = np.float32 if dtype == torch.float32 else np.float64
        model = BayesianNN(X, y, 100, "softmax", dtype=precision)
        shapes = ((784, 100), (100,), (100, 10), (10,))
        generator = torch.Generator().manual_seed(1)
        weights = [torch.nn.Parameter(0.03 * torch.randn(s, dtype=dtype, generator=generator)) for s in shapes]

        def theirs(weights=weights, Xt=Xt, yt=yt, dtype=dtype, generator=generator):
            n = len(yt)
            for _ in range(steps):
                rows = torch.randint(0, n, (size,), generator=generator)
                w1, b1, w2, b2 = weights
                logits = torch.softmax(Xt[rows] @ w1 + b1, dim=1) @ w2 + b2
                loss = n / size * torch.nn.functional.cross_entropy(logits, yt[rows], reduction="sum")
                loss = loss + 0.5 * sum((w * w).sum() for w in weights)
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for w, g in zip(weights, gradients, strict=True):
                        noise = torch.randn(w.shape, dtype=dtype, generator=generator)
                        w.add_(g, alpha=-gamma).add_(noise, alpha=(2.0 * gamma) ** 0.5)

        def ours(draw, model=model):
            process = discrete.SGLD(Minibatch(model, size, draw=draw), step=gamma)

            def run():
                run = pdmp.sample(process, steps=steps, initial=model.initial, seed=1, store="moments")
                return run.stats["seconds"]

            return run

        sides = {"iid": ours("iid"), "reshuffle": ours("reshuffle")}
        for side in (*sides.values(), theirs):
            side()
        times = np.empty((rounds, 3))
        for r in range(rounds):
            times[r, :2] = [side() for side in sides.values()]
            start = time.perf_counter()
            theirs()
            times[r, 2] = time.perf_counter() - start
        times /= steps
        a, b, c = np.median(times, axis=0) * 1e3
        ratios = np.median(times[:, 2:] / times[:, :2], axis=0)
        print(
            f"{precision.__name__}: ms a step of 600: iid {a:.2f}, reshuffle {b:.2f}, PyTorch {c:.2f}; "
            f"PyTorch / ours {ratios[0]:.2f}, {ratios[1]:.2f}",
            flush=True,
        )


def large(quick):
    """MovieLens 20M's shape: memory, and the time of a step on a batch of N/500."""
    users, items, n = (13_849, 2_674, 2_000_026) if quick else (138_493, 26_744, 20_000_263)
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, users, n, dtype=np.int32), rng.integers(0, items, n, dtype=np.int32)
    ratings = rng.integers(1, 11, n, dtype=np.int8).astype(np.float32) / 2
    model = MatrixFactorization(i, j, ratings, 10, users, items)
    del i, j, ratings
    print(f"N = {n:,}, d = {model.dim:,}, data {model.data.nbytes / 1e6:.0f} MB")
    for draw in ("iid", "reshuffle"):
        process = discrete.SGLD(Minibatch(model, n // 500, draw=draw), step=2e-5)
        options = {"initial": model.initial, "seed": 1, "store": "moments"}
        pdmp.sample(process, steps=2, **options)
        steps = 20
        seconds = pdmp.sample(process, steps=steps, **options).stats["seconds"] / steps
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{draw:10} {seconds * 1e3:.1f} ms a step of {n // 500:,} ratings; peak memory so far {peak:.2f} GB")
    start = time.perf_counter()
    model.gradient(model.initial)
    print(f"the full gradient {time.perf_counter() - start:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="smaller data, three rounds: does it run?")
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("names", nargs="*", help="models; all by default")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    if options.mnist:
        mnist(rounds, options.quick)
    if options.large:
        large(options.quick)
    if not (options.mnist or options.large):
        print(f"{'model':20} {'batch':>5} {'d':>8} {'µs: ours':>9} {'numpy':>9} {'jax':>9}   numpy/ours, jax/ours")
        for name, make in MODELS.items():
            if not options.names or any(part.lower() in name.lower() for part in options.names):
                compare(name, make, rounds, options.quick)


if __name__ == "__main__":
    main()
