"""A model of your own, from scratch: Poisson regression with a Gaussian prior.

Shows: the four compiled methods that make a target, and that every sampler then runs on it: the stochastic Bouncy
Particle Sampler on mini-batches, and a Zig-Zag whose bounds are found on the way, because the model states none.

Time: about 20 s, half of it compilation the first time.
"""

import math

import numpy as np

import pdmp

N, DIM, PRIOR_SCALE = 1_000, 4, 2.0


class PoissonRegression(pdmp.Model):
    """y_i ~ Poisson(exp(X_i·θ)), θ ~ N(0, prior_scale² I): U is minus the log posterior, without log y_i!."""

    X: np.ndarray
    y: np.ndarray
    prior_precision: float

    def __init__(self, X, y, prior_scale):
        super().__init__(dim=X.shape[1], n_data=len(y))
        self.X, self.y = np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=float)
        self.prior_precision = 1.0 / prior_scale**2

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += x[j] * x[j]
        return 0.5 * self.prior_precision * total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.prior_precision * x[j]

    @pdmp.compiled
    def term_potential(self, x, i):
        eta = 0.0
        for j in range(self.dim):
            eta += self.X[i, j] * x[j]
        return math.exp(eta) - self.y[i] * eta

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        eta = 0.0
        for j in range(self.dim):
            eta += self.X[i, j] * x[j]
        residual = math.exp(eta) - self.y[i]
        for j in range(self.dim):
            out[j] += residual * self.X[i, j]


def generated(seed=0):
    """The model on data drawn from it, and the coefficients that they were drawn with."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.0, 0.5, DIM)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, DIM - 1))])
    return PoissonRegression(X, rng.poisson(np.exp(X @ truth)), PRIOR_SCALE), truth


def main():
    model, truth = generated()
    print("truth  ", truth.round(3))
    print("mode   ", model.mode().round(3))
    stochastic = pdmp.sample(pdmp.SBPS(pdmp.gradients.Minibatch(model, size=100)), events=100_000, warmup=0.1, seed=1)
    zigzag = pdmp.sample(pdmp.ZigZag(model), events=20_000, warmup=0.1, seed=1)
    for name, run in (("SBPS", stochastic), ("Zig-Zag", zigzag)):
        print(f"{name:7} mean", run.mean().round(3), "sd", np.sqrt(run.var()).round(4))


if __name__ == "__main__":
    main()
