"""The sticky Zig-Zag process: `ZigZag` whose coordinates freeze at 0 for a while (see `pdmp.processes.sticky`).

References
----------
Bierkens, Grazzi, van der Meulen & Schauer (2023), Sticky PDMP samplers for sparse and local inference problems, Stat.
Comput. 33.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import Provider
from pdmp.models.base import Model
from pdmp.models.priors import BetaBernoulli
from pdmp.processes.sticky import Sticky
from pdmp.processes.zigzag import ZigZag


class StickyZigZag(Sticky):
    """Sticky Zig-Zag process of a spike-and-slab posterior: coordinates are exactly 0 for a part of the time.

    The model's likelihood is kept; its prior is the slab. Coordinate i is 0 under the prior with the probability
    1 - inclusionᵢ. ``run.inclusion()`` are the posterior inclusion probabilities: the fractions of time for which
    coordinates move. On sparse targets the cost of an event does not depend on the dimension.

    Parameters
    ----------
    provider : Model, or any gradient that `ZigZag` takes
        What to sample, with the slab as its prior; the slab must be a product over the coordinates that stick.
    inclusion : float, array_like of shape (d,) or pdmp.models.priors.BetaBernoulli, optional
        Prior probability that a coordinate is not 0, above 0 and below 1; that of the model when omitted, and 0.5 for a
        model without spikes.
    always : sequence of int, or mask of shape (d,)
        Coordinates that never stick, an intercept for example.
    slab_density : float or array_like, shape (d,), optional
        Density of the slab at 0, for models that do not say it (``model.slab_density()``).
    kappa : float or array_like, shape (d,), optional
        Instead of these: rates at which coordinates of unit speed leave 0, inclusion / (1 - inclusion) * slab_density.
    **options
        Of `ZigZag`.

    Raises
    ------
    ValueError
        For probabilities, rates or densities out of range, a model whose slab density is not known, or nothing that
        sticks.

    See Also
    --------
    pdmp.StickyBPS : The same for the Bouncy Particle Sampler.
    pdmp.diagnostics.inclusion : Inclusion probabilities with errors.

    Notes
    -----
    A run that starts with coordinates at exactly 0 has these frozen.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = pdmp.models.LinearGaussian(X, X @ [1.0, 0.0, 0.0], noise_scale=1.0)
    >>> run = pdmp.sample(pdmp.StickyZigZag(model, inclusion=0.2), time=1_000.0, seed=1)
    >>> bool(run.inclusion()[0] > 0.9 > 0.5 > run.inclusion()[1])
    True
    """

    @classmethod
    def in_metric(cls, target: Model | Provider, metric: Any, **options: Any) -> Self:
        """With its standard deviations as the speeds."""
        return cls(target, **{"speed": np.sqrt(metric.variances)} | options)

    def __init__(
        self,
        provider: Model | Provider,
        inclusion: ArrayLike | BetaBernoulli | None = None,
        always: ArrayLike = (),
        slab_density: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
        **options: object,
    ) -> None:
        super().__init__(ZigZag(provider, **options), inclusion, always, slab_density, kappa)
