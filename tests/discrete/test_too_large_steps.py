"""A step that is several times too large is said at the end of a run, with one that is not; a usual one never."""

import re
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine.visited import FEW, _gradients, large_step_warning
from pdmp.models.numerical import prior_gradient

pytestmark = pytest.mark.exact

#: Standard deviations 1 and 1/2, so that the second coordinate is named where both are off by as much of their own.
GAUSSIAN = pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0])
COLUMN = np.random.default_rng(1).standard_normal(12)
LOGISTIC = pdmp.models.LogisticRegression(np.column_stack([np.ones(12), COLUMN]), (COLUMN > np.sin(9.0 * COLUMN)) * 1.0)
START = [[1.0, -1.0], [0.5, 2.0], [-1.0, 0.0]]

MAKES = {
    "SGBD": (lambda s: discrete.SGBD(GAUSSIAN, scale=s), "scale", 2.5, 0.4, 'scale="auto"'),
    "SGZZ": (lambda s: discrete.SGZZ(GAUSSIAN, step=s), "step", 3.0, 0.4, None),
    "BPSSplitting": (lambda s: discrete.BPSSplitting(GAUSSIAN, step=s, refresh_rate=0.5), "step", 6.0, 0.4, None),
    "SGLD": (lambda s: discrete.SGLD(LOGISTIC, step=s), "step", 1.2, 0.1, 'step="auto"'),
    "BAOAB": (lambda s: discrete.BAOAB(LOGISTIC, step=s), "step", 2.0, 0.5, 'step="auto"'),
}


@pytest.mark.parametrize("name", MAKES)
def test_a_step_that_is_too_large_is_said_and_one_that_is_not_is_not(name):
    make, called, large, small, chosen = MAKES[name]
    with pytest.warns(UserWarning, match=f"the draws of {name} have not the law of ") as caught:
        run = pdmp.sample(make(large), steps=500, warmup=0.1, seed=1, initial=START, chains=3)
    (said,) = [str(one.message) for one in caught if "have not the law" in str(one.message)]
    found = re.search(
        rf"\. Its {called}, {large:.4g}, is too large: give ([\d.e-]+) or less(, or .*)?, or the warm-up", said
    )
    assert 0.0 < float(found[1]) <= 0.5 * large
    assert found[2] == (chosen and f", or {chosen}") and "larger batches" not in said
    x, gradients = _gradients(run, FEW, of_batches=True)
    means = ((x - x.mean(axis=(0, 1))) * gradients).mean(axis=(0, 1))
    k = int(np.argmax(np.abs(np.log(means))))
    assert f"(x - mean) ∂U/∂x of {run.names()[k]} is {means[k]:.2g}, with an error of " in said
    assert run.process.smaller_step(float(means[k])) in said and f"{means[k]:.2g}" != f"{means[1 - k]:.2g}"
    assert means[k] > 2.0 and [text.rstrip(".") for text in run.summary().warnings].count(said.rstrip(".")) == 1
    calm = pdmp.sample(make(small), steps=500, warmup=0.1, seed=1, initial=START, chains=3)
    assert not calm.info["wrong_gradient"]


def test_a_law_that_is_too_narrow_is_said():
    """A step of 2.6 standard deviations of the first coordinate, which moves by less than it would, on a lattice."""
    narrow = r"of ZigZagSplitting have .* of x\[0\] is 0\.[234]\d?, .* give 0\.\d+ or less"
    with pytest.warns(UserWarning, match=narrow), pytest.warns(UserWarning, match="stays on points that are ε = 2.6"):
        pdmp.sample(discrete.ZigZagSplitting(pdmp.models.Gaussian([0.0], [1.0]), step=2.6), steps=1_000, seed=1)


def test_noise_of_batches_that_is_too_large_is_said_from_further_batches():
    """Of fewer passes over the data than gradients of all data could be paid from; the mean is that of all data."""
    rows = np.random.default_rng(2)
    x = np.column_stack([np.ones(2_000), rows.standard_normal(2_000)])
    model = pdmp.models.LinearGaussian(x, x @ [1.0, -1.0] + rows.standard_normal(2_000))
    batches = pdmp.gradients.Minibatch(model, 20)
    for step, wrong in ((2e-4, True), (2e-6, False)):
        hot = discrete.SGLD(batches, step=step)
        with pytest.warns(UserWarning) as caught:
            run = pdmp.sample(hot, steps=3_000, warmup=0.2, seed=3, chains=2)
        assert run.stats["data_passes"] < 100
        said = [str(one.message) for one in caught if "have not the law" in str(one.message)]
        assert len(said) == wrong
        if wrong:
            assert 'or step="auto", or larger batches, or the warm-up' in said[0]
            k, mean = re.search(r"of x\[(\d)\] is ([\d.e+]+),", said[0]).groups()
            exact = np.linalg.inv(model.hessian(np.zeros(2)))[int(k), int(k)]
            assert float(mean) == pytest.approx(run.var()[int(k)] / exact, rel=0.4) and float(mean) > 5.0


def test_laws_that_are_meant_to_be_others_or_have_no_bias_are_not_spoken_of():
    runs = [
        (discrete.SGLD(GAUSSIAN, step=0.05, temperature=5.0), True),
        (discrete.SGLD(GAUSSIAN, step=0.05), False),
        (discrete.BPSSplitting(GAUSSIAN, step=6.0, refresh_rate=0.5, adjusted=True), True),
        (discrete.MALA(GAUSSIAN, step=2.0, adapt=False), True),
        (discrete.SGD(pdmp.gradients.Noisy(GAUSSIAN, 9.0), step=0.1), True),
    ]
    for process, silent in runs:
        assert (process.smaller_step(2.0) is None) == silent
        run = pdmp.sample(process, steps=1_000, warmup=0.1, seed=2, initial=START, chains=3)
        assert not large_step_warning(run)


@pytest.mark.parametrize(("factor", "said"), [(1.0, False), (1.8, False), (4.0, True), ("falling", False)])
def test_descent_that_goes_to_and_fro_around_the_mode_is_said(factor, said):
    """Where U is no quadratic function the last step is compared with the curvature where the path was on average."""
    mode = LOGISTIC.mode(np.zeros(2))
    limit = 2.0 / np.linalg.eigvalsh(LOGISTIC.hessian(mode))[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = discrete.schedules.power(2.0 * limit, 0.5) if factor == "falling" else 0.5 * factor * limit
        run = pdmp.sample(discrete.GD(LOGISTIC, step=step), steps=900, seed=1, initial=[0.0, 0.1])
    assert bool(run.info["doubts"]) == said
    if said:
        (text,) = run.info["doubts"]
        there = 2.0 / np.linalg.eigvalsh(LOGISTIC.hessian(run.mean()))[-1]
        named = re.search(
            r"^the step of GD, (\S+), is above .* the path, (\S+), for .* there, (\S+): .* give (\S+) or", text
        )
        given, found, curvature, cure = map(float, named.groups())
        assert given == pytest.approx(2.0 * limit, rel=1e-3) and found == pytest.approx(there, rel=0.02)
        assert curvature * found == pytest.approx(2.0, rel=1e-2) and cure == pytest.approx(0.5 * found, rel=0.05)


@pytest.mark.parametrize(
    ("process", "off", "said"),
    [
        (discrete.SGBD(GAUSSIAN, scale=2.0), 4.0, 'Its scale, 2, is too large: give 0.37 or less, or scale="auto"'),
        (discrete.SGZZ(GAUSSIAN, step=2.0), 0.25, "Its step, 2, is too large: give 0.067 or less"),
        (discrete.BPSSplitting(GAUSSIAN, step=2.0), 1e9, "Its step, 2, is too large: give 0.063 or less"),
        (
            discrete.SGLD(pdmp.gradients.Noisy(GAUSSIAN, 1.0), step=0.5),
            1.1,
            'Its step, 0.5, is too large: give 0.25 or less, or step="auto", or larger batches',
        ),
    ],
)
def test_the_step_that_is_named(process, off, said):
    """By the order of the bias to a tenth, at most the half, and as of a bias of 100 where it is larger."""
    assert process.smaller_step(off) == said


def test_gradients_of_batches_are_those_of_all_data_and_the_prior():
    """On average over the draws, where the prior's part is many times its error."""
    rows = np.random.default_rng(2)
    x = np.column_stack([np.ones(400), rows.standard_normal(400)])
    model = pdmp.models.LinearGaussian(x, x @ [1.0, -1.0] + rows.standard_normal(400), prior_scale=0.03)
    process = discrete.SGLD(pdmp.gradients.Minibatch(model, 20), step=1e-5)
    run = pdmp.sample(process, steps=1_500, warmup=0.2, seed=3, chains=2, initial=[0.3, -0.3])
    draws, found = _gradients(run, FEW, of_batches=True)
    away = (found - [[model.gradient(at) for at in chain] for chain in draws]).reshape(-1, 2)
    error = away.std(axis=0) / len(away) ** 0.5
    assert np.all(np.abs(away.mean(axis=0)) < 4.0 * error)
    assert np.all(np.abs(prior_gradient(model, draws.mean(axis=(0, 1)))) > 10.0 * error) and np.all(error > 0.0)
