"""Targets: potentials U = -log density with their gradients, ready for every sampler."""

from pdmp.models import transforms
from pdmp.models.adapters.autodiff import from_jax, from_torch
from pdmp.models.adapters.function import from_function
from pdmp.models.adapters.pymc_model import from_pymc
from pdmp.models.adapters.scikit_learn import from_sklearn
from pdmp.models.adapters.stan_model import from_stan
from pdmp.models.base import Model
from pdmp.models.factorisations.bayesian_nn import BayesianNN
from pdmp.models.factorisations.bpmf import BPMF
from pdmp.models.factorisations.ica import ICA
from pdmp.models.factorisations.matrix_factorization import MatrixFactorization
from pdmp.models.factorisations.ppmf import PPMF
from pdmp.models.hierarchies.hierarchical_normal import EightSchools, HierarchicalNormal
from pdmp.models.hierarchies.log_gaussian_cox import LogGaussianCox
from pdmp.models.hierarchies.markov_random_field import GaussianMarkovRandomField
from pdmp.models.regressions.half_cauchy_logistic import HalfCauchyLogistic
from pdmp.models.regressions.linear_gaussian import LinearGaussian
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.models.regressions.negative_binomial import NegativeBinomialRegression
from pdmp.models.regressions.normal_inverse_gamma import NormalInverseGamma, NormalInverseGammaRegression
from pdmp.models.regressions.poisson import PoissonRegression
from pdmp.models.regressions.probit import ProbitRegression
from pdmp.models.regressions.spike_and_slab import SpikeAndSlabLinearRegression, SpikeAndSlabLogisticRegression
from pdmp.models.regressions.student_t import StudentTRegression
from pdmp.models.targets.banana import Banana
from pdmp.models.targets.funnel import Funnel
from pdmp.models.targets.gaussian import Gaussian
from pdmp.models.targets.gaussian_mixture import GaussianMixture
from pdmp.models.targets.hyperboloid import Hyperboloid
from pdmp.models.targets.mixture_sum import MixtureSum
from pdmp.models.targets.skew_normal import SkewNormal

__all__ = [
    "BPMF",
    "ICA",
    "PPMF",
    "Banana",
    "BayesianNN",
    "EightSchools",
    "Funnel",
    "Gaussian",
    "GaussianMarkovRandomField",
    "GaussianMixture",
    "HalfCauchyLogistic",
    "HierarchicalNormal",
    "Hyperboloid",
    "LinearGaussian",
    "LogGaussianCox",
    "LogisticRegression",
    "MatrixFactorization",
    "MixtureSum",
    "Model",
    "NegativeBinomialRegression",
    "NormalInverseGamma",
    "NormalInverseGammaRegression",
    "PoissonRegression",
    "ProbitRegression",
    "SkewNormal",
    "SpikeAndSlabLinearRegression",
    "SpikeAndSlabLogisticRegression",
    "StudentTRegression",
    "from_function",
    "from_jax",
    "from_pymc",
    "from_sklearn",
    "from_stan",
    "from_torch",
    "transforms",
]
