"""Variable selection with a spike-and-slab prior: which covariates matter, with exact zeros along the path.

Shows: sticky processes, whose coordinates rest at exactly 0 for a part of the time, so that the fraction of time for
which one moves is its posterior inclusion probability. Two data sets that scikit-learn ships, standardised:

- diabetes (442 patients, 10 covariates), a linear regression. All 1,024 models can be enumerated here, and the picture
  has their exact answer beside that of sticky Zig-Zag and sticky BPS.
- breast cancer (569 patients, 30 covariates and an intercept that is always in), a logistic regression with about 10⁹
  models, where two processes are compared with one another.

    python examples/variable_selection.py [--quick] [--output FOLDER]

Writes a picture, prints a table, and ends with exit code 1 if a criterion fails. Time: `--quick` about a minute, half
of it compilation; otherwise about five minutes.
"""

import argparse
import itertools
import pathlib
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets

import pdmp

INCLUSION = 0.2  #: prior probability that a covariate is in the model
SLAB = 0.5  #: prior standard deviation of the coefficient of one that is
COLOURS = {"enumeration": "0.75", "sticky Zig-Zag": "#0072B2", "sticky BPS": "#D55E00"}


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def diabetes():
    """The model, the names of the covariates, and the data."""
    data = datasets.load_diabetes()
    X, y = standardised(data.data), standardised(data.target)
    residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    model = pdmp.models.LinearGaussian(X, y, noise_scale=residuals.std(ddof=X.shape[1]), prior_scale=SLAB)
    return model, list(data.feature_names)


def breast_cancer():
    """The same for the other data; the intercept comes first."""
    data = datasets.load_breast_cancer()
    X = np.column_stack([np.ones(len(data.target)), standardised(data.data)])
    scale = np.append(5.0, np.full(X.shape[1] - 1, SLAB))
    return pdmp.models.LogisticRegression(X, data.target, prior_scale=scale), list(data.feature_names)


def enumerated(model):
    """Exact inclusion probabilities, (d,): log p(y | m) = ½ log |S_m| + ½ b_mᵀ S_m b_m - k log s up to a constant.

    With b = Aᵀy/σ² and S_m the posterior covariance of the coefficients in the model m.
    """
    d = model.dim
    b, gram = model.noise_precision * model.A.T @ model.y, model.noise_precision * model.A.T @ model.A
    models = np.array(list(itertools.product([False, True], repeat=d)))
    logs = np.zeros(len(models))
    for k, m in enumerate(models):
        precision = gram[np.ix_(m, m)] + np.eye(m.sum()) / SLAB**2
        logs[k] = 0.5 * b[m] @ np.linalg.solve(precision, b[m]) - 0.5 * np.linalg.slogdet(precision)[1]
        logs[k] -= m.sum() * np.log(SLAB)
    logs += models.sum(axis=1) * np.log(INCLUSION) + (~models).sum(axis=1) * np.log(1.0 - INCLUSION)
    weights = np.exp(logs - logs.max())
    return weights @ models / weights.sum()


def sampled(process, events):
    """Inclusion probabilities (d,), their standard errors from four chains, and the run."""
    run = pdmp.sample(process, events=events, warmup=0.1, chains=4, seed=1, store="moments")
    each = np.array([r.accumulated["included"] / r.length for r in run.records])
    return pdmp.diagnostics.inclusion(run), each.std(axis=0, ddof=1) / 2.0, run


def draw(axes, names, found, legend):
    """Bars for the enumeration, points with two standard errors for what was sampled."""
    place = np.arange(len(names))
    for k, (label, (values, error)) in enumerate(found.items()):
        if error is None:
            axes.barh(place, values, color=COLOURS[label], label=label)
            continue
        axes.errorbar(
            values, place + 0.22 * (k - 1), xerr=2.0 * error, fmt="o", ms=4, color=COLOURS[label], label=label
        )
    axes.axvline(INCLUSION, color="0.5", lw=0.8, ls=":")
    axes.set(yticks=place, yticklabels=names, xlim=(0.0, 1.02), xlabel="posterior inclusion probability")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, loc=legend)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the picture")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    share, failed = (0.1 if args.quick else 1.0), 0
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 6.5), layout="constrained")

    model, names = diabetes()
    exact = enumerated(model)
    found = {"enumeration": (exact, None)}
    for label, inner, events in (
        ("sticky Zig-Zag", pdmp.ZigZag(model), 8_000_000),
        ("sticky BPS", pdmp.BPS(model, velocities="gaussian"), 4_000_000),
    ):
        began = time.perf_counter()
        values, error, run = sampled(pdmp.Sticky(inner, inclusion=INCLUSION), int(share * events))
        found[label] = values, error
        worst = np.abs(values - exact).max()
        passed = worst < (0.05 if args.quick else 0.02)
        failed += not passed
        print(
            f"diabetes, {label:15} largest error {worst:.4f}  {'pass' if passed else 'FAIL'}  "
            f"({run.stats['total_events']:,} events, {time.perf_counter() - began:.1f} s)",
            flush=True,
        )
    draw(left, names, found, "lower right")
    left.set_title("diabetes: linear regression")

    model, names = breast_cancer()
    found = {}
    for label, inner, events in (
        ("sticky Zig-Zag", pdmp.ZigZag(model), 600_000),
        ("sticky BPS", pdmp.BPS(model, velocities="gaussian"), 400_000),
    ):
        began = time.perf_counter()
        values, error, run = sampled(pdmp.Sticky(inner, inclusion=INCLUSION, always=[0]), int(share * events))
        found[label] = values[1:], error[1:]
        print(
            f"breast cancer, {label:15} {values[1:].sum():.2f} of 30 covariates expected "
            f"({run.stats['total_events']:,} events, {time.perf_counter() - began:.1f} s)",
            flush=True,
        )
    (one, e), (other, f) = found.values()
    difference = np.abs(one - other)
    passed = difference.max() < (0.2 if args.quick else 0.06)
    failed += not passed
    print(f"breast cancer, largest difference {difference.max():.3f}  {'pass' if passed else 'FAIL'}")
    draw(right, names, found, "upper left")
    right.set_title("breast cancer: logistic regression")
    figure.savefig(args.output / "variable_selection.png", dpi=150)
    plt.close(figure)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
