"""Figure 1 of the supplement of "Stochastic Bouncy Particle Sampler" (Pakman, Gilboa, Carlson & Paninski, 2017).

The posterior of (w0, w1) from 1,000 observations of their product, which is 0: a cross along the axes whose arms get
narrower outwards. Batches of 100; "iterations" are proposals of SBPS and steps of the others, each looks at one batch.
Steps are those of the paper, for the gradient of U / N; chains start at (1, 0.1), which the paper does not say.

What is reproduced: SBPS explores more of the arms than SGLD with the small step, and stays where the mass is, while
SGLD with the large step and mSGNHT get off the ridge. The law of the product w0 w1 is known (its density is
K0(c |p|) times a normal one), so "off the ridge" is measured: N E (w0 w1 - mean of y)², and the fraction of time at
which half of that square is above 8, where the posterior has a mass of less than 1e-4.

    python examples/hyperboloid.py [--quick] [--output FOLDER]

Writes hyperboloid.png, prints a table, and ends with exit code 1 if a criterion fails. Time: `--quick` some 15 seconds,
most of it compilation; otherwise less than a minute.
"""

import argparse
import math
import pathlib
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import discrete
import pdmp

N, BATCH, ITERATIONS, START = 1_000, 100, 10_000, [1.0, 0.1]
BURN_IN = ITERATIONS // 10
COLOURS = {"SBPS": "#12508f", "SGLD 0.1": "#d98b1e", "SGLD 1": "#a32814", "mSGNHT 0.2": "#3a7d44"}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)


def samplers(model):
    """The four of the figure."""
    batch = pdmp.gradients.Minibatch(model, BATCH, draw="distinct")
    root = math.sqrt(N)
    return {
        "SBPS": pdmp.SBPS(batch, k=3.0),
        "SGLD 0.1": discrete.SGLD.from_mean_gradient_step(batch, 0.1),
        "SGLD 1": discrete.SGLD.from_mean_gradient_step(batch, 1.0),
        # w += ε p, p += -ε ∇U/N - ε ξ p + √(2ε/N) z, ξ += ε (p² - 1/N), in the units of a unit mass
        "mSGNHT 0.2": discrete.MSGNHT(batch, step=0.2 / root, diffusion=root, scheme="euler"),
    }


def path(name, process, seed, iterations=ITERATIONS):
    """Positions along the path after each event, and at the nodes of a quadrature; with the weights of the latter."""
    budget = {"proposals": iterations} if name == "SBPS" else {"steps": iterations}
    try:
        trajectory = pdmp.sample(process, initial=START, seed=seed, **budget).trajectories[0]
    except pdmp.SamplingError:
        return None
    x, steps = trajectory.positions, np.diff(trajectory.times)
    if name != "SBPS":
        return x, x[BURN_IN:], np.ones(len(x) - BURN_IN)
    late = trajectory.times[:-1] > trajectory.times[-1] * BURN_IN / ITERATIONS
    start, v, h = x[:-1][late], trajectory.velocities[:-1][late], steps[late]
    at = start[:, None] + v[:, None] * (0.5 * h[:, None] * (NODES + 1.0))[..., None]
    return x, at.reshape(-1, 2), (0.5 * h[:, None] * WEIGHTS).ravel()


def measure(model, points, weights):
    """N E (w0 w1 - mean y)², the fraction of time far from the ridge, and how far the path went."""
    square = N * (points[:, 0] * points[:, 1] - model.y.mean()) ** 2
    weights = weights / weights.sum()
    return weights @ square, weights @ (square > 16.0), np.abs(points).max()


def draw(model, paths, file):
    """The paths of one run after 100, 1,000 and 10,000 iterations, on the contours of the log density."""
    figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.9), sharey=True, layout="constrained")
    w = np.linspace(-3.0, 3.0, 401)
    a, b = np.meshgrid(w, w, indexing="ij")
    u = 0.5 * N * (a * b - model.y.mean()) ** 2 + 0.5e-4 * (a * a + b * b)
    for axes, share in zip(panels, (0.01, 0.1, 1.0), strict=True):
        axes.contourf(w, w, -u.T, levels=[-8.0, 0.0], colors=["#dddddd"])
        axes.contour(
            w, w, -u.T, levels=[-2000, -1500, -1000, -500, -100], colors="0.75", linewidths=0.7, linestyles=":"
        )
        for name, (x, *_) in paths.items():
            some = x[: max(int(share * len(x)), 2)]
            if name == "SBPS":
                axes.plot(*some.T, color=COLOURS[name], lw=0.7, label=name, zorder=3, alpha=0.9)
            else:
                size = 3.0 if share < 1.0 else 1.2
                axes.plot(*some.T, ".", color=COLOURS[name], ms=size, label=name, alpha=0.6, zorder=2)
        axes.plot(*START, "k+", ms=9, mew=1.5, zorder=4)
        axes.set(xlim=(-3, 3), ylim=(-3, 3), xlabel="$w_0$", aspect="equal")
        axes.set_title(f"{int(share * ITERATIONS):,} iterations")
    panels[0].set_ylabel("$w_1$")
    panels[0].legend(loc="lower left", fontsize=8, markerscale=3.0, framealpha=0.9)
    figure.suptitle(
        "Grey: log density within 8 of its maximum; dotted: -100, -500, -1000 … ; cross: the start", fontsize=9
    )
    figure.savefig(file, dpi=130, bbox_inches="tight")
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the picture")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    found, repetitions = {name: [] for name in COLOURS}, 8 if args.quick else 40
    oracles, drawn = [], {}
    for data in range(2):
        model = pdmp.models.Hyperboloid.generated(N, seed=data)
        mean, variance = model.product_moments
        oracles.append(N * (variance + (mean - model.y.mean()) ** 2))
        for name, process in samplers(model).items():
            for seed in range(repetitions // 2):
                made = path(name, process, seed)
                found[name].append((np.inf, 1.0, np.inf) if made is None else measure(model, *made[1:]))
                if data == seed == 0 and made is not None:
                    drawn[name] = made
        if data == 0:
            draw(model, drawn, args.output / "hyperboloid.png")
    oracle = float(np.mean(oracles))
    print(f"{repetitions} runs of {ITERATIONS:,} iterations over 2 data sets; N E (w0 w1 - mean y)² is {oracle:.3f}")
    table = {}
    for name, rows in found.items():
        rows = np.array(rows)
        table[name] = square, far, extent = [float(np.mean(rows[:, k])) for k in range(3)]
        error = float(np.std(rows[:, 0], ddof=1) / math.sqrt(len(rows)))
        print(f"{name:11} square {square:6.3f} ± {error:.3f}   far {far:.4f}   max |w| {extent:.2f}")
    sbps, small, large, thermostat = (table[name] for name in COLOURS)
    rows = [
        ("SBPS: the square is that of the posterior", f"{sbps[0] / oracle:.2f}", "0.75 … 1.25 of it"),
        ("SBPS is far from the ridge less than SGLD 1", f"{sbps[1]:.4f}, {large[1]:.4f}", "less"),
        ("SBPS is far from the ridge less than mSGNHT 0.2", f"{sbps[1]:.4f}, {thermostat[1]:.4f}", "less"),
        ("SBPS goes further along the arms than SGLD 0.1", f"{sbps[2]:.2f}, {small[2]:.2f}", "further"),
    ]
    passed = [0.75 < sbps[0] / oracle < 1.25, sbps[1] < large[1], sbps[1] < thermostat[1], sbps[2] > small[2]]
    for (what, measured, criterion), good in zip(rows, passed, strict=True):
        print(f"{what:50} {measured:>18}  {criterion:20} {'PASS' if good else 'FAIL'}")
    print(f"{time.perf_counter() - began:.0f} s")
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
