"""Modes that no chain of `pdmp.sample(model)` is in: how often it says so, and how often it says so of none.

    python -m tests.benchmarks.modes [--posteriordb FOLDER] [--seeds 1 2 3 4 5] [--only NAME …]

Ordinary posteriors: those of `ORDINARY` and, of the folder of `tests.benchmarks.own_models`, its seventeen and a
regression with groups. A warning of a mode there is "false". Posteriors of several modes, `HIDDEN`, and of the folder
two more: it is "warned" of one that no chain is in, or chains are in several, "seen" by R-hat, or it is "SILENT".
Columns: what was found for each seed; the evaluations of U or its gradient that the search took, and those of the
warm-up with it, medians. At the end the shares of runs with a false alarm, and with a silence: exit code 1 if they are
above a thirtieth and a tenth.
"""

import argparse
import json
import logging
import math
import pathlib
import sys
import warnings

import numpy as np

import pdmp
from pdmp.automatic import preparing
from tests.models.helpers_propriety import PROPER, SPREADS, schools

ORDINARY = {name: lambda name=name: PROPER[name] for name in (
    "correlated", "banana", "kink", "heavy", "logistic", "Cone", "Quartic", "horseshoe", "schools", "schools centred",
    "skewed", "Laplace", "identified", "t 1.5 of 2", "funnel of 10", "a walk of 30, wide prior",
)} | {
    "schools centred, half-Cauchy": lambda: schools(lambda s: (np.logaddexp(0.0, 2.0 * s) - s, np.tanh(s))),
    "banana of 2": pdmp.models.Banana,
    "skew normal": lambda: pdmp.models.SkewNormal(4.0),
    "groups": lambda: SPREADS["groups"][1],
    "rows and columns": lambda: SPREADS["rows"][1],
}  # fmt: skip


def normals(means, sds, weights=None):
    """A mixture that tells nothing but its density, and which component a point is of."""
    found = pdmp.models.GaussianMixture(means, np.square(sds), weights)
    far = lambda x: np.linalg.norm(x - found.means, axis=1) / sds  # noqa: E731
    return pdmp.models.from_function(lambda x: (found.potential(x), found.gradient(x)), found.dim), (
        lambda x: int(np.argmin(far(x)))
    )


def order(first, components):
    """The order of a mixture's means, which its labels decide."""
    return lambda x: tuple(np.argsort(x[first : first + components]))


def mixture(y, k):
    """Means, and logs of shares against the first, of a mixture of k normals of sd 1 whose labels can be exchanged."""

    def both(x):
        m, eta = x[:k], np.append(0.0, x[k:])
        share = np.exp(eta - np.logaddexp.reduce(eta))
        logs = np.log(share) - 0.5 * (y[:, None] - m) ** 2
        total = np.logaddexp.reduce(logs, axis=1)
        r = np.exp(logs - total[:, None])
        pull = len(y) * share - r.sum(axis=0) + eta / 4.0
        gradient = np.append(m / 100.0 - (r * (y[:, None] - m)).sum(axis=0), pull[1:])
        return 0.005 * m @ m + 0.125 * eta @ eta - total.sum(), gradient

    return pdmp.models.from_function(both, 2 * k - 1), order(0, k)


def labelled(n, means, shares, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(rng.choice(means, n, p=shares))


def product(y=4.0):
    """y = ab + noise: the signs of both are open."""

    def both(x):
        r = x[0] * x[1] - y
        return 0.125 * x @ x + 5.0 * r * r, x / 4.0 + 10.0 * r * x[::-1]

    return pdmp.models.from_function(both, 2), lambda x: x[0] > 0.0


def frequency(n=60):
    """A wave of which frequency, with its sign, and amplitudes are unknown."""
    t = np.linspace(0.0, 3.0, n)
    y = np.sin(2.0 * t + 0.5) + 0.3 * np.random.default_rng(2).standard_normal(n)

    def both(x):
        s, c = np.sin(x[0] * t), np.cos(x[0] * t)
        r = y - x[1] * s - x[2] * c
        gradient = -np.array([(r * t) @ (x[1] * c - x[2] * s), r @ s, r @ c])
        return 0.5 * r @ r / 0.09 + 0.125 * x @ x, gradient / 0.09 + x / 4.0

    return pdmp.models.from_function(both, 3), lambda x: x[0] > 0.0


DIAGONAL, CORNERS = np.outer([1.0, -1.0], np.full(5, math.sqrt(5.0))), np.zeros((4, 5))
CORNERS[:, :2] = [[5, 5], [5, -5], [-5, 5], [-5, -5]]
HIDDEN = {
    "two, d = 5": lambda: normals(DIAGONAL, [1.0, 1.0]),
    "two of 20 % and 80 %, d = 5": lambda: normals(DIAGONAL, [1.0, 1.0], [0.2, 0.8]),
    "four, d = 5": lambda: normals(CORNERS, np.ones(4), [0.1, 0.2, 0.3, 0.4]),
    "at ±10, sds 0.3 and 1, d = 1": lambda: normals([[-10.0], [10.0]], [0.3, 1.0]),
    "20 sds apart, d = 2": lambda: normals([[-10.0, 0.0], [10.0, 0.0]], [1.0, 1.0]),
    "at 0 and 10, d = 2": lambda: normals([[0.0, 0.0], [10.0, 0.0]], [1.0, 1.0]),
    "sds 0.1 and 1, on an axis, d = 10": lambda: normals(np.outer([-2.5, 2.5], np.eye(10)[0]), [1.0, 0.1]),
    "sds 0.3 and 1, off the axes, d = 5": lambda: normals(np.outer([0.0, 3.0], [1, 1, 0, 1, 0]), [1.0, 0.3]),
    "labels of two": lambda: mixture(labelled(1000, [-2.0, 3.0], [0.3, 0.7]), 2),
    "labels of three": lambda: mixture(labelled(600, [-5.0, 0.0, 6.0], [0.3, 0.3, 0.4]), 3),
    "signs of a product": product,
    "sign of a frequency": frequency,
}
NORMALS = """
data { int N; array[N] real y; }
parameters { real<lower=0, upper=1> theta; array[2] real mu; }
model {
  mu ~ normal(0, 10);
  for (n in 1:N) target += log_mix(theta, normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1));
}"""


def stan(folder):
    """Ordinary ones, and two whose labels can be exchanged."""
    from tests.benchmarks.own_models import PROGRAMS, groups

    references = json.loads((folder / "reference.json").read_text())

    def model(name, program):
        data = json.loads((folder / "data" / f"{references[name]['data']}.json").read_text())
        return pdmp.models.from_stan(program, data)

    name = "low_dim_gauss_mix-low_dim_gauss_mix"
    free = PROGRAMS[name].replace("ordered[2] mu", "array[2] real mu")
    y = labelled(1000, [-2.0, 3.0], [0.3, 0.7], seed=4)
    ordinary = {name: lambda name=name: model(name, PROGRAMS[name]) for name in PROGRAMS}
    return ordinary | {"y ~ x + (1 | g), 300 rows": lambda: pdmp.models.from_stan(*groups(300, 10))}, {
        f"{name}, not ordered": lambda: (model(name, free), order(0, 2)),
        "normal_2-normal_mixture": lambda: (pdmp.models.from_stan(NORMALS, {"N": len(y), "y": y}), order(1, 2)),
    }


def measure(model, seed, which=None):
    """What is said of modes, the evaluations of the search, and the process."""
    kept, spent = preparing.hidden_modes, []

    def counted(*given):
        found = kept(*given)
        spent.append(found.evaluations)
        return found

    preparing.hidden_modes = counted
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            process = pdmp.auto(model, seed=seed)
    finally:
        preparing.hidden_modes = kept
    said = any("no chain is in" in text for text in process.prepared.cautions)
    if which is None:
        return "false" if said else "near" if process.prepared.modes else "-", sum(spent), process
    several = len({which(x) for x in process.prepared.starts}) > 1
    return "warned" if said else "seen" if several else "SILENT", sum(spent), process


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    tables = [ORDINARY, HIDDEN]
    if options.posteriordb:
        tables = [a | b for a, b in zip(tables, stan(options.posteriordb), strict=True)]
    counts = {"false": [], "SILENT": []}
    for several, table in enumerate(tables):
        for name, make in table.items():
            if options.only and not any(part in name for part in options.only):
                continue
            model, which = make() if several else (make(), None)
            words, spent, processes = zip(*(measure(model, seed, which) for seed in options.seeds), strict=True)
            counts["SILENT" if several else "false"] += words
            all_of_it = np.median([process.prepared.gradients for process in processes])
            line = "".join(f"{word:8s}" for word in words)
            print(f"{name:48s}{line}{np.median(spent):8,.0f}{all_of_it:9,.0f}", flush=True)
    wrong = {word: np.mean(np.array(words) == word) if words else 0.0 for word, words in counts.items()}
    for word, words in counts.items():
        print(f"{word} in {words.count(word)} of {len(words)} runs")
    sys.exit(int(wrong["false"] > 1.0 / 30.0 or wrong["SILENT"] > 0.1))


if __name__ == "__main__":
    main()
