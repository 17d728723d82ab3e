"""Hierarchies and fields."""
