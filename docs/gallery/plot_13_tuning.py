"""
Tuning by successive halving
============================

Each line is a setting: its Stein discrepancy (the distance of its draws from the posterior) after the data passes
that it has had. A line ends where its setting was dropped; a third of the settings goes on after each round. The
blue one is chosen.
"""

import numpy as np

import discrete
import pdmp

rng = np.random.default_rng(1)
X = rng.standard_normal((300, 4))
y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
batches = pdmp.gradients.Minibatch(model, size=30)
arms = pdmp.tuning.grid(step=np.geomspace(1e-4, 1e-2, 9))
found = pdmp.tuning.mamba(
    lambda step: discrete.SGLD(batches, step), arms, 30, "ksd", "data", seed=1
)
print(found)
pdmp.plots.tuning(found)
