"""Bugs in how posteriors of shards are combined."""

from tests.mutations.bugs import Bug

BUGS = [
    Bug(f"shards: {name}", "pdmp/shards/combining.py", old, new, ("tests/test_shards.py",))
    for name, old, new in [
        (
            "averages without weights",
            "sum(x @ w for x, w in zip(taken, precisions, strict=True)) @ cov",
            "sum(taken) / len(taken)",
        ),
        (
            "the mean of the means",
            "cov @ sum(w @ m for w, m in zip(precisions, means, strict=True)), cov",
            "sum(means) / len(means), cov",
        ),
    ]
]
