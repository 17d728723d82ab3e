"""
Ranks
=====

Ranks of the draws of each chain among all: flat where the chains agree, up to the grey band. Below the same sampler on
a density with two modes far apart: each chain stays in one of them, and a longer run does not mend that.
"""

import pdmp

target = pdmp.models.Gaussian([0.0, 0.0], precision=[1.0, 100.0])
run = pdmp.sample(pdmp.BPS(target), events=800, chains=3, seed=1)
pdmp.plots.ranks(run)

# %%
modes = pdmp.models.GaussianMixture([[-6.0, 0.0], [6.0, 0.0]], 1.0)
starts = [[-6.0, 0.0], [-6.0, 0.0], [6.0, 0.0]]
apart = pdmp.sample(pdmp.BPS(modes), events=800, chains=3, initial=starts, seed=1)
pdmp.plots.ranks(apart)
