"""Sums of factors, for local samplers: graphs, gradients, bounds and data."""
