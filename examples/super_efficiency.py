"""Super-efficiency: more from each look at a datum, the more data there are.

Logistic regression with ten coefficients, sampled by the Zig-Zag process with control variates (Bierkens, Fearnhead &
Roberts, 2019): each proposal looks at one datum, and there is no error from that. The posterior contracts like
N^(-1/2), and so do the differences to the anchor that the data contribute; hence the number of proposals for an
independent draw does not depend on N, and the effective sample size for each pass over the data grows like N. Data
drawn uniformly have the largest of N bounds in the rate of proposals, and pay more as N grows; data drawn in proportion
to their bounds (``draw="importance"``) have the mean. The exact Zig-Zag process, which looks at all data at each
proposal, gains nothing.

    python examples/super_efficiency.py [--quick] [--output FOLDER] [--features normal|t]

Features are independent, standard normal or Student's t with five degrees of freedom. Writes super_efficiency.png,
prints a table, and ends with exit code 1 if a criterion fails. Time: `--quick` (N up to 10⁵) half a minute; otherwise
(up to 10⁶) a few minutes. tests/benchmarks/subsampling.py goes to 10⁷ with the data in a file.
"""

import argparse
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import pdmp
from pdmp.gradients import ControlVariate

D = 10
COLOURS = {"importance": "#12508f", "uniform": "#a32814", "exact": "#777777"}


def posterior(n, features, seed=0):
    """A logistic regression with n data."""
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(D) / np.sqrt(D)
    X = rng.standard_normal((n, D)) if features == "normal" else rng.standard_t(5, (n, D)) * np.sqrt(0.6)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-X @ beta))
    return pdmp.models.LogisticRegression(X, y, prior_scale=10.0)


def measure(process, **budget):
    """Data terms per flip, effective sample size of the worst coordinate per pass over the data."""
    run = pdmp.sample(process, warmup=0.05, seed=1, store="moments", progress=False, **budget)
    passes = run.stats["data_terms"] / process.model.n_data
    return run.stats["data_terms"] / run.stats["total_events"], float(np.min(run.ess())) / passes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--features", default="normal", choices=["normal", "t"])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    args = parser.parse_args()
    sizes = [10**3, 10**4, 10**5] + ([] if args.quick else [10**6])
    proposals = 300_000 if args.quick else 2_000_000

    found = {name: {} for name in COLOURS}
    print(f"{'N':>9} {'draw':>11} {'data terms per flip':>20} {'ESS per pass':>13}")
    for n in sizes:
        model = posterior(n, args.features)
        anchor = model.mode()
        for name in COLOURS:
            if name == "exact":
                if n > 10**4:  # a pass for each proposal: its efficiency is known from fewer data
                    continue
                found[name][n] = measure(pdmp.ZigZag(model), events=3_000)
            else:
                process = pdmp.ZigZag(ControlVariate(model, 1, anchor=anchor, draw=name))
                more = 4 if name == "uniform" else 1
                found[name][n] = measure(process, proposals=more * proposals)
            terms, each = found[name][n]
            print(f"{n:>9} {name:>11} {terms:>20.2f} {each:>13.4g}", flush=True)

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, values in found.items():
        x = np.array(list(values))
        terms, each = np.array(list(values.values())).T
        if name != "exact":
            axes[0].semilogx(x, terms, "o-", color=COLOURS[name], label=f"control variates, {name}")
        label = "exact" if name == "exact" else f"control variates, {name}"
        axes[1].loglog(x, each, "o-", color=COLOURS[name], label=label)
    x, first = np.array(sizes), found["importance"][sizes[0]][1]
    axes[1].loglog(x, first * x / x[0], ":", color="black", label="proportional to N")
    axes[0].set(xlabel="data N", ylabel="data looked at for each flip", ylim=(0.0, None))
    axes[1].set(xlabel="data N", ylabel="effective sample size per pass over the data")
    axes[0].legend(frameon=False)
    axes[1].legend(frameon=False)
    file = args.output / "super_efficiency.png"
    figure.savefig(file, dpi=150)
    plt.close(figure)

    terms = [found["importance"][n][0] for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log([found["importance"][n][1] for n in sizes]), 1)[0]
    uniform = [found["uniform"][n][0] for n in sizes]
    rows = [
        ("importance: data terms per flip, largest over smallest", max(terms) / min(terms), "< 1.15", 0.0, 1.15),
        ("importance: ESS per pass grows like N to the power", slope, "0.8 to 1.2", 0.8, 1.2),
        ("uniform: data terms per flip, last over first", uniform[-1] / uniform[0], "> 1.2", 1.2, np.inf),
    ]
    passed = True
    for what, value, wanted, low, high in rows:
        passed &= bool(low < value < high)
        print(f"{what}: {value:.3f} ({wanted}) {'passed' if low < value < high else 'FAILED'}")
    print(f"picture: {file}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
