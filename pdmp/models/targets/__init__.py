"""Targets for trying samplers."""
