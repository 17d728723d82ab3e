"""
Samplers side by side
=====================

Errors of means against data passes: exact samplers (solid) go on falling, fixed steps (dashed) level off at their
bias.
"""

import numpy as np

import discrete
import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((100, 2))
y = rng.random(100) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
reference = pdmp.sample(pdmp.ZigZag(model), events=1_000, chains=4, seed=1)
batches = pdmp.gradients.Minibatch(model, size=10)
processes = {
    "Zig-Zag": pdmp.ZigZag(model),
    "SGLD": discrete.SGLD(batches, step=1e-2),
    "SGBD": discrete.SGBD(batches, scale=0.15),
}
table = pdmp.compare(processes, data_passes=200, reference=reference, seed=1, chains=2)
print(table)
pdmp.plots.error_by_cost(table)
pdmp.plots.compare(table)
