"""Figure 1 of the supplement of "Stochastic Bouncy Particle Sampler" (Pakman, Gilboa, Carlson & Paninski, 2017).

The posterior of (w0, w1) from 1,000 observations of their product, which is 0: a cross along the axes whose arms get
narrower outwards. Batches of 100; "iterations" are proposals of SBPS and steps of the others, each looks at one batch.
Steps are those of the paper, for the gradient of U / N; chains start at (1, 0.1), which the paper does not say.

What is reproduced: SBPS explores more of the arms than SGLD with the small step, and stays where the mass is, while
SGLD with the large step and mSGNHT get off the ridge. The law of the product w0 w1 is known (its density is
K0(c |p|) times a normal one), so "off the ridge" is measured: N E (w0 w1 - mean of y)², and the fraction of time at
which half of that square is above 8, where the posterior has a mass of less than 1e-4.

    python examples/papers/hyperboloid.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, a picture and what was found, and ends with exit code 1 if a criterion fails. Time: `--quick` some 15
seconds, most of it compilation; otherwise less than a minute.
"""

import math
import sys

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import DARK_BLUE, DARK_RED, GREEN, ORANGE, Row

import discrete
import pdmp

N, BATCH, START = 1_000, 100, [1.0, 0.1]
COLOURS = {"SBPS": DARK_BLUE, "SGLD 0.1": ORANGE, "SGLD 1": DARK_RED, "mSGNHT 0.2": GREEN}
SHARES = (0.01, 0.1, 1.0)  #: of the iterations, in the three panels
SHOWN = 250  #: points of a path in a panel


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


def sampled(name, process, seed, iterations):
    """A run, or None if it diverged."""
    budget = {"proposals": iterations} if name == "SBPS" else {"steps": iterations}
    try:
        return pdmp.sample(process, initial=START, seed=seed, warmup=0.1, progress=False, **budget)
    except pdmp.SamplingError:
        return None


def measure(model, run):
    """N E (w0 w1 - mean y)², the fraction of time far from the ridge, and how far the path went."""
    if run is None:
        return np.inf, 1.0, np.inf
    centre = model.y.mean()
    square = N * run.expectation(lambda w: (w[0] * w[1] - centre) ** 2)
    points = run.draws(20_000)[0]
    far = np.mean(N * (points[:, 0] * points[:, 1] - centre) ** 2 > 16.0)
    return square, far, np.abs(run.trajectories[0].positions).max()


def pieces(s):
    def of(data, name):
        def piece(table, work):
            model = pdmp.models.Hyperboloid.generated(N, seed=data)
            process = samplers(model)[name]
            runs = [sampled(name, process, s["seed"] + k, s["iterations"]) for k in range(s["runs"] // 2)]
            for k, run in enumerate(runs):
                numbers = measure(model, run)
                for what, value in zip(("square", "far", "extent"), numbers, strict=True):
                    table.add(what, name, 1_000 * data + k, value)
            if data == 0 and runs[0] is not None:
                x = runs[0].trajectories[0].positions
                for share in SHARES:
                    some = x[: max(int(share * len(x)), 2)]
                    some = some[np.linspace(0, len(some) - 1, min(SHOWN, len(some))).astype(int)]
                    table.add(f"path {share:g}", name, some[:, 0], some[:, 1])

        return piece

    def exact(table, work):
        for data in (0, 1):
            model = pdmp.models.Hyperboloid.generated(N, seed=data)
            mean, variance = model.product_moments
            table.add("square", "exact", data, N * (variance + (mean - model.y.mean()) ** 2))
            table.add("data", "mean of y", data, model.y.mean())

    return {"exact": exact} | {f"{name}, data {data}": of(data, name) for data in (0, 1) for name in COLOURS}


def criteria(table, s):
    oracle = float(table.y("square", "exact").mean())
    found = {name: [float(table.y(what, name).mean()) for what in ("square", "far", "extent")] for name in COLOURS}
    rows = [Row("F1 N E (w0 w1 - mean y)², exact", f"{oracle:.3f}")]
    for name, numbers in found.items():
        squares = table.y("square", name)
        error = squares.std(ddof=1) / math.sqrt(len(squares))
        text = f"{numbers[0]:.3f} ± {error:.3f}, {numbers[1]:.4f}, {numbers[2]:.2f}"
        rows.append(Row(f"F1 {name}: the same, far from the ridge, max |w|", text))
    sbps, small, large, thermostat = found.values()
    ratio = sbps[0] / oracle
    what = "F1 SBPS: the square is that of the posterior"
    rows.append(Row(what, f"{ratio:.2f}", "0.75 … 1.25 of it", abs(ratio - 1.0) < 0.25))
    for name, other in (("SGLD 1", large), ("mSGNHT 0.2", thermostat)):
        what = f"F1 SBPS is far from the ridge less than {name}"
        rows.append(Row(what, f"{sbps[1]:.4f}, {other[1]:.4f}", "less", sbps[1] < other[1]))
    what = "F1 SBPS goes further along the arms than SGLD 0.1"
    return [*rows, Row(what, f"{sbps[2]:.2f}, {small[2]:.2f}", "further", sbps[2] > small[2])]


def picture(table, s):
    """The paths of one run after 100, 1,000 and 10,000 iterations, on the contours of the log density."""
    figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.9), sharey=True, layout="constrained")
    w = np.linspace(-3.0, 3.0, 401)
    a, b = np.meshgrid(w, w, indexing="ij")
    u = 0.5 * N * (a * b - table.value("data", "mean of y", 0)) ** 2 + 0.5e-4 * (a * a + b * b)
    for axes, share in zip(panels, SHARES, strict=True):
        axes.contourf(w, w, -u.T, levels=[-8.0, 0.0], colors=["#dddddd"])
        levels = [-2000, -1500, -1000, -500, -100]
        axes.contour(w, w, -u.T, levels=levels, colors="0.75", linewidths=0.7, linestyles=":")
        for name in table.series(f"path {share:g}"):
            x, y, _ = table.get(f"path {share:g}", name)
            line = "-" if name == "SBPS" and share == SHARES[0] else "none"
            axes.plot(x, y, ls=line, marker=".", color=COLOURS[name], ms=4.0, lw=0.7, label=name, alpha=0.7)
        axes.plot(*START, "k+", ms=9, mew=1.5, zorder=4)
        axes.set(xlim=(-3, 3), ylim=(-3, 3), xlabel="$w_0$", aspect="equal")
        axes.set_title(f"{int(share * s['iterations']):,} iterations, {SHOWN} points of each path at most", fontsize=9)
    panels[0].set_ylabel("$w_1$")
    panels[0].legend(loc="lower left", fontsize=8, frameon=True)
    text = "Grey: log density within 8 of its maximum; dotted: -100, -500, -1000 … ; cross: the start"
    figure.suptitle(text, fontsize=9)
    return figure


STUDY = common.Study(
    name="hyperboloid",
    quick={"seed": 0, "iterations": 10_000, "runs": 8},
    full={"seed": 0, "iterations": 10_000, "runs": 40},
    pieces=pieces,
    criteria=criteria,
    pictures={"": picture},
)

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
