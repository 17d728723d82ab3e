"""Targets: potentials U = -log density with their gradients, ready for every sampler."""

from pdmp.models import transforms as transforms
from pdmp.models.base import Model as Model
from pdmp.models.function import from_function as from_function
from pdmp.models.gaussian import Gaussian as Gaussian
from pdmp.models.hyperboloid import Hyperboloid as Hyperboloid
from pdmp.models.linear_gaussian import LinearGaussian as LinearGaussian
from pdmp.models.logistic import LogisticRegression as LogisticRegression
from pdmp.models.mixture_sum import MixtureSum as MixtureSum
from pdmp.models.skew_normal import SkewNormal as SkewNormal
