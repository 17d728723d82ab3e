"""What `test_gradients.py` and other test modules share."""

import numpy as np

import pdmp
from pdmp.models.base import Model
from pdmp.native.classes import entry
from pdmp.process import DATA, KINDS, MAX_KINDS


class Quartic(Model):
    """A sum without any method of its own beyond the two: terms (x·a)⁴/4, prior |x|²/2."""

    a: np.ndarray

    def __init__(self, a):
        super().__init__(dim=a.shape[1], n_data=a.shape[0])
        self.a = a

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.5 * x[j] * x[j]
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j]

    @pdmp.compiled
    def term_potential(self, x, i):
        z = 0.0
        for j in range(self.dim):
            z += self.a[i, j] * x[j]
        return 0.25 * z**4

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        z = 0.0
        for j in range(self.dim):
            z += self.a[i, j] * x[j]
        for j in range(self.dim):
            out[j] += z**3 * self.a[i, j]


class Bowl(Model):
    """Not a sum over data."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * (x[0] * x[0] + x[1] * x[1])

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0]
        out[1] += x[1]


def quartic(n, d, seed=0):
    return Quartic(np.random.default_rng(seed).standard_normal((n, d)))


@entry
def repeat(provider, method, x, v, memory, rng, out, extra, counts):
    for k in range(out.shape[0]):
        if method == 0:
            provider.gradient(x, memory, rng, out[k], counts)
        elif method == 1:
            extra[k, 0], extra[k, 1] = provider.gradient_and_projection(x, v, memory, rng, out[k], counts)
        else:
            provider.gradient_and_sd(x, memory, rng, out[k], extra[k], counts)


def calls(provider, method, x, v=None, times=1, seed=0, memory=None, function=repeat):
    """Gradients of `times` calls, what else they tell, and the data counted."""
    rng = seed if hasattr(seed, "random") else np.random.default_rng(seed)
    memory = provider.memory(rng) if memory is None else memory
    # What was there before must not matter.
    out, extra = np.full((times, provider.dim), 7.0), np.full((times, max(provider.dim, 2)), 7.0)
    counts = np.zeros(KINDS + MAX_KINDS, np.int64)
    v = np.ones(provider.dim) if v is None else v
    number = ("gradient", "gradient_and_projection", "gradient_and_sd").index(method)
    function(provider.native, number, x, v, memory, rng, out, extra, counts)
    assert counts.sum() == counts[DATA]
    return out, extra[:, :2] if method == "gradient_and_projection" else extra[:, : provider.dim], counts[DATA]
