"""
Which coefficients are not zero
===============================

Probabilities with Monte Carlo errors, from the time that a sticky path spends off zero.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((200, 6))
y = X @ [1.0, 0.0, 0.15, 0.0, -0.6, 0.1] + rng.standard_normal(200)
model = pdmp.models.LinearGaussian(X, y, noise_scale=1.0, prior_scale=1.0)
process = pdmp.Sticky(pdmp.ZigZag(model), inclusion=0.3)
run = pdmp.sample(process, events=8_000, chains=4, seed=1)
pdmp.plots.inclusion(run)
