"""Schedules, and stationary laws of samplers of fixed steps."""

from __future__ import annotations

import numpy as np

import discrete
import pdmp
from discrete import laws
from tests.answers import case
from tests.recorded import moved

PRECISION = moved([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
NOISE = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.0]])
SAMPLERS = ("SGLD", "SGBD", "SGHMC", "BAOAB", "UBU", "SGNHT", "MSGNHT", "BADODAB")


def batch():
    """Gradients of batches of five of forty rows of a logistic regression."""
    rng = np.random.default_rng(2024)
    x = moved(rng.standard_normal((40, 3)))
    y = (rng.random(40) < 1.0 / (1.0 + np.exp(-x @ [1.0, -0.5, 0.3]))).astype(float)
    return pdmp.gradients.Minibatch(pdmp.models.LogisticRegression(x, y), 5)


@case
def schedules():
    s = discrete.schedules
    made = [s.constant(0.2), s.polynomial(0.04, 2.0, 0.6), s.power(0.02, 0.3), s.cyclical(0.02, 5, exploration=0.4)]
    return [[[schedule.step(k), float(schedule.explores(k))] for k in range(12)] for schedule in made]


@case
def langevin_covariance():
    one = laws.langevin_covariance(PRECISION, NOISE, 0.1)
    return [one, laws.langevin_covariance(PRECISION, NOISE, 0.1, 0.3 * np.eye(3))]


@case
def barker_covariance():
    return {kind: laws.barker_covariance(PRECISION, NOISE, 0.2, kind) for kind in ("plain", "corrected", "extreme")}


def settings(name):
    """The largest stable step, what is chosen for a covariance that is given, and the bias left."""
    process = getattr(discrete, name)(batch(), 0.01)
    chosen, worst = process.choose_settings(PRECISION, NOISE, 0.1)
    return {"limit": process.stability_limit(4.0), "worst": worst, **chosen}


for name in SAMPLERS:
    case(lambda name=name: settings(name), f"settings of {name}")
