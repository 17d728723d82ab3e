"""Regressions of public tables from the table to 400 effective draws of every mean and standard deviation.

    PDMP_DATA=FOLDER python -m tests.benchmarks.real_tables movielens [--full] [--time UNITS]

"movielens": rating ~ 1 + (1 | user) + (1 | item) of MovieLens 1M, gaussian: 1,000,209 ratings by 6,040 users of 3,706
films. By `pdmp.regression` with its defaults; with ``--full`` by Hamiltonian Monte Carlo with the gradients of all
rows, as `pdmp.regression` samples what it does not sub-sample. What is printed is the processors' time, which says more
than the clock where others use them too. ``--time`` ends the run after so many units of time (of one chain), and prints
how many effective draws that gives.
"""

import argparse
import time

import numpy as np
import pandas

import pdmp
from pdmp.formulas import fitting


def movielens(full: bool, limit: float | None) -> None:
    """Ratings of films, whose users and films are crossed."""
    ratings = pdmp.data.movielens_1m(unrated=False)
    table = pandas.DataFrame({"user": ratings.users, "item": ratings.items, "rating": np.asarray(ratings.ratings)})
    report("rating ~ 1 + (1 | user) + (1 | item)", table, full, limit)


def report(formula, table, full, limit):
    """Fit, and print what it took."""
    if full:
        fitting.SUBSAMPLED_ROWS = len(table) + 1
    budget = {} if limit is None else {"time": limit, "chains": 1}
    pdmp.regression(formula, table, seed=0, progress=False, time=0.02, chains=1, store="grid", draws=8)  # compiles
    began = time.process_time()
    fit = pdmp.regression(formula, table, seed=1, progress=False, store="grid", draws=1_000, **budget)
    seconds = time.process_time() - began
    run = fit.run
    print(formula, f"{len(table):,} rows:", type(run.process).__name__, f"{seconds:.0f} s of the processors")
    found = run.effective_draws()
    least = {name: float(np.min(found[name])) for name in ("mean", "sd")}
    print("least effective draws of means and deviations:", least, "of the median:", float(np.median(found["mean"])))
    print({name: run.stats[name] for name in ("total_events", "proposals", "data_terms", "data_passes")})
    print(fit.notes)
    natural = run.constrain(run.diagnostic_draws())
    for name in ("Intercept", "sd(user)", "sd(item)", "sigma"):
        print(f"{name:10} {natural[name].mean():9.4f} {natural[name].std():8.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=["movielens"])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--time", type=float)
    asked = parser.parse_args()
    {"movielens": movielens}[asked.table](asked.full, asked.time)
