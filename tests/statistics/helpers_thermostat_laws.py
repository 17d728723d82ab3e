"""What `test_thermostat_laws.py` and other test modules share."""

import itertools

import numpy as np
from numpy.polynomial.hermite_e import hermegauss


def hermite(x, degree):
    """The orthonormal Hermite polynomials up to `degree`."""
    out = [np.ones_like(x), x]
    for k in range(1, degree):
        out.append((x * out[k] - np.sqrt(k) * out[k - 1]) / np.sqrt(k + 1.0))
    return np.array(out)


def kernel_law(scheme, step, diffusion, kicks, degree=10, nodes=16, noises=12, epochs=False, bend=lambda x: 0.0 * x):
    """Stationary E θ, Var θ, E p² and E ξ in one dimension, where θ is at the end of a step and p is as `scheme` says.

    `kicks` are the outcomes of a gradient estimate aθ - b, as rows (probability, a, b); with `epochs` they are blocks,
    visited in a new random order in each epoch, and the law is averaged over its places. The function `bend` is added
    to the gradient. The momentum is that of the end of a step; for BADODAB that of the end of its last B with the whole
    of the kick, half of which is the next step's.
    """
    weight, slope, force = np.transpose(kicks)
    precision, centre = weight @ slope, weight @ force / (weight @ slope)
    spread = weight @ (slope * centre - force) ** 2 + weight @ (slope - precision) ** 2 / precision
    friction, scale = diffusion + 0.5 * step * spread * (not epochs), 1.0 / np.sqrt(precision)
    node, mass = hermegauss(nodes)
    mass = mass / mass.sum()
    t, p0, s = (a.ravel() for a in np.meshgrid(node, node, node, indexing="ij"))
    density = np.einsum("i,j,k->ijk", mass, mass, mass).ravel()
    index = np.array([i for i in itertools.product(range(degree + 1), repeat=3) if sum(i) <= degree])
    if np.all(np.abs(np.subtract.outer(force, -force)).min(axis=1) < 1e-12) and not np.any(bend(node)):
        # symmetric in (θ, p)
        index = index[(index[:, 0] + index[:, 1]) % 2 == 0]

    def basis(theta, p, xi):
        parts = hermite((theta - centre) / scale, degree), p, hermite(xi - friction, degree)
        return parts[0][index[:, 0]] * parts[1][index[:, 1]] * parts[2][index[:, 2]]

    here = basis(centre + scale * t, hermite(p0, degree), friction + s)
    half = 0.5 * step
    z, w = hermegauss(noises)

    def transition(kicks):
        """Expected basis functions after a step, from the coefficients of the density before it to those after it."""
        after = np.zeros_like(here)
        for noise, share in zip(np.sqrt(2.0 * diffusion * step) * z, w / w.sum(), strict=True):
            theta, p, xi = centre + scale * t, p0, friction + s
            if scheme == "badodab":
                theta = theta + half * p
                xi = xi + half * (p * p - 1.0)
                x = 2.0 * step * xi
                p = np.exp(-step * xi) * p + noise * np.sqrt(-np.expm1(-x) / x)
                xi = xi + half * (p * p - 1.0)
                theta = theta + half * p
                kicked = sum(c * hermite(p - step * (a * theta - b + bend(theta)), degree) for c, a, b in kicks)
                after += share * basis(theta, kicked, xi)
                continue
            for probability, a, b in kicks:
                theta, p, xi = centre + scale * t, p0, friction + s
                if scheme == "euler":
                    p = (1.0 - step * xi) * p - step * (a * theta - b + bend(theta)) + noise
                    theta = theta + step * p
                    xi = xi + step * (p * p - 1.0)
                else:
                    theta = theta + half * p
                    xi = xi + half * (p * p - 1.0)
                    p = p * np.exp(-half * xi) - step * (a * theta - b + bend(theta)) + noise
                    p = p * np.exp(-half * xi)
                    xi = xi + half * (p * p - 1.0)
                    theta = theta + half * p
                after += share * probability * basis(theta, hermite(p, degree), xi)
        return (after * density) @ here.T

    each = [transition([(1.0, a, b)]) for _, a, b in kicks] if epochs else [transition(kicks)]
    orders = list(itertools.permutations(each))
    places = [list(itertools.accumulate(order, lambda before, one: one @ before)) for order in orders]
    places = np.mean(places, axis=0)  # after the first step of an epoch, the second, …
    kernel = places[-1] - np.eye(len(index))
    start = np.concatenate([[1.0], np.linalg.solve(kernel[1:, 1:], -kernel[1:, 0])])
    coefficients = np.mean(places @ start, axis=0)
    of = dict(zip(map(tuple, index[1:]), coefficients[1:], strict=True))
    first = of.get((1, 0, 0), 0.0)
    return (
        centre + scale * first,
        scale**2 * (1.0 + np.sqrt(2.0) * of[2, 0, 0] - first**2),
        1.0 + np.sqrt(2.0) * of[0, 2, 0],
        friction + of[0, 0, 1],
    )


def gaussian_kicks(precision, tau, points=8):
    """Gradient noise N(0, τ²) on the gradient λθ."""
    node, weight = hermegauss(points) if tau > 0.0 else (np.zeros(1), np.ones(1))
    return [(w, precision, tau * e) for e, w in zip(node, weight / weight.sum(), strict=True)]
