"""Stein discrepancies of draws from the target: their means are known."""

import math

import numpy as np

from pdmp.diagnostics import fssd, ksd, scores, sliced_ksd, stein
from pdmp.gradients import Minibatch
from pdmp.models import LinearGaussian
from tests.checks import assert_unbiased


def test_u_statistics_of_draws_from_the_target_have_mean_zero_and_v_the_known_one():
    """E KSD² = (E|s|² c^2β - 2βd c^(2β - 2)) / P of the V-statistic; for (1 + ρ)^-½, (E|s|² + d) / P."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 100, 2)) * [1.0, 2.0]
    s = -x / [1.0, 4.0]
    u = [ksd(a, b, statistic="u", threads=1) for a, b in zip(x, s, strict=True)]
    assert_unbiased(u, 0.0, resolution=0.006)
    v = [ksd(a, b, threads=1) ** 2 for a, b in zip(x, s, strict=True)]
    assert_unbiased(v, (1.25 + 2.0) / 100, resolution=0.006)
    b = 0.7**-0.6
    v = [ksd(a, c, stein.imq(0.7, -0.3), threads=1) ** 2 for a, c in zip(x, s, strict=True)]
    assert_unbiased(v, (1.25 * b + 1.2 * b / 0.49) / 100, resolution=0.008)
    moved = [ksd(a + [0.3, 0.0], b, statistic="u", threads=1) for a, b in zip(x, s - [0.3, 0.0], strict=True)]
    assert np.mean(moved) > 0.02


def test_noisy_scores_leave_the_u_statistic_unbiased():
    rng = np.random.default_rng(4)
    a = rng.standard_normal((20, 1))
    model = LinearGaussian(a, a[:, 0] + rng.standard_normal(20))
    mean, covariance = model.posterior()
    found, squares = [], []
    for seed in range(300):
        x = mean + math.sqrt(covariance[0, 0]) * rng.standard_normal((60, 1))
        noisy = scores(Minibatch(model, 5), x, seed=seed)
        found.append(ksd(x, noisy, statistic="u", threads=1))
        squares.append(ksd(x, noisy, threads=1) ** 2 - ksd(x, scores(model, x), threads=1) ** 2)
    assert_unbiased(found, 0.0, resolution=1.5)
    assert np.mean(squares) > 5.0 * np.std(squares) / math.sqrt(300)  # the diagonal sees the noise


def test_fssd_of_draws_from_the_target_is_unbiased_about_zero():
    rng = np.random.default_rng(7)
    v = rng.standard_normal((5, 2))
    found = []
    for _ in range(400):
        x = rng.standard_normal((100, 2))
        found.append(fssd(x, -x, v, optimise=False, statistic="u", kernel=stein.gaussian(1.0)))
    assert_unbiased(found, 0.0, resolution=0.0015)
    assert 0.3 < np.mean(np.array(found) < 0.0) < 0.9


def test_slices_see_in_many_dimensions_what_they_should():
    rng = np.random.default_rng(10)
    x = rng.standard_normal((300, 20))
    right = sliced_ksd(x, -x, optimise=False, statistic="u")
    x[:, 3] += 0.5
    wrong = sliced_ksd(x, -x, optimise=False, statistic="u")
    turned = sliced_ksd(x, -x, statistic="u", iterations=10)
    assert abs(right) < 0.06 < 0.12 < min(wrong, turned)


def test_ksd_falls_as_the_root_of_the_draws_and_rises_with_what_is_wrong():
    """Of 2,000 draws of a normal law in two dimensions: shifts of 0, 0.1 and 0.3, and a variance too large."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((2_000, 2))
    few, many = (np.mean([ksd(a, -a) ** 2 for a in x.reshape(-1, n, 2)]) for n in (100, 400))
    assert 3.0 < few / many < 5.4  # KSD² falls as 1 / draws
    shifted = [ksd(x + m, -x - m) for m in (0.0, 0.1, 0.3)]
    np.testing.assert_allclose(shifted, [0.052, 0.117, 0.298], atol=0.03)
    assert ksd(1.2 * x, -1.2 * x) > 1.8 * shifted[0]


def test_scores_integrate_by_parts():
    """E [s f + f'] = 0 on a normal law, for f = x, x² and sin x."""
    rng = np.random.default_rng(13)
    model = LinearGaussian(np.ones((4, 1)), np.array([1.0, 2.0, 0.0, 1.0]))
    mean, covariance = model.posterior()
    x = mean + math.sqrt(covariance[0, 0]) * rng.standard_normal((100, 1_000, 1))
    s = scores(model, x.reshape(-1, 1)).reshape(x.shape)
    each = [s * x + 1.0, s * x**2 + 2.0 * x, s * np.sin(x) + np.cos(x)]
    assert_unbiased(np.stack([e.mean(axis=(1, 2)) for e in each], axis=1), 0.0, resolution=0.1)
