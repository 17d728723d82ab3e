"""Regressions."""
