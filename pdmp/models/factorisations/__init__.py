"""Factorisations and networks."""
