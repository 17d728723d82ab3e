"""Targets of other packages, and of any Python function."""
