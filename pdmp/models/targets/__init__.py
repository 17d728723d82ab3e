"""Targets for trying samplers: their moments are known."""

from pdmp.models.targets.banana import Banana
from pdmp.models.targets.funnel import Funnel
from pdmp.models.targets.gaussian import Gaussian
from pdmp.models.targets.gaussian_mixture import GaussianMixture
from pdmp.models.targets.hyperboloid import Hyperboloid
from pdmp.models.targets.mixture_sum import MixtureSum
from pdmp.models.targets.skew_normal import SkewNormal

__all__ = ["Banana", "Funnel", "Gaussian", "GaussianMixture", "Hyperboloid", "MixtureSum", "SkewNormal"]
