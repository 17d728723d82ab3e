"""Eight schools in every language that a target can be written in.

Shows: the package's own model, a numpy function, JAX, PyTorch and PyMC, the same posterior, the same sampler, the
natural parameters μ, τ and θ for ArviZ, and what one gradient costs in a compiled loop. Sections whose package is not
installed are left out. A Stan program is one more line: ``pdmp.models.from_stan("schools_model.so", data)``, where the
library is what ``bridgestan.compile_model("schools.stan", make_args=["STAN_THREADS=true"])`` returns.

Time: about a minute, nearly all of it compilation the first time.
"""

import importlib.util
import time

import numpy as np

import pdmp
from pdmp.models.transforms import Log
from pdmp.native.classes import entry

SCHOOLS = pdmp.models.EightSchools()  # not centred: theta = mu + tau z
Y, SIGMA = SCHOOLS.y, SCHOOLS.sigma
NAMES = {"variables": {"mu": (), "tau": (), "z": (8,)}, "transforms": {"tau": Log()}}  # x holds log(tau)


def with_numpy():
    def potential_and_gradient(x):
        mu, tau, z = x[0], np.exp(x[1]), x[2:]
        r, u = (mu + tau * z - Y) / SIGMA, (tau / 5.0) ** 2
        potential = 0.5 * (r @ r + z @ z + (mu / 5.0) ** 2) + np.log1p(u) - x[1]
        pull = r / SIGMA
        top = [pull.sum() + mu / 25.0, tau * (pull @ z) + 2.0 * u / (1.0 + u) - 1.0]
        return potential, np.concatenate([top, tau * pull + z])

    return pdmp.models.from_function(potential_and_gradient, dim=10, **NAMES)


def with_jax():
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def log_density(x):
        mu, tau, z = x[0], jnp.exp(x[1]), x[2:]
        r = (mu + tau * z - Y) / SIGMA
        prior = -0.5 * (mu / 5.0) ** 2 - jnp.log1p((tau / 5.0) ** 2) + x[1] - 0.5 * (z**2).sum()
        return prior - 0.5 * (r**2).sum()

    return pdmp.models.from_jax(log_density, dim=10, **NAMES)


def with_torch():
    import torch

    y, sigma = torch.tensor(Y), torch.tensor(SIGMA)

    def log_density(x):
        mu, tau, z = x[0], x[1].exp(), x[2:]
        r = (mu + tau * z - y) / sigma
        prior = -0.5 * (mu / 5.0) ** 2 - torch.log1p((tau / 5.0) ** 2) + x[1] - 0.5 * (z**2).sum()
        return prior - 0.5 * (r**2).sum()

    return pdmp.models.from_torch(log_density, dim=10, **NAMES)


def with_pymc():
    import pymc

    with pymc.Model() as model:
        mu, tau = pymc.Normal("mu", 0.0, 5.0), pymc.HalfCauchy("tau", 5.0)
        z = pymc.Normal("z", 0.0, 1.0, shape=8)
        theta = pymc.Deterministic("theta", mu + tau * z)
        pymc.Normal("y", theta, SIGMA, observed=Y)
    return pdmp.models.from_pymc(model)


@entry
def gradients(model, x, out, n):
    """n gradients in a compiled loop."""
    for _ in range(n):
        model.add_gradient(x, out)


def cost(model, repeats=5):
    """Microseconds of one gradient: the least of some averages."""
    x, out, n = 0.1 * np.ones(model.dim), np.zeros(model.dim), 2_000
    gradients(model.native, x, out, 1)
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        gradients(model.native, x, out, n)
        found.append((time.perf_counter() - start) / n)
    return 1e6 * min(found)


def main():
    mean, covariance = SCHOOLS.moments()
    print(f"by quadrature: mu {mean[0]:.2f} (sd {covariance[0, 0] ** 0.5:.2f}), log tau {mean[1]:.2f}")
    makers = [("own", None, lambda: SCHOOLS), ("numpy", None, with_numpy), ("jax", "jax", with_jax)]
    makers += [("torch", "torch", with_torch), ("pymc", "pymc", with_pymc)]
    for name, package, make in makers:
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name:6} is not installed")
            continue
        model = make()
        run = pdmp.sample(pdmp.BPS(model), events=10_000, warmup=0.1, seed=1)
        natural = run.constrain(run.draws(1_000))
        print(
            f"{name:6} {cost(model):7.2f} µs a gradient; mean of mu {run.mean()[0]:.2f}, log tau {run.mean()[1]:.2f}, "
            f"tau {natural['tau'].mean():.2f}; parameters {', '.join(natural)}"
        )


if __name__ == "__main__":
    main()
