"""The pictures of these pages, drawn when they are built: paths of a few samplers, at rest and moving, and thinning."""

from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import discrete
import pdmp

BLUE, RED, GREY = "#0072b2", "#d55e00", "#8a8a8a"
FRAMES, PER_SECOND = 90, 15
#: A correlated Gaussian, two standard deviations wide.
TARGET = pdmp.models.Gaussian([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])


def contours(axes, potential, low=-3.2, high=3.2):
    """Level sets of a density in the plane."""
    side = np.linspace(low, high, 81)
    height = np.array([[potential(np.array([a, b])) for a in side] for b in side])
    axes.contourf(side, side, np.exp(height.min() - height), levels=8, cmap="Greys", alpha=0.45)
    axes.set(xlim=(low, high), ylim=(low, high), xticks=[], yticks=[], aspect="equal")


def animate(path, end, name, folder, steps=False):
    """A path from time 0 to `end`, as a GIF: what it has gone through, its events, and where it is."""
    figure, axes = plt.subplots(figsize=(3.6, 3.6), dpi=90, layout="constrained")
    contours(axes, TARGET.potential)
    (line,) = axes.plot([], [], color=BLUE, lw=1.0, alpha=0.0 if steps else 0.9)
    (events,) = axes.plot([], [], "o", color=RED, ms=3.5)
    (point,) = axes.plot([], [], "o", color="black", ms=6)
    times = path.times[path.times <= end]
    places = path.at(times)

    def draw(frame):
        now = end * (frame + 1) / FRAMES
        some = path.at(np.linspace(0.0, now, 40 * (frame + 1)))
        line.set_data(some[:, 0], some[:, 1])
        seen = times <= now
        events.set_data(places[seen, 0], places[seen, 1])
        here = path.at(np.array([now]))[0]
        point.set_data([here[0]], [here[1]])
        return line, events, point

    film = FuncAnimation(figure, draw, frames=FRAMES, blit=True)
    film.save(folder / f"{name}.gif", writer=PillowWriter(fps=PER_SECOND))
    draw(FRAMES - 1)
    figure.savefig(folder / f"{name}.png")
    plt.close(figure)


def films(folder):
    """Four samplers on one target."""
    moving = {
        "bps": (pdmp.BPS(TARGET, refresh_rate=0.15), 24.0),
        "zigzag": (pdmp.ZigZag(TARGET), 24.0),
        "boomerang": (pdmp.Boomerang(TARGET, refresh_rate=0.2, covariance=np.eye(2)), 24.0),
    }
    for name, (process, end) in moving.items():
        run = pdmp.sample(process, time=end, initial=[1.0, -0.5], seed=3, progress=False)
        animate(run.trajectories[0], end, name, folder)
    run = pdmp.sample(discrete.SGLD(TARGET, step=0.15), steps=45, initial=[1.0, -0.5], seed=3, progress=False)
    path = run.trajectories[0]
    animate(path, path.end, "sgld", folder, steps=True)


def thinning(folder):
    """Proposals under a bound, of which those below the rate are events.

    The rate is that of a straight line through a bimodal density, the bound is constant on pieces.
    """
    rng = np.random.default_rng(7)
    t = np.linspace(0.0, 6.0, 601)
    rate = np.maximum(1.4 * np.sin(1.3 * t) + 0.6 * t - 0.4, 0.0)
    edges = np.arange(0.0, 6.1, 1.0)
    piece = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, 5)
    heights = np.array([rate[(t >= a) & (t <= a + 1.0)].max() + 0.25 for a in edges[:-1]])
    places, levels = [], []
    for a, height in zip(edges[:-1], heights, strict=True):
        n = rng.poisson(height)
        places.append(a + rng.random(n))
        levels.append(height * rng.random(n))
    places, levels = np.concatenate(places), np.concatenate(levels)
    below = levels < np.interp(places, t, rate)
    figure, axes = plt.subplots(figsize=(7.0, 3.0), dpi=110, layout="constrained")
    axes.fill_between(t, rate, color=BLUE, alpha=0.15, lw=0)
    axes.plot(t, rate, color=BLUE, label="rate of the clock")
    axes.plot(t, heights[piece], color=GREY, drawstyle="steps-post", label="bound")
    axes.plot(places[~below], levels[~below], "x", color=GREY, label="proposal, thinned")
    axes.plot(places[below], levels[below], "o", color=RED, label="proposal, accepted: an event")
    axes.vlines(places[below], 0.0, levels[below], color=RED, lw=0.8)
    axes.set(xlabel="time", ylabel="rate", xlim=(0.0, 6.0), ylim=(0.0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "thinning.png")
    plt.close(figure)


def predicted(folder):
    """The rate of the Stochastic Bouncy Particle Sampler under its predicted bound, with proposals."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
    batches = pdmp.gradients.Minibatch(pdmp.models.LogisticRegression(X, y, prior_scale=1.0), size=60)
    axes = pdmp.plots.rate_and_bound(pdmp.SBPS(batches, k=2.0), proposals=25, seed=3)
    axes.figure.savefig(folder / "predicted.png", dpi=110)
    plt.close(axes.figure)


def draw_all(folder: pathlib.Path) -> None:
    """Whatever is not there yet."""
    folder.mkdir(exist_ok=True)
    if not (folder / "sgld.gif").exists():
        films(folder)
    if not (folder / "thinning.png").exists():
        thinning(folder)
    if not (folder / "predicted.png").exists():
        predicted(folder)


if __name__ == "__main__":
    draw_all(pathlib.Path(__file__).parent / "_generated")
