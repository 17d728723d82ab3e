"""
Events by kind
==============

How often each kind of event comes, by chain, with errors.
"""

import pdmp

target = pdmp.models.Gaussian([0.0, 0.0], precision=[[1.0, 0.8], [0.8, 1.0]])
run = pdmp.sample(pdmp.BPS(target, refresh_rate=0.5), events=1_000, chains=4, seed=1)
pdmp.plots.event_rates(run)
