"""
Rungs of a tempered run
=======================

How replicas pass the ladder between a wide reference, on the left, and a posterior of several modes, on the right: the
swaps of neighbours that are rejected, of each chain, and the work W = U - U₀ at each rung.
"""

import pdmp

modes = pdmp.models.GaussianMixture([[-6.0, 0.0], [6.0, 0.0]], 1.0)
run = pdmp.sample(modes, tempered=True, seed=1)
pdmp.plots.rungs(run)
