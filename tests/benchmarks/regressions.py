"""Regressions with the effects of 1,000 groups on large tables, beside NUTS; and `pdmp fit` on a file of 10⁷ rows.

    pip install '.[formula,pymc,nutpie,numpyro,data]'
    python -m tests.benchmarks.regressions nuts [--rows 10000 100000 1000000] [--families poisson] [--limit 600]
    python -m tests.benchmarks.regressions file [--rows 10000000] [--folder FOLDER]

"nuts": y ~ x1 + x2 + x3 + (1 | g) of several families, one of them with a formula for sigma, and with slopes that are
correlated with intercepts, by `pdmp.regression` with its defaults, by nutpie on a PyMC model and by NumPyro's
NUTS, non-centred, with the same standard normal priors of coefficients, four chains on two cores. The smallest
effective sample size by ArviZ of the means of intercept, coefficients, deviation and all effects, per second of
sampling; and the seconds from the table to a standard error of 0.1 sd (100 effective draws), set-up and warm-up
counted: those of a second run that is asked for 100 here, a share of the run for NUTS, which stops after what it was
told. "set-up s" of pdmp counts its looks at effective draws and R-hat, until 400 and 1.05. Compilation is in neither,
but a few seconds of NumPyro's. "cpu s" is what the processors have spent on set-up, warm-up and sampling, which says
more where others use them too; "cpu s to 400" is that to 400 effective draws, with set-up and warm-up as the share of
it that they are of the seconds. What takes longer than the limit is ended and has no figure.

"file": makes the file if it is not there, runs ``pdmp fit`` on it as a user would, and compares what is printed with
the coefficients that the data were made with, and with a fit of 60,000 of the rows with full gradients.
"""

import argparse
import json
import multiprocessing
import pathlib
import subprocess
import sys
import time

import numpy as np
import pandas

GROUPS, CHAINS, CORES = 1_000, 4, 2
TRUTH = {"Intercept": -0.5, "x1": 0.4, "x2": -0.3, "x3": 0.0, "sd(g)": 0.5}
FORMULA = "y ~ x1 + x2 + x3 + (1 | g)"
SPREAD, SLOPES = "sigma ~ x1", "(1 + x1 | g)"  #: of gaussian responses
FAMILIES = ("bernoulli", "poisson", "gaussian", "gamma", "cumulative", "zero_inflated_poisson", SPREAD, SLOPES)
CUTS = np.array([-1.5, 0.0, 1.2])
SMALL = 60_000  #: rows to compile with: as many are sub-sampled


def linear_predictor(rng, rows, slopes=False):
    X = rng.standard_normal((rows, 3), dtype=np.float32)
    g = rng.integers(0, GROUPS, rows)
    effects, others = np.random.default_rng(99).normal(0.0, TRUTH["sd(g)"], (2, GROUPS))
    eta = TRUTH["Intercept"] + X @ np.array([TRUTH[name] for name in ("x1", "x2", "x3")]) + effects[g]
    return X, g, eta + slopes * 0.5 * (effects + others)[g] * X[:, 0]


def table(family, rows, seed=0):
    """Rows of a family, with the groups' effects the same for every seed."""
    rng = np.random.default_rng(seed)
    X, g, eta = linear_predictor(rng, rows, family == SLOPES)
    if family == "bernoulli":
        y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    elif family == "gamma":
        y = rng.gamma(2.0, 0.5 * np.exp(eta))
    elif family == "cumulative":
        y = np.sum((eta + rng.logistic(size=rows))[:, None] > CUTS, axis=1)
    elif family.endswith("poisson"):
        y = rng.poisson(np.exp(eta)) * (rng.random(rows) >= 0.3 * family.startswith("zero"))
    else:
        y = eta + rng.standard_normal(rows) * (np.exp(0.3 * X[:, 0]) if family == SPREAD else 1.0)
    return pandas.DataFrame({"y": y, "x1": X[:, 0], "x2": X[:, 1], "x3": X[:, 2], "g": g.astype(np.int32)})


def smallest(draws):
    """Smallest effective sample size of means of arrays (chains, n)."""
    import pdmp

    return min(float(pdmp.diagnostics.ess(np.asarray(x, float)[..., None]).min()) for x in draws)


# Each returns: seconds of set-up and warm-up, of sampling, smallest ESS, seconds of compilation, what it found, seconds
# of the processors without compilation, and seconds to 100 effective draws if they were measured.


def ours(family, frame):
    import pdmp

    options = {"family": "gaussian" if family in (SPREAD, SLOPES) else family, "seed": 1, "progress": False}
    options["priors"] = {name: pdmp.models.priors.Normal(0.0, 1.0) for name in ("x1", "x2", "x3")}
    formula = FORMULA.replace("(1 | g)", SLOPES) if family == SLOPES else FORMULA
    formula = {"y": formula, "sigma": "~ x1"} if family == SPREAD else formula
    began = time.perf_counter()
    pdmp.regression(formula, table(family, min(SMALL, len(frame)), 7), time=0.02, chains=1, **options)
    compiled, began, spent = time.perf_counter() - began, time.perf_counter(), time.process_time()
    fit = pdmp.regression(formula, frame, chains=CHAINS, **options)
    whole, spent = time.perf_counter() - began, time.process_time() - spent
    sampling = min(fit.run.stats["seconds"] / CORES, whole)
    names = [name for name in TRUTH if name != "Intercept" or family != "cumulative"]
    found = {name: float(fit[name].mean()) for name in names}
    effects = [fit[name] for name in ("1|g", *["x1|g"] * (family == SLOPES))]
    ess = smallest([*(fit[name] for name in names), *(one for draws in effects for one in np.moveaxis(draws, 2, 0))])
    began = time.perf_counter()
    pdmp.regression(formula, frame, ess=100, chains=CHAINS, **options)
    return whole - sampling, sampling, ess, compiled, found, spent, time.perf_counter() - began


def pymc_model(family, frame):
    import pymc as pm

    with pm.Model() as model:
        beta, sd = pm.Normal("beta", 0.0, 1.0, shape=4), pm.HalfNormal("sd", 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=GROUPS)
        X = np.column_stack([np.ones(len(frame)), frame[["x1", "x2", "x3"]].to_numpy(float)])
        g, x1, y = frame["g"].to_numpy(), X[:, 1], frame["y"].to_numpy()
        eta = (X[:, 1:] @ beta[1:] if family == "cumulative" else X @ beta) + sd * z[g]
        if family == SLOPES:
            between, w = pm.Uniform("between", -1.0, 1.0), pm.Normal("w", 0.0, 1.0, shape=GROUPS)
            slopes = pm.HalfNormal("sd(x1|g)", 1.0) * (between * z + pm.math.sqrt(1.0 - between**2) * w)
            eta = eta + pm.Deterministic("slopes", slopes)[g] * x1
        if family == "bernoulli":
            pm.Bernoulli("y", logit_p=eta, observed=y)
        elif family == "poisson":
            pm.Poisson("y", mu=pm.math.exp(eta), observed=y)
        elif family == "zero_inflated_poisson":
            pm.ZeroInflatedPoisson("y", psi=1.0 - pm.Beta("zi", 1.0, 1.0), mu=pm.math.exp(eta), observed=y)
        elif family == "gamma":
            shape = pm.HalfCauchy("shape", 5.0)
            pm.Gamma("y", alpha=shape, beta=shape * pm.math.exp(-eta), observed=y)
        elif family == "cumulative":
            ordered = {"transform": pm.distributions.transforms.ordered, "initval": CUTS}
            pm.OrderedLogistic("y", eta=eta, cutpoints=pm.Normal("cut", 0.0, 2.5, shape=3, **ordered), observed=y)
        elif family == SPREAD:
            a = pm.Normal("a", 0.0, 1.0, shape=2)
            pm.Normal("y", eta, pm.math.exp(a[0] + a[1] * x1), observed=y)
        else:
            pm.Normal("y", eta, pm.HalfNormal("sigma", 1.0), observed=y)
    return model


def nutpie(family, frame):
    import nutpie

    began = time.perf_counter()
    compiled_model = nutpie.compile_pymc_model(pymc_model(family, frame))
    compiled, began, spent = time.perf_counter() - began, time.perf_counter(), time.process_time()
    data = nutpie.sample(
        compiled_model, draws=500, tune=500, chains=CHAINS, cores=CORES, seed=1, progress_bar=False, save_warmup=False
    )
    whole, spent = time.perf_counter() - began, time.process_time() - spent
    beta, sd, z = (data.posterior[name].values for name in ("beta", "sd", "z"))
    found = dict(zip(TRUTH, [*beta.mean(axis=(0, 1)).tolist(), float(sd.mean())], strict=True))
    slopes = [data.posterior["slopes"].values] if family == SLOPES else []
    effects = [one for draws in (sd[..., None] * z, *slopes) for one in np.moveaxis(draws, 2, 0)]
    ess = smallest([*np.moveaxis(beta, 2, 0)[family == "cumulative" :], sd, *effects])
    return whole / 2, whole / 2, ess, compiled, found, spent, None


def numpyro(family, frame):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import numpyro as npy
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    X = jnp.asarray(np.column_stack([np.ones(len(frame)), frame[["x1", "x2", "x3"]].to_numpy(float)]))
    g, y = jnp.asarray(frame["g"].to_numpy()), jnp.asarray(frame["y"].to_numpy())

    def model():
        beta = npy.sample("beta", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        sd = npy.sample("sd", dist.HalfNormal(1.0))
        z = npy.sample("z", dist.Normal(0.0, 1.0).expand([GROUPS]).to_event(1))
        eta, x1 = (X[:, 1:] @ beta[1:] if family == "cumulative" else X @ beta) + sd * z[g], X[:, 1]
        if family == SLOPES:
            between = npy.sample("between", dist.Uniform(-1.0, 1.0))
            w = npy.sample("w", dist.Normal(0.0, 1.0).expand([GROUPS]).to_event(1))
            slopes = npy.sample("sd(x1|g)", dist.HalfNormal(1.0)) * (between * z + jnp.sqrt(1.0 - between**2) * w)
            eta = eta + npy.deterministic("slopes", slopes)[g] * x1
        if family == "bernoulli":
            npy.sample("y", dist.Bernoulli(logits=eta), obs=y)
        elif family == "poisson":
            npy.sample("y", dist.Poisson(jnp.exp(eta)), obs=y)
        elif family == "zero_inflated_poisson":
            npy.sample("y", dist.ZeroInflatedPoisson(npy.sample("zi", dist.Beta(1.0, 1.0)), jnp.exp(eta)), obs=y)
        elif family == "gamma":
            shape = npy.sample("shape", dist.HalfCauchy(5.0))
            npy.sample("y", dist.Gamma(shape, shape * jnp.exp(-eta)), obs=y)
        elif family == "cumulative":
            first = npy.sample("first", dist.Normal(0.0, 2.5))
            gaps = npy.sample("gaps", dist.HalfNormal(2.5).expand([2]).to_event(1))
            cuts = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
            npy.sample("y", dist.OrderedLogistic(eta, cuts), obs=y)
        elif family == SPREAD:
            a = npy.sample("a", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
            npy.sample("y", dist.Normal(eta, jnp.exp(a[0] + a[1] * x1)), obs=y)
        else:
            npy.sample("y", dist.Normal(eta, npy.sample("sigma", dist.HalfNormal(1.0))), obs=y)

    mcmc = MCMC(
        NUTS(model), num_warmup=500, num_samples=500, num_chains=CHAINS, chain_method="sequential", progress_bar=False
    )
    began, spent = time.perf_counter(), time.process_time()
    mcmc.warmup(jax.random.PRNGKey(1))
    middle = time.perf_counter()
    mcmc.run(mcmc.post_warmup_state.rng_key)
    end, spent = time.perf_counter(), time.process_time() - spent
    draws = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}
    found = dict(zip(TRUTH, [*draws["beta"].mean(axis=(0, 1)).tolist(), float(draws["sd"].mean())], strict=True))
    # Chains run one after the other, each on all cores; compilation, a few seconds, is in the warm-up.
    slopes = [draws["slopes"]] if family == SLOPES else []
    effects = [one for each in (draws["sd"][..., None] * draws["z"], *slopes) for one in np.moveaxis(each, 2, 0)]
    ess = smallest([*np.moveaxis(draws["beta"], 2, 0)[family == "cumulative" :], draws["sd"], *effects])
    return middle - began, end - middle, ess, 0.0, found, spent, None


CONTESTANTS = {"pdmp": ours, "nutpie": nutpie, "NumPyro": numpyro}


def work(name, family, rows, where):
    where.send(CONTESTANTS[name](family, table(family, rows)))


def bounded(name, family, rows, limit):
    """What a contestant returns, in a process that is ended after `limit` seconds; None if it was."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, family, rows, there))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.terminate()
        process.join()


def nuts(rows, families, limit, names):
    head = ("set-up s", "sampling s", "min ESS", "ESS/s", "s to 0.1 sd", "compile s", "cpu s", "cpu s to 400")
    print(f"{'family':22} {'rows':>10} {'':8}", *(f"{text:>12}" for text in head))
    for family in families:
        for n in rows:
            for name in names:
                got = bounded(name, family, n, limit)
                if got is None:
                    print(f"{family:22} {n:>10,} {name:8} {'ended after':>20} {limit:,.0f} s", flush=True)
                    continue
                first, second, ess, compiled, found, spent, until = got
                until = first + second * 100.0 / ess if until is None else until
                far = spent * (first + second * 400.0 / ess) / (first + second)
                numbers = (first, second, ess, ess / second, until, compiled, spent, far)
                print(f"{family:22} {n:>10,} {name:8}", *(f"{x:12.2f}" for x in numbers), end="  ")
                print(*(f"{k} {v:.3f}" for k, v in found.items()), flush=True)


def file(rows, folder):
    import pyarrow
    import pyarrow.parquet

    path = folder / f"poisson_{rows}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        writer, left, seed = None, rows, 0
        while left:
            part = pyarrow.Table.from_pandas(table("poisson", min(left, 1_000_000), seed), preserve_index=False)
            writer = writer or pyarrow.parquet.ParquetWriter(path, part.schema)
            writer.write_table(part)
            left, seed = left - len(part), seed + 1
        writer.close()
    print(f"{path}: {rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB")
    call = [sys.executable, "-m", "pdmp", "fit", FORMULA, str(path), "--family", "poisson", "--seed", "1", "--json"]
    began = time.perf_counter()
    done = subprocess.run([*call, "--picture", str(folder / "fit.png")], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr)
    whole = json.loads(done.stdout)
    print(done.stderr.strip()[-2_000:])
    print(f"pdmp fit: {seconds:.0f} s in all; {whole['stats']['data_terms']:,} data terms", whole["warnings"])
    import pdmp
    from pdmp.formulas import fitting

    fitting.SUBSAMPLED_ROWS = fitting.GROUPED_ROWS = rows + 1
    part = pyarrow.parquet.ParquetFile(path).read_row_group(0).slice(0, 60_000).to_pandas()
    some = pdmp.regression(FORMULA, part, family="poisson", seed=1, progress=False)
    rows_of = {row["name"]: row for row in some.summary().rows}
    head = ("truth", "mean", "sd", "off [sd]", "60,000 rows", "sd", "off [sd]")
    print(f"{'':10}", *(f"{text:>11}" for text in head))
    for row in whole["parameters"]:
        if row["name"] in TRUTH:
            other, true = rows_of[row["name"]], TRUTH[row["name"]]
            off = (row["mean"] - true) / row["sd"], (other["mean"] - row["mean"]) / other["sd"]
            numbers = (true, row["mean"], row["sd"], off[0], other["mean"], other["sd"], off[1])
            print(f"{row['name']:10}", *(f"{x:11.5f}" for x in numbers))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["nuts", "file"])
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--only", nargs="+", default=list(CONTESTANTS), choices=list(CONTESTANTS))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("regressions"))
    asked = parser.parse_args()
    if asked.what == "nuts":
        nuts(asked.rows or [10_000, 100_000, 1_000_000], asked.families, asked.limit, asked.only)
    else:
        file((asked.rows or [10_000_000])[0], asked.folder)
