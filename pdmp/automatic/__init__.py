"""From a model to a process that is ready to sample it: where chains start, the metric, and which process."""

from pdmp.automatic.preparing import auto

__all__ = [
    "auto",
]
