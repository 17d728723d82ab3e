"""Bugs in how posteriors of shards are combined."""

from tests.mutations.bugs import Bug

BUGS = [
    Bug(f"shards: {name}", "pdmp/shards/combining.py", old, new, ("tests/test_shards.py",))
    for name, old, new in [
        ("shares of the prior by S", "math.sqrt(check_count(", "float(check_count("),
        (
            "averages without weights",
            "sum(x @ w for x, w in zip(taken, precisions, strict=True)) @ cov",
            "sum(taken) / len(taken)",
        ),
        ("the first draws of a long shard", "x[np.linspace(0, len(x) - 1, n).round().astype(int)]", "x[:n]"),
        ("shards with one seed are paired", "x[np.random.default_rng(s).permutation(n)]", "x"),
        (
            "all shards are shuffled alike",
            "np.random.default_rng(s).permutation(n)",
            "np.random.default_rng(0).permutation(n)",
        ),
        ("a shard counts twice", "if len(np.unique(means, axis=0)) < len(means):", "if False:"),
        ("masked draws are taken", "refuse_unreal(name, value)", "pass"),
        ("inflated shards are not", "if inflated:", "if not len(samples):"),
        ("inflated precisions are summed twice", "w / len(samples) for w", "w * len(samples) for w"),
        ("shifted only", "(_root(c, -0.5) @ root)", "np.eye(len(mean))"),
        ("the maps in the other order", "_root(c, -0.5) @ root", "root @ _root(c, -0.5)"),
        (
            "the mean of the means",
            "cov @ sum(w @ m for w, m in zip(precisions, means, strict=True)), cov",
            "sum(means) / len(means), cov",
        ),
        ("the covariance of one", "np.linalg.inv(sum(precisions))", "np.linalg.inv(precisions[0])"),
        (
            "distances by the wrong shard",
            "np.linalg.solve(c, m - mean) / len(mean)",
            "np.linalg.solve(covariances[0], m - mean) / len(mean)",
        ),
        ("shards that disagree are not said", "if apart.max() > FAR:", "if apart.min() > FAR:"),
        ("draws that are not finite", "if not np.all(np.isfinite(x)):", "if not np.any(np.isfinite(x)):"),
        ("draws of one chain", "x = x.reshape(-1, x.shape[2])", "x = x[0]"),
    ]
]
