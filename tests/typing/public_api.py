"""What a type checker sees of the public functions: checked by mypy, never run."""

from typing import assert_type

import numpy as np

import discrete
import pdmp


def targets(X: np.ndarray, y: np.ndarray) -> pdmp.Model:
    gaussian = pdmp.models.Gaussian([0.0, 0.0], [1.0, 2.0])
    assert_type(gaussian.dim, int)
    assert_type(gaussian.gradient([0.0, 0.0]), np.ndarray)
    pdmp.models.LinearGaussian(X, y, noise_scale=1.0, prior_scale=1.0)
    return pdmp.models.LogisticRegression(X, y, prior_scale=1.0)


def samplers(model: pdmp.Model) -> list[pdmp.Process]:
    batch = pdmp.gradients.Minibatch(model, size=10, draw="reshuffle")
    anchored = pdmp.gradients.ControlVariate(model, size=1)
    return [
        pdmp.ZigZag(anchored),
        pdmp.BPS(model, refresh_rate=1.0),
        pdmp.BPS(model, thinning=pdmp.thinning.Grid()),
        pdmp.SBPS(batch, k=3.0),
        pdmp.LocalBPS(model),
        discrete.SGLD(batch, step=1e-3),
        discrete.SGLD(batch, step=discrete.schedules.polynomial(1e-3, 1.0, 0.6)),
        discrete.SGHMC(batch, step=1e-3, friction=1.0),
        discrete.SGRRLD(batch, step=1e-3),
    ]


def results(process: pdmp.Process) -> None:
    run = pdmp.sample(process, time=10.0, chains=2, seed=1, warmup=0.1)
    assert_type(run, pdmp.Run)
    assert_type(run.mean(), np.ndarray)
    assert_type(run.var(), np.ndarray)
    assert_type(run.cov(), np.ndarray)
    assert_type(run.draws(100), np.ndarray)
    assert_type(run.ess(), np.ndarray)
    assert_type(run.rhat(), np.ndarray)
    assert_type(run.trajectories, list[pdmp.Trajectory])
    assert_type(run.trajectories[0].times, np.ndarray)
    assert_type(pdmp.load("run.npz"), pdmp.Run)
    run.save("run.npz")


def measures(x: np.ndarray) -> None:
    assert_type(pdmp.diagnostics.ess(x), np.ndarray)
    assert_type(pdmp.diagnostics.ksd(x, -x), float)
    assert_type(pdmp.validation.check_clocks(pdmp.ZigZag(pdmp.models.Banana())).p, float)


def mistakes(model: pdmp.Model) -> None:
    """Each of these must be an error: mypy tells of an ignored one that is not."""
    pdmp.sample(model, time="long")  # type: ignore[arg-type]
    pdmp.gradients.Minibatch(model, size="all")  # type: ignore[arg-type]
    discrete.SGLD(model, steps=1e-3)  # type: ignore[call-arg]
