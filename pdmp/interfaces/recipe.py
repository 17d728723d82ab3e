"""How a sampler is set up on a model, for comparisons and for tuning.

Processes are built on this module, so that it cannot name their type: `Any` is a `pdmp.Process` here, or what the text
says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Recipe:
    """How a sampler is set up on a model by default; the class attribute ``recipe`` of a `Process`.

    This base class makes ``sampler(model)`` and has nothing to tune. A sampler with settings has a subclass::

        class SBPSRecipe(pdmp.interfaces.Recipe):
            def processes(self, sampler, model, batch, mode, error):
                return {sampler.__name__: sampler(batch)}

        class SBPS(pdmp.Process):
            recipe = SBPSRecipe()

    Parameters
    ----------
    featured : bool, default True
        Whether a comparison that names no samplers includes this one.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.ZigZag.recipe.featured, pdmp.HMC.recipe.featured
    (True, False)
    """

    def __init__(self, featured: bool = True) -> None:
        self.featured = featured

    def processes(self, sampler: type, model: Any, batch: Any, mode: np.ndarray, error: float) -> dict[str, Any]:
        """Processes for a comparison on `model`, by label.

        Parameters
        ----------
        sampler : type
            The class of the processes.
        model : Model
            The target.
        batch : pdmp.gradients.Minibatch
            For samplers that take noisy gradients.
        mode : ndarray, shape (dim,)
            The mode of the model.
        error : float
            For samplers with a step: the largest relative error of a marginal variance that the step may cause.

        Returns
        -------
        dict of str to Process
        """
        return {sampler.__name__: sampler(model)}

    def arms(self, sampler: type, model: Any, mode: np.ndarray) -> tuple[Callable[..., Any], list[dict]] | None:
        """Settings to choose from, for `pdmp.tuning`; None for a sampler with nothing to tune.

        Parameters
        ----------
        sampler, model, mode
            As in `processes`.

        Returns
        -------
        make : callable
            ``make(**arm)`` is a process of the class `sampler`.
        arms : list of dict
            The settings.
        """
        return None

    def setting(self, process: Any) -> str:
        """How `process` is configured, for a table: a few words, "" for a process without settings."""
        return ""
