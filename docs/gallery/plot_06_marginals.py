"""
Marginals over a reference
==========================

Histograms of two chains over the density that is known here.
"""

from scipy import stats

import pdmp

target = pdmp.models.Gaussian([0.0, 1.0], precision=[1.0, 0.25])
run = pdmp.sample(pdmp.ZigZag(target), events=4_000, chains=2, seed=1)
pdmp.plots.marginals(
    run, reference=lambda x, k: stats.norm.pdf(x, [0.0, 1.0][k], [1.0, 2.0][k])
)
