"""Gradient providers: estimators of the gradient of U, exact or from mini-batches, that every sampler takes."""

from pdmp.gradients.provider import *  # noqa
