"""
A path and its events
=====================

Bounces and refreshments of the Bouncy Particle Sampler, in two coordinates. Events have markers by kind. The path
fills the Gaussian, which is long along one diagonal; on the right are its two coordinates in time.
"""

import pdmp

target = pdmp.models.Gaussian([0.0, 0.0], precision=[[1.0, 0.8], [0.8, 1.0]])
run = pdmp.sample(pdmp.BPS(target, refresh_rate=0.3), events=150, seed=2)
pdmp.plots.trajectory(run)
