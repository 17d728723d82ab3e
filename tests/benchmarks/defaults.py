"""What `pdmp.sample(process)` gives with nothing tuned: errors of means and standard deviations, and what it warns of.

    python -m tests.benchmarks.defaults [--quick] [--samplers ZigZag SGLD …] [--problems randhie …]

Regressions of `pdmp.models`: logistic ones of scikit-learn's and statsmodels' data, the others on synthetic data.
Every process is made with its target alone, the discretised ones and SBPS with mini-batches of a tenth of the data, at
least 20 and at most 500, and their step is "auto". Budgets are those of ``pdmp sample``: by the size of the data, four
chains, a tenth of each left out as warm-up; processes that need no data stop after 200,000 events. --quick: two
problems, a fifth of the budget.

Columns: the error of the means in posterior standard deviations, mean over the coordinates and largest; the largest
relative error of a standard deviation; the least effective sample size; and the verdict. "good" is below 0.1 and 15 %
for every coordinate, "on average" below them on average over the coordinates while the largest is beyond; "warned"
says that it is beyond and that the run or its summary said so, "SILENT" that they did not. The reference is exact for
linear regression, else a long run of an exact sampler. Exit code 1 if anything is silent.
"""

import argparse
import sys
import time
import warnings

import numpy as np

import discrete
import pdmp
from pdmp.cli import default_passes
from pdmp.comparison import reference
from pdmp.gradients import Minibatch

MEAN, SD = 0.1, 0.15  #: what a usable answer is good to
EVENTS = 200_000
CHAINS, WARMUP = 4, 0.1
QUICK = 5

EXACT = "BPS DirectionalBPS ZigZag Boomerang FactorisedBoomerang LocalBPS CoordinateSampler GeneralisedBPS".split()
EXACT += ["ForwardEventChain", "LipschitzSBPS"]
METROPOLISED = "MALA Barker".split()
NOISY = "SGLD SGBD SGRRLD SGHMC BAOAB UBU SGNHT MSGNHT BADODAB".split()


def processes(model):
    """By name, a function that makes each."""
    size = min(max(model.n_data // 10, 20), 500, model.n_data)
    batch = Minibatch(model, size=size, draw="distinct")
    found = {name: lambda name=name: getattr(pdmp, name)(model) for name in EXACT}
    found["ZigZag, control variates"] = lambda: pdmp.ZigZag(
        pdmp.gradients.ControlVariate(model, size=1, draw="importance")
    )
    found["SBPS"] = lambda: pdmp.SBPS(batch)
    found |= {name: lambda name=name: getattr(discrete, name)(model) for name in METROPOLISED}
    return found | {name: lambda name=name: getattr(discrete, name)(batch) for name in NOISY}


def logistic(name):
    data = pdmp.data.problem(name)
    return pdmp.models.LogisticRegression(data.train.X, data.train.y, prior_scale=1.0)


def synthetic(n=10_000, d=5, seed=1):
    """That of the README's first script."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.0, 0.2, 0.0]))
    return pdmp.models.LogisticRegression(X, y, prior_scale=1.0)


def linear(n=2_000, d=8, seed=2):
    """Linear regression, features of correlation 0.7."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) @ np.linalg.cholesky(0.3 * np.eye(d) + 0.7).T
    return pdmp.models.LinearGaussian(A, A @ rng.standard_normal(d) + rng.standard_normal(n))


def generalised(make, n=2_000, d=5, seed=3):
    """A regression whose labels are made of η = Xβ and random numbers, both of shape (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return make(X, X @ (0.5 * rng.standard_normal(d)), rng)


PROBLEMS = {
    "breast_cancer": lambda: logistic("breast_cancer"),
    "linear": linear,
    "synthetic": synthetic,
    "randhie": lambda: logistic("randhie"),
    "probit": lambda: generalised(
        lambda X, eta, rng: pdmp.models.ProbitRegression(X, eta + rng.standard_normal(len(eta)) > 0.0)
    ),
    "poisson": lambda: generalised(lambda X, eta, rng: pdmp.models.PoissonRegression(X, rng.poisson(np.exp(eta)))),
    "student": lambda: generalised(
        lambda X, eta, rng: pdmp.models.StudentTRegression(X, eta + rng.standard_t(4.0, len(eta)))
    ),
    "normal-inverse-gamma": lambda: generalised(
        lambda X, eta, rng: pdmp.models.NormalInverseGammaRegression(X, eta + 2.0 * rng.standard_normal(len(eta)))
    ),
}


def truth(model):
    """Mean and standard deviations of the posterior."""
    if isinstance(model, pdmp.models.LinearGaussian):
        mean, covariance = model.posterior()
        return mean, np.sqrt(np.diag(covariance))
    found = reference(model)
    return found.mean, found.sd


def measure(make, passes, mean, sd):
    """One line of the table: errors, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        run = pdmp.sample(
            make(), data_passes=passes, events=EVENTS, chains=CHAINS, warmup=WARMUP, seed=1, progress=False
        )
        summary = run.summary()
        seconds = time.perf_counter() - began
        said = [str(w.message) for w in caught if issubclass(w.category, UserWarning)] + summary.warnings
        off, wide = np.abs(run.mean() - mean) / sd, np.abs(run.sd() / sd - 1.0)
    with np.errstate(all="ignore"):
        ess = np.nanmin([row["ess"] for row in summary.rows])
    return off, wide, ess, seconds, said


def verdict(off, wide, said):
    """How the errors of the means, in standard deviations, and those of the standard deviations are judged."""
    if np.all(off < MEAN) and np.all(wide < SD):
        return "good"
    if said:
        return "warned"
    return "on average" if off.mean() < MEAN and wide.mean() < SD else "SILENT"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samplers", nargs="*")
    parser.add_argument("--problems", nargs="*", choices=PROBLEMS)
    args = parser.parse_args()
    silent = 0
    for problem in args.problems or list(PROBLEMS)[: 2 if args.quick else None]:
        model = PROBLEMS[problem]()
        mean, sd = truth(model)
        passes = default_passes(model.n_data) / (QUICK if args.quick else 1)
        print(f"\n{problem}: {type(model).__name__}, N = {model.n_data:,}, d = {model.dim}, {passes:,.0f} data passes")
        print(f"{'':26} {'mean err':>8} {'largest':>8} {'sd err':>8} {'ESS':>8} {'seconds':>8}")
        for name, make in processes(model).items():
            if args.samplers and name not in args.samplers:
                continue
            try:
                off, wide, ess, seconds, said = measure(make, passes, mean, sd)
            except (TypeError, ValueError, pdmp.SamplingError) as error:
                print(f"{name:26} {type(error).__name__}: {error}", flush=True)
                continue
            found = verdict(off, wide, said)
            silent += found == "SILENT"
            print(
                f"{name:26} {off.mean():8.3f} {off.max():8.3f} {wide.max():8.3f} {ess:8,.0f} {seconds:8.1f}  {found}"
                + (f": {said[0][:90]}" if said else ""),
                flush=True,
            )
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
