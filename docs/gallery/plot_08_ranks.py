"""
Ranks
=====

Ranks of the draws of each chain among all: flat where the chains agree, up to the grey band.
"""

import pdmp

target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 100.0])
run = pdmp.sample(pdmp.BPS(target), events=800, chains=3, seed=1)
pdmp.plots.ranks(run)
