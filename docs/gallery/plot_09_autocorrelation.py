"""
Autocorrelation
===============

Along the path, in its own time. Paths of the Zig-Zag overshoot: negative correlations make means better than
independent draws.
"""

import pdmp

target = pdmp.models.Gaussian([0.0, 0.0], precision=[1.0, 9.0])
run = pdmp.sample(pdmp.ZigZag(target), events=4_000, seed=1)
pdmp.plots.autocorrelation(run)
