"""Automatic steps of the samplers with a momentum, on targets whose curvature at the mode is not the largest."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from discrete.curvature import largest_curvature
from discrete.schedules import Constant
from pdmp.diagnostics.summary import step_warning

pytestmark = pytest.mark.exact

KINETIC = (discrete.BAOAB, discrete.UBU, discrete.SGHMC)


class Quartic(pdmp.Model):
    """U = Σ xⱼ⁴/4 + a xⱼ²/2: the curvature is 3x² + a, a at the mode."""

    a: float

    def __init__(self, a=0.1, dim=3):
        super().__init__(dim=dim)
        self.a = a

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.25 * x[j] ** 4 + 0.5 * self.a * x[j] ** 2
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j] ** 3 + self.a * x[j]


@pytest.mark.parametrize("sampler", [*KINETIC, discrete.SGNHT, discrete.BADODAB])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of large powers of unstable steps, which are tried
@pytest.mark.parametrize("precision", [[1.0], [1.0, 4.0, 100.0]])
def test_the_step_leaves_room_for_larger_curvature(sampler, precision):
    process = sampler(pdmp.models.Gaussian(np.zeros(len(precision)), precision)).resolve(np.zeros(len(precision)))
    assert 0.05 < process.schedule.step(0) ** 2 * max(precision) <= 1.0 + 1e-12


@pytest.mark.parametrize("sampler", KINETIC)
def test_curvature_is_looked_at_beside_the_mode(sampler):
    process = sampler(Quartic()).resolve(np.zeros(3))
    # The largest of 24 squared normal numbers with variance 10 is between 10 and 160 but for 1 in 500 seeds.
    assert 10.0 < largest_curvature(process.provider, np.zeros(3), 0.1 * np.eye(3)) < 480.0
    assert 1.0 / math.sqrt(480.0) < process.schedule.step(0) < 1.0 / math.sqrt(10.0)


@pytest.mark.parametrize("sampler", KINETIC)
def test_a_posterior_that_is_flat_at_its_mode_has_its_law(sampler):
    """E x² for exp(-x⁴/4 - 0.05 x²) is 0.630 by quadrature; it diverged before."""
    x = np.linspace(-6.0, 6.0, 20_001)
    density = np.exp(-(x**4) / 4.0 - 0.05 * x**2)
    truth = float(np.sum(x**2 * density) / np.sum(density))
    run = pdmp.sample(sampler(Quartic()), steps=6_000, warmup=0.1, initial=np.zeros(3), seed=1)
    # 540 time units with correlation times of a few: the sum over three coordinates has a relative error of 4 %.
    assert float(np.mean(run.var() + run.mean() ** 2)) == pytest.approx(truth, rel=0.2)
    assert not any("Metropolis" in text for text in run.summary().warnings)


def test_a_step_that_a_metropolis_test_would_reject_warns():
    process = discrete.BAOAB(pdmp.models.Gaussian(np.zeros(3), np.ones(3))).resolve(np.zeros(3))
    process.schedule = Constant(1.6)  # as if ε²λ were 0.1 at the mode; where the path is it is 2.56
    process.energy_error = 3.0 * 0.1**3 / 32.0
    for store in ("moments", "skeleton"):
        with pytest.warns(UserWarning, match="a Metropolis test would accept [3-6].% .* 99% were expected"):
            run = pdmp.sample(process, steps=300, initial=np.full(3, 0.1), seed=3, store=store)
    assert step_warning(run)[0] in run.summary().warnings
    found, expected = process.report.step_acceptance(process, run.draws(64)[0], np.random.default_rng(1))
    assert found < 0.7 * expected < 0.7
    assert step_warning(pdmp.sample(process, steps=40, initial=np.full(3, 0.1), seed=3)) == []  # too few states


def test_the_acceptance_of_a_leapfrog_step_on_a_gaussian_is_that_expected():
    """α = erfc(√E / 2) for a normal energy error of mean E (Neal, 2011, section 5.4.4), near it for 40 coordinates."""
    process = discrete.BAOAB(pdmp.models.Gaussian(np.zeros(40), np.ones(40))).resolve(np.zeros(40))
    x = np.random.default_rng(0).standard_normal((400, 40))
    found, expected = process.report.step_acceptance(process, x, np.random.default_rng(1))
    assert process.energy_error == pytest.approx(40.0 / 32.0 * process.schedule.step(0) ** 6)
    assert found == pytest.approx(expected, abs=0.06)  # 400 draws: three standard errors
    uneven = discrete.BAOAB(pdmp.models.Gaussian(np.zeros(3), [1.0, 4.0, 9.0])).resolve(np.zeros(3))
    squares = uneven.schedule.step(0) ** 2 * np.array([1.0, 4.0, 9.0])
    assert uneven.energy_error == pytest.approx(np.sum(squares**3) / 32.0)


def test_steps_to_where_the_energy_is_not_a_number_would_not_be_accepted():
    class Edge(Quartic):
        @pdmp.compiled
        def potential(self, x):
            return math.nan if x[0] > 0.5 else 0.5 * x[0] * x[0]

    process = discrete.BAOAB(Edge(dim=1), step=0.3)
    process.energy_error = 0.01
    x = np.linspace(-1.0, 0.4, 50)[:, None]
    found, _ = process.report.step_acceptance(process, x, np.random.default_rng(1))
    assert 0.5 < found < 0.95


def test_points_at_which_curvatures_are_looked_at():
    """Eight of the normal law around the mode, of many dimensions fewer, but two; of a quadratic U none."""
    for d, points in ((1, 8), (50, 8), (51, 7), (133, 3), (134, 2), (300, 2)):
        seen = []

        def hessian(x, d=d, seen=seen):
            seen.append(x)
            np.exp(np.full(1, 1e3))  # overflows, which nobody is told
            return np.eye(d) * (5.0 if len(seen) == 2 else math.nan if len(seen) == 1 else 1.0)

        model = SimpleNamespace(hessian=hessian, has=lambda name: False)
        of = SimpleNamespace(model=model), np.full(d, 3.0), 4.0 * np.eye(d)
        assert largest_curvature(*of) == 5.0 and len(seen) == points
        if d == 300:
            assert np.mean((np.array(seen) - 3.0) ** 2) == pytest.approx(0.25, rel=0.2)  # four standard errors
        seen.clear()
        assert largest_curvature(*of, own=lambda hessian: 2.0 * hessian) == 10.0
        model.has = lambda name: name == "affine_partial"
        seen.clear()
        assert largest_curvature(*of) == 4.0 and not seen
        assert largest_curvature(*of[:2], np.diag(np.arange(1.0, d + 1.0))) == pytest.approx(d)


def test_steps_to_where_nothing_is_finite_are_not_accepted():
    """And nobody is warned of it."""
    process = discrete.BAOAB(Quartic(), step="auto").resolve(np.zeros(3))
    near, far = np.zeros((4, 3)), np.full((4, 3), 1e100)
    found = [process.report.step_acceptance(process, x, np.random.default_rng(1))[0] for x in (near, far)]
    assert found[0] > 0.5 and found[1] == 0.0
    both = process.report.step_acceptance(process, np.concatenate([near, far]), np.random.default_rng(1))[0]
    assert both == pytest.approx(0.5 * found[0])
