"""Families of `pdmp.models.families`: rows looked at for an effective draw, by the sub-sampled Boomerang sampler.

    python -m tests.benchmarks.families [--rows 1000000] [--only NAME …] [--seconds 5]

Each family has simulated rows: mu by five columns; zi, hu and, of gaussian, sigma by two. Columns: seconds for the
anchor (the mode), and for set-up beyond it; rows looked at for the least effective draw (of means and sds), and the
ratio to that of the nearest of the first six families; effective draws a second; violations of bounds.
"""

import argparse
import time

import pdmp
from pdmp.models.families import FAMILIES
from pdmp.processes.regression_boomerang import RegressionBoomerang
from tests.statistics.test_family_laws import NAMES, simulated

SIX = ("gaussian", "student_t", "bernoulli", "probit", "poisson", "negative_binomial")
NEAREST = {
    "item_response": "bernoulli", "zero_inflated_poisson": "poisson", "hurdle_poisson": "poisson",
    "zero_inflated_negative_binomial": "negative_binomial", "hurdle_negative_binomial": "negative_binomial",
    "binomial": "bernoulli", "beta_binomial": "negative_binomial", "gamma": "negative_binomial",
    "inverse_gaussian": "negative_binomial", "beta": "negative_binomial", "skew_normal": "student_t",
    "weibull": "gaussian", "exponential": "poisson", "lognormal": "gaussian", "cumulative": "bernoulli",
    "cumulative_probit": "probit",
}  # fmt: skip


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=sorted(FAMILIES))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run")
    args = parser.parse_args()
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
