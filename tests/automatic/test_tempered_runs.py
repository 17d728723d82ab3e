"""`pdmp.sample(model, tempered=True)`, compiled: shares, evidence, files, executors, and what it warns of."""

import concurrent.futures
import math
import warnings

import numpy as np
import pytest

import pdmp
from pdmp.engine.executors import Segments

CENTRES, SDS, WEIGHTS = np.array([[-3.0, 3.0, 0.0], [3.0, -3.0, 1.0]]), np.array([1.0, 0.5]), np.array([0.3, 0.7])


def both(x):
    """Two normals, of which only this is told; the integral of exp(-U) is e²."""
    logs = np.log(WEIGHTS) - 0.5 * ((x - CENTRES) ** 2).sum(axis=1) / SDS**2 - 3.0 * np.log(SDS * math.sqrt(math.tau))
    total = np.logaddexp.reduce(logs)
    return -total - 2.0, (np.exp(logs - total) / SDS**2) @ (x - CENTRES)


MODEL = pdmp.models.from_function(both, 3)


def tempered(**given):
    """A run, most of which are too short for what is asked of them, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sample(**given)


def sample(**given):
    return pdmp.sample(MODEL, tempered=True, progress=False, **given)


@pytest.fixture(scope="module")
def run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sample(seed=1)


def test_shares_and_evidence():
    """Of four short runs: errors below 0.05 that are right within a factor of two, and each estimate within five."""
    runs = [tempered(seed=seed, ess=300) for seed in range(4)]
    assert all(len(found.modes()) == 2 and sum(m.share for m in found.modes()) == pytest.approx(1.0) for found in runs)
    larger = [next(mode for mode in found.modes() if mode.mean[0] > 0.0) for found in runs]
    for estimates, truth in (
        ([(mode.share, mode.error) for mode in larger], 0.7),
        ([found.log_evidence[:2] for found in runs], 2.0),
    ):
        value, error = np.array(estimates).T
        z = (value - truth) / error
        assert error.max() < 0.05 and np.abs(z).max() < 5.0 and 0.3 < np.sqrt(np.mean(z**2)) < 2.0
    assert np.allclose([mode.mean for mode in larger], CENTRES[1], atol=0.1)
    assert np.allclose([mode.sd for mode in larger], 0.5, atol=0.1)
    assert max(found.stats["data_terms"] + found.stats["preparation_gradients"] for found in runs) < 100_000


def test_modes_of_different_widths():
    """A narrow one off to the side has 0.3; shares within four errors of 400 independent draws, log Z within 0.09."""
    weights = np.array([0.2, 0.5, 0.3])
    model = pdmp.models.GaussianMixture([[-5, 0, 0], [5, 0, 0], [0, 8, 0]], np.square([0.5, 1.5, 0.3]), weights)
    model.initial = np.zeros(3)
    for seed in (1, 2, 3):
        found = pdmp.sample(model, tempered=True, progress=False, seed=seed)
        shares = sorted((mode.share, mode.mean[0]) for mode in found.modes())
        assert np.allclose([mean for _, mean in shares], [-5.0, 0.0, 5.0], atol=0.3)
        off = np.array([share for share, _ in shares]) - np.sort(weights)
        assert np.all(np.abs(off) < 4.0 * np.sqrt(np.sort(weights * (1.0 - weights)) / 400.0))
        assert abs(found.log_evidence.value) < 0.09


def test_a_run_is_one_of_the_others(run, tmp_path):
    """Averages are those of all draws; a file has modes and evidence; arrays of rungs fit together."""
    modes = run.modes()
    mean = sum(mode.share * mode.mean for mode in modes)
    assert np.allclose(mean, pdmp.diagnostics.averages.diagnostic_draws(run).mean(axis=(0, 1)))
    assert np.allclose(run.mean(), WEIGHTS @ CENTRES, atol=0.4) and run.summary().warnings == []
    assert run.info["choice"].startswith(
        "parallel tempering with 3 rungs, of HMC with paths of 1 to 4 steps; the reference has 2"
    )
    assert run.stats["restarts"] >= 50 and abs(run.stats["restarts"] - run.stats["round_trips"]) <= 3 * run.chains
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    assert repr(loaded.modes()) == repr(modes) and loaded.log_evidence == run.log_evidence
    kept = run.records[0].accumulated
    n = len(kept["rungs/betas"])
    assert kept["rungs/rejections"].shape == kept["rungs/acceptances"].shape == (n - 1,)
    assert kept["rungs/works"].shape[1] == n and len(kept["reference/modes"]) == len(kept["reference/weights"]) - 1
    left, right = pdmp.plots.rungs(run).axes
    lines = [line.get_ydata() for line in left.lines]
    assert [len(y) for y in lines[1:]] == [n - 1] * 4 and np.array_equal(lines[1], kept["rungs/rejections"])
    slope = np.trapezoid(right.lines[0].get_ydata(), kept["rungs/betas"])
    assert abs(-slope - run.log_evidence.value) < 1.0  # by a rule of three points
    factor = pdmp.evidence(run, loaded)
    assert factor.value == 0.0 and factor.error == pytest.approx(math.sqrt(2.0) * run.log_evidence.error)


def test_the_same_bits(tmp_path):
    """In a pool, with a bar, extended, and resumed from a file."""
    whole = tempered(seed=3, events=120)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [tempered(seed=3, events=120, executor=Segments(pool, 0.01))]
    runs += [tempered(seed=3, events=60).extend(events=120)]
    tempered(seed=3, events=60, checkpoint=tmp_path / "file")
    runs.append(tempered(seed=3, events=120, checkpoint=tmp_path / "file"))
    for found in runs:
        assert np.array_equal(found.draws(120), whole.draws(120)) and found.log_evidence == whole.log_evidence


def test_what_it_says_of_a_banana():
    """Its ridge is 18 sds long and bent: few effective draws of a run that is too short, by name."""
    with pytest.warns(UserWarning, match="effective draws of") as heard:
        found = pdmp.sample(pdmp.models.Banana(), tempered=True, seed=1, ess=5_000, gradients=3_000)
    said = {str(w.message).rstrip(".") for w in heard}
    assert len(found.modes()) == 1 and said <= found.said | {str(heard[-1].message).rstrip(".")}
