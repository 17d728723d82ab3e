"""What is drawn of paths: positions at every vertex, events by kind, and long paths in short."""

import numpy as np
import pytest

import pdmp
from pdmp import plots
from pdmp.plots import paths
from tests.toys import Ellipses

pytestmark = pytest.mark.exact


def labelled(axes, name):
    """The one line with this label."""
    (found,) = [one for one in axes.lines if one.get_label() == name]
    return found


@pytest.mark.parametrize("chain", [0, 1])
def test_events_are_marked_by_kind(chain, plane):
    figure = plots.trajectory(plane, chain=chain, events=50)
    path = plane.trajectories[chain]
    first = np.searchsorted(path.times, path.warmup, side="right")
    axes, above, below = figure.axes
    rows = np.arange(first, first + 50)
    for kind, name in enumerate(path.events):
        at = rows[path.kinds[rows - 1] == kind]
        assert len(at) > 3
        np.testing.assert_allclose(labelled(axes, name).get_xydata(), path.positions[at])
        for panel, column in ((above, 0), (below, 1)):
            np.testing.assert_allclose(
                labelled(panel, name).get_xydata(), np.column_stack([path.times[at], path.positions[at, column]])
            )
    line = axes.lines[0].get_xydata()
    np.testing.assert_allclose(line[0], path.at(path.warmup))
    np.testing.assert_allclose(line[1:], path.positions[rows])


def test_the_last_piece_of_a_path_that_is_shown_whole(plane):
    path = plane.trajectories[0]
    axes = plots.trajectory(plane, events=10_000).axes[1]
    assert axes.lines[0].get_xdata()[-1] == path.end > path.times[-1] - 1e-12
    np.testing.assert_allclose(axes.lines[0].get_ydata()[-1], path.at(path.end)[0])


def test_only_events_that_change_the_velocities_shown_are_marked(wide):
    """Of a local process most events are those of other coordinates."""
    axes = plots.trajectory(wide, ["x[3]", 7], events=1_000).axes[0]
    path = wide.trajectories[0]
    v = path.velocities[:1_001]
    changed = np.flatnonzero(np.any(np.diff(v[:, [3, 7]], axis=0) != 0.0, axis=1)) + 1
    assert 0 < len(changed) < 150
    np.testing.assert_allclose(labelled(axes, "event").get_xydata(), path.positions[changed][:, [3, 7]])


@pytest.mark.parametrize("given", [[0], [0, 0], [0, 1, 2]])
def test_a_plane_has_two_coordinates(given, wide):
    with pytest.raises(ValueError, match="`coordinates` must be (at least )?2 of 0 … 49, or their names"):
        plots.trajectory(wide, given)


# -- against time ----------------------------------------------------------------------------------------------------


def test_the_trace_is_the_path_itself(plane):
    panels = plots.trace(plane)
    assert [panel.get_ylabel() for panel in panels] == ["x[0]", "x[1]"]
    for k, panel in enumerate(panels):
        drawn = [one for one in panel.lines if len(one.get_xdata()) > 100]
        assert len({one.get_color() for one in drawn}) == len(drawn) == 2
        for one, path in zip(drawn, plane.trajectories, strict=True):
            times, x = one.get_xydata().T
            assert times[0] == 0.0 and times[-1] == path.end and set(path.times) <= set(times)
            np.testing.assert_allclose(x, path.at(times)[:, k], atol=1e-12)
        (grey,) = panel.patches
        assert (grey.get_x(), grey.get_width()) == (0.0, plane.warmup.max())
        assert panel.get_xlim() == (0.0, plane.end.max())


def test_the_warm_up_that_is_in_sight_is_grey(plane):
    """From the first time that is shown, or its beginning, to the end of the longest of all chains."""
    warm, end = float(plane.warmup.max()), float(plane.end.max())
    assert warm > 0.0
    for a, b, wanted in ((0.4 * warm, end, (0.4 * warm, warm)), (0.2 * warm, 0.7 * warm, (0.2 * warm, 0.7 * warm))):
        for panel in plots.trace(plane, between=(a, b)):
            (grey,) = panel.patches
            box = grey.get_bbox()
            assert (box.x0, box.x1) == pytest.approx(wanted) and panel.get_xlim() == pytest.approx((a, b))


def test_between_two_times_with_the_events_there(plane):
    path = plane.trajectories[1]
    a, b = path.times[40] - 1e-6, path.times[60] + 1e-6
    panel = plots.trace(plane, ["x[1]"], chain=1, between=(a, b))[0]
    times, x = panel.lines[0].get_xydata().T
    np.testing.assert_allclose(times, [a, *path.times[40:61], b])
    np.testing.assert_allclose(x, path.at(times)[:, 1])
    marked = np.concatenate([one.get_xydata() for one in panel.lines[1:]])
    np.testing.assert_allclose(
        marked[np.argsort(marked[:, 0])], np.column_stack([path.times[40:61], path.positions[40:61, 1]])
    )
    assert len(panel.lines) == 3 and not panel.patches  # two kinds of event; the warm-up is over
    assert panel.get_xlim() == (a, b)
    for wrong in ((3.0, 3.0), (-1.0, 2.0), (4.0, 3.0)):
        with pytest.raises(ValueError, match="`between` must be two process times"):
            plots.trace(plane, between=wrong)


@pytest.mark.parametrize(("events", "marked"), [(60, True), (61, False)])
def test_up_to_sixty_events_of_a_path_are_marked(events, marked, plane):
    path = plane.trajectories[1]
    between = (path.times[40] - 1e-9, path.times[40 + events - 1] + 1e-9)
    panel = plots.trace(plane, ["x[1]"], chain=1, between=between)[0]
    assert len(panel.lines) == 1 + 2 * marked  # kinds of event
    assert sum(len(one.get_xdata()) for one in panel.lines[1:]) == events * marked


def test_an_elliptic_path_is_curved_between_its_events():
    run = pdmp.sample(Ellipses(), time=20.0, initial=[0.5, -1.0, 0.2], seed=5)
    times, x = plots.trace(run, [0])[0].lines[0].get_xydata().T
    assert np.diff(times).max() < 0.1001
    np.testing.assert_allclose(x, run.trajectories[0].at(times)[:, 0], atol=1e-12)


@pytest.mark.parametrize("name", ["wide", "ticks"])
def test_a_long_path_in_short(name, request, monkeypatch):
    """The smallest and the largest value in each part of the time, by reading the path at very many times."""
    run = request.getfixturevalue(name)
    path = run.trajectories[0]
    monkeypatch.setattr(paths, "COLUMNS", 40)
    monkeypatch.setattr(paths, "VERTICES", 100)
    ((times, x),) = paths.path_lines(path, [1], 0.0, path.end)
    edges = np.linspace(0.0, path.end, 41)
    assert np.allclose(times[::2], 0.5 * (edges[:-1] + edges[1:])) and np.array_equal(times[::2], times[1::2])
    for k in range(40):
        inside = path.times[(path.times > edges[k]) & (path.times < edges[k + 1])]
        last = edges[k + 1] if path.moving else np.nextafter(edges[k + 1], 0.0)
        y = path.at(np.concatenate([[edges[k]], inside, np.linspace(edges[k], last, 200)]))[:, 1]
        np.testing.assert_allclose([x[2 * k], x[2 * k + 1]], [y.min(), y.max()], atol=1e-9)


def test_a_chain_that_ended_before(plane):
    late = plane.end.max()
    panel = plots.trace(plane, [0], between=(0.5 * (plane.end.min() + late), late))[0]
    lengths = [len(one.get_xdata()) for one in panel.lines if one.get_marker() == "None"]
    assert len(lengths) == 2 and panel.get_xlim()[1] == late
