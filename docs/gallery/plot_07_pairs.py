"""
Pairs
=====

Each coordinate on the diagonal, a histogram for each chain; below it draws of each pair with level sets that hold
50, 90 and 99 % of them; above it correlations.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
run = pdmp.sample(pdmp.ZigZag(model), events=800, chains=2, seed=1)
pdmp.plots.pairs(run, [0, 1, 3])
