"""A fit for ArviZ: what `pdmp.Run.to_arviz` has of the run, and responses that the fit would draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.engine.export import NUMBERS

if TYPE_CHECKING:
    from pdmp.formulas.fit import Fit


def to_arviz(self: Fit, n: int | None = None, seed: int | None = None) -> Any:
    """The run for ArviZ, with natural parameters, observed data, log-likelihoods and posterior predictive draws.

    See `pdmp.Run.to_arviz`. Log-likelihoods and predictive draws are left out where they would be more than 20
    million numbers; predictive draws also of censored responses, as the drawn ones are not censored.

    Parameters
    ----------
    n : int, optional
        Draws of each chain.
    seed : int, optional
        Of the predictive draws.
    """
    data = self.run.to_arviz(n)
    size = dict(data["posterior"].sizes)
    chains, draws = size["chain"], size["draw"]
    if chains * draws * self.n_rows > NUMBERS or "censored" in self.beside:
        return data
    x = self.run.draws(draws)
    y = self.predicted(x.reshape(-1, x.shape[-1]), None, "response", "error", np.random.default_rng(seed))
    return with_group(data, "posterior_predictive", {self.design.response: y.reshape(chains, draws, -1)})


def with_group(data: Any, name: str, values: dict[str, np.ndarray]) -> Any:
    """ArviZ's data with one more group of draws (chains, draws, …)."""
    import arviz

    if int(arviz.__version__.split(".")[0]) < 1:
        data.add_groups({name: values})
        return data
    data[name] = arviz.from_dict({name: values})[name]
    return data
