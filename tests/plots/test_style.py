"""Colours for readers without red or green cones, the coordinates that are chosen, and labels that do not overlap."""

import inspect
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import pdmp
from pdmp import plots
from pdmp.models.transforms import Log
from pdmp.plots import style
from tests.toys import Walls

pytestmark = pytest.mark.exact

# Machado, Oliveira & Fernandes (2009), A physiologically-based model for simulation of color vision deficiency, IEEE
# TVCG 15: linear RGB as it is seen, at severity 1.
SEEN = {
    "all cones": np.eye(3),
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
#: Linear RGB (sRGB primaries) to XYZ, and the white point D65.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour, matrix):
    """CIELAB coordinates of "#rrggbb" seen through a matrix."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = XYZ @ np.clip(matrix @ linear, 0.0, 1.0) / WHITE
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


def test_the_conversion_to_lab():
    """The values of sRGB red and white that every table has."""
    np.testing.assert_allclose(lab("#FF0000", np.eye(3)), [53.24, 80.09, 67.20], atol=0.02)
    np.testing.assert_allclose(lab("#FFFFFF", np.eye(3)), [100.0, 0.0, 0.0], atol=0.02)


@pytest.mark.parametrize("eyes", SEEN)
def test_colours_can_be_told_apart(eyes):
    """A difference of 25 is plain at a glance: 2.3 is what is just noticed."""
    seen = [lab(colour, np.array(SEEN[eyes])) for colour in style.COLOURS]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert len(distances) == 45 and min(distances) > 25.0
    assert max(colour[0] for colour in seen) < 75.0  # dark enough on white


def test_there_is_a_marker_for_each_kind_of_event():
    assert len(set(style.MARKERS)) == len(style.MARKERS) == pdmp.process.MAX_KINDS


def told(**values):
    """A run that says what it is told to."""
    run = pdmp.sample(Walls(6), initial=np.zeros(6), events=60, seed=1)
    for name, value in values.items():
        setattr(run, name, lambda *args, value=value: value)
    return run


def test_coordinates_that_hang_together(monkeypatch):
    """The two most correlated, of either sign; then what is most correlated with any of those that were chosen."""
    x = np.random.default_rng(0).standard_normal((2, 4_000, 5))
    for k, of, rho in ((1, 0, -0.9), (2, 1, 0.7), (3, 0, 0.66), (4, 2, 0.5)):
        x[..., k] = rho * x[..., of] + np.sqrt(1.0 - rho * rho) * x[..., k]
    monkeypatch.setattr(style, "draws_of", lambda run, most: x)
    run = SimpleNamespace(dim=5)
    correlation = np.abs(np.corrcoef(x.reshape(-1, 5).T))
    first, second = np.unravel_index(np.argmax(correlation - np.eye(5)), (5, 5))
    chosen = {int(first), int(second)}
    assert style.most_correlated(run, 2) == sorted(chosen) == [0, 1]
    for most in (3, 4, 5):
        rest = [k for k in range(5) if k not in chosen]
        chosen.add(max(rest, key=lambda k: max(correlation[k, j] for j in chosen)))
        assert style.most_correlated(run, most) == sorted(chosen)
    assert correlation[1, 2] > correlation[0, 3] > correlation[0, 2]  # the third by the second, not by the first
    assert correlation[0, 3] > correlation[2, 4] > correlation[2, 3]  # the fourth by the first, not by the third


def test_the_coordinates_with_the_fewest_effective_draws():
    run = told(ess=np.array([50.0, 3.0, 90.0, np.nan, 7.0, 60.0]), rhat=np.array([1.0, 1.1, np.nan, 1.0, 1.3, 1.2]))
    assert style.choose(run, None, 3) == ([1, 3, 4], "3 of 6 coordinates: those with the fewest effective draws")
    assert style.choose(run, None, 2, "rhat") == ([4, 5], "2 of 6 coordinates: those with the largest R-hat")
    assert style.choose(run, None, 6) == ([0, 1, 2, 3, 4, 5], "")
    assert style.choose(run, ["x[4]", 1], 1) == ([4, 1], "")
    assert style.choose(run, 2, 1) == ([2], "") and style.choose(run, "x[2]", 1) == ([2], "")


@pytest.mark.parametrize("given", [[6], [-1], ["beta"], [0.5], []])
def test_coordinates_that_are_refused(given):
    said = r"`coordinates` must be some of 0 … 5, or their names, got \[.*; the names are 'x\[0\]', "
    with pytest.raises(ValueError, match=said):
        style.choose(told(), given, 2)


def test_a_natural_parameter_is_told_from_a_name_that_is_none():
    potential = pdmp.models.from_function(
        lambda x: (0.5 * float(x @ x), x), 2, transforms={"s": Log()}, variables={"s": (), "b": ()}
    )
    run = pdmp.sample(pdmp.ZigZag(potential), events=60, seed=1)
    for given, why in (("s", "'s' is a natural parameter, and pictures are of the coordinates; "), ("c", "")):
        with pytest.raises(ValueError, match=rf"got \['{given}'\]; {why}the names are 'log\(s\)', 'b'.$"):
            style.choose(run, given, 1)


@pytest.mark.parametrize("given", [2, -1, 0.5, True])
def test_chains_that_are_refused(given, plane):
    for draw in (plots.marginals, plots.pairs, plots.trace, plots.autocorrelation, plots.trajectory):
        with pytest.raises(ValueError, match=f"`chain` must lie in 0 … 1, got {given}"):
            draw(plane, chain=given)


def test_a_page_needs_the_path():
    moments = pdmp.sample(Walls(3), initial=np.zeros(3), events=400, store="moments", seed=1)
    with pytest.raises(ValueError, match='needs the path, of which `store="moments"` keeps none'):
        plots.overview(moments)


def test_chains_count_by_their_lengths(plane):
    lengths = plane.end - plane.warmup
    assert lengths[0] != lengths[1]
    np.testing.assert_allclose(style.chain_weights(plane), lengths / lengths.sum())


DRAWN = [name for name in plots.__all__ if name not in ("compare", "overview", "report")]


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_takes_where_to_draw(name):
    """And says in its docstring what comes back."""
    function = getattr(plots, name)
    assert {"ax", "axes"} & inspect.signature(function).parameters.keys()
    assert "matplotlib.axes.Axes" in inspect.getdoc(function).partition("Returns")[2]


@pytest.mark.parametrize("name", ["trajectory", "autocorrelation", "event_rates"])
def test_what_is_drawn_on_the_axes_given_is_returned(name, plane):
    figure, axes = pyplot.subplots()
    assert getattr(plots, name)(plane, ax=axes) is axes
    assert len(figure.axes) == 1 and len(axes.lines) > 0
    assert len(pyplot.get_fignums()) == 1  # no other figure is made


@pytest.mark.parametrize(("name", "shape"), [("trace", (2,)), ("marginals", (2,)), ("ranks", (2,)), ("pairs", (2, 2))])
def test_what_is_drawn_on_several_axes_is_returned(name, shape, plane):
    axes = pyplot.subplots(1, int(np.prod(shape)), squeeze=False)[1]
    found = getattr(plots, name)(plane, axes=axes)
    assert found.shape == shape and all(a is b for a, b in zip(found.ravel(), axes.ravel(), strict=True))
    assert len(pyplot.get_fignums()) == 1
    with pytest.raises(ValueError, match=rf"`axes` must be {len(axes.ravel())}, one for each panel, got 1"):
        getattr(plots, name)(plane, [0, 1], axes=axes[0, :1])
    made = getattr(plots, name)(plane)
    panels = made.axes if name == "ranks" else np.ravel(made)  # `ranks` has always returned its figure
    assert len(panels) == np.prod(shape) and all(isinstance(panel, Axes) for panel in panels)


def test_the_style_of_the_user_is_left_alone(line):
    with pyplot.rc_context({"font.size": 17.0, "axes.spines.top": True}):
        before = dict(pyplot.rcParams)
        plots.trajectory(line)
        assert dict(pyplot.rcParams) == before and before["font.size"] == 17.0


# -- figures that nobody sees -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["one", "another"])
def test_no_figure_is_left_by_another_test(which):
    assert not pyplot.get_fignums()
    pyplot.figure()


@pytest.mark.parametrize("name", ["trajectory", "overview", "ranks"])
def test_a_figure_that_is_returned_is_one_that_pyplot_shows(name, plane):
    assert getattr(plots, name)(plane).number in pyplot.get_fignums()


# -- what is not right ------------------------------------------------------------------------------------------------

OF_A_RUN = [name for name in plots.__all__ if "run" in inspect.signature(getattr(plots, name)).parameters]


@pytest.mark.parametrize("name", OF_A_RUN)
@pytest.mark.parametrize("given", [np.zeros((2, 5, 3)), None, "run.npz"])
def test_what_is_no_run_is_refused(name, given):
    with pytest.raises(
        TypeError, match=f"^`run` must be a run, which `pdmp.sample` returns, got {type(given).__name__}.$"
    ):
        getattr(plots, name)(given)


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "reliability"])
def test_where_nothing_can_be_drawn_is_refused(name, plane):
    kind = "ax" if "ax" in inspect.signature(getattr(plots, name)).parameters else "axes"
    what = "a matplotlib Axes" if kind == "ax" else "matplotlib Axes, one for each panel"
    subject = SimpleNamespace(table=[], best={}, clock="steps") if name == "tuning" else plane
    for given in (3, pyplot.figure()):
        with pytest.raises(TypeError, match=f"^`{kind}` must be {what}, got {type(given).__name__}.$"):
            getattr(plots, name)(subject, **{kind: given})
    with pytest.raises(TypeError, match="`ax` must be a matplotlib Axes, got int"):
        plots.reliability([0, 1], [0.2, 0.7], ax=3)


@pytest.mark.parametrize("name", [*(name for name in OF_A_RUN if name not in ("inclusion", "rungs")), "reliability"])
def test_a_picture_that_fails_leaves_no_figure(name, plane, monkeypatch):
    """But those of the caller stay."""
    own = pyplot.figure()

    def broken(*args, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(Figure, "add_subplot", broken)
    with pytest.raises(MemoryError):
        getattr(plots, name)(*([[0, 1], [0.2, 0.7]] if name == "reliability" else [plane]))
    assert pyplot.get_fignums() == [own.number]


def test_other_subjects_than_a_picture_has(plane, tmp_path):
    comparison = "a comparison, which `pdmp.compare` returns"
    run = "a run, which `pdmp.sample` returns"
    for call, what in (
        (lambda: plots.compare(plane), f"`table` must be {comparison}, got Run"),
        (lambda: plots.report(plane, tmp_path / "r.html"), f"`table` must be {comparison}, got Run"),
        (lambda: plots.tuning(plane), "`result` must be a search, which `pdmp.tuning.mamba` returns, got Run"),
        (lambda: plots.error_by_cost(np.zeros(2)), f"`result` must be {comparison}, or {run}, got ndarray"),
        (
            lambda: plots.error_by_cost(plane, np.zeros(2)),
            f"`reference` must be a reference, which `pdmp.reference` returns, or {run}, got ndarray",
        ),
    ):
        with pytest.raises(TypeError, match=f"^{re.escape(what)}.$"):
            call()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="`cost` must be one of 'data_passes', .*, got \\['seconds'\\]"):
        plots.error_by_cost(plane, plane, ["seconds"])
    with pytest.raises(TypeError, match="missing .* 'run'"):
        plots.trace()


def test_settings_of_pictures_that_are_refused(plane):
    for call, error, what in (
        (
            lambda: plots.trajectory(plane, events="many"),
            ValueError,
            "`events` must be a whole number, at least 1, got 'many'",
        ),
        (lambda: plots.ranks(plane, bins=0), ValueError, "`bins` must be a whole number, at least 1, got 0"),
        (lambda: plots.ranks(plane, draws=2.5), ValueError, "`draws` must be a whole number, at least 1, got 2.5"),
        (lambda: plots.autocorrelation(plane, lags="long"), ValueError, "`lags` must be positive, got 'long'"),
        (lambda: plots.trace(plane, 0.5), ValueError, "`coordinates` must be some of 0 … 1, or their names"),
    ):
        with pytest.raises(error, match=what):
            call()


# -- logarithmic axes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "first"), [((2.9, 2.0), 0), ((7.2, 4.0), 2)])
def test_labels_of_logarithmic_axes_are_apart_and_enough(size, first):
    """Of ranges from a factor of 1.3 to eight decades, wherever they begin."""
    with pyplot.rc_context(style.STYLE):
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    for k, decades in enumerate((0.12, 0.3, 0.6, 1.0, 1.35, 1.7, 2.0, 2.6, 4.0, 8.0)):
        for begin in (-4.3, -1.9, 0.0, 0.31, 1.48, 1.75, 3.65)[(2 * first + k) % 6 :: 6]:
            low, high = 10.0**begin, 10.0 ** (begin + decades)
            axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
            style.log_ticks(axes, "x"), style.log_ticks(axes, "y")
            figure.draw_without_rendering()
            for axis, side in ((axes.xaxis, 0), (axes.yaxis, 1)):
                ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() * (1 + 1e-9) <= high * (1 + 2e-9)]
                boxes = sorted(tuple(t.label1.get_window_extent().get_points()[:, side]) for t in ticks)
                assert 2 <= len(ticks) <= 20
                assert all(a[1] + 1.0 < b[0] for a, b in zip(boxes, boxes[1:], strict=False)), (low, high, side)
                assert all(len(t.label1.get_text()) > 0 for t in ticks)
                assert not any(t.label1.get_text() for t in axis.get_minor_ticks())
