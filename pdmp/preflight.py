"""One readable line for a misspelt name in a user's compiled method, before anything compiles."""

from __future__ import annotations


def preflight(process):
    return None
