"""Families of `pdmp.models.families`: rows looked at for an effective draw, by the sub-sampled Boomerang sampler.

    python -m tests.benchmarks.families [--rows 1000000] [--only NAME …] [--seconds 5] [--hard]

Each family has simulated rows: mu by five columns; zi, hu and, of gaussian, sigma by two. Columns: seconds for the
anchor (the mode), and for set-up beyond it; rows looked at for the least effective draw (of means and sds), and the
ratio to that of the nearest of the first six families; effective draws a second; violations of bounds.

With ``--hard`` rows are sorted by their responses, and of the columns one has a Student t law of 2 degrees of freedom,
cut at 40, one is 1 in a thousandth of the rows and else 0, and two have a correlation of 0.99. Means and standard
deviations are compared with those of draws about the mode, weighted by the potential of all rows: the largest
difference of means, in standard deviations, and the ratio of standard deviations that is farthest from 1, with their
standard errors.
"""

import argparse
import math
import time

import numpy as np

import pdmp
from pdmp.models import sum_of_terms
from pdmp.models.families import FAMILIES
from pdmp.models.priors import Normal
from pdmp.processes.regression_boomerang import RegressionBoomerang

NAMES = [name for name in FAMILIES if not name.startswith("mixture")]
CENSORED = ("weibull", "exponential", "lognormal")
#: Of parameters beside mu: values on the scale of their links.
TRUE = {
    "sigma": -0.3, "nu": 1.6, "alpha": 0.5, "shape": 0.7, "phi": 2.0, "zi": -0.7, "hu": -0.7, "discrimination": 0.2,
    "kappa": 0.7,
}  # fmt: skip
DRAWS = 3_000  #: weighted ones
CUTS = np.array([-1.0, 0.2, 1.3])
SIX = ("gaussian", "student_t", "bernoulli", "probit", "poisson", "negative_binomial")
NEAREST = {
    "item_response": "bernoulli", "zero_inflated_poisson": "poisson", "hurdle_poisson": "poisson",
    "zero_inflated_negative_binomial": "negative_binomial", "hurdle_negative_binomial": "negative_binomial",
    "zero_inflated_beta": "negative_binomial", "hurdle_gamma": "negative_binomial",
    "zero_inflated_binomial": "bernoulli",
    "binomial": "bernoulli", "beta_binomial": "negative_binomial", "gamma": "negative_binomial",
    "inverse_gaussian": "negative_binomial", "beta": "negative_binomial", "skew_normal": "student_t",
    "weibull": "gaussian", "exponential": "poisson", "lognormal": "gaussian", "cumulative": "bernoulli",
    "cumulative_probit": "probit", "von_mises": "student_t",
}  # fmt: skip


def simulated(name, n, columns, seed=1, hard=False):
    """A posterior of rows drawn from a family: mu by columns, one other parameter by two, and the rest constant."""
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, columns - 1))])
    if hard:
        X[:, 2], X[:, 3] = np.clip(rng.standard_t(2, n), -40.0, 40.0) / 10.0, rng.random(n) < 1e-3
        X[:, 4] = 0.99 * X[:, 1] + math.sqrt(1.0 - 0.99**2) * X[:, 4]
    beta = np.r_[0.4, rng.normal(0.0, 0.3, columns - 1)]
    if family.arrange:
        p = pdmp.Parameters(beta=columns - 1, cut=3)
        y = family.draw(rng, X[:, 1:] @ beta[1:], *(np.full(n, c) for c in CUTS))
        if hard:
            order = np.argsort(y, kind="stable")
            X, y = X[order], y[order]
        rows = family.rows(y, mu=X[:, 1:] @ p.beta, cuts=p.cut)
        return sum_of_terms(p, [rows], {"beta": Normal(0, 2.5), "cut": Normal(0, 2.5)}, initial={"cut": CUTS})
    others = list(family.links)[1:]
    linear = others[-1:] if others and others[-1] in ("zi", "hu", "sigma") else []
    p = pdmp.Parameters(beta=columns, **{name: 2 if name in linear else 1 for name in others})
    eta = {"mu": X @ beta, **{name: TRUE[name] + (0.3 * X[:, 1] if name in linear else np.zeros(n)) for name in others}}
    data = {"trials": rng.integers(3, 12, n).astype(float)} if "trials" in family.data else {}
    values = family.inverse(list(eta.values()))
    y = family.draw(rng, *values, *data.values()) if data else family.draw(rng, *values)
    if family.response.startswith("share"):
        y = np.clip(y, 0.0 if "0" in family.response else 1e-12, 1.0 - 1e-12)
    if name in CENSORED:
        end, kind = 1.5 * np.quantile(y, 0.6) * rng.uniform(0.5, 1.5, n), np.arange(n) % 10
        censored = np.where(y > end, 1.0, np.where(kind == 0, -1.0, np.where(kind == 1, 2.0, 0.0)))
        upper, below = 1.8 * y, np.where(censored == 2.0, y / 1.2, np.where(censored == -1.0, 1.3 * y, y))
        y, data = np.where(censored == 1.0, end, below), {"censored": censored, "upper": upper}
    if hard:
        order = np.argsort(y, kind="stable")
        X, y, data = X[order], y[order], {name: values[order] for name, values in data.items()}
    at = {name: X[:, :2] @ getattr(p, name) if name in linear else getattr(p, name) for name in others}
    rows = family.rows(y, mu=X @ p.beta, **at, **data)
    return sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, 2.5)))


def measured(name, rows, seconds):
    """Seconds for the anchor and set-up, rows for an effective draw, draws a second and violations."""
    model = simulated(name, rows, columns=5)
    begun = time.perf_counter()
    anchor = model.mode()
    found = time.perf_counter()
    process = RegressionBoomerang(model, anchor)
    made = time.perf_counter()
    run = pdmp.sample(process, time=1e9, seconds=seconds, warmup=0.02, seed=1, store="moments", progress=False)
    draws = float(run.ess().min())
    return found - begun, made - found, run.stats["data_terms"] / draws, draws / seconds, run.stats["bound_violations"]


def compared(name, rows, seconds):
    """Largest errors of means and standard deviations, with standard errors; effective draws, and violations."""
    model = simulated(name, rows, columns=5, hard=True)
    anchor, nu = model.mode(), 8.0
    root = np.linalg.cholesky(1.1 * np.linalg.inv(model.gradient_and_hessian(anchor)[1]))
    rng = np.random.default_rng(2)
    z = rng.standard_normal((DRAWS, model.dim)) / np.sqrt(rng.chisquare(nu, (DRAWS, 1)) / nu)
    x = anchor + z @ root.T
    log_weights = 0.5 * (nu + model.dim) * np.log1p(np.sum(z**2, axis=1) / nu) - [model.potential(one) for one in x]
    w = np.exp(log_weights - log_weights.max())
    w /= w.sum()
    mean = w @ x
    sd = np.sqrt(w @ (x - mean) ** 2)
    process = RegressionBoomerang(model, anchor)
    run = pdmp.sample(process, time=1e9, seconds=seconds, warmup=0.02, seed=1, store="moments", progress=False)
    found = pdmp.diagnostics.effective_draws(run)
    off, ratio = (run.mean() - mean) / sd, np.sqrt(run.var()) / sd
    errors = np.sqrt([w**2 @ ((x - mean) / sd) ** 2 + 1.0 / found["mean"], w**2 @ ((x - mean) ** 2 / sd**2 - 1.0) ** 2])
    errors[1] = np.sqrt(0.25 * errors[1] ** 2 + 0.5 / found["sd"])
    j, k = np.argmax(np.abs(off)), np.argmax(np.abs(np.log(ratio)))
    return off[j], errors[0, j], ratio[k], errors[1, k], min(map(np.min, found.values())), run.stats["bound_violations"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=sorted(FAMILIES))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run")
    parser.add_argument("--hard", action="store_true", help="columns and an order of rows that are hard to sub-sample")
    args = parser.parse_args()
    if args.hard:
        print(f"{'family':32}{'mean off':>10}{'+-':>8}{'sd ratio':>10}{'+-':>8}{'draws':>8}{'violations':>12}")
        for name in args.only:
            try:
                *numbers, draws, violations = compared(name, args.rows, args.seconds)
            except ValueError as error:
                print(f"{name:32}{error}", flush=True)
                continue
            shown = "".join(f"{x:{width}.3f}" for x, width in zip(numbers, (10, 8, 10, 8), strict=True))
            print(f"{name:32}{shown}{draws:8.0f}{violations:12d}", flush=True)
        return
    measured("gaussian", 1_000, 0.5)  # compiles
    print(f"{'family':32}{'mode s':>8}{'set-up s':>10}{'rows/draw':>11}{'ratio':>8}{'draws/s':>10}{'violations':>12}")
    found = {}
    for name in sorted(args.only, key=lambda name: name not in SIX):
        try:
            mode, setup, rows, draws, violations = measured(name, args.rows, args.seconds)
        except ValueError as error:
            print(f"{name:32}{error}", flush=True)
            continue
        found[name] = rows
        ratio = rows / found.get(NEAREST.get(name, name), float("nan"))
        print(f"{name:32}{mode:8.2f}{setup:10.2f}{rows:11.3g}{ratio:8.2f}{draws:10.0f}{violations:12d}", flush=True)


if __name__ == "__main__":
    main()
