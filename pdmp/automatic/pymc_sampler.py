"""`pdmp.sample` as a sampler of PyMC: what ``pymc.sample(sampler=...)`` takes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pdmp.automatic.sampling import arguments, sample
from pdmp.errors import warn
from pdmp.models import adapters

CHAINS = 4  #: unless `pymc.sample` is told how many


class PyMCSampler:
    """The automatic sampler for ``pymc.sample(sampler=pdmp.automatic.PyMCSampler())``.

    It needs a PyMC whose `sample` has the argument `sampler`, of which there is no release yet [1]_. With any other,
    ``pdmp.sample(model).to_arviz()`` gives the same.

    Parameters
    ----------
    **budget
        What ends a run, as in `pdmp.sample`: ``ess=1_000``, ``gradients=50_000`` …; by default as for a model there.

    Raises
    ------
    ImportError
        If PyMC is not installed, or its `sample` does not take samplers.

    References
    ----------
    .. [1] https://github.com/pymc-devs/pymc/pull/8358

    Examples
    --------
    >>> import pymc, pdmp                                                # doctest: +SKIP
    >>> with model:                                                      # doctest: +SKIP
    ...     data = pymc.sample(sampler=pdmp.automatic.PyMCSampler(ess=1_000))
    """

    def __init__(self, **budget: Any) -> None:
        _interface().register(type(self))
        known = arguments()
        for name in budget:
            if name not in known or name in ("initial", "chains", "seed", "progress", "executor"):
                raise TypeError(f"`{name}` is not a budget or an option of pdmp.sample that a sampler of PyMC takes.")
        self.budget = budget

    def sample_from_init(
        self,
        *,
        model: Any = None,
        draws: int = 1000,
        tune: int | None = None,
        chains: int | None = None,
        cores: int | None = None,
        initvals: Mapping | Sequence | None = None,
        random_seed: Any = None,
        progressbar: Any = True,
        quiet: bool = False,
        discard_tuned_samples: bool = True,
        keep_warning_stat: bool = False,
        var_names: Sequence[str] | None = None,
        idata_kwargs: dict[str, Any] | None = None,
        compute_convergence_checks: bool = True,
        blas_cores: Any = "auto",
        compile_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Sample a PyMC model; `pymc.sample` calls this.

        Parameters
        ----------
        model : pymc.Model, optional
            By default that of the context.
        draws : int, default 1000
            How many equally spaced draws of each chain are returned; how long chains are is the budget's to say.
        chains : int, optional
            4 by default.
        cores : int, optional
            How many chains run at the same time, in threads.
        initvals : dict, or list of dict, optional
            Natural parameters from which the search for starts begins, by name; for all chains or for each.
        random_seed : int, sequence of int, or numpy.random.Generator, optional
        progressbar, quiet : bool, default True and False
        var_names : sequence of str, optional
            What the group posterior is to contain.
        idata_kwargs : dict, optional
            Of its entries `log_likelihood` is known, by default False.
        tune, discard_tuned_samples, keep_warning_stat, blas_cores, compile_kwargs
            Warm-up and compilation are this package's own: other values than the defaults warn.
        compute_convergence_checks : bool, default True
            Whether warnings of the run are shown.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            See `pdmp.Run.to_arviz`.
        """
        from pymc.model.core import modelcontext

        model = modelcontext(model)
        unused = {
            "tune": tune not in (None, 1000),
            "discard_tuned_samples": not discard_tuned_samples,
            "keep_warning_stat": keep_warning_stat,
            "blas_cores": blas_cores not in (None, "auto"),
            "compile_kwargs": bool(compile_kwargs),
        }
        for name in (name for name, given in unused.items() if given):
            warn(f"`{name}` is not used: pdmp warms up and compiles in its own way.")
        idata_kwargs = dict(idata_kwargs or {})
        log_likelihood = bool(idata_kwargs.pop("log_likelihood", False))
        if idata_kwargs:
            raise TypeError(f"`idata_kwargs` may have the entry 'log_likelihood' only, got {', '.join(idata_kwargs)}.")
        target = adapters.from_pymc(model)
        unknown = [name for name in var_names or () if name not in target.constrain(target.initial)]
        if unknown:
            raise ValueError(f"`var_names` names {unknown[0]!r}, which is not a variable of the model.")
        chains = CHAINS if chains is None else chains
        executor = None if cores is None else ThreadPoolExecutor(cores)
        try:
            with warnings.catch_warnings():
                if not compute_convergence_checks:
                    warnings.simplefilter("ignore", UserWarning)
                run = sample(
                    target,
                    initial=None if initvals is None else starts(model, target, initvals, chains),
                    chains=chains,
                    seed=seed_of(random_seed),
                    progress=bool(progressbar) and not quiet,
                    executor=executor,
                    **self.budget,
                )
        finally:
            if executor is not None:
                executor.shutdown()
        data = run.to_arviz(draws, log_likelihood=log_likelihood)
        if var_names is not None:
            posterior = data["posterior"]
            kept = (posterior.to_dataset() if hasattr(posterior, "to_dataset") else posterior)[list(var_names)]
            data["posterior"] = type(posterior)(kept) if hasattr(posterior, "to_dataset") else kept
        return data


def starts(model: Any, target: Any, initvals: Mapping | Sequence, chains: int) -> np.ndarray:
    """Unconstrained points (chains, d), of natural parameters by name."""
    from pymc.initial_point import make_initial_point_fns_per_chain

    functions = make_initial_point_fns_per_chain(model=model, overrides=initvals, chains=chains)
    points = [function(0) for function in functions]
    return np.array([np.concatenate([np.ravel(p[v.name]) for v in model.value_vars]) for p in points], dtype=float)


def seed_of(random_seed: Any) -> int | None:
    """One whole number, of whatever `pymc.sample` takes as a seed."""
    if random_seed is None or isinstance(random_seed, (int, np.integer)):
        return random_seed if random_seed is None else int(random_seed)
    if isinstance(random_seed, np.random.Generator):
        return int(random_seed.integers(2**62))
    return int(np.random.SeedSequence([int(s) for s in np.ravel(random_seed)]).generate_state(1)[0])


def _interface():
    """PyMC's base class of samplers."""
    try:
        import pymc
    except ImportError:
        raise ImportError("`PyMCSampler` needs PyMC: pip install 'pdmp[pymc]'.") from None
    try:
        from pymc.sampling.samplers.base import Sampler
    except ImportError:
        Sampler = None
    if Sampler is None or "sampler" not in inspect.signature(pymc.sample).parameters:
        raise ImportError(
            f"`PyMCSampler` needs a PyMC whose `sample` has the argument `sampler`, this is {pymc.__version__}: "
            "pdmp.sample(model).to_arviz() gives the same."
        )
    return Sampler
