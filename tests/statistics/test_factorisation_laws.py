"""Laws of samplers on the smallest factorisations and mixture of sources, against quadrature.

The densities are written down here from the published formulas, on grids, without the models' own code. What
can be integrated out by hand is. The quantities compared are those that no symmetry of the posterior changes.
"""

import numpy as np
import pytest
from scipy import special

import discrete
import pdmp
from pdmp.gradients import Minibatch
from pdmp.models import BPMF, ICA, PPMF, MatrixFactorization
from tests.checks import assert_unbiased, in_ci, replicate

N, NOISE = 12, 1.5
ZEROS = np.zeros(N, int)
RATINGS = 1.0 + NOISE * np.linspace(-1.0, 1.0, N)
COUNTS = np.array([0.0, 2.0, 1.0, 3.0, 1.0, 0.0])
SOURCES = np.array([[1.0, 0.4], [-0.7, 1.2], [0.3, -1.5], [-1.1, -0.6], [0.8, 0.9]])


def grids(*axes):
    return np.meshgrid(*axes, indexing="ij")


def expectations(log, *functions):
    """Of functions on a grid, by a density that is known up to a factor."""
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    faces = [np.take(weights, k, axis) for axis in range(weights.ndim) for k in (0, -1)]
    assert max(face.max() for face in faces) < 1e-4 * weights.max(), "the grid does not contain the density"
    return [float((weights * f).sum()) for f in functions]


def matrix_factorisation():
    """One user, one film, one factor each: E wh, E w², E h²."""
    w, h = grids(*2 * [np.linspace(-6.0, 6.0, 801)])
    log = -0.5 * N * (w * h - RATINGS.mean()) ** 2 / NOISE**2 - 0.5 * w**2 - 0.5 * (h / 0.7) ** 2
    model = MatrixFactorization(ZEROS, ZEROS, RATINGS, 1, noise_scale=NOISE, item_scale=0.7)
    return model, expectations(log, w * h, w**2, h**2)


def seen_factors(mean, second):
    return [second[:, 0, 1], second[:, 0, 0], second[:, 1, 1]]


def bpmf(shape=4.0, rate=3.0, precision=1.5):
    """The same with unknown means m and precisions e^l of the factors: E uv, E u², E v², E l of both, and E um.

    Without m, u is N(0, 2 e⁻ˡ), and without l its density is (rate + u²/4)^-(shape + ½); given u, l is the logarithm of
    a Gamma variable, and m is N(u/2, e⁻ˡ/2).
    """
    u, v = grids(*2 * [np.linspace(-12.0, 12.0, 1_601)])
    log = -0.5 * precision * (N * (u * v - 1.0) ** 2)
    log = log - (shape + 0.5) * (np.log(rate + 0.25 * u * u) + np.log(rate + 0.25 * v * v))
    logs = [special.digamma(shape + 0.5) - np.log(rate + 0.25 * f * f) for f in (u, v)]
    model = BPMF(ZEROS, ZEROS, RATINGS, 1, noise_precision=precision, shape=shape, rate=rate, centre=False)
    return model, expectations(log, u * v, u * u, v * v, *logs, 0.5 * u * u)


def seen_hierarchy(mean, second):
    return [*seen_factors(mean, second), mean[:, 4], mean[:, 5], second[:, 0, 2]]


def ppmf(shape=2.0, activity=3.0):
    """Counts R ~ Poisson(θβ): means of log θ, log β, log ε and log ν, and E log θ log β.

    θ ~ Gamma(shape, ε), ε ~ Gamma(activity, activity / mean); without ε the density of θ is
    θ^(shape - 1) / (rate + θ)^(shape + activity), and given θ, ε is a Gamma variable.
    """
    a, b = grids(*2 * [np.linspace(-6.0, 5.0, 701)])
    theta, beta, total = np.exp(a), np.exp(b), COUNTS.sum()
    log = total * (a + b) - len(COUNTS) * theta * beta + shape * (a + b)
    logs = []
    for x, mean in ((theta, 1.0), (beta, 2.0)):
        rate = activity / mean
        log = log - (shape + activity) * np.log(rate + x)
        logs.append(special.digamma(shape + activity) - np.log(rate + x))
    zeros = np.zeros(len(COUNTS), int)
    shapes = dict.fromkeys(("user_shape", "item_shape"), shape)
    shapes |= dict.fromkeys(("activity_shape", "popularity_shape"), activity)
    model = PPMF(zeros, zeros, COUNTS, 1, **shapes, activity_mean=1.0, popularity_mean=2.0)
    return model, expectations(log, a, b, *logs, a * b)


def seen_logs(mean, second):
    return [*mean.T] if second is None else [*mean.T, second[:, 0, 1]]


def ica():
    """Two channels: the Gram matrix of the columns of W, which order and signs of the sources leave as it is."""
    w = grids(*4 * [np.linspace(-4.4, 4.4, 45)])
    log = -0.5 * sum(f * f for f in w) + len(SOURCES) * np.log(np.maximum(np.abs(w[0] * w[3] - w[1] * w[2]), 1e-300))
    for x, y in SOURCES:
        for first, second in (w[:2], w[2:]):
            s = np.abs(first * x + second * y)
            log = log - s - 2.0 * np.log1p(np.exp(-s))
    return ICA(SOURCES), expectations(log, w[0] ** 2 + w[2] ** 2, w[1] ** 2 + w[3] ** 2, w[0] * w[1] + w[2] * w[3])


def seen_gram(mean, second):
    return [
        second[:, 0, 0] + second[:, 2, 2],
        second[:, 1, 1] + second[:, 3, 3],
        second[:, 0, 1] + second[:, 2, 3],
    ]


PROBLEMS = {
    "MatrixFactorization": (matrix_factorisation, seen_factors, [1.0, 1.0]),
    "BPMF": (bpmf, seen_hierarchy, [1.0, 1.0, 0.5, 0.5, 0.0, 0.0]),
    "PPMF": (ppmf, seen_logs, np.zeros(4)),
    "ICA": (ica, seen_gram, [1.0, 0.0, 0.0, 1.0]),
}


def check(name, make, replicates, seed, resolution, **budget):
    problem, seen, start = PROBLEMS[name]
    model, truth = problem()
    found = replicate(make(model), start, replicates, seed=seed, warmup=0.05, **budget)
    # A local process has no covariances.
    second = None if found.cov is None else found.cov + found.mean[:, :, None] * found.mean[:, None, :]
    estimates = np.stack(seen(found.mean, second), axis=1)
    assert_unbiased(estimates, truth[: estimates.shape[1]], resolution=resolution)


def test_the_product_of_two_factors_has_its_law():
    """SGLD from batches; the step leaves a bias far below the resolution."""
    check(
        "MatrixFactorization",
        lambda model: discrete.SGLD(Minibatch(model, 6), step=4e-3),
        16,
        3,
        [0.05, 0.1, 0.05],
        steps=400_000,
    )


@pytest.mark.parametrize("name", in_ci(["MatrixFactorization", "BPMF", "PPMF", "ICA"], "MatrixFactorization"))
def test_the_bouncy_particle_sampler(name):
    check(name, pdmp.BPS, 16, 5, 0.15 if name in ("BPMF", "ICA") else 0.1, events=60_000)
