"""Zig-Zag and BPS beside pdmp-jax, and sub-sampled Zig-Zag beside NUTS: effective samples per second, one core.

    pip install pdmp-jax numpyro
    python -m tests.benchmarks.peers [--quick] [gaussian] [nuts]

"gaussian": precision with 2.1 on the diagonal and -1 beside it, d = 10, 100, 1000; start at 0. pdmp-jax runs in single
precision with its own defaults, and both give an equally spaced discretisation of 20,000 points, from which the same
estimator takes the smallest ESS over coordinates. pdmp-jax compiles at every call:
its time is the difference between a long and a short run of the same sampler, so compilation is not in it. "BPS, same"
is BPS with its settings instead of ours: normal velocities, refreshed at the rate 0.1, a smaller share of the events
than our default's tenth in high dimension.

"nuts": logistic regression with standard normal features, d = 10, N = 10³, 10⁵, 10⁶: seconds until the standard error
of every coordinate's mean is a tenth of its standard deviation (100 effective draws), from a start without knowledge.
For NumPyro's NUTS that is the warm-up of 300 draws and then 100 / (ESS per second); for Zig-Zag with importance control
variates the search for the mode, the bounds and the alias table, and then the same. Compilation is in neither: each is
run once before.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import pdmp  # noqa: E402
from pdmp.gradients import ControlVariate  # noqa: E402
from tests.benchmarks.zigzag import tridiagonal  # noqa: E402

POINTS = 20_000
ACCURATE = 100.0  #: effective draws: the standard error of a mean is a tenth of a standard deviation


def smallest_ess(draws):
    """Of draws (n, d)."""
    return float(np.min(pdmp.diagnostics.ess(np.asarray(draws, float)[None])))


def seconds(function):
    """Of one call, with what it returns."""
    began = time.perf_counter()
    result = jax.block_until_ready(function())
    return time.perf_counter() - began, result


def peer(name, d, events):
    """Events and smallest ESS per second of pdmp-jax."""
    import pdmp_jax

    def gradient(x):
        zero = jnp.zeros(1)
        return 2.1 * x - jnp.concatenate([x[1:], zero]) - jnp.concatenate([zero, x[:-1]])

    v = np.random.default_rng(1).choice([-1.0, 1.0], d) if name == "ZigZag" else np.random.default_rng(1).normal(size=d)
    sampler = getattr(pdmp_jax, {"ZigZag": "ZigZag", "BPS": "BouncyParticle"}[name])(d, gradient)

    def run(n):
        return sampler.sample_skeleton(n, jnp.zeros(d), jnp.asarray(v, jnp.float32), 1, verbose=False)

    run(events), run(events // 10)  # what it does keep of its compilation is then there
    long, output = seconds(lambda: run(events))
    short, _ = seconds(lambda: run(events // 10))
    rate = 0.9 * events / max(long - short, 1e-9)
    draws = sampler.sample_from_skeleton(min(events, POINTS), output)
    return rate, smallest_ess(draws) * rate / events


def ours(process, events):
    """The same of this package."""
    options = {"initial": np.zeros(process.model.dim), "seed": 1, "progress": False}
    options |= {"store": "grid", "draws": min(events, POINTS), "covariance": False}
    pdmp.sample(process, events=1_000, **options)
    run = pdmp.sample(process, events=events, **options)
    rate = events / run.stats["seconds"]
    return rate, smallest_ess(run.draws(min(events, POINTS))[0]) * rate / events


def gaussian(dims, events):
    """Side by side with pdmp-jax."""
    print(f"{'':10} {'d':>5} {'events/s':>11} {'pdmp-jax':>11} {'ESS/s':>11} {'pdmp-jax':>11} {'ratio':>7}")
    for d in dims:
        model = pdmp.models.Gaussian(0.0, tridiagonal(d))
        theirs = {name: peer(name, d, events) for name in ("ZigZag", "BPS")}
        processes = {
            "ZigZag": pdmp.ZigZag(model),
            "BPS": pdmp.BPS(model),
            "BPS, same": pdmp.BPS(model, velocities="gaussian", refresh_rate=0.1),
        }
        for label, process in processes.items():
            name = label.partition(",")[0]
            a, b = ours(process, events * max(1, d // 10) if name == "ZigZag" else events), theirs[name]
            print(
                f"{label:10} {d:>5} {a[0]:>11,.0f} {b[0]:>11,.0f} {a[1]:>11,.1f} {b[1]:>11,.2f} {a[1] / b[1]:>7.1f}",
                flush=True,
            )


def nuts(sizes, draws, proposals, d=10):
    """Side by side with NumPyro."""
    import numpyro
    from numpyro.infer import MCMC, NUTS

    print(f"{'N':>9} {'Zig-Zag s':>10} {'set-up':>8} {'ESS/s':>9} {'NUTS s':>9} {'warm-up':>8} {'ESS/s':>9}")
    for n in sizes:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        y = rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d) / np.sqrt(d)))

        model = pdmp.models.LogisticRegression(X, y, prior_scale=10.0, dtype=np.float32)
        for timed in (False, True):  # the first round compiles
            began = time.perf_counter()
            process = pdmp.ZigZag(ControlVariate(model, 1, draw="importance"))
            setup = time.perf_counter() - began
            budget = proposals if timed else 1_000
            run = pdmp.sample(process, proposals=budget, seed=1, store="moments", progress=False)
        rate = float(np.min(run.ess())) / run.stats["seconds"]

        features, labels = jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)

        def target(features=features, labels=labels):
            import numpyro.distributions as dist

            beta = numpyro.sample("beta", dist.Normal(0.0, 10.0).expand([d]).to_event(1))
            numpyro.sample("y", dist.Bernoulli(logits=features @ beta), obs=labels)

        chain = MCMC(NUTS(target), num_warmup=300, num_samples=draws, progress_bar=False)

        def warm_up(chain=chain):
            chain.warmup(jax.random.PRNGKey(1))
            return chain.last_state.z

        def draw(chain=chain):
            chain.run(jax.random.PRNGKey(2))
            return chain.get_samples()["beta"]

        for _ in range(2):  # the first round compiles
            warmup, _state = seconds(warm_up)
            took, samples = seconds(draw)
        theirs = smallest_ess(samples) / took
        print(
            f"{n:>9} {setup + ACCURATE / rate:>10.3f} {setup:>8.3f} {rate:>9,.0f} {warmup + ACCURATE / theirs:>9.3f} "
            f"{warmup:>8.2f} {theirs:>9,.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", help="gaussian, nuts; both when omitted")
    parser.add_argument("--quick", action="store_true", help="a tenth of the events; d = 10 and 100; N = 10³ and 10⁵")
    args = parser.parse_args()
    which = args.which or ["gaussian", "nuts"]
    if "gaussian" in which:
        gaussian([10, 100] if args.quick else [10, 100, 1_000], 20_000 if args.quick else 200_000)
    if "nuts" in which:
        sizes = [10**3, 10**5] if args.quick else [10**3, 10**5, 10**6]
        nuts(sizes, 200 if args.quick else 500, 500_000 if args.quick else 5_000_000)


if __name__ == "__main__":
    main()
