"""Models from functions, and from other packages."""

from typing import TYPE_CHECKING

from pdmp.native.lazy import lazily as _lazily

if TYPE_CHECKING:
    from pdmp.models.adapters.autodiff import from_jax, from_torch
    from pdmp.models.adapters.function import from_function
    from pdmp.models.adapters.numpyro_model import from_numpyro
    from pdmp.models.adapters.pymc_model import from_pymc
    from pdmp.models.adapters.scikit_learn import from_sklearn
    from pdmp.models.adapters.stan_model import from_stan

__all__ = ["from_function", "from_jax", "from_numpyro", "from_pymc", "from_sklearn", "from_stan", "from_torch"]

__getattr__, __dir__, _ = _lazily(
    __name__,
    {
        "pdmp.models.adapters.autodiff": "from_jax from_torch",
        "pdmp.models.adapters.function": "from_function",
        "pdmp.models.adapters.numpyro_model": "from_numpyro",
        "pdmp.models.adapters.pymc_model": "from_pymc",
        "pdmp.models.adapters.scikit_learn": "from_sklearn",
        "pdmp.models.adapters.stan_model": "from_stan",
    },
)
