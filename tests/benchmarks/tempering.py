"""`pdmp.sample(model, tempered=True)` on posteriors of several modes, and of none: shares and log Z against the truth.

    python -m tests.benchmarks.tempering [--seeds 20] [--only NAME …]
    python -m tests.benchmarks.tempering --rows 60000 [--seeds 1] [--gradients 300]

For each target, over seeds: gradients and potentials in all, medians; rungs; the error of the share of a set, of mean
and sd in sds (the worst coordinate), the 90th percentile and the worst; log Z minus the truth, root mean square and
over its standard error, and in how many seeds it is within two; seeds that had a warning; those that are right, wrong
with a warning, and wrong without; CPU seconds. Below it how warnings begin. Wrong is a share by more than four errors
of 400 independent draws, a mean or sd by more than 0.3, or log Z by more than 0.09 and five standard errors. Exit code
1 if a seed without a warning is wrong.

--rows: a mixture of two regressions of so many rows, whose labels the priors tell apart, at one row a proposal. Share
of the larger mode and log Z, of the run and by Laplace's approximation at both modes;
passes over the rows before and in the run, and processor time.
"""

import argparse
import math
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate, special, stats

import pdmp


class Target(NamedTuple):
    model: Any
    log_z: float | None  # None: not known
    sets: dict  # name -> (draws (n, d) -> which are in it, probability)
    mean: Any = None
    sd: Any = None


def function(potential, gradient, d):
    return pdmp.models.from_function(lambda x: (potential(x), gradient(x)), d, initial=np.full(d, 0.1))


class Normals(pdmp.models.GaussianMixture):
    """A mixture that gives both at once, so that an evaluation counts as one."""

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        self.add_gradient(x, out)
        return self.potential(x)


def normals(means, sds, weights):
    """A normalised mixture of which nothing but the density is told; the sets are its components."""
    means, sds, weights = np.array(means), np.array(sds), np.array(weights)
    model = Normals(means, sds**2, weights)
    model.initial = np.full(model.dim, 0.1)

    def nearest(x):
        square = ((x[:, None] - means) ** 2).sum(axis=-1)
        return (np.log(weights) - 0.5 * square / sds**2 - model.dim * np.log(sds)).argmax(axis=1)

    mean = weights @ means
    sd = np.sqrt(weights @ (sds[:, None] ** 2 + (means - mean) ** 2))
    sets = {f"mode {k}": (lambda x, k=k: nearest(x) == k, w) for k, w in enumerate(weights)}
    return Target(model, 0.0, sets, mean, sd)


def widths(d, sds, weights, distance, seed=1):
    """Normals of different widths, in random directions, so far from where paths begin (times 0.7 to 1.3)."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((len(sds), d))
    radii = distance * rng.uniform(0.7, 1.3, (len(sds), 1))
    return normals(radii * z / np.linalg.norm(z, axis=1, keepdims=True), sds, weights)


def mirrored(n=1000, seed=3):
    """Labels of two normals can be exchanged."""
    rng = np.random.default_rng(seed)
    y = rng.normal(np.where(rng.random(n) < 0.3, -2.0, 3.0), 1.0)

    def both(x):
        theta = special.expit(x[0])
        a, b = special.log_expit(x[0]) - 0.5 * (y - x[1]) ** 2, special.log_expit(-x[0]) - 0.5 * (y - x[2]) ** 2
        total = np.logaddexp(a, b)
        r = np.exp(a - total)
        prior = -special.log_expit(x[0]) - special.log_expit(-x[0]) + (x[1] ** 2 + x[2] ** 2) / 200.0
        gradient = np.array(
            [
                2.0 * theta - 1.0 - (r - theta).sum(),
                x[1] / 100.0 - (r * (y - x[1])).sum(),
                x[2] / 100.0 - ((1.0 - r) * (y - x[2])).sum(),
            ]
        )
        return prior - total.sum(), gradient

    model = pdmp.models.from_function(both, 3, initial=np.full(3, 0.1))
    return Target(model, None, {"μ₁ < μ₂": (lambda x: x[:, 1] < x[:, 2], 0.5)})


def ring(radius=5.0, width=0.25):
    def both(x):
        r = math.hypot(*x) + 1e-300
        e = (r - radius) / width**2
        return 0.5 * (r - radius) ** 2 / width**2, e * x / r

    def moment(k):
        return integrate.quad(
            lambda r: r**k * math.exp(-0.5 * ((r - radius) / width) ** 2), 0.0, 10.0, points=[radius]
        )[0]

    sd = math.sqrt(0.5 * moment(3) / moment(1))
    model = pdmp.models.from_function(both, 2, initial=[0.1, 0.1])
    return Target(model, math.log(math.tau * moment(1)), {"x > 0": (lambda x: x[:, 0] > 0.0, 0.5)}, np.zeros(2), sd)


def spike_and_slab(y=(0.0, 0.4, 0.7, 0.9, 1.5), spike=0.05, noise=0.3):
    y, k = np.array(y), 1.0 / math.sqrt(math.tau)

    def both(x):
        a = math.log(0.5 * k / spike) - 0.5 * (x / spike) ** 2
        b = math.log(0.5 * k) - 0.5 * x**2
        total = np.logaddexp(a, b)
        r = np.exp(a - total)
        u = -total.sum() + 0.5 * (((x - y) / noise) ** 2).sum()
        return u, r * x / spike**2 + (1.0 - r) * x + (x - y) / noise**2

    log_z, mean, sd, sets = 0.0, [], [], {}
    for j, seen in enumerate(y):

        def moment(f, low=-3.0, high=4.0, seen=seen):
            def value(x):
                prior = 0.5 * k / spike * math.exp(-0.5 * (x / spike) ** 2) + 0.5 * k * math.exp(-0.5 * x * x)
                return f(x) * prior * math.exp(-0.5 * ((x - seen) / noise) ** 2)

            return integrate.quad(value, low, high, points=sorted({-0.1, 0.0, 0.1, seen}), limit=200)[0]

        z = moment(lambda x: 1.0)
        log_z += math.log(z)
        mean.append(moment(lambda x: x) / z)
        sd.append(math.sqrt(moment(lambda x: x * x) / z - mean[-1] ** 2))
        sets[f"spike {j}"] = (lambda x, j=j: np.abs(x[:, j]) < 0.15, moment(lambda x: 1.0, -0.15, 0.15) / z)
    return Target(
        pdmp.models.from_function(both, 5, initial=np.full(5, 0.1)), log_z, sets, np.array(mean), np.array(sd)
    )


def banana():
    """x₀ ~ N(0, 3²), x₁ ~ N(x₀² / 2, 0.3²)."""
    constant = math.log(math.tau) + math.log(3.0) + math.log(0.3)

    def both(x):
        e = (x[1] - 0.5 * x[0] ** 2) / 0.3
        return x[0] ** 2 / 18.0 + 0.5 * e * e + constant, np.array([x[0] / 9.0 - e / 0.3 * x[0], e / 0.3])

    sets = {
        "x₀ > 0": (lambda x: x[:, 0] > 0.0, 0.5),
        "|x₀| > 5": (lambda x: abs(x[:, 0]) > 5.0, 2 * stats.norm.sf(5 / 3)),
    }
    sd = np.array([3.0, math.sqrt(0.5 * 81.0 + 0.09)])
    return Target(pdmp.models.from_function(both, 2, initial=[0.1, 0.1]), 0.0, sets, np.array([0.0, 4.5]), sd)


def gaussian(d=50):
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((d, d)))[0]
    variances = np.geomspace(0.01, 1.0, d)
    precision, constant = (q / variances) @ q.T, 0.5 * d * math.log(math.tau) + 0.5 * np.log(variances).sum()
    model = function(lambda x: 0.5 * x @ precision @ x + constant, lambda x: precision @ x, d)
    return Target(model, 0.0, {}, np.zeros(d), np.sqrt(np.diag((q * variances) @ q.T)))


def logistic(n=500, d=10, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = (rng.random(n) < special.expit(x @ rng.standard_normal(d) * 0.7)) * 1.0
    constant = 0.5 * d * math.log(math.tau)

    def both(b):
        eta = x @ b
        return 0.5 * b @ b + constant - special.log_expit(np.where(y > 0.5, eta, -eta)).sum(), b + x.T @ (
            special.expit(eta) - y
        )

    # The truth by importance from a t around Laplace's approximation, 10⁵ draws.
    from scipy.optimize import minimize

    mode = minimize(both, np.zeros(d), jac=True).x
    p = special.expit(x @ mode)
    hessian = np.eye(d) + (x * (p * (1.0 - p))[:, None]).T @ x
    law = stats.multivariate_t(mode, 1.1 * np.linalg.inv(hessian), df=8, seed=4)
    z = law.rvs(100_000)
    eta = z @ x.T
    u = 0.5 * (z**2).sum(axis=1) + constant - special.log_expit(np.where(y > 0.5, eta, -eta)).sum(axis=1)
    logs = -u - law.logpdf(z)
    w = np.exp(logs - logs.max())
    mean = w @ z / w.sum()
    log_z = float(logs.max() + math.log(w.mean()))
    model = pdmp.models.from_function(both, d)
    return Target(model, log_z, {}, mean, np.sqrt(w @ (z - mean) ** 2 / w.sum()))


def eight_schools():
    y, s = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    k = 0.5 * math.log(math.tau)
    constant = math.log(5.0) + k - math.log(2.0 / (math.pi * 5.0)) + 16.0 * k + np.log(s).sum()

    def both(x):  # z, μ, log τ; non-centred
        tau = math.exp(x[9])
        e = (y - x[8] - tau * x[:8]) / s
        u = 0.5 * (x[8] / 5.0) ** 2 + math.log1p((tau / 5.0) ** 2) - x[9] + 0.5 * e @ e + 0.5 * x[:8] @ x[:8]
        share = (tau / 5.0) ** 2 / (1.0 + (tau / 5.0) ** 2)
        slope = e / s
        last = 2.0 * share - 1.0 - tau * slope @ x[:8]
        return u + constant, np.concatenate([x[:8] - tau * slope, [x[8] / 25.0 - slope.sum(), last]])

    mu, log_tau = np.meshgrid(np.linspace(-30.0, 40.0, 801), np.linspace(-12.0, 9.0, 2001), indexing="ij")
    tau = np.exp(log_tau)
    logs = stats.norm.logpdf(mu, 0.0, 5.0) + math.log(2.0 / (math.pi * 5.0)) - np.log1p((tau / 5.0) ** 2) + log_tau
    for one, scale in zip(y, s, strict=True):
        logs += stats.norm.logpdf(one, mu, np.sqrt(scale**2 + tau**2))
    w = np.exp(logs - logs.max())
    log_z = logs.max() + math.log(w.sum() * 70.0 / 800 * 21.0 / 2000)
    sets = {"τ < 2": (lambda x: x[:, 9] < math.log(2.0), float(w[tau < 2.0].sum() / w.sum()))}
    return Target(pdmp.models.from_function(both, 10), float(log_z), sets)


DIAGONAL, CORNERS = np.outer([1.0, -1.0], np.full(5, math.sqrt(5.0))), np.zeros((4, 5))
CORNERS[:, :2] = [[5, 5], [5, -5], [-5, 5], [-5, -5]]
TARGETS = {
    "two, 50/50, d = 5": lambda: normals(DIAGONAL, [1.0, 1.0], [0.5, 0.5]),
    "two, 20/80, d = 5": lambda: normals(DIAGONAL, [1.0, 1.0], [0.2, 0.8]),
    "four, d = 5": lambda: normals(CORNERS, np.ones(4), [0.1, 0.2, 0.3, 0.4]),
    "mirrored mixture": mirrored,
    "ring": ring,
    "spike and slab, d = 5": spike_and_slab,
    "sds 0.1 and 1, d = 10": lambda: normals(np.outer([2.5, -2.5], np.eye(10)[0]), [0.1, 1.0], [0.5, 0.5]),
    "banana": banana,
    "logistic, d = 10": logistic,
    "eight schools": eight_schools,
    "Gaussian, d = 50": gaussian,
}
CROSS = [[-5.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 8.0, 0.0]]
TARGETS |= {
    f"widths: {name}": make
    for name, make in {
        "1 and 0.1, d = 1": lambda: normals([[-6.0], [4.0]], [1.0, 0.1], [0.7, 0.3]),
        "four, 0.1 to 1, d = 1": lambda: normals(
            [[-9.0], [-2.0], [3.0], [12.0]], [0.3, 1, 0.1, 0.6], [0.1, 0.4, 0.3, 0.2]
        ),
        "near, 1.5 and 0.3, d = 2": lambda: widths(2, [1.5, 0.3], [0.5, 0.5], 3.0),
        "far, 1, 0.2 and 2, d = 2": lambda: widths(2, [1.0, 0.2, 2.0], [0.3, 0.3, 0.4], 20.0),
        "five, 0.2 to 1, d = 2": lambda: widths(2, [0.2, 0.4, 0.6, 0.8, 1.0], [0.1, 0.2, 0.2, 0.2, 0.3], 6.0),
        "0.5, 1.5 and 0.3, d = 3": lambda: normals(CROSS, [0.5, 1.5, 0.3], [0.2, 0.5, 0.3]),
        "a narrow tenth, d = 3": lambda: widths(3, [1.0, 0.1], [0.9, 0.1], 3.0),
        "four, 0.3 to 1, d = 3": lambda: widths(3, [0.3, 0.5, 0.7, 1.0], [0.2, 0.1, 0.3, 0.4], 6.0),
        "far, 2, 1 and 0.5, d = 3": lambda: widths(3, [2.0, 1.0, 0.5], [0.4, 0.3, 0.3], 20.0),
        "near, 1 and 0.33, d = 5": lambda: widths(5, [1.0, 0.33], [0.5, 0.5], 3.0),
        "1, 0.5 and 0.3, d = 5": lambda: widths(5, [1.0, 0.5, 0.3], [0.5, 0.2, 0.3], 5.0),
        "far, 1 and 0.3, d = 5": lambda: widths(5, [1.0, 0.3], [0.6, 0.4], 15.0),
        "1 and 0.33, d = 10": lambda: widths(10, [1.0, 0.33], [0.5, 0.5], 4.0),
        "1, 0.6 and 0.3, d = 10": lambda: widths(10, [1.0, 0.6, 0.3], [0.4, 0.3, 0.3], 6.0),
        "a wide one far, 0.3 and 1.5, d = 3": lambda: normals(
            [[0.0, 0.0, 0.0], [9.0, 7.0, 5.0]], [0.3, 1.5], [0.5, 0.5]
        ),
    }.items()
}


def measure(target, seed):
    """One run: gradients, rungs, errors, whether it is wrong, and warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = pdmp.sample(target.model, tempered=True, seed=seed, progress=False)
    x = run.draws(4_000).reshape(-1, run.dim)
    shares = [abs(float(np.mean(which(x))) - p) for which, p in target.sets.values()]
    off = [e > 4.0 * math.sqrt(p * (1.0 - p) / 400.0) for e, (_, p) in zip(shares, target.sets.values(), strict=True)]
    mean = 0.0 if target.mean is None else float(np.max(np.abs(x.mean(axis=0) - target.mean) / target.sd))
    sd = 0.0 if target.mean is None else float(np.max(np.abs(x.std(axis=0) / target.sd - 1.0)))
    found = run.log_evidence
    error = None if target.log_z is None else found.value - target.log_z
    gradients = run.stats["data_terms"] + run.stats["preparation_gradients"]
    rungs = len(run.records[0].accumulated["rungs/betas"])
    off = any(off) or mean > 0.3 or sd > 0.3 or (error is not None and abs(error) > max(0.09, 5.0 * found.error))
    return gradients, rungs, max(shares, default=0.0), mean, sd, error, found.error, off, [str(w.message) for w in said]


def laplace(model, x):
    """log Z of a mode near x, by Newton's steps."""
    for _ in range(6):
        x = x - np.linalg.solve(model.hessian(x), model.gradient(x))
    half = 0.5 * np.linalg.slogdet(model.hessian(x))[1]
    return -model.potential(x) + 0.5 * len(x) * math.log(math.tau) - half + model.omitted()


def many_rows(n, seed, gradients):
    """One fit of a mixture of two regressions."""
    rng = np.random.default_rng(1)
    x, first = rng.standard_normal(n), rng.random(n) < 0.35
    table = {"x": x, "y": np.where(first, 1.0 + 0.8 * x, -0.5 - 0.4 * x) + 0.6 * rng.standard_normal(n)}
    priors = {"Intercept": pdmp.models.priors.Normal(0.5, 1.0), "mu2: Intercept": pdmp.models.priors.Normal(0.0, 1.0)}
    began = time.process_time()
    fit = pdmp.regression(
        {"y": "y ~ x", "mu2": "~ x"}, table, "mixture_gaussian", priors, seed=seed, tempered=True, progress=False,
        gradients=gradients,
    )  # fmt: skip
    took, modes, stats = time.process_time() - began, fit.run.modes(), fit.run.stats
    both = np.array([laplace(fit.model, mode.mean) for mode in modes])
    log_z = np.logaddexp.reduce(both)
    print(f"share {modes[0].share:.3f} ± {modes[0].error:.3f}, Laplace {math.exp(both[0] - log_z):.3f}; "
          f"{fit.log_evidence}, Laplace {log_z:.3f}; passes {stats['preparation_gradients']:,} and "
          f"{stats['data_passes']:,.0f}, scans {stats['total_events']:,}, rows looked at {stats['thinned']:,}, "
          f"acceptance {1.0 - stats['mean_barrier']:.2f}; {took:.0f} s", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int)
    parser.add_argument("--gradients", type=int)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    if given.rows:
        for seed in range(given.seeds):
            many_rows(given.rows, seed, given.gradients)
        return 0
    print(f"{'target':44}{'gradients':>10}{'rungs':>6}{'share 90%':>10}{'max':>6}{'mean':>6}{'sd':>6}"
          f"{'log Z rms':>10}{'rms z':>7}{'within 2':>9}{'said':>5}"
          f"{'right':>6}{'warned':>7}{'silent':>7}{'s':>6}")  # fmt: skip
    total = np.zeros(3, int)
    for name, make in TARGETS.items():
        if given.only and not any(part in name for part in given.only):
            continue
        target, began = make(), time.process_time()
        rows = [measure(target, seed) for seed in range(given.seeds)]
        took = (time.process_time() - began) / given.seeds
        gradients, rungs, share, mean, sd = (np.array(column, float) for column in list(zip(*rows, strict=True))[:5])
        known = target.log_z is not None
        errors = np.array([row[5] if known else math.nan for row in rows])
        z = errors / np.array([row[6] for row in rows])
        said, wrong = np.array([bool(row[8]) for row in rows]), np.array([row[7] for row in rows])
        verdicts = np.array([np.sum(~wrong), np.sum(wrong & said), np.sum(wrong & ~said)])
        total += verdicts
        print(f"{name:44}{np.median(gradients):10,.0f}{np.median(rungs):6.0f}{np.quantile(share, 0.9):10.3f}"
              f"{share.max():6.3f}{mean.max():6.2f}{sd.max():6.2f}{np.sqrt(np.mean(errors**2)):10.3f}"
              f"{np.sqrt(np.mean(z**2)):7.2f}{np.sum(np.abs(z) < 2.0):6.0f}/{len(rows):<2}{said.sum():5.0f}"
              f"{verdicts[0]:6}{verdicts[1]:7}{verdicts[2]:7}{took:6.1f}", flush=True)  # fmt: skip
        for text in sorted({w[:110] for row in rows for w in row[8]})[:3]:
            print("      ", text, flush=True)
    print("right, warned, silent:", *total)
    return int(total[2] > 0)


if __name__ == "__main__":
    sys.exit(main())
