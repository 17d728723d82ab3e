"""The exact gradient with Gaussian noise added on purpose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients.full import AllTerms
from pdmp.gradients.provider import at_least, dot
from pdmp.models.base import Model
from pdmp.native.arguments import per_coordinate
from pdmp.native.classes import compiled


class Noisy(AllTerms):
    """The exact gradient plus independent Gaussian noise: ∇U(x)ⱼ + N(0, scaleⱼ²).

    Its variance is known: c² = Σⱼ vⱼ² scaleⱼ². One call counts `n_data` data terms, as for `Full`.

    Parameters
    ----------
    model : pdmp.Model
        The target.
    scale : float or array_like of shape (dim,)
        Standard deviation of the noise, in units of the gradient.

    Raises
    ------
    TypeError
        If `model` is not a model.
    ValueError
        If `scale` has another shape, or is negative or not finite.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.gradients.Noisy(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), scale=0.5).scale
    array([0.5, 0.5])
    """

    scale: np.ndarray

    def __init__(self, model: Model, scale: ArrayLike):
        super().__init__(model)
        self.scale = per_coordinate("scale", scale, self.dim, zero=True)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self._exact(x, out, counts)
        for j in range(out.shape[0]):
            memory.noise[j] = self.scale[j] * rng.standard_normal()
            out[j] += memory.noise[j]

    @compiled
    def gradient_again(self, x, memory, out, counts):
        self._exact(x, out, counts)
        for j in range(out.shape[0]):
            out[j] += memory.noise[j]

    @compiled
    def gradient_and_projection(self, x, v, memory, rng, out, counts):
        self.gradient(x, memory, rng, out, counts)
        g, variance = dot(v, out), 0.0
        for j in range(out.shape[0]):
            variance += v[j] * v[j] * self.scale[j] * self.scale[j]
        return g, at_least(variance, g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        self.gradient(x, memory, rng, out, counts)
        for j in range(out.shape[0]):
            sd[j] = self.scale[j]
