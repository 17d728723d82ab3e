"""
Are predicted probabilities right?
==================================

How often a prediction is right, against how sure it is: on the dashed line the two agree. Below is how many
predictions there are of each confidence. ECE and MCE are the mean and the largest distance from the line.
"""

import numpy as np

import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
run = pdmp.sample(pdmp.BPS(model), events=500, seed=1)
X_new = rng.standard_normal((2_000, 4))
y_new = rng.random(2_000) < 1 / (1 + np.exp(-X_new @ [1.0, -0.5, 0.0, 0.3]))
p = model.predict(run.draws(100)[0], X_new).mean(axis=0)
pdmp.plots.reliability(y_new, p)
