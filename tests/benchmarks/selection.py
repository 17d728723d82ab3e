"""Selection of many coefficients from many rows: sticking one by one beside groups of one coefficient, side by side.

Run as ``python -m tests.benchmarks.selection`` (``--quick`` for a try). A linear regression with noise of standard
deviation 1, columns of which neighbours have the correlation 1/2, and coefficients of 3.5 to 12 posterior standard
deviations in ten of the first thirty columns, of 4 in every hundredth further one; all others are 0. Both samplers
start at 0 and have one chain. Compile time is left out.

With ``--subsampled`` the sticky samplers of formulas instead, at one row a proposal: 100,000 rows, 20 columns that are
independent or have the correlation 0.7 each with each other, a linear regression with unknown noise and a logistic one,
and a beta-Bernoulli prior. Effective draws in a second of one processor, the fewest of uncertain indicators, and the
fewest of the means. ``--gibbs``: a linear regression of 200 columns with unknown noise, beside a Gibbs sampler; with
``--wide`` of 2,000 columns. ``--wide`` alone: 2,000 columns and 100,000 rows, set-up and run.
"""

from __future__ import annotations

import argparse
import math
import time

import numba
import numpy as np

import pdmp
from pdmp.automatic import subsampling
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.formulas import fitting
from pdmp.models.priors import BetaBernoulli, HalfStudentT, Normal
from pdmp.models.regressions.likelihoods import LogitLaw, NormalLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.processes.sticky_groups import StickyGroups

SIZES = (12.0, -10.0, 8.0, 6.0, -5.0, 4.5, -4.2, 4.0, 3.8, -3.5)  #: in posterior standard deviations, about

SLAB = 0.1  #: standard deviation of the coefficients that are in, of the regressions with sub-sampling


def problem(rows, d, inclusion):
    rng = np.random.default_rng(0)
    X = np.empty((rows, d))
    for s in range(0, rows, 10_000):
        Z = rng.standard_normal((min(10_000, rows - s), d))
        X[s : s + 10_000, 0] = Z[:, 0]
        for j in range(1, d):
            X[s : s + 10_000, j] = 0.5 * X[s : s + 10_000, j - 1] + math.sqrt(0.75) * Z[:, j]
    beta = np.zeros(d)
    beta[:30:3] = SIZES
    beta[100::100] = 4.0
    y = X @ (beta * math.sqrt(5.0 / 3.0 / 0.75 / rows)) + rng.standard_normal(rows)
    return pdmp.models.SpikeAndSlabLinearRegression(X, y, 1.0, 0.5, inclusion)


def measure(name, process, duration):
    """One line: seconds, violations, and the effective draws of the indicators that are uncertain."""
    options = {"initial": np.zeros(process.dim), "seed": 1, "progress": False}
    pdmp.sample(process, time=0.01, **options)  # compiled
    began = time.perf_counter()
    run = pdmp.sample(process, time=duration, warmup=0.1, store="grid", draws=4_000, **options)
    seconds = time.perf_counter() - began
    inclusion = pdmp.diagnostics.inclusion(run)
    uncertain = np.flatnonzero((inclusion > 0.1) & (inclusion < 0.9))
    ess = draws_ess((run.draws(4_000)[..., uncertain] != 0.0).astype(float), "mean") if len(uncertain) else np.zeros(0)
    print(
        f"{name:16} {seconds:8.1f} s  {run.stats['bound_violations']} violations  {inclusion.sum():.1f} included  "
        f"{len(uncertain)} uncertain, effective draws {', '.join(f'{e:.0f}' for e in ess)}",
        flush=True,
    )


def regression(family, rows, correlation, d=20):
    """A regression with an intercept, ten of whose coefficients are 2.5 to 10 posterior standard deviations."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, d))
    X = math.sqrt(1.0 - correlation) * X + math.sqrt(correlation) * rng.standard_normal((rows, 1))
    beta = np.zeros(d)
    beta[:10] = 10.0, -8.0, 6.0, 5.0, -4.5, 4.0, 3.5, 3.25, -3.0, 2.5
    beta *= (2.0 if family == "bernoulli" else 1.0) / math.sqrt(rows * (1.0 - correlation))
    z = X @ beta
    labels = family == "bernoulli"
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-z))).astype(float) if labels else z + rng.standard_normal(rows)
    law = LogitLaw() if labels else NormalLaw()
    return MixedRegression(
        np.column_stack([np.ones(rows), X]),
        y,
        law,
        ["Intercept", *(f"x{j}" for j in range(d))],
        [Normal(0.0, 2.5), *[Normal(0.0, SLAB)] * d],
        dispersion_priors=[] if labels else [HalfStudentT(4.0, 1.0)],
        intercept=0,
        inclusion=np.r_[1.0, np.full(d, 0.5)],
        model_prior=BetaBernoulli(1.0, 1.0),
    )


def subsampled(rows, seconds):
    for family in ("gaussian", "bernoulli"):
        for correlation in (0.0, 0.7):
            print(f"{family}, {rows:,} rows, correlation {correlation:g}", flush=True)
            model = regression(family, rows, correlation)
            for sampler in fitting.SAMPLERS[1:]:
                process, starts, said = subsampling.subsampled(model, True, sampler)
                line(sampler, process, starts(1, np.random.default_rng(0))[0], seconds)


@numba.njit
def gibbs(gram, pull, square, rows, prior, slab, law, sigma_prior, batches, sweeps, rng):
    """Point-mass Gibbs sampler (George & McCulloch 1997, section 5), the first coefficient always in, σ by slices.

    Each (γⱼ, βⱼ) is drawn given all others and σ, βⱼ integrated; then log σ by a slice sampler (Neal 2003, section 4).
    `batches[k]`: what batch k has of the probabilities that γⱼ is 1 given the others.
    """
    d = len(pull)
    beta, left, s, inside = np.zeros(d), pull.copy(), 0.0, 0
    kind, a, b, c = sigma_prior
    for sweep in range(-sweeps // 10, sweeps):
        for j in range(d):
            noise = math.exp(-2.0 * s)
            variance = 1.0 / (gram[j, j] * noise + 1.0 / slab[j] ** 2)
            mean = variance * ((left[j] + gram[j, j] * beta[j]) * noise + prior[j] / slab[j] ** 2)
            p, others = 1.0, inside - (1 if j > 0 and beta[j] != 0.0 else 0)
            if j > 0:
                odds = (law[0] + others) / (law[1] + d - 2 - others) * math.sqrt(variance) / slab[j]
                odds *= math.exp(min(0.5 * mean * mean / variance, 600.0))
                p = odds / (1.0 + odds)
            new = mean + math.sqrt(variance) * rng.standard_normal() if rng.random() < p else 0.0
            if new != beta[j]:
                left -= gram[j] * (new - beta[j])
                beta[j] = new
            inside = others + (1 if j > 0 and new != 0.0 else 0)
            if sweep >= 0:
                batches[sweep * len(batches) // sweeps, j] += p * len(batches) / sweeps
        rest = square - np.sum(beta * (pull + left))  # |y - Xβ|²
        width = 3.0 / math.sqrt(2.0 * rows)
        level = log_density(s, rest, rows, kind, a, b, c) - rng.standard_exponential()
        low = s - width * rng.random()
        high = low + width
        while log_density(low, rest, rows, kind, a, b, c) > level:
            low -= width
        while log_density(high, rest, rows, kind, a, b, c) > level:
            high += width
        while True:
            there = low + (high - low) * rng.random()
            if log_density(there, rest, rows, kind, a, b, c) > level:
                s = there
                break
            low, high = (there, high) if there < s else (low, there)


@numba.njit
def log_density(s, rest, rows, kind, a, b, c):
    """Of s = log σ given the sum of squares that is left, with a half-Student-t prior of σ."""
    z = math.exp(s) / b
    return -rows * s - 0.5 * rest * math.exp(-2.0 * s) - 0.5 * (a + 1.0) * math.log1p(z * z / a) + s


def against_gibbs(rows, d, seconds):
    """Inclusion probabilities of the samplers of formulas beside those of a Gibbs sampler, σ being unknown."""
    model = regression("gaussian", rows, 0.3, d)
    X, y, n, batches = np.asarray(model.X, float), model.target, model.numbers, np.zeros((40, d + 1))
    gram, pull = X.T @ X, X.T @ y
    law, sigma = (model.model_prior.a, model.model_prior.b), (int(model.kinds[-1]), *(float(v) for v in n[-1]))
    options = (rows, n[:-1, 0].copy(), n[:-1, 1].copy(), law, sigma)
    gibbs(gram, pull, y @ y, *options, batches.copy(), 10, np.random.default_rng(0))
    began = time.process_time()
    gibbs(gram, pull, y @ y, *options, batches, 100_000, np.random.default_rng(1))
    truth, error = batches.mean(axis=0)[1:], (batches.std(axis=0, ddof=1) / math.sqrt(len(batches)))[1:]
    print(
        f"Gibbs {time.process_time() - began:.1f} s, errors up to {error.max():.4f}, {truth.sum():.2f} included",
        flush=True,
    )
    wide = d > 1_000
    if not wide:
        zigzag = subsampling.subsampled(model, True, "zigzag")[0]
        run = pdmp.sample(zigzag, initial=zigzag.anchor, proposals=600_000, seed=1, store="moments", progress=False)
        print(f"zigzag {rows_looked_at(run):.0f} rows a unit of time, at first", flush=True)
    for sampler in ("bps",) if wide else ("bps", "boomerang"):
        process, starts, said = subsampling.subsampled(model, True, sampler)
        run = line(sampler, process, starts(1, np.random.default_rng(0))[0], seconds)
        found, moving = (
            pdmp.diagnostics.inclusion(run)[1:-1],
            1.0 * (pdmp.diagnostics.averages.diagnostic_draws(run)[..., 1:-1] != 0.0),
        )
        with np.errstate(all="ignore"):
            ess = np.nan_to_num(draws_ess(moving, "mean"), nan=np.inf)
        p = np.clip(truth, 1e-3, 1.0 - 1e-3)
        z = (found - truth) / np.sqrt(p * (1.0 - p) / np.where(np.isfinite(ess), ess, 1e3) + error**2)
        j, k = np.argmax(np.abs(found - truth)), np.argmax(np.abs(z))
        print(
            f"  largest difference {found[j] - truth[j]:+.4f} at {truth[j]:.3f}, {abs(z[j]):.1f} standard errors; most "
            f"standard errors {abs(z[k]):.1f}, of {found[k] - truth[k]:+.4f} at {truth[k]:.3f}",
            flush=True,
        )


def rows_looked_at(run):
    """In a unit of time, the warm-up left out."""
    return run.stats["data_terms"] / sum(record.length for record in run.records)


def line(name, process, start, seconds):
    """Effective draws in a second of one processor."""
    options = {"initial": start, "seed": 1, "progress": False, "store": "grid", "draws": 20_000}
    began = time.process_time()
    pdmp.sample(process, proposals=100, **options)  # compiled
    began, proposals = time.process_time(), 600_000
    pdmp.sample(process, proposals=proposals, **options)
    proposals = int(proposals * seconds / max(time.process_time() - began, 1e-3))
    began = time.process_time()
    run = pdmp.sample(process, proposals=proposals, warmup=0.05, **options)
    took = time.process_time() - began
    moving = 1.0 * (pdmp.diagnostics.averages.diagnostic_draws(run) != 0.0)
    p = pdmp.diagnostics.inclusion(run)
    unsure = np.flatnonzero((p > 0.1) & (p < 0.9))
    ess = draws_ess(moving[..., unsure], "mean") / took if len(unsure) else np.array([np.nan])
    means = np.nanmin(pdmp.diagnostics.effective_draws(run)["mean"]) / took  # NaN of one that was never in
    print(
        f"  {name:10} {took:5.1f} s  {run.stats['bound_violations']} violations  {p.sum() - np.sum(p == 1.0):.2f} "
        f"included  {len(unsure)} uncertain: at least {ess.min():.0f} a second, median {np.median(ess):.0f}; means "
        f"{means:.0f}; {rows_looked_at(run):.0f} rows a unit of time",
        flush=True,
    )
    return run


def wide(rows, d, duration):
    """What a formula with so many columns does: seconds of its set-up, of its run, and effective draws."""
    for family in ("gaussian", "bernoulli"):
        print(f"{family}, {rows:,} rows, {d:,} columns, {duration:g} units of time", flush=True)
        small = subsampling.subsampled(regression(family, 3_000, 0.3, 12), True)
        pdmp.sample(small[0], initial=small[1](1, np.random.default_rng(0))[0], proposals=100, seed=1, progress=False)
        model = regression(family, rows, 0.3, d)
        began = time.perf_counter()
        process, starts, said = subsampling.subsampled(model, True)
        ready = time.perf_counter() - began
        print(f"  set-up {ready:.0f} s: {said}", flush=True)
        options = {"seed": 1, "progress": False, "store": "grid", "draws": 4_000, "warmup": 0.1, "time": duration}
        began = time.perf_counter()
        run = pdmp.sample(process, initial=starts(1, np.random.default_rng(0))[0], **options)
        took, p = time.perf_counter() - began, pdmp.diagnostics.inclusion(run)
        unsure = np.flatnonzero((p > 0.1) & (p < 0.9))
        ess = (
            draws_ess(1.0 * (pdmp.diagnostics.averages.diagnostic_draws(run)[..., unsure] != 0.0), "mean")
            if len(unsure)
            else np.zeros(0)
        )
        print(
            f"  run {took:.0f} s, {run.stats['bound_violations']} violations, {p.sum():.2f} "
            f"included; effective draws of {len(unsure)} between 0.1 and 0.9: "
            f"{', '.join(f'{e:.0f}' for e in ess)}; {rows_looked_at(run):,.0f} rows a unit of time",
            flush=True,
        )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, a shorter run")
    parser.add_argument("--subsampled", action="store_true", help="the samplers of formulas, at one row a proposal")
    parser.add_argument("--gibbs", action="store_true", help="unknown noise, 200 columns, beside a Gibbs sampler")
    parser.add_argument(
        "--wide", action="store_true", help="what a formula with 2,000 columns does, noise unknown, labels"
    )
    parser.add_argument("--duration", type=float, default=300.0, help="of the runs of --wide, in units of time")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each of these runs, about")
    args = parser.parse_args(argv)
    if args.gibbs:
        rows, d = (10_000, 20) if args.quick else (100_000, 200)
        return against_gibbs(rows, 2_000 if args.wide else d, args.seconds)
    if args.wide:
        return wide(*((10_000, 300) if args.quick else (100_000, 2_000)), args.duration)
    if args.subsampled:
        return subsampled(5_000 if args.quick else 100_000, args.seconds)
    cases = [(2_000, 40, 0.05, 30.0)] if args.quick else [(2_000, 200, 0.05, 3_000.0), (100_000, 2_000, 0.01, 300.0)]
    for rows, d, inclusion, duration in cases:
        print(f"{rows:,} rows, {d:,} columns, prior inclusion {inclusion:g}, {duration:g} units of time")
        model = problem(rows, d, inclusion)
        sd = np.sqrt(1.0 / np.diag(model.hessian()))
        inner = pdmp.ZigZag(model, metric=pdmp.Metric(scales=sd))
        measure("groups of one", StickyGroups(inner, [[j] for j in range(d)]), duration)
        measure("sticking alone", pdmp.Sticky(inner), duration)


if __name__ == "__main__":
    main()
