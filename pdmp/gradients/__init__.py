"""Gradient providers: estimators of ∇U, exact or from mini-batches, that every sampler takes.

==========================  =====================================================================================
`Full`                      the exact gradient, all terms at each call; what a bare model stands for
`Minibatch`                 a mini-batch of the terms, scaled up to the full sum, the prior exact
`ControlVariate`            the same for the difference to an anchor, where the full gradient is known; terms drawn
                            uniformly, or in proportion to bounds on what they contribute
`Noisy`                     the exact gradient and Gaussian noise on top, for experiments about the noise
`Provider`                  the base, for providers of your own
`AliasTable`                draws from given weights, at a cost that does not depend on how many there are
==========================  =====================================================================================
"""

from pdmp.gradients.alias import AliasTable
from pdmp.gradients.control_variate import ControlVariate
from pdmp.gradients.full import Full, as_provider
from pdmp.gradients.minibatch import Minibatch
from pdmp.gradients.noisy import Noisy
from pdmp.gradients.provider import LEAST_VARIANCE, Provider

__all__ = [
    "LEAST_VARIANCE",
    "AliasTable",
    "ControlVariate",
    "Full",
    "Minibatch",
    "Noisy",
    "Provider",
    "as_provider",
]
