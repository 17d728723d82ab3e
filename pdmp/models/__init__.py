"""Targets: potentials U = -log density with their gradients, ready for every sampler."""

from typing import TYPE_CHECKING

from pdmp.models import capabilities, transforms
from pdmp.models.base import Model
from pdmp.models.descent import Mode, find_mode
from pdmp.native.lazy import lazily as _lazily

if TYPE_CHECKING:
    from pdmp.models.adapters import (
        from_function,
        from_jax,
        from_numpyro,
        from_pymc,
        from_sklearn,
        from_stan,
        from_torch,
    )
    from pdmp.models.factorisations import (
        BPMF,
        ICA,
        PPMF,
        BayesianNN,
        MatrixFactorization,
    )
    from pdmp.models.hierarchies import (
        EightSchools,
        GaussianMarkovRandomField,
        HierarchicalNormal,
        LogGaussianCox,
    )
    from pdmp.models.regressions import (
        HalfCauchyLogistic,
        LinearGaussian,
        LogisticRegression,
        NegativeBinomialRegression,
        NormalInverseGamma,
        NormalInverseGammaRegression,
        PoissonRegression,
        ProbitRegression,
        SpikeAndSlabLinearRegression,
        SpikeAndSlabLogisticRegression,
        StudentTRegression,
    )
    from pdmp.models.sums_of_terms import sum_of_terms
    from pdmp.models.targets import (
        Banana,
        Funnel,
        Gaussian,
        GaussianMixture,
        Hyperboloid,
        MixtureSum,
        SkewNormal,
    )

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
    "Mode",
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
    "capabilities",
    "find_mode",
    "from_function",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "from_sklearn",
    "from_stan",
    "from_torch",
    "sum_of_terms",
    "transforms",
]

__getattr__, __dir__ = _lazily(
    __name__,
    {
        "pdmp.models.adapters": ". from_function from_jax from_numpyro from_pymc from_sklearn from_stan from_torch",
        "pdmp.models.factorisations": ". BPMF ICA PPMF BayesianNN MatrixFactorization",
        "pdmp.models.hierarchies": ". EightSchools GaussianMarkovRandomField HierarchicalNormal LogGaussianCox",
        "pdmp.models.regressions": ". HalfCauchyLogistic LinearGaussian LogisticRegression NegativeBinomialRegression "
        "NormalInverseGamma NormalInverseGammaRegression PoissonRegression ProbitRegression "
        "SpikeAndSlabLinearRegression SpikeAndSlabLogisticRegression StudentTRegression",
        "pdmp.models.sums_of_terms": ". sum_of_terms",
        "pdmp.models.targets": ". Banana Funnel Gaussian GaussianMixture Hyperboloid MixtureSum SkewNormal",
    },
)
