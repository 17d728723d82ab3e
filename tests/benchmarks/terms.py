"""Events a second of local processes: posteriors that are expressions (`pdmp.terms`) beside the same written by hand.

Run as ``python -m tests.benchmarks.terms`` (``--quick`` for a try). In each row the two models take turns in one
process for the same number of seconds each; medians over the rounds. Compile time is left out.

*Lattice*: a Gaussian field on a square, built in, with neighbours as terms. *Counts*: a log-Gaussian Cox process on a
line, built in. *Volatility*: log variances h of daily returns, an autoregression, against a class with its factors and
their gradients by hand, which has no bounds: the grid of `pdmp.factors.bounds`, or that of `pdmp.ZigZag`.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import sparse

import pdmp
from pdmp.models.priors import Normal
from tests.benchmarks.local import compare

PHI, SIGMA = 0.97, 0.2


def lattice(n):
    """½ Σ (xᵢ - xⱼ)² over neighbours of an n × n square + 0.05 Σ xᵢ²: the built-in Gaussian and the terms."""
    cell = np.arange(n * n).reshape(n, n)
    i = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    j = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    pairs = sparse.coo_array((-np.ones(len(i)), (i, j)), shape=(n * n, n * n))
    pairs = pairs + pairs.T
    precision = sparse.dia_array((0.1 - pairs.sum(axis=0)[None], [0]), shape=pairs.shape) + pairs
    p = pdmp.Parameters(x=n * n)
    terms = pdmp.terms(lambda a, b: 0.5 * (a - b) ** 2, at=[p.x[i], p.x[j]])
    return pdmp.models.Gaussian(0.0, precision), pdmp.models.sum_of_terms(p, [terms], {"x": Normal(0.0, 0.1**-0.5)})


def autoregression(p, d):
    """The terms of a stationary autoregression."""
    i = np.arange(d - 1)
    steps = pdmp.terms(lambda a, b: 0.5 / SIGMA**2 * (b - PHI * a) ** 2, at=[p.h[i], p.h[i + 1]])
    return [steps, pdmp.terms(lambda a: 0.5 * (1 - PHI**2) / SIGMA**2 * a**2, at=[p.h[0]])]


def counts(d, seed=0):
    """Counts whose log intensity is an autoregression."""
    y = np.random.default_rng(seed).poisson(2.0, d)
    inner = np.full(d, 1.0 + PHI**2)
    inner[[0, -1]] = 1.0
    beside = np.full(d - 1, -PHI)
    precision = sparse.diags([beside, inner, beside], [-1, 0, 1]) / SIGMA**2
    p = pdmp.Parameters(h=d)
    cells = pdmp.terms(lambda y, h: np.exp(h) - y * h, [y], [p.h[np.arange(d)]])
    return pdmp.models.LogGaussianCox(y, precision), pdmp.models.sum_of_terms(p, [cells, *autoregression(p, d)])


class Volatility(pdmp.Model):
    """½ h + ½ y² e^(-h) for each day, and the autoregression, by hand."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(dim=len(y), n_data=len(y))
        self.y = y

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * x[i] + 0.5 * self.y[i] ** 2 * np.exp(-x[i])

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[i] += 0.5 - 0.5 * self.y[i] ** 2 * np.exp(-x[i])

    @pdmp.compiled
    def prior_potential(self, x):
        total = (1.0 - PHI**2) * x[0] * x[0]
        for i in range(self.dim - 1):
            total += (x[i + 1] - PHI * x[i]) ** 2
        return 0.5 * total / SIGMA**2

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for f in range(self.dim):
            self.add_step(x, f, out)

    @pdmp.compiled
    def add_step(self, x, f, out):
        if f == self.dim - 1:
            out[0] += (1.0 - PHI**2) * x[0] / SIGMA**2
            return
        u = (x[f + 1] - PHI * x[f]) / SIGMA**2
        out[f + 1] += u
        out[f] -= PHI * u

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            self.add_step(x, f - self.n_data, out)

    def factors(self):
        return [[i] for i in range(self.dim)] + [[i, i + 1] for i in range(self.dim - 1)] + [[0]]


def volatility(d, seed=0):
    """Returns of d days."""
    rng, h = np.random.default_rng(seed), np.zeros(d)
    for i in range(1, d):
        h[i] = PHI * h[i - 1] + SIGMA * rng.standard_normal()
    y = np.exp(0.5 * h) * rng.standard_normal(d)
    p = pdmp.Parameters(h=d)
    days = pdmp.terms(lambda y, h: 0.5 * h + 0.5 * y**2 * np.exp(-h), [y], [p.h[np.arange(d)]])
    return Volatility(y), pdmp.models.sum_of_terms(p, [days, *autoregression(p, d)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=316)
    parser.add_argument("--days", type=int, default=2_500)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    seconds, rounds = (2.0, 1) if args.quick else (args.seconds, args.rounds)
    print(f"{'':>34}{'by hand':>12}{'terms':>12}{'ratio':>8}{'accepted':>18}{'median ESS/s':>22}   (events/s)")
    models = {
        f"lattice {args.side} x {args.side}": lattice(args.side),
        f"counts, {args.days} cells": counts(args.days),
        f"volatility, {args.days} days": volatility(args.days),
    }
    for name, (hand, terms) in models.items():
        start = np.zeros(hand.dim)
        for sampler in ("LocalBPS", "ZigZag", "FactorisedBoomerang"):
            process, options = getattr(pdmp, sampler), {}
            if sampler == "FactorisedBoomerang":
                options = {"mean": start, "metric": hand.curvatures(start)}
            found = compare(
                {"by hand": process(hand, **options), "terms": process(terms, **options)}, start, seconds, rounds
            )
            one, two = found["by hand"], found["terms"]
            print(
                f"{name + ', ' + sampler:>44}{one['events/s']:>12,.0f}{two['events/s']:>12,.0f}"
                f"{one['events/s'] / two['events/s']:>8.2f}{one['accepted']:>10.2f}{two['accepted']:>8.2f}"
                f"{one['median ESS/s']:>12.3g}{two['median ESS/s']:>10.3g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
