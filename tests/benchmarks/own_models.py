"""`pdmp.sample(model)` on seventeen published posteriors, beside nutpie and stanli's NUTS.

    python -m tests.benchmarks.own_models FOLDER [--only NAME …] [--large] [--equal] [--seeds 1 2 3]
    python -m tests.benchmarks.own_models FOLDER --pdmps [--only NAME …] [--seeds 1 2 3]

FOLDER has `reference.json` (of posteriordb: the mean and sd of each parameter, and the name of the data) and the data
as JSON in `data/`. The posteriors are the Stan programs below, all evaluated by stanli's library; nutpie is given the
same density as a Python function, so that its gradients count, but its seconds do not. Every sampler runs as it does by
default, with four chains; with --equal `pdmp.sample` has as many gradients as nutpie's default took, in place of its
goal of 400 effective draws. An evaluation of density and gradient together counts as one gradient, for all; of those
for which `pdmp` needs one alone too.

Columns: gradients of warm-up and run, in thousands; the least effective draws (ArviZ) per 1,000 of all gradients, of
means and of standard deviations, over the natural parameters; the largest errors of a mean, in reference sds, and of an
sd, relative; largest R-hat; seconds, without compilation; warnings. At the end geometric means over the posteriors of
the worse of the two against the others'.

--pdmps: HMC, as by default, beside PDMPs of `PDMPS` from the same starts in the same metric, 5,000 gradients of each
chain: effective draws per 1,000 gradients, those of bounds counted and those of the warm-up not, of the mean and of the
sd that have the fewest; medians of the seeds.
"""

import argparse
import json
import logging
import math
import pathlib
import time
import warnings

import arviz
import numpy as np

import pdmp


def regression(columns, outcome, p, priors="", data=""):
    """A normal regression on columns that are given as Stan expressions."""
    fields = "".join(f" array[N] real {name};" for name in data.split())
    terms = " + ".join(f"beta[{k}] * ({c})" for k, c in enumerate(columns, 1))
    return f"""
data {{ int N;{fields} }}
parameters {{ vector[{p}] beta; real<lower=0> sigma; }}
model {{
  for (n in 1:N) target += normal_lpdf({outcome} | {terms}, sigma);
  {priors}
}}"""


MESQUITE = "weight diam1 diam2 canopy_height total_height density group"
KIDS = {"data": "kid_score mom_hs mom_iq", "priors": "sigma ~ cauchy(0, 2.5);"}
KERNEL = "gp_exp_quad_cov(x, alpha, rho)"
PROGRAMS = {
    "earnings-earn_height": regression(["1", "height[n]"], "earn[n]", 2, data="earn height"),
    "earnings-logearn_interaction": regression(
        ["1", "height[n]", "male[n]", "height[n] * male[n]"], "log(earn[n])", 4, data="earn height male"
    ),
    "kidiq-kidscore_momhsiq": regression(["1", "mom_hs[n]", "mom_iq[n]"], "kid_score[n]", 3, **KIDS),
    "kidiq-kidscore_interaction": regression(
        ["1", "mom_hs[n]", "mom_iq[n]", "mom_hs[n] * mom_iq[n]"], "kid_score[n]", 4, **KIDS
    ),
    "mesquite-mesquite": regression(
        ["1", "diam1[n]", "diam2[n]", "canopy_height[n]", "total_height[n]", "density[n]", "group[n]"],
        "weight[n]",
        7,
        data=MESQUITE,
    ),
    "mesquite-logmesquite_logvash": regression(
        [
            "1",
            "log(diam1[n] * diam2[n] * canopy_height[n])",
            "log(diam1[n] * diam2[n])",
            "log(diam1[n] / diam2[n])",
            "log(total_height[n])",
            "group[n]",
        ],
        "log(weight[n])",
        6,
        data=MESQUITE,
    ),
    "nes2000-nes": regression(
        [
            "1",
            "real_ideo[n]",
            "race_adj[n]",
            "age_discrete[n] == 2",
            "age_discrete[n] == 3",
            "age_discrete[n] == 4",
            "educ1[n]",
            "gender[n]",
            "income[n]",
        ],
        "partyid7[n]",
        9,
        data="partyid7 real_ideo race_adj age_discrete educ1 gender income",
    ),
    "sblrc-blr": """
data { int N; int D; matrix[N, D] X; vector[N] y; }
parameters { vector[D] beta; real<lower=0> sigma; }
model { beta ~ normal(0, 10); sigma ~ normal(0, 10); y ~ normal(X * beta, sigma); }""",
    "kilpisjarvi_mod-kilpisjarvi": """
data { int N; vector[N] x; vector[N] y; real pmualpha; real psalpha; real pmubeta; real psbeta; }
parameters { real alpha; real beta; real<lower=0> sigma; }
model { alpha ~ normal(pmualpha, psalpha); beta ~ normal(pmubeta, psbeta); y ~ normal(alpha + beta * x, sigma); }""",
    "diamonds-diamonds": """
data { int N; int K; matrix[N, K] X; vector[N] Y; }
transformed data {
  matrix[N, K - 1] C;
  for (k in 2:K) C[, k - 1] = X[, k] - mean(X[, k]);
}
parameters { vector[K - 1] b; real Intercept; real<lower=0> sigma; }
model {
  b ~ normal(0, 1); Intercept ~ student_t(3, 8, 10); sigma ~ student_t(3, 0, 10);
  Y ~ normal_id_glm(C, Intercept, b, sigma);
}""",
    "arK-arK": """
data { int K; int T; array[T] real y; }
parameters { real alpha; array[K] real beta; real<lower=0> sigma; }
model {
  alpha ~ normal(0, 10); beta ~ normal(0, 10); sigma ~ cauchy(0, 2.5);
  for (t in (K + 1):T) {
    real mu = alpha;
    for (k in 1:K) mu += beta[k] * y[t - k];
    y[t] ~ normal(mu, sigma);
  }
}""",
    "arma-arma11": """
data { int T; array[T] real y; }
parameters { real mu; real phi; real theta; real<lower=0> sigma; }
model {
  real err = y[1] - (mu + phi * mu);
  mu ~ normal(0, 10); phi ~ normal(0, 2); theta ~ normal(0, 2); sigma ~ cauchy(0, 2.5);
  err ~ normal(0, sigma);
  for (t in 2:T) {
    err = y[t] - (mu + phi * y[t - 1] + theta * err);
    err ~ normal(0, sigma);
  }
}""",
    "garch-garch11": """
data { int T; array[T] real y; real sigma1; }
parameters { real mu; real<lower=0> alpha0; real<lower=0, upper=1> alpha1; real<lower=0, upper=1 - alpha1> beta1; }
model {
  real s = sigma1;
  y[1] ~ normal(mu, s);
  for (t in 2:T) {
    s = sqrt(alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * square(s));
    y[t] ~ normal(mu, s);
  }
}""",
    "eight_schools-eight_schools_noncentered": """
data { int J; array[J] real y; array[J] real sigma; }
parameters { vector[J] theta_trans; real mu; real<lower=0> tau; }
transformed parameters { vector[J] theta = mu + tau * theta_trans; }
model { theta_trans ~ normal(0, 1); y ~ normal(theta, sigma); mu ~ normal(0, 5); tau ~ cauchy(0, 5); }""",
    "low_dim_gauss_mix-low_dim_gauss_mix": """
data { int N; array[N] real y; }
parameters { ordered[2] mu; array[2] real<lower=0> sigma; real<lower=0, upper=1> theta; }
model {
  sigma ~ normal(0, 2); mu ~ normal(0, 2); theta ~ beta(5, 5);
  for (n in 1:N) target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
}""",
    "gp_pois_regr-gp_regr": f"""
data {{ int N; array[N] real x; vector[N] y; }}
parameters {{ real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; }}
model {{
  matrix[N, N] L = cholesky_decompose(add_diag({KERNEL}, sigma));
  rho ~ gamma(25, 4); alpha ~ normal(0, 2); sigma ~ normal(0, 1);
  y ~ multi_normal_cholesky(rep_vector(0, N), L);
}}""",
    "gp_pois_regr-gp_pois_regr": f"""
data {{ int N; array[N] real x; array[N] int k; }}
parameters {{ real<lower=0> rho; real<lower=0> alpha; vector[N] f_tilde; }}
transformed parameters {{ vector[N] f = cholesky_decompose(add_diag({KERNEL}, 1e-10)) * f_tilde; }}
model {{ rho ~ gamma(25, 4); alpha ~ normal(0, 2); f_tilde ~ normal(0, 1); k ~ poisson_log(f); }}""",
}


LOGISTIC = """
data { int N; int D; matrix[N, D] X; array[N] int y; }
parameters { vector[D] beta; }
model { beta ~ normal(0, 1); y ~ bernoulli_logit_glm(X, 0, beta); }"""
SCALES = """
data { int D; vector[D] s; }
parameters { vector[D] x; }
model { x ~ normal(0, s); }"""
GROUPS = """
data { int N; int G; array[N] int g; vector[N] x; vector[N] y; }
parameters { real a; real b; real<lower=0> tau; real<lower=0> sigma; vector[G] z; }
model {
  a ~ normal(0, 5); b ~ normal(0, 5); tau ~ normal(0, 2); sigma ~ normal(0, 2); z ~ normal(0, 1);
  y ~ normal(a + tau * z[g] + b * x, sigma);
}"""


def scales(d):
    """Independent normal coordinates with sds from 0.1 to 10."""
    return SCALES, {"D": d, "s": np.geomspace(0.1, 10.0, d)}


def logistic(n, d):
    """A logistic regression on normal features."""
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(n, d)) / math.sqrt(d), rng.normal(size=d)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * X @ beta))).astype(int)
    return LOGISTIC, {"N": n, "D": d, "X": X, "y": y}


def groups(n, g):
    """A normal regression with random intercepts, non-centred."""
    rng = np.random.default_rng(0)
    group, x = rng.integers(g, size=n), rng.normal(size=n)
    y = 1.0 + 0.7 * rng.normal(size=g)[group] - 0.5 * x + rng.normal(size=n)
    return GROUPS, {"N": n, "G": g, "g": group + 1, "x": x, "y": y}


#: Larger ones, without a reference.
LARGE = {
    "scales-100": lambda: scales(100),
    "scales-1000": lambda: scales(1_000),
    "logistic-100": lambda: logistic(1_000, 100),
    "logistic-1000": lambda: logistic(5_000, 1_000),
    "groups-1000": lambda: groups(10_000, 1_000),
}


class Result:
    """What a sampler yielded: draws of the reference's parameters (chains, n, m), and what they cost."""

    def __init__(self, draws, warmup, run, seconds, said=()):
        self.draws, self.warmup, self.run, self.seconds, self.said = draws, warmup, run, seconds, said
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = np.moveaxis(draws, -1, 0)
            self.ess = [min(float(arviz.ess(c, method=method)) for c in columns) for method in ("mean", "sd")]
            self.rhat = max(float(arviz.rhat(c)) for c in columns)
        self.rates = [1e3 * ess / (warmup + run) for ess in self.ess]

    def line(self, name, mean, sd):
        error = math.nan, math.nan
        if mean is not None:
            pooled = self.draws.reshape(-1, self.draws.shape[-1])
            error = (np.abs(pooled.mean(axis=0) - mean) / sd).max(), np.abs(pooled.std(axis=0) / sd - 1.0).max()
        return (
            f"  {name:18s}{self.warmup / 1e3:8.1f}{self.run / 1e3:9.1f}{self.rates[0]:9.2f}{self.rates[1]:9.2f}"
            f"{error[0]:8.3f}{error[1]:8.3f}{self.rhat:8.3f}{self.seconds:8.2f}"
        )


def natural(model, draws, names):
    """The reference's parameters, in order, of unconstrained draws (chains, n, dim); without one the draws."""
    if names is None:
        return draws
    found, columns = model.constrain(draws), []
    for name in names:
        base, _, index = name.partition("[")
        columns.append(found[base][..., int(index[:-1]) - 1] if index else found[base])
    return np.stack(columns, axis=-1)


def automatic(model, names, seed, gradients=None):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.perf_counter()
        budget = {} if gradients is None else {"gradients": gradients}
        run = pdmp.sample(model, seed=seed, **budget)
        seconds = time.perf_counter() - began
    shortest = min(len(path.positions) for path in run.trajectories)
    states = np.stack([path.positions[-shortest + 1 :] for path in run.trajectories])
    spent = run.stats["preparation_gradients"], run.stats["data_terms"]
    return Result(natural(model, states, names), *spent, seconds, [str(w.message) for w in said])


PDMPS = {
    f"{name}, refreshments {rate:g}": (sampler, {"refresh_rate": rate} | options)
    for name, sampler, rates, options in [
        ("BPS", pdmp.BPS, (0.1, 0.3, 1.0), {"velocities": "gaussian"}),
        ("event chain", pdmp.ForwardEventChain, (0.0, 0.1, 0.5), {"velocities": "gaussian"}),
        ("Boomerang", pdmp.Boomerang, (0.4, 0.8, 1.5, 3.0), {}),
    ]
    for rate in rates
} | {"Zig-Zag": (pdmp.ZigZag, {}), "HMC": (None, {})}


def beside_pdmps(model, seeds):
    """Print a line for each process, and its ratio to HMC."""
    rates = {}
    for name, (sampler, options) in PDMPS.items():
        for seed in seeds:
            process = pdmp.auto(model, sampler=sampler, options=options, seed=seed)
            run = pdmp.sample(process, gradients=5_000, chains=4, seed=seed, progress=False)
            draws = pdmp.diagnostics.effective_draws(run)
            each = [1e3 * draws[key].min() / run.stats["data_terms"] for key in ("mean", "sd")]
            rates.setdefault(name, []).append(each)
    medians = {name: np.median(found, axis=0) for name, found in rates.items()}
    for name, found in medians.items():
        print(f"  {name:30s}{found[0]:9.1f}{found[1]:9.1f}{found.min() / medians['HMC'].min():9.2f}", flush=True)


def by_nutpie(model, names, seed, **options):
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    def density():
        def evaluate(x):
            try:
                potential, gradient = model.callback.function(x)
            except ValueError:  # Stan's word that it is outside of the support
                return -np.inf, np.zeros(model.dim)
            return -potential, -gradient

        return evaluate

    compiled = from_pyfunc(
        model.dim, density, lambda *_: lambda x: {"x": x}, [np.dtype(float)], [(model.dim,)], ["x"],
        make_initial_point_fn=lambda s: np.random.default_rng(s).uniform(-1.0, 1.0, model.dim),
    )  # fmt: skip
    began = time.perf_counter()
    trace = nutpie.sample(compiled, chains=4, seed=seed, progress_bar=False, save_warmup=True, **options)
    seconds = time.perf_counter() - began
    spent = (int(trace[group].n_steps.sum()) for group in ("warmup_sample_stats", "sample_stats"))
    return Result(natural(model, trace.posterior["x"].to_numpy(), names), *spent, seconds)


def by_stanli(program, data, names, seed):
    import stanli

    model = stanli.Model(stan_code=program, data=data)
    began = time.perf_counter()
    fit = model.sample(seed=seed, save_warmup=True, refresh=0)
    seconds = time.perf_counter() - began
    draws = fit.draws() if names is None else np.stack([fit.draws(name) for name in names], axis=-1)
    steps = fit.sampler_stats[:, :, stanli.SAMPLER_COLUMNS.index("n_leapfrog__")]
    kept = draws.shape[1] - 1_000
    return Result(draws[:, kept:], steps[:, :kept].sum(), steps[:, kept:].sum(), seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--large", action="store_true", help="larger dimensions, in place of the seventeen")
    parser.add_argument("--alone", action="store_true", help="without the others")
    parser.add_argument("--pdmps", action="store_true", help="HMC beside PDMPs in the same metric")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if not options.pdmps:
        print("                       warm-up      run    means      sds     err  err sd   R-hat       s")
    ratios = {}
    references = json.loads((options.folder / "reference.json").read_text())
    for posterior in LARGE if options.large else PROGRAMS:
        if options.only and not any(part in posterior for part in options.only):
            continue
        names = mean = sd = None
        if options.large:
            program, data = LARGE[posterior]()
        else:
            program, reference = PROGRAMS[posterior], references[posterior]
            data = json.loads((options.folder / "data" / f"{reference['data']}.json").read_text())
            names, moments = list(reference["parameters"]), list(reference["parameters"].values())
            mean, sd = (np.array([p[key] for p in moments]) for key in ("mean", "sd"))
        model = pdmp.models.from_stan(program, data)
        print(f"{posterior}, d = {model.dim}", flush=True)
        if options.pdmps:
            beside_pdmps(model, options.seeds)
            continue
        pdmp.sample(model, events=50, seed=0)  # compiles, and reads the library
        for seed in options.seeds:
            others = {}
            if not options.alone:
                others = {
                    "nutpie": by_nutpie(model, names, seed),
                    "nutpie low-rank": by_nutpie(model, names, seed, low_rank_modified_mass_matrix=True),
                    "stanli NUTS": by_stanli(program, data, names, seed),
                }
            own = automatic(model, names, seed)
            results = {"pdmp.sample": own, **others}
            if options.equal and others:
                spent = others["nutpie"].warmup + others["nutpie"].run
                results["same gradients"] = automatic(model, names, seed, max(spent - own.warmup, 4_000) / 4)
            for name, result in results.items():
                print(result.line(name, mean, sd), flush=True)
                for text in result.said:
                    print(f"      warned: {text[:200]}")
            for name, other in others.items():
                for mine in ("pdmp.sample", "same gradients") if options.equal else ("pdmp.sample",):
                    ratio = min(results[mine].rates) / min(other.rates)
                    ratios.setdefault((mine, name), []).append(ratio)
                    ratios.setdefault((mine, name, "seconds"), []).append(
                        (min(results[mine].ess) / results[mine].seconds) / (min(other.ess) / other.seconds)
                    )
    for key, values in ratios.items():
        mean = math.exp(np.mean(np.log(values)))
        print(f"{', '.join(key)}: geometric mean of {len(values)} ratios {mean:.2f}, least {min(values):.2f}")


if __name__ == "__main__":
    main()
