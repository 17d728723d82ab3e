"""Targets: potentials U = -log density with their gradients, ready for every sampler."""

from typing import TYPE_CHECKING

from pdmp.models import capabilities as capabilities
from pdmp.models import transforms as transforms
from pdmp.models.base import Model as Model
from pdmp.models.descent import Mode as Mode
from pdmp.models.descent import find_mode as find_mode
from pdmp.native.lazy import lazily as _lazily

if TYPE_CHECKING:
    from pdmp.models import priors as priors
    from pdmp.models.adapters import *
    from pdmp.models.factorisations import *
    from pdmp.models.hierarchies import *
    from pdmp.models.regressions import *
    from pdmp.models.sums_of_terms import sum_of_terms as sum_of_terms
    from pdmp.models.targets import *

__getattr__, __dir__, _late = _lazily(
    __name__,
    {
        "pdmp.models.adapters": ". from_function from_jax from_numpyro from_pymc from_sklearn from_stan from_torch",
        "pdmp.models.factorisations": ". BPMF ICA PPMF BayesianNN MatrixFactorization",
        "pdmp.models.hierarchies": ". EightSchools GaussianMarkovRandomField HierarchicalNormal LogGaussianCox",
        "pdmp.models.regressions": ". HalfCauchyLogistic LinearGaussian LogisticRegression NegativeBinomialRegression "
        "NormalInverseGamma NormalInverseGammaRegression PoissonRegression ProbitRegression "
        "SpikeAndSlabLinearRegression SpikeAndSlabLogisticRegression StudentTRegression",
        "pdmp.models.priors": ".",
        "pdmp.models.sums_of_terms": ". sum_of_terms",
        "pdmp.models.targets": ". Banana Funnel Gaussian GaussianMixture Hyperboloid MixtureSum SkewNormal",
    },
)
_ROOMS = {"adapters", "factorisations", "hierarchies", "regressions", "sums_of_terms", "targets"}
__all__ = sorted({*_late, "Mode", "Model", "capabilities", "find_mode", "transforms"} - _ROOMS)
