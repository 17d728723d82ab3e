"""Other modes of sub-sampled posteriors: what some rows show, which are told, and where rows are expanded."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp.automatic import row_modes, subsampling
from pdmp.automatic.modes import Hidden
from pdmp.automatic.row_modes import SomeRows, beside, modes_of_rows
from pdmp.automatic.start import Gaussian, Path
from pdmp.formulas import fitting
from pdmp.models.numerical import below_saddle
from pdmp.models.priors import Normal
from tests.checks import plain_only

pytestmark = pytest.mark.exact

SEED = 5


def seed():
    return np.random.SeedSequence(SEED)


def squared(n=160, mean=0.2, tilt=0.0, initial=None):
    """y = (b² + tilt b) x + noise: a mode on each side of 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    p = pdmp.Parameters(b=1)
    rows = pdmp.terms(lambda y, x, b: 0.5 * (y - (b * b + tilt * b) * x) ** 2, [0.5 * x + rng.normal(size=n), x], [p.b])
    return pdmp.models.sum_of_terms(p, [rows], priors={"b": Normal(mean, 1.0)}, initial=initial)


@pytest.fixture(autouse=True)
def _fewer_rows(monkeypatch):
    monkeypatch.setattr(row_modes, "SOME_ROWS", 40)
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 100)


def of_two_kinds(same=False):
    """Many rows of one loss and few of another; of one datum alike, if they are the same."""
    rng = np.random.default_rng(1)
    y = np.full(120, 0.7) if same else rng.normal(size=120)
    p = pdmp.Parameters(a=1, b=1)
    many = pdmp.terms(lambda y, a, b: 0.5 * (y - a) ** 2 + 0.1 * a * b, [y], [p.a, p.b])
    few = pdmp.terms(lambda z, b: np.exp(z * b), [rng.normal(size=30)], [p.b])
    return pdmp.models.sum_of_terms(p, [many, few], priors={"a": Normal(0.3, 2.0), "b": Normal(-0.2, 0.5)})


def test_some_rows_stand_for_all():
    """Rows that are alike add up to all of them; those of a kind with few are all there, once."""
    model, x = of_two_kinds(same=True), np.array([0.4, -1.1])
    some = SomeRows(model, np.random.default_rng(2))
    assert [len(rows) for rows in some.rows] == [40, 30]
    assert np.array_equal(some.rows[1], 120 + np.arange(30))
    assert some.potential(x) == pytest.approx(model.potential(x), rel=1e-12)
    np.testing.assert_allclose(some.gradient(x), model.gradient(x), rtol=1e-12)


def test_some_rows_are_drawn_from_all():
    """Without replacement, from one end to the other; another seed draws others; the gradient is that of U."""
    model, x = of_two_kinds(), np.array([0.4, -1.1])
    some, other = (SomeRows(model, np.random.default_rng(k)) for k in (2, 3))
    rows = some.rows[0]
    assert len(set(rows.tolist())) == 40
    assert rows.min() < 20
    assert rows.max() > 100
    assert not np.array_equal(rows, other.rows[0])
    for j in range(2):
        e = 1e-6 * np.eye(2)[j]
        assert (some.potential(x + e) - some.potential(x - e)) / 2e-6 == pytest.approx(some.gradient(x)[j], rel=1e-6)


def test_both_modes_with_what_they_hold():
    """Against quadrature of both sides."""
    model = squared()
    known, spent = modes_of_rows(model, model.mode(), seed())
    assert [float(np.sign(mode.gaussian.centre[0])) for mode in known] == [1.0, -1.0]
    grid = np.linspace(-1.3, 1.3, 401)
    log = np.array([-model.potential([b]) for b in grid])
    mass = [np.exp(log - log.max())[side].sum() for side in (grid < 0.0, grid > 0.0)]
    assert known[0].behind == 0.0
    assert known[1].behind == pytest.approx(np.log(mass[1] / mass[0]), abs=0.05)
    right = np.exp(log - log.max()) * (grid > 0.0)
    mean = right @ grid / right.sum()
    assert known[0].gaussian.centre[0] == pytest.approx(mean, abs=0.02)
    assert known[0].gaussian.root[0, 0] == pytest.approx(np.sqrt(right @ (grid - mean) ** 2 / right.sum()), rel=0.1)
    assert spent > 30


def tilted():
    """Two modes of different widths, in two coordinates that correlate: c is near 2b, the nearer the larger b is.

    And the potential in NumPy.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=160)
    y, p = 0.5 * x + rng.normal(size=160), pdmp.Parameters(b=1, c=1)
    rows = pdmp.terms(lambda y, x, b: 0.5 * (y - b * b * x) ** 2, [y, x], [p.b])
    link = pdmp.terms(lambda b, c: 2.0 * np.exp(2.0 * b) * (c - 2.0 * b) ** 2, at=[p.b, p.c])
    model = pdmp.models.sum_of_terms(p, [rows, link], priors={"b": Normal(0.2, 1.0), "c": Normal(0.0, 9.0)})

    def potential(b, c):
        fitted = 0.5 * (y @ y - 2.0 * b**2 * (x @ y) + b**4 * (x @ x))
        return fitted + 2.0 * np.exp(2.0 * b) * (c - 2.0 * b) ** 2 + 0.5 * (b - 0.2) ** 2 + 0.5 * (c / 9.0) ** 2

    return model, potential


def test_widths_count_and_coordinates_may_correlate():
    """Against quadrature of both sides: that of the smaller b has four times the width in c."""
    model, potential = tilted()
    known, _ = modes_of_rows(model, model.mode(), seed())
    b, c = np.meshgrid(np.linspace(-1.2, 1.2, 161), np.linspace(-5.0, 5.0, 401), indexing="ij")
    log = -potential(b, c)
    weight = np.exp(log - log.max())
    left = weight[b < 0.0].sum() / weight[b > 0.0].sum()
    by_side = {bool(mode.gaussian.centre[0] > 0.0): mode for mode in known}
    assert by_side[True].behind - by_side[False].behind == pytest.approx(np.log(left), abs=0.15)
    assert np.log(left) > 0.8  # without the widths it is below 0
    own = weight * (b < 0.0) / weight[b < 0.0].sum()
    covariance = np.cov(np.stack([b.ravel(), c.ravel()]), aweights=own.ravel())
    root = by_side[False].gaussian.root
    np.testing.assert_allclose(root @ root.T, covariance, rtol=0.15)


def test_paths_begin_around_a_centre(monkeypatch):
    """The one that is given, or else the model's own start."""
    model, begun = squared(), []

    def origins(target, centre, metric, rng):
        begun.append(np.array(centre))
        return iter([np.array([-0.5])] * 99)

    monkeypatch.setattr(row_modes, "origins", origins)
    modes_of_rows(model, model.mode(), seed())
    modes_of_rows(model, model.mode(), seed(), np.array([0.4]))
    np.testing.assert_array_equal(begun, [model.initial, [0.4]])


@pytest.mark.parametrize("behind", [2.9, 3.1, -2.0, -50.0])
def test_beside_an_anchor_are_those_not_far_behind_it(behind):
    one = Hidden(Gaussian(np.array([0.7]), np.full((1, 1), 0.05)), 0.0)
    other = one._replace(gaussian=replace(one.gaussian, centre=-one.gaussian.centre))
    known = [one._replace(behind=4.0), other._replace(behind=4.0 + behind)]
    for modes in (known, known[::-1]):
        here, found = beside(modes, one.gaussian.centre)
        assert here is one.gaussian
        assert [mode.behind for mode in found] == ([pytest.approx(behind)] if behind < 3.0 else [])


@pytest.mark.parametrize(("distance", "is_apart"), [(2.99, False), (3.01, True)])
def test_modes_three_standard_deviations_apart_are_two(distance, is_apart):
    """Of the first of the two, in whatever direction; with a barrier between them if one is asked for."""
    one, other = (Gaussian(np.array([1.0, -2.0]), root) for root in (np.array([0.1, 5.0]), np.array([9.0, 9.0])))
    other = replace(other, centre=one.at(distance * np.array([0.6, -0.8])))
    slope = SimpleNamespace(potential=lambda x: 0.0)
    assert row_modes.apart(slope, one, other, 0.0) == is_apart and not row_modes.apart(slope, one, other, 1e-9)


def test_one_mode_is_one():
    """That of a logistic regression, and of a ridge that rises little between its ends."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    p = pdmp.Parameters(beta=2)
    y = (rng.random(120) < 0.5).astype(float)
    rows = pdmp.terms(lambda y, z: pdmp.terms.softplus(z) - y * z, [y], [X @ p.beta])
    model = pdmp.models.sum_of_terms(p, [rows], priors={"beta": Normal(0.0, 1.0)})
    assert len(modes_of_rows(model, model.mode(), seed())[0]) == 1


def test_low_barriers_part_nothing():
    """Two minima with 2.6 between them are one mode."""
    p = pdmp.Parameters(b=1)
    low = pdmp.terms(lambda y, b: y * (b * b - 1.0) ** 2, [np.full(100, 0.026)], [p.b])
    high = pdmp.terms(lambda y, b: y * (b * b - 1.0) ** 2, [np.full(100, 0.056)], [p.b])
    found = []
    for rows in (low, high):
        model = pdmp.models.sum_of_terms(p, [rows], priors={"b": Normal(0.0, 10.0)}, initial={"b": 0.5})
        found.append(len(modes_of_rows(model, model.mode(), seed())[0]))
    assert found == [1, 2]


def test_another_mode_is_warned_of():
    model = squared()
    with pytest.warns(UserWarning, match=r"a mode that no chain is in.*b = -0\.\d+.*about 0\.\d+ times their mass"):
        process = pdmp.auto(model, seed=1)
    assert len(process.prepared.cautions) == 1
    assert "no chain is in" in process.prepared.cautions[0]
    assert process.prepared.choice.endswith("there is a mode that no chain is in")
    assert process.anchor[0] > 0.0


def test_where_no_path_settles_at_the_mode_others_are_not_sought(monkeypatch):
    """And it is not said that there are none."""
    monkeypatch.setattr(row_modes, "find_path", lambda *_: Path(None, -np.inf, False))
    process = pdmp.auto(squared(), seed=1)
    assert process.prepared.choice.endswith("; other modes were not sought")
    assert not process.prepared.cautions


def test_rows_are_expanded_where_most_of_the_mass_is():
    """The search for the mode ends on the side where it begins; the other side has more of the mass."""
    model = squared(tilt=0.5, mean=-2.5, initial={"b": -0.7})
    left, right = model.mode(), model.mode([0.7])
    assert left[0] < 0.0 < right[0]
    heavier = left if model.potential(left) < model.potential(right) else right
    lighter = right if heavier is left else left
    model = squared(tilt=0.5, mean=-2.5, initial={"b": float(lighter[0])})
    assert model.mode()[0] == pytest.approx(lighter[0], abs=1e-6)
    process = pdmp.auto(model, seed=1)
    assert process.anchor[0] == pytest.approx(heavier[0], abs=1e-6)
    assert not process.prepared.cautions
    assert np.sign(process.prepared.starts).tolist() == np.full((4, 1), np.sign(heavier[0])).tolist()


def test_a_search_leaves_a_saddle():
    """Between the two sides, where U is symmetric, its slope is 0."""
    model = squared(mean=0.0)
    assert model.gradient([0.0])[0] == 0.0
    assert model.mode()[0] == pytest.approx(0.7, abs=0.05)
    assert model.mode([-0.1])[0] == pytest.approx(-model.mode()[0], rel=1e-6)
    assert below_saddle(model, model.mode()) is None


def test_the_lower_side_of_a_saddle():
    """Of one that is no longer symmetric; the first of two that are alike."""
    quartic = pdmp.models.from_function(
        lambda x: (x[0] ** 4 - x[0] ** 2 + 0.1 * x[0] ** 3, 4 * x**3 - 2 * x + 0.3 * x**2), 1
    )
    assert below_saddle(quartic, np.zeros(1))[0] == pytest.approx(-1.0 / np.sqrt(2.0), rel=1e-4)
    even = pdmp.models.from_function(lambda x: (x[0] ** 4 - x[0] ** 2, 4 * x**3 - 2 * x), 1)
    assert below_saddle(even, np.zeros(1))[0] == pytest.approx(1.0 / np.sqrt(2.0), rel=1e-4)
    assert below_saddle(even, np.full(1, 0.1)) is None  # which is concave, and no saddle


def outlying(share):
    """A line, and a share of rows on another, far from it, of a Student-t law."""
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=100), rng.permutation(100) < share * 100
    table = {"y": np.where(other, 4.0 - x, -4.0 + x) + 0.1 * rng.normal(size=100), "x": x}
    return pdmp.regression("y ~ x", table, family="student_t", sample=False).model


class Anchored:
    """What is asked of a process."""

    def __init__(self, anchor):
        self.anchor = anchor


@plain_only
@pytest.mark.slow
def test_of_student_t_regressions_other_modes_are_told():
    """Of two clusters that are alike each has a mode; a gaussian law has one, and is not looked at."""
    model = outlying(0.5)
    narrow = model.mode([-0.9, 0.2, -2.0, -1.0])
    with pytest.warns(UserWarning, match="a mode that no chain is in"):
        said = fitting.other_modes(model, Anchored(narrow), 1)
    assert len(said) == 1
    assert fitting.other_modes(outlying(0.02), Anchored(outlying(0.02).mode()), 1) == []
    rng = np.random.default_rng(0)
    table = {"y": rng.normal(size=50), "x": rng.normal(size=50)}
    model = pdmp.regression("y ~ x", table, sample=False).model
    assert fitting.other_modes(model, Anchored(model.mode()), 1) == []


def test_a_path_begins_at_an_image_of_the_mode(monkeypatch):
    """No other path is there to find it; less what the priors say the two modes hold as much."""
    monkeypatch.setattr(row_modes, "PATHS", 0)
    model = squared()
    assert len(modes_of_rows(model, model.mode(), seed())[0]) == 1
    monkeypatch.setattr(type(model), "images", lambda self, x: [-x])
    known, _ = modes_of_rows(model, model.mode(), seed())
    assert [float(np.sign(mode.gaussian.centre[0])) for mode in known] == [1.0, -1.0]
    assert known[1].behind == pytest.approx(2.0 * 0.2 * known[0].gaussian.centre[0], rel=0.1)
