"""Digests of the path of every sampler: what a change that should alter no law must leave as it is, bit for bit.

    python -m tests.digests                   compare with the digests kept beside this file
    python -m tests.digests BPS model         only the cases whose names contain one of these
    python -m tests.digests --record          keep what is found now

With ``NUMBA_DISABLE_JIT=1`` the same in plain Python, in seconds instead of minutes. The last bits of floating-point
numbers depend on the processor and the compiler, so the digests are kept for one processor and one numba at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import sys
import warnings

import numba
import numpy as np
from numba.core import config

import discrete
import pdmp

FILE = pathlib.Path(__file__).with_suffix(".json")
MODE = "plain" if config.DISABLE_JIT else "compiled"
EVENTS = 150 if config.DISABLE_JIT else 2_000


def machine():
    """What the last bits depend on: processor, numba and numpy."""
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()}, numba {numba.__version__}, numpy {np.__version__}"


RNG = np.random.default_rng(2024)
X = RNG.standard_normal((40, 3))
Y = (RNG.random(40) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.3]))).astype(float)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0])).astype(float)
NORMAL = X @ [1.0, 0.0, -1.0] + RNG.standard_normal(40)
USERS, ITEMS = RNG.integers(0, 6, 60), RNG.integers(0, 5, 60)
RATINGS = RNG.integers(1, 6, 60).astype(float)
PRECISION = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
CHAIN = 2.2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)

m, g = pdmp.models, pdmp.gradients


def quadratic(x):
    """A potential as Python calls it."""
    return 0.5 * x @ PRECISION @ x + np.log1p(x[0] ** 2), PRECISION @ x + np.array(
        [2.0 * x[0] / (1.0 + x[0] ** 2), 0, 0]
    )


def models():
    """Every target, small."""
    import networkx
    from scipy import sparse

    return {
        "Gaussian": m.Gaussian([1.0, 0.0, -1.0], PRECISION),
        "Gaussian diagonal": m.Gaussian([1.0, 0.0], [1.0, 9.0]),
        "Gaussian sparse": m.Gaussian(np.zeros(6), sparse.csr_array(CHAIN)),
        "LogisticRegression": m.LogisticRegression(X, Y),
        "LogisticRegression intercept": m.LogisticRegression(X, Y, intercept=True),
        "LogisticRegression sparse": m.LogisticRegression(sparse.csr_array(np.where(X > -0.3, X, 0.0)), Y),
        "LinearGaussian": m.LinearGaussian(X, NORMAL),
        "LinearGaussian sparse": m.LinearGaussian(sparse.csr_array(np.where(X > -0.3, X, 0.0)), NORMAL),
        "ProbitRegression": m.ProbitRegression(X, Y),
        "PoissonRegression": m.PoissonRegression(X, COUNTS),
        "NegativeBinomialRegression": m.NegativeBinomialRegression(X, COUNTS, intercept=True),
        "StudentTRegression": m.StudentTRegression(X, NORMAL),
        "NormalInverseGammaRegression": m.NormalInverseGammaRegression(X, NORMAL),
        "NormalInverseGamma": m.NormalInverseGamma([0.0, 1.0], np.eye(2), 3.0, 2.0),
        "HalfCauchyLogistic": m.HalfCauchyLogistic(X[:, 0]),
        "SkewNormal": m.SkewNormal(3.0),
        "MatrixFactorization": m.MatrixFactorization(USERS, ITEMS, RATINGS, rank=2),
        "BPMF": m.BPMF(USERS, ITEMS, RATINGS, 2),
        "PPMF": m.PPMF(USERS, ITEMS, RATINGS, 2),
        "ICA": m.ICA(X[:, :2]),
        "BayesianNN": m.BayesianNN(X, Y.astype(int), hidden=3),
        "HierarchicalNormal": m.EightSchools(),
        "HierarchicalNormal centred": m.EightSchools(centred=True),
        "LogGaussianCox": m.LogGaussianCox(COUNTS[:6], sparse.csr_array(CHAIN)),
        "GaussianMarkovRandomField": m.GaussianMarkovRandomField(networkx.grid_2d_graph(3, 3)),
        "GaussianMixture": m.GaussianMixture([[-1.0, 0.0], [1.0, 0.5]], [np.eye(2), 0.5 * np.eye(2)]),
        "Banana": m.Banana(),
        "Funnel": m.Funnel(3),
        "Hyperboloid": m.Hyperboloid(1.0 + 0.1 * NORMAL),
        "MixtureSum": m.MixtureSum(X[:, :2]),
        "SpikeAndSlabLinearRegression": m.SpikeAndSlabLinearRegression(X, NORMAL),
        "SpikeAndSlabLogisticRegression": m.SpikeAndSlabLogisticRegression(X, Y),
        "from_function": m.from_function(quadratic, 3),
    }


MODELS = models()
LOGISTIC, NORMAL_MODEL, CHAIN_MODEL = MODELS["LogisticRegression"], MODELS["Gaussian"], MODELS["Gaussian sparse"]
BATCH, PAIR = g.Minibatch(LOGISTIC, 5), g.ControlVariate(LOGISTIC, 2)


def processes():
    """Every sampler, by name: a function that makes it, so that the plain ones need not wait for the others."""
    found = {
        "BPS": lambda: pdmp.BPS(NORMAL_MODEL),
        "BPS logistic": lambda: pdmp.BPS(LOGISTIC),
        "BPS gaussian partial": lambda: pdmp.BPS(LOGISTIC, velocities="gaussian", refresh="partial"),
        "BPS partial sphere": lambda: pdmp.BPS(LOGISTIC, refresh="partial"),
        "BPS mass": lambda: pdmp.BPS(LOGISTIC, metric=[1.0, 2.0, 3.0]),
        "BPS hessian": lambda: pdmp.BPS(LOGISTIC, metric="auto", refresh_rate=0.3),
        "BPS adaptive": lambda: pdmp.BPS(LOGISTIC, metric="diagonal"),
        "BPS adaptive dense": lambda: pdmp.BPS(LOGISTIC, metric="dense"),
        "BPS grid": lambda: pdmp.BPS(MODELS["Banana"], thinning="grid"),
        "BPS maxima": lambda: pdmp.BPS(MODELS["Banana"], thinning=pdmp.thinning.Maxima()),
        "BPS Hessian bound": lambda: pdmp.BPS(LOGISTIC, thinning=pdmp.thinning.Hessian(np.abs(X.T @ X) + np.eye(3))),
        "DirectionalBPS": lambda: pdmp.DirectionalBPS(LOGISTIC),
        "DirectionalBPS mass": lambda: pdmp.DirectionalBPS(LOGISTIC, metric="diagonal"),
        "DirectionalBPS function": lambda: pdmp.DirectionalBPS(MODELS["from_function"]),
        "GeneralisedBPS": lambda: pdmp.GeneralisedBPS(LOGISTIC),
        "ForwardEventChain": lambda: pdmp.ForwardEventChain(LOGISTIC),
        "ForwardEventChain full": lambda: pdmp.ForwardEventChain(
            LOGISTIC, orthogonal="refresh", probability=1.0, positive=False
        ),
        "ForwardEventChain adaptive": lambda: pdmp.ForwardEventChain(LOGISTIC, metric="dense"),
        "LocalBPS": lambda: pdmp.LocalBPS(CHAIN_MODEL),
        "LocalBPS data": lambda: pdmp.LocalBPS(LOGISTIC),
        "LocalBPS control variate": lambda: pdmp.LocalBPS(g.ControlVariate(LOGISTIC, 1)),
        "LocalBPS ratings": lambda: pdmp.LocalBPS(MODELS["MatrixFactorization"]),
        "ZigZag": lambda: pdmp.ZigZag(NORMAL_MODEL),
        "ZigZag local": lambda: pdmp.ZigZag(CHAIN_MODEL),
        "ZigZag logistic": lambda: pdmp.ZigZag(LOGISTIC),
        "ZigZag minibatch": lambda: pdmp.ZigZag(BATCH),
        "ZigZag control variate": lambda: pdmp.ZigZag(PAIR),
        "ZigZag importance": lambda: pdmp.ZigZag(g.ControlVariate(LOGISTIC, 1, draw="importance")),
        "ZigZag speeds": lambda: pdmp.ZigZag(LOGISTIC, metric=pdmp.Metric(scales=[1.0, 2.0, 0.5]), refresh_rate=0.1),
        "CoordinateSampler": lambda: pdmp.CoordinateSampler(LOGISTIC),
        "CoordinateSampler sparse": lambda: pdmp.CoordinateSampler(CHAIN_MODEL),
        "Boomerang": lambda: pdmp.Boomerang(LOGISTIC),
        "Boomerang minibatch": lambda: pdmp.Boomerang(BATCH),
        "Boomerang control variate": lambda: pdmp.Boomerang(PAIR),
        "Boomerang quadratic": lambda: pdmp.Boomerang(
            NORMAL_MODEL, np.zeros(3), metric=pdmp.Metric(covariance=np.eye(3))
        ),
        "Boomerang grid": lambda: pdmp.Boomerang(MODELS["Banana"]),
        "FactorisedBoomerang": lambda: pdmp.FactorisedBoomerang(LOGISTIC),
        "FactorisedBoomerang quadratic": lambda: pdmp.FactorisedBoomerang(
            NORMAL_MODEL, np.zeros(3), metric=pdmp.Metric(covariance=np.ones(3))
        ),
        "FactorisedBoomerang control variate": lambda: pdmp.FactorisedBoomerang(PAIR),
        "Sticky ZigZag": lambda: pdmp.Sticky(pdmp.ZigZag(LOGISTIC), inclusion=0.3),
        "Sticky BPS": lambda: pdmp.Sticky(pdmp.BPS(LOGISTIC, velocities="gaussian"), inclusion=0.3),
        "Sticky Boomerang": lambda: pdmp.Sticky(pdmp.Boomerang(LOGISTIC, metric="diagonal"), inclusion=0.3),
        "SBPS": lambda: pdmp.SBPS(BATCH),
        "SBPS precondition": lambda: pdmp.SBPS(BATCH, metric="diagonal"),
        "SBPS likelihood": lambda: pdmp.SBPS(BATCH, learner="likelihood", auxiliary=True),
        "SBPS control variate": lambda: pdmp.SBPS(PAIR, k=2.0),
        "SBPS noisy": lambda: pdmp.SBPS(g.Noisy(LOGISTIC, 0.5)),
        "LipschitzSBPS": lambda: pdmp.LipschitzSBPS(BATCH),
        "Bounded ZigZag": lambda: pdmp.Bounded(pdmp.ZigZag(LOGISTIC), lower=-0.5, upper=2.0),
        "Bounded BPS": lambda: pdmp.Bounded(pdmp.BPS(LOGISTIC, metric=[1.0, 2.0, 3.0]), lower=-0.5),
        "Bounded half-space": lambda: pdmp.Bounded(pdmp.BPS(LOGISTIC), halfspaces=([[1.0, 1.0, 0.0]], [1.5])),
        "Bounded Boomerang": lambda: pdmp.Bounded(pdmp.Boomerang(LOGISTIC), lower=-0.5, upper=2.0),
        "Bounded LocalBPS": lambda: pdmp.Bounded(pdmp.LocalBPS(CHAIN_MODEL), lower=-1.0),
        "Bounded CoordinateSampler": lambda: pdmp.Bounded(pdmp.CoordinateSampler(LOGISTIC), lower=-0.5),
    }
    step = 0.01
    found |= {
        "GD": lambda: discrete.GD(LOGISTIC, step),
        "SGD": lambda: discrete.SGD(BATCH, step, clip_norm=5.0),
        "SGLD": lambda: discrete.SGLD(BATCH, step),
        "SGLD auto": lambda: discrete.SGLD(BATCH),
        "SGLD RMSprop": lambda: discrete.SGLD(BATCH, step, metric=discrete.preconditioners.RMSprop(include_gamma=True)),
        "SGLD matrix": lambda: discrete.SGLD(
            BATCH, step, metric=pdmp.Metric(covariance=np.linalg.inv(PRECISION)), temperature=2.0
        ),
        "SGLD corrected": lambda: discrete.SGLD(BATCH, step, correction="corrected"),
        "SGLD modified": lambda: discrete.SGLD(BATCH, step, correction="modified"),
        "SGLD extreme": lambda: discrete.SGLD(BATCH, step, correction="extreme"),
        "SGLD polynomial": lambda: discrete.SGLD(BATCH, discrete.schedules.polynomial(0.04, 2.0, 0.6)),
        "SGLD cyclical": lambda: discrete.SGLD(BATCH, discrete.schedules.cyclical(0.02, 20, exploration=0.5)),
        "SGBD": lambda: discrete.SGBD(BATCH, 0.1),
        "SGBD corrected": lambda: discrete.SGBD(BATCH, 0.1, "corrected"),
        "SGBD extreme": lambda: discrete.SGBD(BATCH, 0.1, "extreme"),
        "SGHMC": lambda: discrete.SGHMC(BATCH, 0.05),
        "SGHMC semi-implicit": lambda: discrete.SGHMC(BATCH, 0.05, scheme="semi_implicit"),
        "SGHMC explicit": lambda: discrete.SGHMC(BATCH, 0.05, friction=5.0, scheme="explicit"),
        "BAOAB": lambda: discrete.BAOAB(BATCH, 0.05),
        "UBU": lambda: discrete.UBU(BATCH, 0.05),
        "UBU auto": lambda: discrete.UBU(LOGISTIC),
        "SGNHT": lambda: discrete.SGNHT(BATCH, 0.05),
        "SGNHT blocks": lambda: discrete.SGNHT(BATCH, 0.05, thermostat="per_block", blocks=[1, 2]),
        "MSGNHT": lambda: discrete.MSGNHT(BATCH, 0.05),
        "BADODAB": lambda: discrete.BADODAB(BATCH, 0.05),
        "SGRRLD": lambda: discrete.SGRRLD(BATCH, step),
        "SGRRHMC": lambda: discrete.SGRRHMC(BATCH, 0.05),
        "RichardsonRomberg UBU": lambda: discrete.RichardsonRomberg(discrete.UBU(BATCH, 0.05), weights="paper"),
        "RichardsonRomberg threads": lambda: discrete.RichardsonRomberg(discrete.SGLD(BATCH, step), threads=2),
        "SGZZ": lambda: discrete.SGZZ(BATCH, step),
        "SGBPS": lambda: discrete.SGBPS(BATCH, step),
        "ZigZagSplitting": lambda: discrete.ZigZagSplitting(BATCH, step),
        "ZigZagSplitting adjusted": lambda: discrete.ZigZagSplitting(LOGISTIC, 0.2, adjusted=True),
        "BPSSplitting": lambda: discrete.BPSSplitting(BATCH, step),
        "BPSSplitting adjusted": lambda: discrete.BPSSplitting(LOGISTIC, 0.2, adjusted=True),
        "HMC": lambda: pdmp.HMC(LOGISTIC, step=0.4),
        "HMC adaptive dense": lambda: pdmp.HMC(LOGISTIC, metric="dense"),
        "MALA": lambda: discrete.MALA(LOGISTIC, 0.05),
        "MALA auto": lambda: discrete.MALA(LOGISTIC),
        "Barker": lambda: discrete.Barker(LOGISTIC, 0.3),
        "Barker single": lambda: discrete.Barker(LOGISTIC, 0.3, increments="gaussian", signs="single"),
    }
    providers = {
        "Full": g.Full(LOGISTIC),
        "Noisy": g.Noisy(LOGISTIC, 0.5),
        "distinct": g.Minibatch(LOGISTIC, 5, draw="distinct"),
        "reshuffle": g.Minibatch(LOGISTIC, 7, draw="reshuffle"),
        "reshuffle listed": g.Minibatch(MODELS["StudentTRegression"], 7, draw="reshuffle"),
        "epoch": g.Minibatch(LOGISTIC, 7, draw="epoch"),
        "control variate": PAIR,
        "importance": g.ControlVariate(LOGISTIC, 2, draw="importance"),
    }
    for name, provider in providers.items():
        found[f"provider {name}"] = lambda provider=provider: discrete.SGLD(provider, step, correction=None)
        if name != "Full" and "Noisy" not in name:
            found[f"provider {name}, sd"] = lambda p=provider: discrete.SGLD(p, step, correction="corrected")
    for name, model in MODELS.items():
        found[f"model {name}, BPS"] = lambda model=model: pdmp.BPS(model)
        found[f"model {name}, ZigZag"] = lambda model=model: pdmp.ZigZag(model)
        if model.n_data and name not in ("MixtureSum", "HierarchicalNormal", "HierarchicalNormal centred"):
            found[f"model {name}, batches"] = lambda model=model: discrete.SGLD(g.Minibatch(model, 2), 1e-4)
    return found


def digest(process):
    """Hash of the path, the integrals and the counts of two chains, a tenth of which is warm-up."""
    steps = {"steps": max(EVENTS // 4, 1)} if process.ticks else {"events": EVENTS}
    start = process.model.initial if process.anchor is None else None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        run = pdmp.sample(process, **steps, chains=2, seed=11, warmup=0.1, initial=start, progress=False)
        found = hashlib.sha256()
        for path in run.trajectories:
            for array in (path.times, path.positions, path.velocities):
                found.update(np.ascontiguousarray(array, dtype=float).tobytes())
        for array in (run.mean(), run.var()):
            found.update(np.ascontiguousarray(array, dtype=float).tobytes())
        found.update(repr((run.stats["events"], run.stats["proposals"], run.stats["data_terms"])).encode())
    return found.hexdigest()[:20]


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", help="parts of names")
    parser.add_argument("--record", action="store_true", help="keep what is found")
    args = parser.parse_args()
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    if MODE in kept and kept[MODE]["machine"] != machine() and not args.record:
        print(f"kept for {kept[MODE]['machine']}, this is {machine()}: nothing to compare with")
        return 2
    known = kept.get(MODE, {}).get("digests", {})
    found, different = {}, []
    for name, make in processes().items():
        if args.which and not any(part in name for part in args.which):
            continue
        try:
            found[name] = digest(make())
        except (pdmp.SamplingError, TypeError, ValueError) as error:
            found[name] = f"{type(error).__name__}: {str(error)[:70]}"
        if not args.record and found[name] != known.get(name):
            different.append(name)
            print(f"different: {name}: {found[name]} for {known.get(name)}", flush=True)
    if args.record:
        kept[MODE] = {"machine": machine(), "digests": {**known, **found} if args.which else found}
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
        for name, value in found.items():
            if " " in value:
                print(f"{name}: {value}")
    print(f"{len(found)} paths, {len(different)} different")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
