"""The pictures of these pages, drawn when they are built: paths of a few samplers, at rest and moving, and thinning."""

from __future__ import annotations

import os
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.text import Text

import discrete
import pdmp
from pdmp.plots.proposals import piece

BLUE, RED, GREY = "#0072b2", "#d55e00", "#8a8a8a"
HERE = pathlib.Path(__file__).parent
FRAMES, PER_SECOND = 90, 15
HELD = 30  #: frames for which the whole path stays
SLOW = 110  #: frames of the film of a predicted bound, where each proposal should be seen
PROPOSALS = 16  #: in the picture of a predicted bound
THINNED = 15828  #: a seed at which no proposal lies close to the rate, so that accepted and rejected are told apart
#: A correlated Gaussian, two standard deviations wide.
TARGET = pdmp.models.Gaussian([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])


def contours(axes, potential, low=-3.2, high=3.2):
    """Level sets of a density in the plane."""
    side = np.linspace(low, high, 81)
    height = np.array([[potential(np.array([a, b])) for a in side] for b in side])
    axes.contourf(
        side, side, np.exp(height.min() - height), levels=8, cmap="Greys", alpha=0.45
    )
    axes.set(xlim=(low, high), ylim=(low, high), xticks=[], yticks=[], aspect="equal")


def save(film, figure, file):
    """Save a film as a GIF; the places of its axes are found once, not for each frame."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    film.save(file, writer=PillowWriter(fps=PER_SECOND))


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

    film = FuncAnimation(
        figure, draw, frames=[*range(FRAMES), *[FRAMES - 1] * HELD], blit=True
    )
    save(film, figure, folder / f"{name}.gif")
    draw(FRAMES - 1)
    figure.savefig(folder / f"{name}.png")
    plt.close(figure)


def films(folder):
    """Four samplers on one target."""
    moving = {
        "bps": (pdmp.BPS(TARGET, refresh_rate=0.15), 24.0),
        "zigzag": (pdmp.ZigZag(TARGET), 24.0),
        "boomerang": (pdmp.Boomerang(TARGET, refresh_rate=0.2, metric=None), 24.0),
    }
    for name, (process, end) in moving.items():
        run = pdmp.sample(process, time=end, initial=[1.0, -0.5], seed=3, progress=False)
        animate(run.trajectories[0], end, name, folder)
    run = pdmp.sample(
        discrete.SGLD(TARGET, step=0.15),
        steps=45,
        initial=[1.0, -0.5],
        seed=3,
        progress=False,
    )
    path = run.trajectories[0]
    animate(path, path.end, "sgld", folder, steps=True)


def legible(axes):
    """A legend above the axes, and no text below 8 points: the pictures of a phone are 4.2 inches wide."""
    handles, labels = axes.get_legend_handles_labels()
    if axes.legend_ is not None:
        handles, labels = (
            axes.legend_.legend_handles,
            [text.get_text() for text in axes.legend_.texts],
        )
    axes.legend(
        handles,
        labels,
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        frameon=False,
        fontsize=8,
    )
    axes.spines[["top", "right"]].set_visible(False)
    for text in axes.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), 8.0))


def proposed(seed):
    """Times, rate and bound of the picture of thinning; proposals, with heights uniform between zero and the bound."""
    rng = np.random.default_rng(seed)
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
    return t, rate, heights[piece], np.concatenate(places), np.concatenate(levels)


def thinning(folder, seed=THINNED):
    """Proposals under a bound, of which those below the rate are events.

    The rate is that of a straight line through a bimodal density, the bound is constant on pieces.
    """
    t, rate, bound, places, levels = proposed(seed)
    below = levels < np.interp(places, t, rate)
    figure, axes = plt.subplots(figsize=(4.2, 3.2), dpi=220, layout="constrained")
    axes.fill_between(t, rate, color=BLUE, alpha=0.15, lw=0)
    axes.plot(t, rate, color=BLUE, label="rate")
    axes.plot(t, bound, color=GREY, drawstyle="steps-post", label="bound")
    axes.vlines(places[below], 0.0, levels[below], color=RED, lw=0.8)
    axes.plot(
        places[below], levels[below], "o", color=RED, ms=5, label="accepted: an event"
    )
    axes.plot(
        places[~below], levels[~below], "x", color="black", ms=6, label="rejected: thinned"
    )
    axes.set(xlabel="time", ylabel="rate", xlim=(0.0, 6.0), ylim=(0.0, None))
    legible(axes)
    figure.savefig(folder / "thinning.png")
    plt.close(figure)


def predicted_process():
    """The Stochastic Bouncy Particle Sampler on a small logistic regression."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
    batches = pdmp.gradients.Minibatch(
        pdmp.models.LogisticRegression(X, y, prior_scale=1.0), size=60
    )
    return pdmp.SBPS(batches, k=2.0)


def until(found, now):
    """What of a piece of path is known by a time: the rate; the curve of the bound; and which proposals were made.

    A bound is known from where it was computed to the next proposal, before that is made.
    """
    t = np.append(found.times[found.times < now], now)
    rate = t, np.interp(t, found.times, found.rates)
    curves = [(a, b) for a, b in found.bounds if a[0] <= now]
    gap = [[np.nan], [np.nan]]
    curve = np.hstack([np.hstack([c, gap]) for c in curves]) if curves else np.array(gap)
    return rate, curve, found.proposals <= now


def predicted(folder):
    """The rate of the Stochastic Bouncy Particle Sampler under its predicted bound: a picture, and a film."""
    figure, axes = plt.subplots(figsize=(4.2, 3.2), dpi=220, layout="constrained")
    pdmp.plots.rate_and_bound(predicted_process(), proposals=PROPOSALS, seed=3, ax=axes)
    legible(axes)
    figure.savefig(folder / "predicted.png")
    plt.close(figure)

    found = piece(predicted_process(), PROPOSALS, seed=3)
    begin, end = found.times[0], found.times[-1]
    figure, axes = plt.subplots(figsize=(4.2, 3.2), dpi=90, layout="constrained")
    (bound,) = axes.plot([], [], color="black", lw=1.0, label="bound")
    (accepted,) = axes.plot([], [], "o", color=RED, ms=5, label="accepted")
    (thinned,) = axes.plot([], [], "x", color="black", ms=6, label="thinned")
    sticks = axes.vlines([], 0.0, [], color="0.7", lw=0.8, zorder=0)
    (cursor,) = axes.plot([], [], color=GREY, lw=0.8, ls=":")
    high = 1.1 * max(found.rates.max(), found.proposed.max())
    axes.set(
        xlabel="process time",
        ylabel="rate of bounces",
        xlim=(begin, end + 0.02 * (end - begin)),
        ylim=(0.0, high),
    )
    shade = axes.fill_between(
        [], [], color=BLUE, alpha=0.25, lw=0, label="rate, mean of estimates"
    )
    legible(axes)

    def draw(frame):
        now = begin + (end - begin) * (frame + 1) / SLOW
        known, curve, made = until(found, now)
        shade.set_verts(
            [
                np.column_stack(
                    [np.r_[known[0], known[0][::-1]], np.r_[known[1], 0.0 * known[1]]]
                )
            ]
        )
        bound.set_data(*curve)
        for marks, rows in (
            (accepted, made & found.accepted),
            (thinned, made & ~found.accepted),
        ):
            marks.set_data(found.proposals[rows], found.proposed[rows])
        sticks.set_segments(
            [
                [(t, 0.0), (t, b)]
                for t, b in zip(found.proposals[made], found.proposed[made], strict=True)
            ]
        )
        cursor.set_data([now, now], [0.0, high])
        return shade, bound, accepted, thinned, sticks, cursor

    film = FuncAnimation(
        figure, draw, frames=[*range(SLOW), *[SLOW - 1] * HELD], blit=False
    )
    save(film, figure, folder / "predicted.gif")
    plt.close(figure)


def taught(folder):
    """The pictures of the page for teaching, by the code on that page."""
    page = (HERE / "start" / "teaching.md").read_text(encoding="utf-8")
    space, here = {}, os.getcwd()
    try:
        os.chdir(folder)
        for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            exec(compile(code, "teaching.md", "exec"), space)
    finally:
        os.chdir(here)
        plt.close("all")


def started(folder):
    """What `run.plot` shows of the first posterior, by the code on the first page."""
    page = (HERE / "start" / "index.md").read_text(encoding="utf-8")
    code, space = (
        re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1],
        {},
    )
    exec(compile(code, "index.md", "exec"), space)
    plt.gcf().savefig(folder / "start.png", dpi=110)
    plt.close("all")


def draw_all(folder: pathlib.Path) -> None:
    """Whatever is not there yet."""
    folder.mkdir(exist_ok=True)
    if not (folder / "sgld.gif").exists():
        films(folder)
    if not (folder / "thinning.png").exists():
        thinning(folder)
    if not (folder / "predicted.gif").exists():
        predicted(folder)
    taught(folder)  # these always, as their code is on a page
    started(folder)


if __name__ == "__main__":
    draw_all(HERE / "_generated")
