"""Fixed-step samplers side by side with BlackJAX in one process and on one core: steps per second.

Logistic regression with SGLD, SGLD with control variates, SGHMC (momentum and batch renewed every five steps, as
BlackJAX does it: its inner steps are counted) and SGNHT, and a matrix factorisation with 50,000 parameters, where
drawing normal numbers dominates. All in float64.

Each round times one side and then the other on the same data with the same batch size; printed are the medians over
the rounds and the median of the rounds' ratios. BlackJAX's samplers run in a jitted `lax.scan` that draws its own
i.i.d. batches and keeps nothing of the path; ours run through `pdmp.sample` and keep their moments. Neither time has
compilation in it, or the checks and copies before a run. Needs the `bench` extra::

    python tests/benchmarks/discretised.py [--rounds 7] [--seconds 0.3] [large small factors]
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
import warnings  # noqa: E402

import blackjax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import discrete  # noqa: E402
import pdmp  # noqa: E402
from pdmp.gradients import ControlVariate, Minibatch  # noqa: E402

jax.config.update("jax_enable_x64", True)

INNER = 5  #: steps for which SGHMC keeps its batch and between which it draws a momentum
SAMPLERS = ("SGLD", "SGLD-CV", "SGHMC", "SGNHT")


def timed(run, seconds):
    """A function that takes steps for about `seconds` and returns the seconds of each; `run(steps)` takes some."""
    steps = 50 * INNER
    run(steps)
    steps = max(INNER, int(seconds / (run(steps) / steps)) // INNER * INNER)
    run(steps)
    return lambda: run(steps) / steps


# ---------------------------------------------------------------------------------------------------------------
# Ours


def ours(name, model, anchor, size, draw, step, seconds):
    if name == "SGLD-CV":
        provider = ControlVariate(model, size, anchor=anchor)
    else:
        provider = Minibatch(model, size, draw=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what refreshed explicit SGHMC is worth
        process = {
            "SGLD": lambda: discrete.SGLD(provider, step),
            "SGLD-CV": lambda: discrete.SGLD(provider, step),
            "SGHMC": lambda: discrete.SGHMC(
                provider, step, 0.01, scheme="explicit", refresh_every=INNER, batch_every=INNER
            ),
            "SGNHT": lambda: discrete.SGNHT(provider, step, 0.01),
        }[name]()

    def run(steps):
        made = pdmp.sample(process, steps=steps, initial=anchor, seed=1, store="moments", progress=False)
        return made.stats["seconds"]

    return timed(run, seconds)


# ---------------------------------------------------------------------------------------------------------------
# BlackJAX


def theirs(name, gradient, data, anchor, size, step, seconds):
    """`gradient(x, batch)` estimates the gradient of the log-density from `batch`, some rows of the arrays `data`."""
    if name == "SGLD-CV":
        gradient = blackjax.sgmcmc.gradients.control_variates(gradient, anchor, data)
    algorithm = {
        "SGLD": blackjax.sgld,
        "SGLD-CV": blackjax.sgld,
        "SGHMC": lambda g: blackjax.sghmc(g, num_integration_steps=INNER),
        "SGNHT": blackjax.sgnht,
    }[name](gradient)
    n = len(data[0])

    @jax.jit
    def scan(state, keys, data):
        def body(state, key):
            draw, noise = jax.random.split(key)
            rows = jax.random.randint(draw, (size,), 0, n)
            return algorithm.step(noise, state, tuple(a[rows] for a in data), step), None

        return jax.lax.scan(body, state, keys)[0]

    start = algorithm.init(anchor, jax.random.key(0))
    data = tuple(map(jnp.asarray, data))

    def run(steps):
        keys = jax.random.split(jax.random.key(1), steps // INNER if name == "SGHMC" else steps)
        began = time.perf_counter()
        jax.block_until_ready(scan(start, keys, data))
        return time.perf_counter() - began

    return timed(run, seconds)


# ---------------------------------------------------------------------------------------------------------------
# The targets


def logistic(n, d, rng):
    """Model, and for BlackJAX the gradient and the arrays it needs; a point near the mode."""
    X = rng.standard_normal((n, d))
    beta = rng.standard_normal(d) / np.sqrt(d)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ beta))).astype(float)

    def gradient(x, batch):
        features, labels = batch
        return n / len(labels) * (features.T @ (labels - jax.nn.sigmoid(features @ x))) - x

    return pdmp.models.LogisticRegression(X, y), gradient, (X, y), beta


RANK = 20


class Factors(pdmp.Model):
    """Matrix factorisation: ratings rᵢ ~ N(u·v, 1) of user uᵢ and film vᵢ, all factors N(0, 1)."""

    users: np.ndarray
    films: np.ndarray
    ratings: np.ndarray

    def __init__(self, users, films, ratings, people):
        super().__init__(dim=RANK * people, n_data=len(ratings))
        self.users, self.films, self.ratings = users, films, ratings

    @pdmp.compiled
    def error(self, x, i):
        u, v = RANK * self.users[i], RANK * self.films[i]
        total = -self.ratings[i]
        for k in range(RANK):
            total += x[u + k] * x[v + k]
        return total

    @pdmp.compiled
    def term_potential(self, x, i):
        error = self.error(x, i)
        return 0.5 * error * error

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        u, v, error = RANK * self.users[i], RANK * self.films[i], self.error(x, i)
        for k in range(RANK):
            out[u + k] += error * x[v + k]
            out[v + k] += error * x[u + k]

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * x[j]
        return 0.5 * total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(x.shape[0]):
            out[j] += x[j]


def factors(n, people, rng):
    users = rng.integers(0, 2 * people // 5, n)
    films = rng.integers(2 * people // 5, people, n)
    ratings = rng.standard_normal(n)

    def gradient(x, batch):
        i, j, r = batch
        table = x.reshape(people, RANK)
        u, v = table[i], table[j]
        error = n / len(r) * (r - jnp.sum(u * v, axis=1))[:, None]
        return (-table).at[i].add(error * v).at[j].add(error * u).ravel()

    start = 0.1 * rng.standard_normal(people * RANK)
    return Factors(users, films, ratings, people), gradient, (users, films, ratings), start


CASES = {  # maker and its arguments, batches, samplers, step
    "large": (logistic, (10**6, 10), (1_000, 10_000), SAMPLERS, 1e-8),
    "small": (logistic, (1_000, 20), (100,), SAMPLERS, 1e-4),
    "factors": (factors, (100_000, 2_500), (1_000,), ("SGLD", "SGHMC", "SGNHT"), 1e-6),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}; all of them when omitted"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="that one timing takes, about")
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    options = parser.parse_args()
    print(f"blackjax {blackjax.__version__}, jax {jax.__version__}")
    print(f"{'N':>9} {'d':>6} {'batch':>6} {'sampler':8} {'draw':10} {'steps/s':>10} {'blackjax':>10} {'ratio':>6}")
    for case in options.cases:
        make, arguments, sizes, samplers, step = CASES[case]
        model, gradient, data, anchor = make(*arguments, np.random.default_rng(0))
        for size in sizes:
            for name in samplers:
                if name not in options.samplers.split(","):
                    continue
                other = theirs(name, gradient, data, anchor, size, step, options.seconds)
                for draw in ("iid",) if name == "SGLD-CV" else ("iid", "reshuffle"):
                    run = ours(name, model, anchor, size, draw, step, options.seconds)
                    times = np.array([(run(), other()) for _ in range(options.rounds)])
                    a, b = np.median(times, axis=0)
                    ratio = np.median(times[:, 1] / times[:, 0])
                    print(
                        f"{model.n_data:9,} {model.dim:6,} {size:6,} {name:8} {draw:10} {1 / a:10,.0f} {1 / b:10,.0f} "
                        f"{ratio:6.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
