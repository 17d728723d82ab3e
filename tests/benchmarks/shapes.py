"""`pdmp.sample(model)` on targets of several shapes: gradients of one chain until the worst second moment is right.

    python -m tests.benchmarks.shapes [--only NAME …] [--seeds 1 2] [--events 4000]

Right is as in "Metropolis Adjusted Microcanonical Hamiltonian Monte Carlo" (2025, arXiv:2503.01707): the squared error
of the mean of z² over the chain so far is below 0.01 of the variance of z², in every coordinate, from there to the end.
z is x, or what the table of `TARGETS` makes of it. Columns: gradients of the warm-up, all chains; the median over four
chains of those to the error, inf where one is not reached, nan where the moments are not known; effective draws of z
and of z² per 1,000 gradients of the run; the step, the acceptance that it was adapted to; divergences, and the longest
hold.
"""

import argparse
import warnings

import numpy as np
import scipy.sparse

import pdmp
from pdmp.process import DATA


class Banana(pdmp.Model):
    """x₀ ~ N(0, 100), x₁ | x₀ ~ N(0.03 (x₀² - 100), 1)."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        r = x[1] - 0.03 * (x[0] * x[0] - 100.0)
        return 0.005 * x[0] * x[0] + 0.5 * r * r

    @pdmp.compiled
    def add_gradient(self, x, out):
        r = x[1] - 0.03 * (x[0] * x[0] - 100.0)
        out[0] += 0.01 * x[0] - 0.06 * r * x[0]
        out[1] += r


def gaussian(d, condition):
    """Independent normal coordinates, the ratio of whose variances is the condition."""
    variances = np.geomspace(condition**-0.5, condition**0.5, d)
    precision = scipy.sparse.diags(1.0 / variances).tocsr()
    return pdmp.models.Gaussian(0.0, precision), lambda x: x, variances, 2.0 * variances**2


def banana():
    return Banana(), lambda x: x, np.array([100.0, 19.0]), np.array([20_000.0, 4_600.898])


def funnel(d=20):
    """The last coordinate N(0, 9), the others N(0, exp of it)."""

    def both(x):
        square, precision = x[:-1] @ x[:-1], np.exp(-x[-1])
        gradient = np.append(precision * x[:-1], x[-1] / 9.0 + 0.5 * (d - 1) - 0.5 * precision * square)
        return x[-1] ** 2 / 18.0 + 0.5 * (d - 1) * x[-1] + 0.5 * precision * square, gradient

    def standardised(x):
        return np.concatenate([x[:, :-1] * np.exp(-0.5 * x[:, -1:]), x[:, -1:] / 3.0], axis=1)

    return pdmp.models.from_function(both, d), standardised, np.ones(d), np.full(d, 2.0)


def funnel_of_terms(d=20):
    """The same, whose scale `pdmp.sample` finds in the expression."""
    p, e = pdmp.Parameters(x=d - 1, t=1), pdmp.terms
    rows = [e(lambda x, t: 0.5 * t + 0.5 * x**2 * e.exp(-t), at=[p.x[np.arange(d - 1)], p.t])]
    _, *rest = funnel(d)
    return pdmp.models.sum_of_terms(p, rows, priors={"t": pdmp.models.priors.Normal(0.0, 3.0)}), *rest


def volatility(n=2_427):
    """Log volatilities s of n days, a random walk with steps N(0, σ²), and returns exp(s) t_ν: d = n + 2, as terms.

    U has no lower bound: it falls without end along s = 0, σ → 0. Moments are not known, so that the error is not.
    """
    rng, days, e = np.random.default_rng(1), np.arange(n), pdmp.terms
    returns = np.exp(np.cumsum(0.08 * rng.standard_normal(n))) * rng.standard_t(12.0, n)
    p = pdmp.Parameters(s=n, log_scale=1, log_nu=1)
    step = scipy.sparse.csr_array(scipy.sparse.eye_array(n) - scipy.sparse.eye_array(n, k=-1))

    def walk(change, log_scale):
        return log_scale + 0.5 * (change / 0.02 * e.exp(-log_scale)) ** 2

    def student(y, s, log_nu):
        nu = 10.0 * e.exp(log_nu)
        constant = e.lgamma(0.5 * nu) - e.lgamma(0.5 * nu + 0.5) + 0.5 * e.log(nu)
        return constant + s + 0.5 * (nu + 1.0) * e.log1p((y * e.exp(-s)) ** 2 / nu)

    def exponential(log_x):
        return e.exp(log_x) - log_x

    rows = [e(walk, at=[step @ p.s, p.log_scale]), e(student, [returns], [p.s[days], p.log_nu])]
    rows += [e(exponential, at=[part]) for part in (p.log_scale, p.log_nu)]
    return pdmp.models.sum_of_terms(p, rows), lambda x: x, np.full(n + 2, np.nan), np.ones(n + 2)


TARGETS = {
    "volatility": volatility,
    "Gaussian, d = 100": lambda: gaussian(100, 1_000.0),
    "Gaussian, d = 10,000": lambda: gaussian(10_000, 100.0),
    "banana": banana,
    "funnel, d = 20": funnel,
    "the same, as terms": funnel_of_terms,
}


def reached(z, square, variance):
    """How many draws (n, d) it takes until the error is small and stays so; inf if it does not."""
    means = np.cumsum(z**2, axis=0) / np.arange(1.0, len(z) + 1.0)[:, None]
    if np.isnan(square).any():
        return np.nan
    large = np.flatnonzero(np.max((means - square) ** 2 / variance, axis=1) >= 0.01)
    return 1.0 if len(large) == 0 else large[-1] + 2.0 if large[-1] + 1 < len(z) else np.inf


def measure(target, seed, events):
    """One line of the table."""
    model, natural, square, variance = target
    process = pdmp.auto(model, seed=seed)
    run = pdmp.sample(process, events=events, chains=4, seed=seed, progress=False)
    gradients = np.array([record.counts[DATA] for record in run.records], float) / max(model.n_data, 1)
    z = np.array([natural(path.positions[1:]) for path in run.trajectories])
    to = np.median(
        [n * g / events for n, g in zip((reached(one, square, variance) for one in z), gradients, strict=True)]
    )
    ess = [1e3 * pdmp.diagnostics.ess(part).min() / gradients.sum() for part in (z, (z - z.mean(axis=(0, 1))) ** 2)]
    stats = [record.statistics for record in run.records]
    divergences, held = sum(s["divergences"] for s in stats), max(s["max_held"] for s in stats)
    return (
        f"{process.prepared.gradients:8,} {to:9,.0f} {ess[0]:8.2f} {ess[1]:8.2f} {process.step:6.2g} "
        f"{process.target_acceptance:5} {divergences:6.0f} {held:5.0f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--events", type=int, default=4_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':21} seed  warm-up   to 0.01      ESS    of z²   step  acc.   div.  held")
    for name in args.only:
        for seed in args.seeds:
            events = 2_000 if "10,000" in name else args.events
            print(f"{name:21} {seed:4} {measure(TARGETS[name](), seed, events)}", flush=True)


if __name__ == "__main__":
    main()
