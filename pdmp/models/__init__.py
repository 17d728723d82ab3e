"""Targets: potentials U = -log density with their gradients, ready for every sampler."""

from pdmp.models import transforms as transforms
from pdmp.models.banana import Banana as Banana
from pdmp.models.base import Model as Model
from pdmp.models.bpmf import BPMF as BPMF
from pdmp.models.function import from_function as from_function
from pdmp.models.funnel import Funnel as Funnel
from pdmp.models.gaussian import Gaussian as Gaussian
from pdmp.models.gaussian_mixture import GaussianMixture as GaussianMixture
from pdmp.models.half_cauchy_logistic import HalfCauchyLogistic as HalfCauchyLogistic
from pdmp.models.hierarchical_normal import EightSchools as EightSchools
from pdmp.models.hierarchical_normal import HierarchicalNormal as HierarchicalNormal
from pdmp.models.hyperboloid import Hyperboloid as Hyperboloid
from pdmp.models.linear_gaussian import LinearGaussian as LinearGaussian
from pdmp.models.log_gaussian_cox import LogGaussianCox as LogGaussianCox
from pdmp.models.logistic import LogisticRegression as LogisticRegression
from pdmp.models.markov_random_field import GaussianMarkovRandomField as GaussianMarkovRandomField
from pdmp.models.matrix_factorization import MatrixFactorization as MatrixFactorization
from pdmp.models.mixture_sum import MixtureSum as MixtureSum
from pdmp.models.negative_binomial import NegativeBinomialRegression as NegativeBinomialRegression
from pdmp.models.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
from pdmp.models.normal_inverse_gamma import NormalInverseGammaRegression as NormalInverseGammaRegression
from pdmp.models.poisson import PoissonRegression as PoissonRegression
from pdmp.models.ppmf import PPMF as PPMF
from pdmp.models.probit import ProbitRegression as ProbitRegression
from pdmp.models.skew_normal import SkewNormal as SkewNormal
from pdmp.models.student_t import StudentTRegression as StudentTRegression
