"""
What one looks at first
=======================

A row for each coordinate: its path; its marginal; ranks of the draws of each chain among all, within the grey band
where chains agree; and the autocorrelation, how fast the path forgets. All from ``run.plot()``.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
run = pdmp.sample(pdmp.BPS(model), events=400, chains=4, seed=1)
run.plot(["x[0]", "x[1]"])
