"""
The rungs of a tempered run
===========================

Left: how often swaps of neighbouring rungs are rejected, a line a chain; a pair that stood out would be where replicas
hardly pass. Right: W, the potential less that of the reference, at each inverse temperature. The mean falls along the
ladder, and log Z is minus the area under it.
"""

import pdmp

model = pdmp.models.GaussianMixture([[-4.0, 0.0], [4.0, 1.0]], [1.0, 4.0], [0.3, 0.7])
run = pdmp.sample(model, tempered=True, seed=1)
pdmp.plots.rungs(run)
