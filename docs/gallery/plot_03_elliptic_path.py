"""
A path that turns
=================

Between events the Boomerang moves on ellipses; `pdmp.plots.trace` draws them as the flow has them, not as chords.
"""

import pdmp

target = pdmp.models.Banana(2)
run = pdmp.sample(pdmp.Boomerang(target, refresh_rate=0.3, metric=None), time=60.0, seed=2)
pdmp.plots.trace(run, between=(0.0, 30.0))
