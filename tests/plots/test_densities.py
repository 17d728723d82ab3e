"""What is drawn of the posterior: histograms, references, atoms, correlations, probabilities of selection."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.patches import StepPatch
from scipy import stats

import pdmp
from pdmp import plots
from pdmp.plots import densities, style

pytestmark = pytest.mark.exact


def stairs(panel):
    """The histograms of a panel: the filled one of all chains first, then that of each, and of the reference."""
    return [patch for patch in panel.patches if isinstance(patch, StepPatch)]


def test_histograms_are_densities_of_the_draws(plane):
    panels = plots.marginals(plane)
    x, weights = style.draws_of(plane), plane.end - plane.warmup
    for k, panel in enumerate(panels):
        pooled, *each = stairs(panel)
        edges = pooled.get_data().edges
        assert len(edges) == densities.BINS + 1 and len(each) == 2
        for one, column in zip(each, x[:, :, k], strict=True):
            inside = np.histogram(column, edges)[0] / len(column)
            np.testing.assert_allclose(one.get_data().values * np.diff(edges), inside)
        mixed = np.average([one.get_data().values for one in each], axis=0, weights=weights)
        np.testing.assert_allclose(pooled.get_data().values, mixed)
        assert 0.99 < np.sum(mixed * np.diff(edges)) <= 1.0 and pooled.get_fill() and not each[0].get_fill()
        low, high = np.quantile(x[:, :, k], [0.001, 0.999])
        np.testing.assert_allclose(edges[[0, -1]], [low - 0.05 * (high - low), high + 0.05 * (high - low)])
        assert each[0].get_edgecolor() != each[1].get_edgecolor()


def test_references(plane, ticks):
    seen = []

    def density(x, j):
        seen.append(j)
        return stats.norm.pdf(x, [0.0, 1.0][j], [1.0, 2.0][j])

    for k, panel in enumerate(plots.marginals(plane, reference=density)):
        points, height = panel.lines[0].get_xydata().T
        np.testing.assert_allclose(height, density(points, k))
        assert panel.lines[0].get_color() == "black"
    assert set(seen) == {0, 1}
    draws = np.random.default_rng(0).standard_normal((3, 200, 2))
    for given, x in ((draws, draws.reshape(-1, 2)), (ticks, style.draws_of(ticks).reshape(-1, 2))):
        for k, panel in enumerate(plots.marginals(plane, reference=given)):
            last = stairs(panel)[-1]
            values, edges = last.get_data().values, last.get_data().edges
            np.testing.assert_allclose(values * np.diff(edges), np.histogram(x[:, k], edges)[0] / len(x))
        assert panel.figure.get_suptitle() == "black: the reference"
    far = stairs(plots.marginals(plane, [0], reference=draws + 20.0)[0])[-1].get_data()  # it is in sight too
    assert np.sum(far.values * np.diff(far.edges)) > 0.99
    for wrong in (np.zeros((5, 3)), np.full((5, 2), np.nan), [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"`reference` must have finite draws of shape \(..., 2\)"):
            plots.marginals(plane, reference=wrong)


@pytest.fixture(scope="module")
def selection():
    """A coefficient that is certain, one that is certainly 0 for much of the time, and a third."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3))
    model = pdmp.models.SpikeAndSlabLinearRegression(X, X @ [3.0, 0.0, 0.4] + rng.standard_normal(30))
    return pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), events=400, chains=2, seed=1)


def test_an_atom_at_zero(selection):
    panels = plots.marginals(selection)
    x, weights = style.draws_of(selection), style.chain_weights(selection)
    shares = weights @ np.mean(x == 0.0, axis=1)
    assert shares[0] == 0.0 and shares[1] > 0.3
    assert not panels[0].lines and not panels[0].texts
    assert panels[1].texts[0].get_text() == f"P(= 0) = {shares[1]:.2f}"
    assert np.array_equal(panels[1].lines[0].get_xdata(), [0.0, 0.0])
    # The rest of the probability is the area of the histogram.
    pooled = stairs(panels[1])[0].get_data()
    assert np.sum(pooled.values * np.diff(pooled.edges)) == pytest.approx(1.0 - shares[1], abs=0.003)


def test_an_atom_of_unequal_chains(selection, monkeypatch):
    """Chains weigh as they are long, in the probability and in the histogram of the rest."""
    x, weights = style.draws_of(selection).copy(), np.array([0.85, 0.15])
    x[1, : 9 * x.shape[1] // 10, 1] = 0.0
    monkeypatch.setattr(densities, "draws_of", lambda run: x)
    monkeypatch.setattr(densities, "chain_weights", lambda run: weights)
    share = weights @ np.mean(x[:, :, 1] == 0.0, axis=1)
    assert abs(share - np.mean(x[:, :, 1] == 0.0)) > 0.05
    panel = plots.marginals(selection)[1]
    assert panel.texts[0].get_text() == f"P(= 0) = {share:.2f}"
    pooled = stairs(panel)[0].get_data()
    assert np.sum(pooled.values * np.diff(pooled.edges)) == pytest.approx(1.0 - share, abs=0.003)


@pytest.mark.parametrize(("zeros", "is_atom"), [(3, False), (4, False), (5, True)])
def test_more_than_a_hundredth_of_zeros_is_an_atom(zeros, is_atom, selection, monkeypatch):
    x = np.random.default_rng(2).standard_normal((2, 200, 3))
    x[:, :zeros, 1] = 0.0
    x[1, :zeros, 1] = 1.0  # of one chain alone
    monkeypatch.setattr(densities, "draws_of", lambda run: x)
    monkeypatch.setattr(densities, "chain_weights", lambda run: np.array([0.5, 0.5]))
    panel = plots.marginals(selection)[1]
    assert [text.get_text() for text in panel.texts] == ["P(= 0) = 0.01"] * is_atom and len(panel.lines) == is_atom


def test_probabilities_of_selection_and_their_errors(selection):
    axes = plots.inclusion(selection)
    p = pdmp.diagnostics.inclusion(selection)
    error = pdmp.diagnostics.inclusion(selection, errors=True)
    np.testing.assert_array_equal(error.value, p)
    assert [bar.get_width() for bar in axes.patches] == p.tolist()
    (container,) = axes.containers[1:]
    line, _, (bars,) = container
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([p, range(3)]))
    for k, ((left, _), (right, _)) in enumerate(bars.get_segments()):
        wide = 2.0 * error.error[k] if np.isfinite(error.error[k]) else 0.0
        assert (left, right) == pytest.approx((max(p[k] - wide, 0.0), min(p[k] + wide, 1.0)), abs=1e-9)
    assert error.error[1] > 0.0 and [t.get_text() for t in axes.get_yticklabels()] == selection.names()
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first coefficient is above
    one = plots.inclusion(selection, chain=1)
    assert one.patches[1].get_width() == pdmp.diagnostics.inclusion(pdmp.diagnostics.split(selection)[1])[1] != p[1]


def test_errors_of_probabilities_end_at_0_and_1(selection, monkeypatch):
    p = pdmp.diagnostics.inclusion(selection)
    known = pdmp.diagnostics.Estimate(p, np.array([0.0, 0.2, 0.6]))
    monkeypatch.setattr(densities, "inclusion_of", lambda run, errors: known)
    (_, _, (bars,)) = plots.inclusion(selection).containers[1]
    for segment, one, error in zip(bars.get_segments(), p, (0.0, 0.2, 0.6), strict=True):
        assert segment[:, 0] == pytest.approx([max(one - 2.0 * error, 0.0), min(one + 2.0 * error, 1.0)])


def test_of_many_coefficients_the_most_probable_are_shown(selection, monkeypatch):
    monkeypatch.setattr(densities, "MOST_INCLUDED", 2)
    axes = plots.inclusion(selection)
    best = np.sort(np.argsort(-pdmp.diagnostics.inclusion(selection))[:2])
    assert [t.get_text() for t in axes.get_yticklabels()] == [selection.names()[k] for k in best]
    assert axes.figure.get_suptitle() == "2 of 3 coordinates: those that are most probably selected"


def test_no_selection_without_sticking(plane):
    with pytest.raises(ValueError, match="inclusion is for runs of sticky processes"):
        plots.inclusion(plane)


# -- pairs -----------------------------------------------------------------------------------------------------------


def test_pairs(plane):
    panels = plots.pairs(plane)
    x, weights = style.draws_of(plane), style.chain_weights(plane)
    step = 2 * style.DRAWS // densities.POINTS
    points = panels[1, 0].lines
    assert len(points) == 2 and points[0].get_color() != points[1].get_color()
    for one, draws in zip(points, x, strict=True):
        assert np.array_equal(one.get_xydata(), draws[::step])
    flat, w = x.reshape(-1, 2), np.repeat(weights, x.shape[1])
    off = flat - np.average(flat, axis=0, weights=w)
    covariance = (w[:, None] * off).T @ off
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert panels[0, 1].texts[0].get_text() == f"{expected:.2f}" and not panels[0, 1].axison


def test_contours_enclose_these_shares(plane):
    draws = np.random.default_rng(0).multivariate_normal([0.0, 1.0], [[1.0, 0.6], [0.6, 4.0]], 3_000)
    panel = plots.pairs(plane, reference=draws)[1, 0]
    (contour,) = panel.collections
    (turned,) = plots.pairs(plane, [1, 0], reference=draws)[1, 0].collections
    for one, other in zip(contour.get_paths(), turned.get_paths(), strict=True):
        ends, swapped = one.get_extents().get_points(), other.get_extents().get_points()[:, ::-1]
        np.testing.assert_allclose(swapped, ends, atol=0.05)
    for share, path in zip((0.99, 0.9, 0.5), contour.get_paths(), strict=True):
        inside = np.zeros(len(draws), bool)
        for polygon in path.to_polygons():
            inside |= pyplot.matplotlib.path.Path(polygon).contains_points(draws)
        assert inside.mean() == pytest.approx(share, abs=0.03)


def test_pairs_in_one_dimension_and_of_a_coordinate_that_never_moved(line):
    (panel,) = plots.pairs(line).ravel()
    assert stairs(panel)
    still = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])), events=40, seed=1)
    still.draws = lambda n: np.column_stack([np.arange(float(n)), np.full(n, 2.0)])[None]
    panels = plots.pairs(still)
    assert panels[0, 1].texts[0].get_text() == "nan" and not panels[1, 0].collections
