"""What a comparison and a tuning command need of a sampler's class: how to set it up on a model."""

from __future__ import annotations


class Recipe:
    """How a sampler is set up on a model when nobody says how; the class attribute ``recipe`` of a `Process`.

    This one makes ``sampler(model)`` and has nothing to tune. A sampler with settings derives a recipe of its own::

        class SBPSRecipe(pdmp.interfaces.Recipe):
            def processes(self, sampler, model, batch, mode, error):
                return {sampler.__name__: sampler(batch)}

        class SBPS(pdmp.Process):
            recipe = SBPSRecipe()

    Parameters
    ----------
    featured : bool, default True
        Whether a comparison that names no samplers includes this one.
    """

    def __init__(self, featured: bool = True):
        self.featured = featured

    def processes(self, sampler, model, batch, mode, error) -> dict:
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
            For samplers with a step: the relative error of a marginal variance at which to choose it.
        """
        return {sampler.__name__: sampler(model)}

    def arms(self, sampler, model, mode) -> tuple | None:
        """Settings to choose from, for `pdmp.tuning`; None for a sampler with nothing to tune.

        Returns
        -------
        make : callable
            ``make(**arm)`` is a process of the class `sampler`.
        arms : list of dict
            The settings.
        """
        return None

    def setting(self, process) -> str:
        """How `process` is configured, for a table: a few words, "" for a process without settings."""
        return ""
