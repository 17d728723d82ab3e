"""The first events of the path of every sampler, and numbers of its run: what a change that should alter no law leaves.

    python -m tests.digests                   compare with the figures kept beside this file
    python -m tests.digests BPS model         only the cases whose names contain one of these
    python -m tests.digests --record          keep what is found now; with names, of these cases only

`tests/test_paths.py` compares them in the quick tier, and `tests/recorded.py` says what is kept.

A case is a line of `processes`, and how it is run, where that is not the usual, a line of `OPTIONS`.
Whoever changes what a sampler does on purpose, in its order of operations or its random draws, records anew.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import warnings

import numpy as np

import discrete
import pdmp
from pdmp.engine.chain import Budget, Chain
from tests.recorded import command, folded, moved

FILE = pathlib.Path(__file__).with_suffix(".json")
SEED = 11
EVENTS, STEPS, PROPOSALS = 20, 10, 500  #: of each chain

RNG = np.random.default_rng(2024)
X = moved(RNG.standard_normal((40, 3)))
Y = (RNG.random(40) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.3]))).astype(float)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0])).astype(float)
NORMAL = X @ [1.0, 0.0, -1.0] + RNG.standard_normal(40)
USERS, ITEMS = RNG.integers(0, 6, 60), RNG.integers(0, 5, 60)
RATINGS = RNG.integers(1, 6, 60).astype(float)
PRECISION = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
CHAIN = 2.2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)

m, g, Sticky = pdmp.models, pdmp.gradients, pdmp.Sticky


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
        "Boomerang anchored elsewhere": lambda: pdmp.Boomerang(PAIR, [0.9, -0.4, 0.2]),
        "FactorisedBoomerang anchored elsewhere": lambda: pdmp.FactorisedBoomerang(PAIR, [0.9, -0.4, 0.2]),
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


def expressed():
    """A posterior of expressions: quadratic terms, others, and priors of three kinds."""
    p, i = pdmp.Parameters(x=3, log_s=1, t=1), np.arange(2)
    rows = [
        pdmp.terms(lambda c, a, b: c * (a - 2.0 * b) ** 2 + 0.3 * a, [[0.7, 1.1]], [p.x[i], p.x[i + 1]]),
        pdmp.terms(lambda y, a: np.exp(a) - y * a, [COUNTS[:3]], [p.x[np.arange(3)] + 0.5 * p.t]),
        pdmp.terms(lambda y, m, s: s + 0.5 * (y - m) ** 2 * np.exp(-2.0 * s), [NORMAL[:2]], [p.x[i] - 0.2, p.log_s]),
        pdmp.terms(lambda a, b: 0.3 * a * a * (2.0 + np.cos(b)), at=[p.t, 0.5 * p.t + p.x[2]]),
    ]
    priors = m.priors
    return m.sum_of_terms(
        p, rows, {"x": priors.Normal(0.5, 1.2), "log_s": priors.HalfNormal(1.0), "t": priors.StudentT(4.0, 0.3, 0.8)}
    )


def chained():
    """Terms of two neighbours and of one coordinate, each of which has a clock or a factor of its own."""
    p, i = pdmp.Parameters(x=6), np.arange(5)
    rows = [
        pdmp.terms(lambda w, a, b: w * (1.0 + (a - 2.0 * b) ** 2) ** 0.5, [1.0 + 0.2 * i], [p.x[i], p.x[i + 1]]),
        pdmp.terms(lambda y, a: np.exp(a) - y * a, [COUNTS[:6]], [p.x[np.arange(6)]]),
        pdmp.terms(lambda a, b: 0.3 * (a + b) ** 2, at=[p.x[i], p.x[i + 1]]),
    ]
    return m.sum_of_terms(p, rows, {"x": m.priors.Normal(0.5, 1.2)})


def mixed():
    """Samplers that take the rows of a regression one by one, on regressions with groups, weights and offsets."""
    from pdmp.processes.regression_boomerang import RegressionBoomerang
    from pdmp.processes.regression_bps import RegressionBPS
    from pdmp.processes.regression_zigzag import RegressionZigZag
    from pdmp.processes.row_zigzag import RowZigZag
    from pdmp.processes.sticky_groups import StickyGroups
    from tests.processes.helpers_regression_zigzag import LAWS, crossed, regression

    found = {"crossed": lambda: RegressionZigZag(crossed(LAWS["PoissonLaw"]))}
    found["crossed of three"] = lambda: RegressionZigZag(crossed(LAWS["NormalLaw"], groupings=3, sort="g"))
    for law in LAWS:
        found[f"regression {law}, ZigZag"] = lambda law=law: RegressionZigZag(regression(LAWS[law], groups=3, slopes=1))
        found[f"regression {law}, BPS"] = lambda law=law: RegressionBPS(regression(LAWS[law]))
        found[f"regression {law}, Boomerang"] = lambda law=law: RegressionBoomerang(regression(LAWS[law], sort="y"))
    flat = lambda: regression(LAWS["LogitLaw"])  # noqa: E731
    found["rows ZigZag"] = lambda: RowZigZag(flat())
    found["regression few move"] = lambda: Sticky(RegressionBPS(flat(), few_move=True), 0.4, slab_density=0.2)
    found["regression Boomerang diagonal"] = lambda: Sticky(
        RegressionBoomerang(flat(), metric="diagonal"), 0.3, slab_density=0.2
    )
    found["groups ZigZag"] = lambda: StickyGroups(pdmp.ZigZag(LOGISTIC), [[0], [1, 2]], inclusion=0.3)
    found["groups regression"] = lambda: StickyGroups(
        RegressionZigZag(flat()), [[2], [1]], 0.3, slab_density=0.2, rate=0.7
    )
    return found


def options_of_samplers():
    """Options, constructors in a paper's terms, bounds and safeguards that the samplers above do not have."""
    rough, step, d, bounds = g.Noisy(LOGISTIC, 0.5), 0.01, discrete, pdmp.thinning
    poisson, terms = MODELS["PoissonRegression"], expressed()
    scales, matrix = pdmp.Metric(scales=[1.0, 2.0, 0.5]), pdmp.Metric(covariance=np.linalg.inv(PRECISION))
    low_rank = pdmp.Metric(scales=[1.0, 2.0, 0.5], directions=[[0.6], [0.8], [0.0]], variances=[3.0])
    low = lambda: d.BAOAB(BATCH, 0.05, metric=matrix)  # noqa: E731
    return {
        "bound pieces": lambda: pdmp.BPS(poisson, thinning=bounds.ConcaveConvex()),
        "bound pieces of ZigZag": lambda: pdmp.ZigZag(LOGISTIC, thinning=bounds.ConcaveConvex()),
        "bound constant": lambda: pdmp.BPS(LOGISTIC, thinning=bounds.Constant(15.0)),
        "bound Lipschitz": lambda: pdmp.BPS(LOGISTIC, thinning=bounds.Lipschitz(12.0)),
        "bound Lipschitz of ZigZag": lambda: pdmp.ZigZag(LOGISTIC, thinning=bounds.Lipschitz(12.0)),
        "bound Hessian of ZigZag": lambda: pdmp.ZigZag(LOGISTIC, thinning=bounds.Hessian(np.abs(X.T @ X) + np.eye(3))),
        "bound predicted": lambda: pdmp.BPS(MODELS["Banana"], thinning="predicted"),
        "bound predicted of ZigZag": lambda: pdmp.ZigZag(MODELS["Banana"], thinning=bounds.Predicted(0.05)),
        "bound predicted of Boomerang": lambda: pdmp.Boomerang(LOGISTIC, thinning="predicted"),
        "bound grid of metric": lambda: pdmp.ZigZag(LOGISTIC, metric=scales, thinning="grid"),
        "bound grid of ZigZag": lambda: pdmp.ZigZag(MODELS["Banana"], thinning="grid"),
        "expressions BPS": lambda: pdmp.BPS(terms),
        "expressions ZigZag": lambda: pdmp.ZigZag(terms),
        "expressions LocalBPS": lambda: pdmp.LocalBPS(terms),
        "expressions HMC": lambda: pdmp.HMC(terms),
        "chained LocalBPS": lambda: pdmp.LocalBPS(chained()),
        "chained ZigZag": lambda: pdmp.ZigZag(chained()),
        "chained BPS": lambda: pdmp.BPS(chained()),
        "matrix BPS": lambda: pdmp.BPS(LOGISTIC, metric=matrix),
        "matrix DirectionalBPS": lambda: pdmp.DirectionalBPS(LOGISTIC, metric=matrix),
        "low rank BPS": lambda: pdmp.BPS(LOGISTIC, metric=low_rank),
        "low rank HMC": lambda: pdmp.HMC(LOGISTIC, step=0.4, metric=low_rank, around=[0.9, -0.4, 0.2]),
        "FactorisedBoomerang grid": lambda: pdmp.FactorisedBoomerang(LOGISTIC, thinning="grid"),
        "ForwardEventChain matrix": lambda: pdmp.ForwardEventChain(LOGISTIC, metric=matrix),
        "ZigZag metric": lambda: pdmp.ZigZag(LOGISTIC, metric="diagonal"),
        "ZigZag Hessian": lambda: pdmp.ZigZag(LOGISTIC, metric="auto"),
        "ZigZag listed anchor": lambda: pdmp.ZigZag(g.ControlVariate(LOGISTIC, 2, [[0.0] * 3, [1.0, -0.5, 0.3]])),
        "ZigZag renewed anchors": lambda: pdmp.ZigZag(
            g.ControlVariate(LOGISTIC, 1, [[0.0] * 3, [0.2, 0.5, 0.3]], scale=[1.0, 2.0, 3.0], renew=True)
        ),
        "SBPS published": lambda: pdmp.SBPS.published(BATCH),
        "SBPS unlearnt": lambda: pdmp.SBPS(BATCH, learner="likelihood"),
        "Bounded walls": lambda: pdmp.Bounded(
            pdmp.BPS(LOGISTIC), lower=[-0.5, -np.inf, -1.0], upper=[2.0, 0.3, np.inf]
        ),
        "Bounded Boomerang half": lambda: pdmp.Bounded(pdmp.Boomerang(LOGISTIC), halfspaces=([[1.0, 1.0, 0.0]], [1.5])),
        "HMC matrix": lambda: pdmp.HMC(LOGISTIC, step=0.4, metric=matrix, around=[0.9, -0.4, 0.2]),
        "HMC auto": lambda: pdmp.HMC(MODELS["Funnel"]),
        "SGD values": lambda: d.SGD(BATCH, step, clip_value=(-2.0, 1.5)),
        "SGD normalised": lambda: d.SGD(BATCH, step, normalise=0.5),
        "SGLD power": lambda: d.SGLD(BATCH, d.schedules.power(0.02, 0.3)),
        "SGLD from_h": lambda: d.SGLD.from_h(BATCH, h=0.02, temperature=0.5),
        "SGLD from_sigma": lambda: d.SGLD.from_sigma(BATCH, sigma=0.14, temperature=0.5),
        "SGLD mean gradient": lambda: d.SGLD.from_mean_gradient_step(BATCH, 0.4),
        "SGLD distinct auto": lambda: d.SGLD(g.Minibatch(LOGISTIC, 15, draw="distinct")),
        "SGLD noisy": lambda: d.SGLD(rough, step, correction="corrected"),
        "SGBD from_h": lambda: d.SGBD.from_h(rough, 0.1, estimator="corrected"),
        "SGBD auto": lambda: d.SGBD(BATCH),
        "SGHMC from_h": lambda: d.SGHMC.from_h(BATCH, 0.05, 0.2, 0.02),
        "SGHMC refreshed": lambda: d.SGHMC(BATCH, 0.05, refresh_every=5),
        "SGHMC auto": lambda: d.SGHMC(BATCH),
        "SGHMC noise": lambda: d.SGHMC(BATCH, 0.05, metric=scales),
        "SGNHT from_h": lambda: d.SGNHT.from_h(rough, 0.05, 0.2),
        "SGNHT auto": lambda: d.SGNHT(BATCH),
        "MSGNHT from_h": lambda: d.MSGNHT.from_h(rough, 0.05, 0.2, scheme="euler"),
        "MSGNHT auto": lambda: d.MSGNHT(BATCH),
        "BADODAB metric": lambda: d.BADODAB(BATCH, 0.05, metric=scales),
        "BADODAB auto": lambda: d.BADODAB(BATCH),
        "BAOAB matrix": low,
        "BAOAB auto": lambda: d.BAOAB(BATCH),
        "UBU from_c": lambda: d.UBU.from_c(rough, 0.05, 1.5, 2.0),
        "UBU matrix": lambda: d.UBU(BATCH, 0.05, metric=matrix),
        "RichardsonRomberg independent": lambda: d.RichardsonRomberg(d.SGLD(BATCH, step), correlation=0.0),
        "SGRRHMC from_h": lambda: d.SGRRHMC.from_h(rough, 0.04, 0.3, beta_hat=0.02),
        "SGRRLD auto": lambda: d.SGRRLD(BATCH),
        "MALA from_h": lambda: d.MALA.from_h(LOGISTIC, 0.3, metric=matrix),
        "MALA scales": lambda: d.MALA(LOGISTIC, metric=scales),
        "Barker auto": lambda: d.Barker(LOGISTIC, metric=matrix),
        "provider Noisy, exact": lambda: d.SGHMC(g.Noisy(LOGISTIC, 0.5), 0.05),
        "provider reshuffle, sd again": lambda: d.UBU(g.Minibatch(LOGISTIC, 7, draw="reshuffle", seed=3), 0.05),
    }


def cases():
    """Every case by its name: a function that makes a process."""
    return {**processes(), **mixed(), **options_of_samplers()}


#: How a case is run, where that is not the usual: chains from two starts, a third of which is warm-up.
OPTIONS = {
    "BayesianNN": {"events": 12},
    "PPMF": {"events": 15},
    "BPMF": {"events": 15},
    "MatrixFactorization": {"events": 20},
    "minibatch": {"events": 12},
    "Boomerang control variate": {"events": 10},
    "LipschitzSBPS": {"events": 12},
    "SGLD cyclical": {"events": 30},
    "StudentTLaw": {"proposals": 60},
    "NegativeBinomialLaw": {"proposals": 80},
}


def said_of(run):
    """The lines of a summary but for seconds, and for R-hat by ranks, which rounding moves where draws are equal."""
    lines = [line for line in str(run.summary()).splitlines() if "second" not in line and "R-hat" not in line]
    return [line.rpartition(" ")[0] if line.startswith("x[") else line for line in lines]


#: What is asked of the runs of some cases besides their paths: whatever pools chains, weighs steps or measures errors.
RESULTS = {
    "cov": lambda run: run.cov(),
    "mcse": lambda run: [run.mcse(), run.mcse(method="batch"), run.mcse(lambda x: x[0] ** 2)],
    "ess": lambda run: [run.ess(method) for method in ("spectral", "batch", "mean", "sd")],
    "rhat": lambda run: [run.rhat("split"), run.rhat("identity")],
    "expectation": lambda run: run.expectation(lambda x: np.sin(x[0]) + x[-1] ** 3),
    "chain_means": lambda run: np.array([one.mean() for one in pdmp.diagnostics.split(run)]),
    "running_mean": lambda run: [
        pdmp.diagnostics.running_mean(run, n=4),
        pdmp.diagnostics.running_mean(run, n=3, combined=False),
    ],
    "draws": lambda run: [run.draws(5), pdmp.diagnostics.draw_times(run, 5)],
    "quantile": lambda run: [run.quantile([0.1, 0.5, 0.9]), run.hdi(0.8)],
    "thin": lambda run: run.thin(3),
    "effective_draws": lambda run: pdmp.diagnostics.effective_draws(run),
    "summary": lambda run: said_of(run),
    "pieces": lambda run: [
        [
            path.integral(np.sin, path.end / 3),
            *path.segments(path.end / 4, path.end / 2),
            path.mean(path.end / 2),
            path.cov(0.0, path.end / 2),
            path.at(path.end / 5),
        ]
        for path in run.trajectories
    ],
}
ASKED = {
    "BPS mass": 45,
    "ZigZag local": 60,
    "Boomerang": 36,
    "Sticky ZigZag": 60,
    "SGLD polynomial": 60,
    "HMC": 60,
    "RichardsonRomberg UBU": 60,
}


def path_figures(path):
    """One number an event: of its time, its kind, and where and how fast the path goes on."""
    columns = [path.times, path.positions, *([] if path.velocities is None else [path.velocities])]
    rows = np.column_stack([column[: 1 + len(path.kinds)] for column in columns])
    return folded(np.column_stack([np.insert(path.kinds, 0, 0), rows]))


def taken_up(process, i, starts, options):
    """A chain of a run that is stored and taken up again after 5, 16 and 27 proposals: its record."""

    def fresh():
        child = np.random.SeedSequence(SEED).spawn(len(starts))[i]
        budget = {k: v for k, v in options.items() if k in ("events", "proposals")}
        if "steps" in options:
            budget["events"] = options["steps"] * process.ticks
        budget = Budget(**budget, step=max(process.ticks, 1))
        return Chain(process, i, starts[i], child, budget=budget, warmup=options["warmup"], store="skeleton")

    chain = fresh()
    for chunk in (5, 11, 11):
        chain.chunk = chunk
        chain.advance(seconds=0.0)
        stored = chain.pack(chain.snapshot(), "chain")
        chain = fresh()
        chain.restore(*stored, "chain")
    return chain.advance().finish()


def run_figures(name, process):
    """Paths of two unequal chains, averages and counts, and whether a chain that is taken up again is the same."""
    options = {k: v for part, given in OPTIONS.items() if part in name for k, v in given.items()}
    events = options.pop("events", ASKED.get(name, STEPS if process.ticks else EVENTS))
    start = np.asarray(process.model.initial if process.anchor is None else process.anchor, dtype=float)
    starts = np.array([start, start + 0.1])
    options = {"warmup": 0.3, "proposals": PROPOSALS, "steps" if process.ticks else "events": events} | options
    run = pdmp.sample(process, initial=starts, chains=2, seed=SEED, progress=False, **options)
    again, last = taken_up(process.resolve(starts[0]), 1, starts, options), run.records[1]
    same = all(np.array_equal(getattr(again, part), getattr(last, part)) for part in ("times", "xs", "vs", "counts"))
    same &= all(np.array_equal(again.accumulated[part], value) for part, value in last.accumulated.items())
    stats = {key: value for key, value in run.stats.items() if "seconds" not in key}
    found = {f"chain {i}": path_figures(path) for i, path in enumerate(run.trajectories, 1)}
    found |= {"warm-up": folded(run.warmup), "mean": folded(run.mean()), "var": folded(run.var())}
    found |= {"stats": folded(stats), "taken up": "as uninterrupted" if same else "otherwise"}
    if name not in ASKED:
        return found
    options |= {"initial": starts, "chains": 2, "seed": SEED, "progress": False}
    sums = pdmp.sample(process, **options, store="moments", covariance=not process.local)
    grid = pdmp.sample(process, **options, store="grid", draws=7)
    found["moments"] = folded([sums.cov() if not process.local else 0.0, sums.mcse(), sums.ess(), sums.rhat()])
    found["grid"] = folded([grid.draws(4), grid.var(), grid.ess()])
    return found | {key: folded(of(run)) for key, of in RESULTS.items()}


def figures(name, make):
    """Figures of a case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return run_figures(name, make())


if __name__ == "__main__":
    made = {name: functools.partial(figures, name, make) for name, make in cases().items()}
    sys.exit(command("tests.digests", __doc__.splitlines()[0], made, lambda name: FILE))
