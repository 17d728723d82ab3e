"""What is drawn of errors against costs, of a comparison's report, of predictions and of tuning on axes given."""

import base64
import html
import io
import re
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest
from matplotlib import pyplot

from pdmp import plots
from pdmp.comparison import Comparison, Path, Reference, Verdict
from pdmp.plots import comparisons, style

pytestmark = pytest.mark.exact

TRUTH = Reference(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.diag([1.0, 4.0]), np.zeros((20, 2)), 1.0, 400.0)


def row(label, **values):
    return dict.fromkeys(Comparison.COLUMNS, float("nan")) | {"sampler": label, "setting": ""} | values


@pytest.fixture
def table():
    """A comparison that was written down, not run."""
    rng = np.random.default_rng(0)
    truth = Reference(
        TRUTH.mean, TRUTH.sd, TRUTH.cov, rng.standard_normal((50, 2)) * [1.0, 2.0] + [0.0, 1.0], 1.0, 400.0
    )
    passes = np.array([1.0, 10.0, 100.0])
    rows = [
        row("ticks <&>", data_passes=100.0, seconds=4.0, events=300.0, mean_error=0.3, setting="step 0.5"),
        row("moves", data_passes=50.0, seconds=1.0, events=500.0, mean_error=0.4),
        row("broken"),
    ]
    labels = ["ticks <&>", "moves"]
    rms = {"ticks <&>": (passes, np.array([0.9, 0.5, 0.4])), "moves": (0.5 * passes, np.array([0.8, 0.3, 0.1]))}
    x = rng.standard_normal((300, 2))
    kinds = {"ticks <&>": "constant", "moves": "linear"}
    return Comparison(
        rows,
        {label: (at, 0.8 * error) for label, (at, error) in rms.items()},
        truth,
        ["a", "b"],
        {label: rng.standard_normal((2, 30, 2)) for label in labels},
        {label: Path(x, 0.1 * np.arange(300), 0.1 * np.arange(300), kinds[label]) for label in labels},
        "a title",
        ["reference: <known>", "broken failed: why"],
        {
            "ticks <&>": Verdict("biased", "the sd of b is off by 40 %"),
            "moves": Verdict("fine", "all is well"),
            "broken": Verdict("failed", "see below"),
        },
        rms,
    )


@pytest.mark.parametrize(
    ("cost", "each"),
    [
        ("data_passes", {"ticks <&>": 1.0, "moves": 1.0}),
        ("gradients", {"ticks <&>": 1.0, "moves": 1.0}),
        ("seconds", {"ticks <&>": 0.04, "moves": 0.02}),
        ("events", {"ticks <&>": 3.0, "moves": 10.0}),
    ],
)
def test_errors_of_a_comparison_by_cost(cost, each, table):
    axes = plots.error_by_cost(table, cost=cost)
    for line, (name, (passes, error)) in zip(axes.lines, table.rms_by_pass.items(), strict=False):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([passes * each[name], error]))
    (floor,) = [one for one in axes.lines if len(set(one.get_ydata())) == 1 and one.get_color() == "0.55"]
    assert floor.get_ydata()[0] == pytest.approx(0.05)  # the rms error of a mean of 400 draws


def test_densities_are_of_draws_from_the_first_to_the_last(table, monkeypatch):
    """Of chains that are in two places one after the other both are seen, where only some of the draws are smoothed."""
    from scipy import stats

    seen, density = [], stats.gaussian_kde
    monkeypatch.setattr(stats, "gaussian_kde", lambda x: seen.append(x) or density(x))
    monkeypatch.setattr(comparisons, "CONTOURED", 20)
    plots.compare(table)
    np.testing.assert_array_equal(seen[0], table.reference.draws[::3].T)
    x = np.repeat([-5.0, 5.0], 3_000) + np.random.default_rng(1).standard_normal(6_000)
    low, high = style.kernel_density(x, np.array([-5.0, 5.0]))
    assert abs(low / high - 1.0) < 0.2
    assert len(style.some_of(x, 2_000)) == 2_000 and len(style.some_of(x[:5_999], 2_000)) == 2_000
    assert len(style.some_of(x[:0], 10)) == 0 and len(style.some_of(x[:11], 10)) == 6


def test_guides_fall_with_the_square_root(table):
    axes = plots.error_by_cost(table)
    guides = [one.get_xydata() for one in axes.lines if len(one.get_xdata()) == 2 and one.get_zorder() == 0]
    for (at, error), guide in zip(table.rms_by_pass.values(), guides, strict=True):
        (x0, y0), (x1, y1) = guide
        assert (x0, y0) == (at[0], error[0]) and x1 == 100.0 and y1 / y0 == pytest.approx((x0 / x1) ** 0.5)


def labels_apart(axes):
    """Texts of the tick labels of each axis that are seen, none of which touches the next one."""
    axes.figure.draw_without_rendering()
    found = []
    for axis, side, limits in ((axes.xaxis, 0, axes.get_xlim()), (axes.yaxis, 1, axes.get_ylim())):
        seen = [t for t in axis.get_major_ticks() if limits[0] <= t.get_loc() * (1 + 1e-9) <= limits[1] * (1 + 2e-9)]
        boxes = sorted(tuple(t.label1.get_window_extent().get_points()[:, side]) for t in seen)
        assert all(a[1] < b[0] for a, b in zip(boxes, boxes[1:], strict=False))
        assert not any(t.label1.get_text() for t in axis.get_minor_ticks())
        found.append([t.label1.get_text() for t in seen])
    return found


@pytest.mark.parametrize("last", [80.0, 300.0, 3_000.0, 4e7])
def test_labels_of_errors_are_apart(last, table):
    passes = np.geomspace(28.0, last, 3)
    for curves in (table.errors_by_pass, table.rms_by_pass):
        curves.update({label: (passes, error) for label, (_, error) in curves.items()})
    drawn = [plots.error_by_cost(table), plots.error_by_cost(table, cost="seconds")]
    for axes in drawn + ([plots.compare(table).axes[-1]] if last in (80.0, 4e7) else []):
        cost, error = labels_apart(axes)
        assert len(cost) > 1 and len(error) > 1
    if last < 4e7:
        assert ["60", "100", "1,000"][(last > 80.0) + (last > 300.0)] in labels_apart(plots.error_by_cost(table))[0]


def test_errors_of_a_run_by_cost(plane):
    axes = plots.error_by_cost(plane, TRUTH, "events")
    cost, error = axes.lines[0].get_xydata().T
    for k in (3, 80, 199):
        off, spent = [], []
        for path in plane.trajectories:
            t = path.warmup + (k + 1) / 200 * (path.end - path.warmup)
            off.append((path.mean(path.warmup, t) - TRUTH.mean) / TRUTH.sd)
            spent.append(150 * t / path.end)
        assert error[k] == pytest.approx(np.sqrt(np.mean(np.square(off)))) and cost[k] == pytest.approx(np.mean(spent))
    assert len(cost) == 200 and cost[-1] == pytest.approx(150)
    one = plots.error_by_cost(plane, TRUTH, "seconds", chain=1).lines[0].get_xydata()
    assert one[-1, 0] == pytest.approx(plane.records[1].seconds)
    mean = plane.trajectories[1].mean()
    assert one[-1, 1] == pytest.approx(np.sqrt(np.mean(((mean - TRUTH.mean) / TRUTH.sd) ** 2)))
    own = plots.error_by_cost(plane, plane).lines[0].get_ydata()[-1]  # a run as the reference: its own mean and sd
    axes = plots.error_by_cost(plane, plane)  # above the error of its own means, that of the slowest coordinate
    (floor,) = [one for one in axes.lines if len(set(one.get_ydata())) == 1 and one.get_color() == "0.55"]
    assert floor.get_ydata()[0] == pytest.approx(plane.ess("spectral").min() ** -0.5)
    means = np.array([path.mean() for path in plane.trajectories])
    assert own == pytest.approx(np.sqrt(np.mean(((means - plane.mean()) / plane.sd()) ** 2)))


def test_errors_that_cannot_be_drawn(plane, line, table):
    with pytest.raises(
        ValueError, match="`cost` must be one of 'data_passes', 'gradients', 'seconds', 'events', got 'time'"
    ):
        plots.error_by_cost(table, cost="time")
    with pytest.raises(ValueError, match="`reference` is needed for a run"):
        plots.error_by_cost(plane)
    with pytest.raises(ValueError, match="`reference` has dimension 1, the run 2"):
        plots.error_by_cost(plane, line)
    with pytest.raises(ValueError, match="`cost`: the run spent no data passes; use another cost, such as 'events'"):
        plots.error_by_cost(line, line)
    table.rms_by_pass.clear()
    with pytest.raises(ValueError, match="every sampler of this comparison failed"):
        plots.error_by_cost(table)


@pytest.mark.parametrize("given", ["ab", ["a", "b"], 1, [0.5, 1], [0, 2]])
def test_coordinates_of_a_comparison_that_are_refused(given, table):
    with pytest.raises(ValueError, match="`coordinates` must be 2 of 0 … 1, got "):
        plots.compare(table, given)


def test_where_a_report_cannot_go(table):
    with pytest.raises(TypeError, match="`path` must be the path of a file, got int"):
        plots.report(table, 1)
    with pytest.raises(TypeError, match="`settings` must be a dict of names and values, got list"):
        plots.report(table, "r.html", ["seed"])


# -- the report --------------------------------------------------------------------------------------------------------


def test_the_report_is_one_file_with_everything(table, tmp_path, monkeypatch):
    drawn = []

    def small(given, cost=None):
        assert given is table
        drawn.append(cost)
        axes = pyplot.subplots(figsize=(len(drawn), 1))[1]
        return axes.figure if cost is None else axes

    monkeypatch.setattr(plots.pages, "compare", small)
    monkeypatch.setattr(plots.pages, "error_by_cost", small)
    plots.report(table, tmp_path / "r.html", {"seed": 7, "a <name>": "a & value"})
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "<title>a title</title>" in text and "<h1>a title</h1>" in text
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)  # nothing is loaded from elsewhere
    for said in (*table.verdict_lines(), *table.notes):
        assert html.escape(said) in text
    pictures = re.findall(r'<img alt="([^"]+)" src="data:image/png;base64,([^"]+)">', text)
    assert drawn == [None, "data_passes", "seconds"]
    for k, (_, code) in enumerate(pictures, 1):
        assert matplotlib.image.imread(io.BytesIO(base64.b64decode(code))).shape[1] == 150 * k
    assert not pyplot.get_fignums()
    table.errors_by_pass.clear(), table.rms_by_pass.clear()
    plots.report(table, tmp_path / "empty.html")
    assert "<img" not in (tmp_path / "empty.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_leaves_no_figure(table, tmp_path):
    with pytest.raises(OSError, match="missing"):
        plots.report(table, tmp_path / "missing" / "r.html")
    assert not pyplot.get_fignums()


# -- axes given -----------------------------------------------------------------------------------------------------


def test_a_search_on_the_axes_given():
    table = [
        {
            "step": step,
            "round": k,
            "spent": 10.0 * (k + 1),
            "score": 1.0 / (k + step),
            "kept": True,
            "draws": 5,
            "why": "",
        }
        for step in (1, 2)
        for k in (0, 1)
    ]
    found = SimpleNamespace(table=table, best={"step": 2}, clock="steps", metric="ksd")
    axes = pyplot.subplots()[1]
    assert plots.tuning(found, ax=axes) is axes
    labels_apart(axes)
    for row in table:
        row["spent"] *= 100.0 / 3.0 * (3.0 if row["round"] else 1.0)
    assert labels_apart(plots.tuning(found, ax=pyplot.subplots()[1]))[0] == ["333", "2,000"]  # the rounds
    table += [dict(table[0], step=3 + k, spent=333.0 + 7.0 * k, score=1.0) for k in range(70)]  # each its own seconds
    assert "500" in labels_apart(plots.tuning(found, ax=pyplot.subplots()[1]))[0]
