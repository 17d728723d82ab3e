"""
A bound that is predicted
=========================

The Stochastic Bouncy Particle Sampler sees the rate through mini-batches only, and predicts a bound by a regression
on what it has seen, ``k`` standard deviations above. The shaded rate is the mean of many estimates at the same
place: where it is above the line, events are lost, and counted as violations.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
batches = pdmp.gradients.Minibatch(model, size=60)
pdmp.plots.rate_and_bound(pdmp.SBPS(batches, k=2.0), proposals=25, seed=3)
