"""Names that belong together: a page of the reference without "See Also" of its own gets the nearest ones here."""

from __future__ import annotations

import pathlib
import re

MOST = 5  #: names on a page
REFERENCE = pathlib.Path(__file__).parent / "reference" / "index.md"
#: Modules, and names in them; a name may be in several groups, whose neighbours are nearest to each other.
GROUPS = """
pdmp: Run sample auto regression formulas.fit.Fit
pdmp: evidence sample Run plots.rungs
pdmp: Run Trajectory load SamplingError sample
pdmp: compare reference comparison.compare comparison.reference plots.compare
pdmp: regression formulas.fit.Fit models.priors.Prior diagnostics.inclusion plots.inclusion
pdmp: formulas.fit.Fit formulas.prepared.Prepared models.priors.Prior
pdmp: formulas.fit.Fit formulas.estimates.Estimates formulas.effects.ConditionalEffects
pdmp: formulas.fit.Fit formulas.loo.Loo formulas.loo.LooDifference formulas.predictive_checks.PredictiveCheck

pdmp: BPS DirectionalBPS GeneralisedBPS ForwardEventChain LocalBPS ZigZag
pdmp: ZigZag CoordinateSampler FactorisedBoomerang Sticky LocalBPS
pdmp: Boomerang FactorisedBoomerang HMC
pdmp: Metric BPS ZigZag Boomerang HMC discrete.SGHMC
pdmp: HMC auto discrete.MALA discrete.UBU comparison.NUTS
pdmp: Sticky ZigZag diagnostics.inclusion plots.inclusion
pdmp: SBPS LipschitzSBPS BPS discrete.SGBPS plots.rate_and_bound
pdmp: Parameters terms models.sum_of_terms models.priors.Prior Model
pdmp: Family terms Parameters models.sum_of_terms
pdmp: Bounded models.transforms.Transform BPS ZigZag

discrete: GD SGD SGLD schedules.constant
discrete: SGLD SGHMC SGNHT MSGNHT SGBD SGRRLD
discrete: BAOAB UBU BADODAB MALA
discrete: BADODAB SGNHT MSGNHT
discrete: SGHMC BAOAB SGRRHMC
discrete: SGBD Barker breaking_point SGLD
discrete: RichardsonRomberg SGRRLD SGRRHMC
discrete: MALA Barker SGLD
discrete: SGBPS SGZZ BPSSplitting ZigZagSplitting
discrete: Brownian Ticking schedules.Schedule finite RichardsonRomberg
discrete: Ticking finite SGLD schedules.Schedule

pdmp.models: BPMF PPMF MatrixFactorization
pdmp.models: PPMF pdmp.data.movielens_1m pdmp.data.Ratings
pdmp.models: ICA BayesianNN from_torch pdmp.data.meg
pdmp.models: Banana Funnel Hyperboloid GaussianMixture SkewNormal
pdmp.models: EightSchools HierarchicalNormal Funnel NormalInverseGamma
pdmp.models: Gaussian GaussianMarkovRandomField LinearGaussian LogGaussianCox
pdmp.models: Gaussian GaussianMixture SkewNormal
pdmp.models: GaussianMixture MixtureSum
pdmp.models: MixtureSum LinearGaussian pdmp.factors.FactorGraph
pdmp.models: LogisticRegression ProbitRegression PoissonRegression NegativeBinomialRegression StudentTRegression
pdmp.models: HalfCauchyLogistic LogisticRegression SpikeAndSlabLogisticRegression
pdmp.models: SpikeAndSlabLinearRegression SpikeAndSlabLogisticRegression pdmp.Sticky
pdmp.models: NormalInverseGammaRegression NormalInverseGamma StudentTRegression SpikeAndSlabLinearRegression
pdmp.models: from_function from_jax from_torch from_pymc from_numpyro from_stan
pdmp.models: sum_of_terms pdmp.terms pdmp.Parameters from_function pdmp.Model
pdmp.models: from_sklearn LogisticRegression pdmp.regression

pdmp.models: find_mode pdmp.Model pdmp.gradients.ControlVariate
pdmp.models.priors: Prior Flat Normal pdmp.regression
pdmp.models.priors: Normal StudentT Flat
pdmp.models.priors: HalfNormal HalfStudentT HalfCauchy Exponential Gamma
pdmp.models.priors: LKJ Normal pdmp.regression
pdmp.models.priors: BetaBernoulli Prior pdmp.regression pdmp.diagnostics.inclusion
pdmp.models.transforms: Transform Identity Log Upper Interval Ordered Simplex
pdmp.models.transforms: Transform pdmp.models.from_function pdmp.Bounded

pdmp.gradients: Full Minibatch ControlVariate AliasTable
pdmp.gradients: Provider as_provider Full Minibatch ControlVariate
pdmp.gradients: Noisy Minibatch Provider

pdmp.thinning: Constant ModelConstant Affine Lipschitz Hessian LocalHessian
pdmp.thinning: ConcaveConvex Polynomial Sinusoids Affine
pdmp.thinning: Inversion RayInversion ProductInversion
pdmp.thinning: Grid Maxima Narrow Predicted
pdmp.thinning: Predicted pdmp.SBPS pdmp.plots.rate_and_bound
pdmp.thinning: Conserved ConservedParts Inversion pdmp.Boomerang
pdmp.thinning: affine_proposal first_arrival Affine Bound
pdmp.thinning: Bound Constant Grid Inversion pdmp.Process
pdmp.factors: FactorGraph FactorAffine FactorGrid FactorInversion
pdmp.factors: FactorGraph from_model from_networkx pdmp.LocalBPS

pdmp.diagnostics: report rhat ess Estimate pdmp.plots.report
pdmp.diagnostics: ess integrated_time asymptotic_variance acf efficiency
pdmp.diagnostics: Estimate jackknife asymptotic_variance
pdmp.diagnostics: effective_draws ess efficiency split pdmp.Run
pdmp.diagnostics: running_mean draw_times split pdmp.Run
pdmp.diagnostics: event_rates bounce_rate flip_rates bounds
pdmp.diagnostics: bounce_rate gaussian_bounce_rate gaussian_flip_rates flip_rates
pdmp.diagnostics: event_rates pdmp.plots.event_rates
pdmp.diagnostics: ksd fssd sliced_ksd stein_thin scores
pdmp.diagnostics: wasserstein sliced_wasserstein mmd ksd
pdmp.diagnostics: configurational_temperature ksd scores
pdmp.diagnostics: mean_error sd_error variance_error pdmp.plots.error_by_cost
pdmp.diagnostics: log_loss running_log_loss log_likelihood accuracy rmse
pdmp.diagnostics: reliability ece mce pdmp.plots.reliability
pdmp.diagnostics: inclusion sparsity pdmp.Sticky pdmp.plots.inclusion
pdmp.validation: calibrate calibration check_clocks
pdmp.validation: check_clocks pdmp.diagnostics.bounds pdmp.Process

pdmp.tuning: successive_halving grid grid_search mamba Tuning
pdmp.tuning: Tuning pdmp.plots.tuning
pdmp.tuning: heuristic_step discrete.schedules.automatic grid
pdmp.tuning: schedule failure_bound successive_halving
pdmp.tuning: held_out grid_search pdmp.diagnostics.log_loss
pdmp.comparison: compare Comparison configured registered NUTS
pdmp.comparison: reference Reference compare
pdmp.shards: consensus swiss prior_share Combined

pdmp.plots: overview trace marginals ranks autocorrelation
pdmp.plots: trajectory rate_and_bound event_rates pairs
pdmp.plots: pairs marginals
pdmp.plots: compare error_by_cost tuning
pdmp.plots: report overview pdmp.diagnostics.report
pdmp.plots: autocorrelation pdmp.diagnostics.acf
pdmp.plots: ranks pdmp.diagnostics.rhat
pdmp.plots: rungs ranks pdmp.evidence
pdmp.plots: inclusion reliability pdmp.diagnostics.inclusion pdmp.diagnostics.reliability
pdmp.plots: tuning pdmp.tuning.Tuning pdmp.tuning.successive_halving

pdmp.data: Dataset problem read prepare
pdmp.data: Ratings prepare_ratings synthetic_ratings movielens_1m
pdmp.data: arrhythmia meg mnist sepsis randhie
pdmp.data: movielens_100k movielens_1m movielens_10m movielens_20m
pdmp.data: arrhythmia synthetic_arrhythmia synthetic_sepsis
pdmp.data: meg synthetic_meg
pdmp.data: mnist synthetic_mnist
pdmp.data: sepsis synthetic_sepsis
pdmp.data: synthetic_meg synthetic_mnist synthetic_arrhythmia
pdmp.data: movielens_100k synthetic_movielens_100k synthetic_ratings
pdmp.data: movielens_1m synthetic_movielens_1m synthetic_ratings
pdmp.data: movielens_10m synthetic_movielens_10m synthetic_ratings
pdmp.data: movielens_20m synthetic_movielens_20m synthetic_ratings
pdmp.data: randhie pdmp.regression problem

discrete.schedules: Schedule constant polynomial power cyclical automatic
discrete.preconditioners: RMSprop Scheduled discrete.SGLD discrete.schedules.Schedule

pdmp: Process Model compiled interfaces.Recipe thinning.Bound
pdmp: graph factors.FactorGraph factors.FactorAffine factors.from_networkx LocalBPS
pdmp: Process process.Defaults Model models.derived.Derived compiled
"""


def listed() -> list[str]:
    """Every name of the reference, with its module."""
    found, module = [], ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        module = line.split()[-1] if line.startswith(".. currentmodule::") else module
        if re.fullmatch(r"   \w[\w.]*", line):
            found.append(f"{module}.{line.strip()}")
    return found


def groups() -> list[list[str]]:
    """The names of each group, in full."""
    found = []
    for line in filter(None, GROUPS.splitlines()):
        module, names = line.split(": ")
        found.append(
            [
                name if name.startswith(("pdmp.", "discrete.")) else f"{module}.{name}"
                for name in names.split()
            ]
        )
    return found


def beside(name: str) -> list[str]:
    """The names that a page should lead to."""
    found: dict[str, None] = {}
    for group in groups():
        if name in group:
            here = group.index(name)
            order = sorted(range(len(group)), key=lambda k: (abs(k - here), k))
            found |= {group[k]: None for k in order if k != here}
    return list(found)[:MOST]


def add(app, what, name, obj, options, lines) -> None:
    """Before numpydoc reads the docstring."""
    if "See Also" not in lines and (names := beside(name)):
        lines += ["", "See Also", "--------", ", ".join(names), ""]
