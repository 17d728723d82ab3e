"""
A rate and its bound
====================

The rate of a bounce (shaded) grows along each straight piece of path, and vanishes when the velocity is reflected.
Proposals come at the bound (the lines), and are events with probability rate / bound: orange dots, the others are
thinned. Here the bound is exact, and never exceeded.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
pdmp.plots.rate_and_bound(pdmp.BPS(model), proposals=25, seed=3)
