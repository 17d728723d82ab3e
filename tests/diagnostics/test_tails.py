"""Tail indices: exact of power laws by the gradient, told from lighter tails, from draws where there is no model."""

import math
import types

import numpy as np
import pytest
from scipy import special

import pdmp
from pdmp.diagnostics.summary import _natural_tails, tail_warning
from pdmp.diagnostics.tails import _extent, heavy_tails, tail_indices
from pdmp.models.propriety import marginal_power

pytestmark = pytest.mark.exact

ALL = np.arange(3)


def joint(df, d=3):
    """Student's t in d dimensions."""
    return pdmp.models.from_function(
        lambda x: (0.5 * (df + d) * math.log1p(float(x @ x) / df), (df + d) * x / (df + float(x @ x))), d
    )


def separate(dfs, side=0.0):
    """Independent ones; normal ones for infinitely many degrees of freedom, and on the side of 0 that is not `side`."""

    def both(x):
        heavy = np.isfinite(dfs) & (side * x >= 0.0)
        with np.errstate(invalid="ignore"):
            u = np.where(heavy, 0.5 * (dfs + 1.0) * np.log1p(x * x / dfs), 0.5 * x * x)
            g = np.where(heavy, (dfs + 1.0) * x / (dfs + x * x), x)
        return float(u.sum()), g

    return pdmp.models.from_function(both, len(dfs))


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_marginal_density_is_looked_at_on_both_sides(side):
    """Of t₁.₅ on one side, and normal on the other; the second coordinate is normal on both."""
    model = separate(np.array([1.5, math.inf]), side)
    powers = [marginal_power(model, np.zeros(2), np.ones(2), j) for j in (0, 1)]
    assert powers == pytest.approx([2.5, math.inf], abs=1e-3)


def light(x):
    return np.sqrt(1.0 + x * x)


def bounded(height):
    """A bounded likelihood, height (1 - cos 2 arctan x), and a Cauchy prior: its tail begins 2 height further down."""

    def f(x):
        angle = 2.0 * np.arctan(x[0])
        slope = height * np.sin(angle) * 2.0 / (1.0 + x[0] ** 2) + 2.0 * x[0] / (1.0 + x[0] ** 2)
        return height * (1.0 - np.cos(angle)) + np.log1p(x[0] ** 2), np.array([slope])

    return pdmp.models.from_function(f, 1)


@pytest.mark.parametrize(("height", "index"), [(0.0, 1.0), (16.0, 1.0), (18.0, math.inf), (500.0, math.inf)])
def test_a_tail_that_holds_no_mass_has_no_index(height, index):
    model = bounded(height)
    for centre in (0.0, 1e-3):
        own, shared = tail_indices(model, np.array([centre]), np.array([1.0]), [0])
        # From a median distance on: the likelihood has risen by its height there, and the prior by log 2.
        if height not in (16.0, 18.0):
            assert own == [shared] == pytest.approx([index], abs=1e-3)
    away = [tail_indices(model, np.zeros(1), np.full(1, scale), [0])[1] for scale in (1e-2, 1e2)]
    rises = [2.0 * height + 2.0 * math.log(scale) for scale in (1e-2, 1e2)]
    assert [found == math.inf for found in away] == [rises[0] > 35.0, False]


@pytest.mark.parametrize(("height", "index"), [(21.5, 1.0), (22.7, math.inf)])
def test_how_far_down_a_tail_may_begin(height, index):
    """At 1e4 median distances of 0.01 the density has fallen by 2 height + 2 log 100, a tail that begins where draws
    are by 2 log 1e4: 35 nats lie between at a height of 22.1."""
    assert tail_indices(bounded(height), np.zeros(1), np.full(1, 1e-2), [])[1] == pytest.approx(index, abs=1e-3)


def test_what_overflows_far_out_is_not_told():
    """exp(-x), in a likelihood that is bounded all the same."""

    def f(x):
        p = 1.0 / (1.0 + np.exp(-x[0]))
        return p + np.log1p(x[0] ** 2), np.array([p * (1.0 - p) + 2.0 * x[0] / (1.0 + x[0] ** 2)])

    own, shared = tail_indices(pdmp.models.from_function(f, 1), np.zeros(1), np.ones(1), [0])
    assert own == [shared] == pytest.approx([1.0], abs=1e-3)


def test_a_potential_that_cannot_be_computed_far_out_leaves_a_tail_what_it_is():
    """As of a function of the user's that fails there; its gradient says the power."""

    class Half:
        def gradient(self, x):
            return 2.5 * x / (1.5 + x @ x)

        def potential(self, x):
            raise ValueError("too far")

    assert tail_indices(Half(), np.zeros(1), np.ones(1), [0])[0] == pytest.approx([1.5], abs=1e-3)


def test_a_tail_that_many_share_is_seen_though_its_middle_is_far_from_where_draws_are():
    assert tail_indices(joint(1.5, 400), np.zeros(400), np.ones(400), [])[1] == pytest.approx(1.5, abs=1e-2)


@pytest.mark.parametrize("df", [1.0, 1.5, 3.0])
def test_indices_of_power_laws(df):
    centre, scale = np.array([0.3, -0.2, 5.0]), np.array([1.0, 2.0, 3.0])
    own, shared = tail_indices(joint(df), centre, scale, ALL)
    assert shared == pytest.approx(df, abs=1e-3) and own == pytest.approx([df + 2.0] * 3, abs=1e-3)
    for side in (-1.0, 0.0, 1.0):
        own, shared = tail_indices(separate(np.array([df, math.inf, df + 4.0]), side), centre, scale, ALL)
        assert own == pytest.approx([df, math.inf, df + 4.0], abs=1e-3) and shared == math.inf
    own, shared = tail_indices(separate(np.full(3, df)), centre, scale, ALL)
    assert own == pytest.approx([df] * 3, abs=1e-3) and shared == pytest.approx(3.0 * df, abs=1e-3)


def test_lighter_tails_have_no_index():
    """Those of exponential laws, of a funnel, and where the gradient cannot be computed."""
    centre, scale = np.zeros(2), np.ones(2)
    slope = pdmp.models.from_function(lambda x: (float(light(x).sum()), x / light(x)), 2)
    funnel = pdmp.models.from_function(
        lambda x: (
            0.5 * x[0] ** 2 / 9.0 + 0.5 * x[1] ** 2 * math.exp(-x[0]) + 0.5 * x[0],
            np.array([x[0] / 9.0 - 0.5 * x[1] ** 2 * math.exp(-x[0]) + 0.5, x[1] * math.exp(-x[0])]),
        ),
        2,
    )
    wall = pdmp.models.from_function(lambda x: (0.5 * float(x @ x), x if x @ x < 9.0 else x * math.nan), 2)
    for model in (slope, funnel, wall, pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])):
        assert tail_indices(model, centre, scale, np.arange(2)) == ([math.inf, math.inf], math.inf)


def draws_of(*laws, n=2_000, seed=7):
    rng = np.random.default_rng(seed)
    return np.stack([law(rng, (4, n)) for law in laws], axis=-1)


def t(df):
    return lambda rng, size: rng.standard_t(df, size)


def normal(rng, size):
    return rng.standard_normal(size)


def test_the_model_is_asked_wherever_chains_were():
    """Draws that stay near the centre, as those of paths do that hardly reach the tails."""
    near, ess = draws_of(normal, normal, normal), np.full(3, 400.0)
    assert heavy_tails(near, ALL, ess, joint(1.5)) == pytest.approx(dict.fromkeys(range(3), 1.5), abs=1e-3)
    assert heavy_tails(near, ALL, None, joint(2.0)) == pytest.approx(dict.fromkeys(range(3), 2.0), abs=1e-3)
    assert heavy_tails(near, ALL, ess, joint(2.2)) == {}
    assert heavy_tails(near, ALL, ess) == {}
    apart = separate(np.array([math.inf, 1.2, 5.0]))
    assert heavy_tails(near, ALL, ess, apart) == pytest.approx({1: 1.2}, abs=1e-3)
    assert heavy_tails(near, np.array([0, 2]), ess, apart) == {}  # of many coordinates some are looked at
    assert list(heavy_tails(near, np.arange(0), ess, joint(1.0))) == [0, 1, 2]  # what all share is seen without


def test_what_is_improper_is_not_called_heavy():
    """1/|x|, and a flat direction."""
    near = draws_of(normal, normal)
    improper = pdmp.models.from_function(
        lambda x: (0.5 * math.log1p(x[0] ** 2), np.array([x[0] / (1.0 + x[0] ** 2), 0.0])), 2
    )
    assert heavy_tails(near, np.arange(2), np.full(2, 400.0), improper) == {}


@pytest.mark.parametrize("df, said", [(1.0, True), (1.5, True), (3.0, False), (30.0, False)])
def test_draws_without_a_model(df, said):
    draws, ess = draws_of(normal, t(df), t(df)), np.array([400.0, 30.0, 4_000.0])
    found = heavy_tails(draws, ALL, ess)
    assert list(found) == ([2] if said else [])  # too few effective draws of the second
    if said:
        assert found[2] == pytest.approx(df, rel=0.3)
    assert heavy_tails(draws, np.arange(2), ess) == {} == heavy_tails(draws[:, :249], ALL, ess)
    assert heavy_tails(draws, np.arange(0), ess) == {} == heavy_tails(draws, ALL, None)
    draws[0, 0, 2] = math.inf  # as exp(1000) is: nothing is warned of
    assert set(heavy_tails(draws, ALL, ess)) <= {2}


def test_draws_decide_where_some_coordinates_share_a_tail_and_not_where_it_is_light():
    """The first two are t together: along each of them the power is that of a variance."""
    pair = joint(1.2, 2)

    def both(x):
        u, g = pair.callback.function(x[:2].copy())
        return u + 0.5 * float(x[2:] @ x[2:]), np.concatenate([g, x[2:]])

    model, ess = pdmp.models.from_function(both, 4), np.full(4, 400.0)
    draws = draws_of(t(1.2), normal, t(1.2), normal)  # the third has met far places by chance
    assert list(heavy_tails(draws, np.arange(4), ess, model)) == [0]


def test_a_run_of_a_model_says_so_at_its_end():
    with pytest.warns(UserWarning, match=r"x\[0\], x\[1\] seem to have no variance nor a mean: the tail index of"):
        run = pdmp.sample(joint(1.0, 2), gradients=400, seed=1)
    found = run.summary()
    assert [w for w in found.warnings if "no variance" in w] == [w for w in found.said if "no variance" in w]
    assert "no variance nor a mean (as was warned)." in repr(found)
    assert not any("times as long" in w for w in found.warnings)
    # A process of the user's own has it in the summary.
    own = pdmp.sample(pdmp.HMC(joint(1.5, 2), step=0.5), steps=200, seed=1)
    assert tail_warning(own) == [] and any("have no variance: " in w for w in own.summary().warnings)


def few_data(n):
    """n normal observations with flat priors on the mean and log σ: the mean has n - 1 degrees of freedom."""
    y = np.linspace(1.0, 3.0, n)

    def both(x):
        rest = y - x[0]
        e = math.exp(-2.0 * x[1])
        return n * x[1] + 0.5 * (rest @ rest) * e, np.array([-rest.sum() * e, n - (rest @ rest) * e])

    return pdmp.models.from_function(both, 2)


@pytest.mark.parametrize("n, heavy", [(2, {0: 1.0}), (3, {0: 2.0}), (4, {})])
def test_a_scale_that_grows_with_a_coordinate_makes_its_tail_heavy(n, heavy):
    """Which no straight line shows, nor draws that have not come far out."""
    draws = np.random.default_rng(1).standard_t(n - 1, (1, 2_000, 2))
    draws[..., 1] = 0.5 * np.log1p(draws[..., 0] ** 2)
    assert tail_indices(few_data(n), np.array([2.0, 0.3]), np.ones(2), [0, 1])[0][0] == math.inf
    assert heavy_tails(draws, np.arange(2), None, few_data(n)) == pytest.approx(heavy, abs=0.02)
    funnel = pdmp.models.from_function(
        lambda x: (
            0.5 * x[1] ** 2 / 9.0 + 0.5 * x[0] ** 2 * math.exp(-x[1]) + 0.5 * x[1],
            np.array([x[0] * math.exp(-x[1]), x[1] / 9.0 - 0.5 * x[0] ** 2 * math.exp(-x[1]) + 0.5]),
        ),
        2,
    )
    assert heavy_tails(draws, np.arange(2), None, funnel) == {}  # far out as draws are: it has all moments


def resting(seed, low, width, law, correlation=0.9, n=2_000):
    """Draws of two chains that rest at 0 for a while, along which values between are the quantiles of `law`."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((2, n))
    for k in range(1, n):
        z[:, k] = correlation * z[:, k - 1] + math.sqrt(1.0 - correlation**2) * z[:, k]
    return np.where(z < low, law(z - low), np.where(z > low + width, law(z - low - width), 0.0))[..., None]


def cauchy(z):
    return np.tan(0.5 * math.pi * special.erf(z / math.sqrt(2.0)))


@pytest.mark.parametrize("seed, low, correlation", [(3, 1.036, 0.95), (0, 0.674, 0.9)])
def test_zeros_are_no_part_of_a_tail(seed, low, correlation):
    """Where a tail reaches to the zeros, a fit to all draws had an index of 0.85 for a light one."""
    ess = np.array([400.0])
    assert heavy_tails(resting(seed, low, 0.6, np.asarray, correlation), np.arange(1), ess) == {}

    assert list(heavy_tails(resting(seed, low, 0.6, cauchy, correlation), np.arange(1), ess)) == [0]
    few = resting(seed, low, 0.6, cauchy, correlation, n=400)  # of which fewer than 1,000 are not 0
    assert heavy_tails(np.concatenate([few, np.zeros_like(few)], axis=1), np.arange(1), ess) == {}
    wide = np.concatenate([np.zeros((2, 2_000, 25)), resting(seed, low, 0.6, cauchy, correlation)], axis=2)
    assert list(heavy_tails(wide, np.arange(26), np.full(26, 400.0))) == [25]


@pytest.mark.parametrize("correlation, said", [(0.998, [0]), (0.999, [])])
def test_of_a_tail_beside_zeros_its_own_effective_draws_count(correlation, said):
    """77 and 47 of some 3,500 draws that are not 0, whatever all draws have."""
    draws = resting(1, 0.674, 0.6, lambda z: cauchy(z) ** 3, correlation)
    for ess in (30.0, 400.0):
        assert list(heavy_tails(draws, np.arange(1), np.array([ess]))) == said


@pytest.mark.parametrize("seed", range(6))
def test_few_draws_are_above_the_limit_by_their_error_or_nothing_is_said(seed):
    """t₃ in 500 effective draws of 2,000: an estimated shape of 0.5 and more is no rarity there."""
    x = np.repeat(np.random.default_rng(seed).standard_t(3, (4, 125, 1)), 4, axis=1)
    assert heavy_tails(x, np.arange(1), np.array([500.0])) == {}
    x = np.repeat(np.random.default_rng(seed).standard_cauchy((4, 125, 1)), 4, axis=1)
    assert list(heavy_tails(x, np.arange(1), np.array([500.0]))) == [0]


@pytest.mark.parametrize("n, said", [(2, True), (4, False)])
def test_a_natural_parameter_without_a_variance_is_said(n, said):
    """σ of n observations with flat priors has the tail index n - 1, and log σ all moments."""
    rng = np.random.default_rng(n)
    spread = 1.0 / np.sqrt(rng.chisquare(n - 1, (4, 2_000)))

    def both(x):
        return 0.5 * float(x @ x), x

    model = pdmp.models.from_function(
        both, 1, variables={"sigma": ()}, transforms={"sigma": pdmp.models.transforms.Log()}
    )
    run = pdmp.sample(pdmp.ZigZag(model), events=400, chains=4, seed=1, progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdmp.diagnostics.summary.diagnostic_draws", lambda run: np.log(spread)[..., None])
        patch.setattr(type(run), "constrain", lambda run, draws: {"sigma": spread})
        table = run.summary()
    found = [text for text in table.warnings if text.startswith("sigma seems to have no variance")]
    assert len(found) == said and [row["name"] for row in table.rows][1:] == ["sigma"]
    if said:
        at = ", ".join(f"{q:.3g}" for q in np.quantile(spread, [0.05, 0.25, 0.5, 0.75, 0.95], method="hazen"))
        assert "those of draws of `run.constrain`: 5, 25, 50" in found[0] and found[0].endswith(f"are below {at}.")


def test_draws_alone_must_be_further_above_the_limit():
    """Natural parameters may be many, and no gradient bears out what draws say: two errors."""
    draws = np.random.default_rng(12).standard_t(1.6, (4, 500, 1))
    says = [list(heavy_tails(draws, np.arange(1), np.array([2_000.0]), errors=e)) for e in (1.0, 1.3, 2.0, 0.0)]
    assert says == [[0], [0], [], [0]]
    seen = []
    run = types.SimpleNamespace(info={}, records=[types.SimpleNamespace(length=1.0)] * 4, transforms={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdmp.diagnostics.summary.heavy_tails", lambda *_, **told: seen.append(told) or {})
        assert _natural_tails(run, {"sd": draws[:, :, 0]}, [{"ess": 2_000.0}], draws) == []
    assert seen == [{"errors": 2.0}]


def test_quantiles_without_a_variance_count_chains_by_their_lengths():
    """A chain of three times the length counts as three chains with its draws."""
    short, long = draws_of(t(1.0))[:2, :, 0] + [[5.0], [0.0]]
    records = [types.SimpleNamespace(length=length) for length in (1.0, 3.0)]
    run = types.SimpleNamespace(info={}, records=records, dim=1, process="loaded", transforms={})
    (text,) = _natural_tails(run, {"sigma": np.stack([short, long])}, [{"ess": 400.0}], np.zeros((2, len(short), 1)))
    said = [float(q) for q in text.removesuffix(".").partition("of sigma are below ")[2].split(", ")]
    at = np.quantile([short, long, long, long], [0.05, 0.25, 0.5, 0.75, 0.95], method="hazen")
    np.testing.assert_allclose(said, at, rtol=5e-3)  # three digits are printed


@pytest.mark.parametrize(("of", "said"), [("gradients", 0), ("a loaded run", 1), ("many coordinates", 1)])
def test_a_multiple_of_a_coordinate_is_judged_by_gradients(of, said, monkeypatch):
    """A narrow mode with a wide skirt looks heavy, and has a prior that is not; nothing is said of it twice."""
    coordinate = draws_of(t(1.0))
    draws = np.concatenate([np.random.default_rng(1).normal(size=coordinate.shape), coordinate], axis=2)
    model = pdmp.models.Gaussian([0.0, 0.0], precision=[1.0, 1.0])
    process = pdmp.ZigZag(model) if of != "a loaded run" else "ZigZag"
    records = [types.SimpleNamespace(length=1.0)] * len(draws)
    run = types.SimpleNamespace(info={}, records=records, dim=2, process=process, stopped="time", transforms={})
    if of == "many coordinates":
        monkeypatch.setattr("pdmp.diagnostics.summary.TAILS", 1)
    columns = {"k": 5.0 - 2.5 * draws[:, :, 1]}
    assert len(_natural_tails(run, columns, [{"ess": 2_000.0}], draws)) == said
    columns["both"] = np.abs(draws[:, :, 1])  # of both sides
    (text,) = _natural_tails(run, columns, [{"ess": 2_000.0}] * 2, draws)
    assert ("both seems" in text) == (said == 0) and ("k, both seem" in text) == (said == 1)


@pytest.mark.parametrize(("factor", "said"), [(0.1, 0), (10.0, 1)])
def test_small_numbers_of_a_vector_are_not_judged_by_their_orders(factor, said):
    """Weights of high frequencies are of all orders, below those of low ones; a heavy tail goes beyond these."""
    rng = np.random.default_rng(3)
    low = rng.normal(size=(4, 500))
    orders = rng.standard_t(0.4, low.shape)
    assert heavy_tails(orders[..., None], np.arange(1), np.array([2_000.0]), errors=2.0)
    many = np.quantile(np.abs(low), 0.975)
    orders *= factor * many / np.abs(orders).max()
    records = [types.SimpleNamespace(length=1.0)] * 4
    run = types.SimpleNamespace(info={}, records=records, dim=1, process="loaded", transforms={"k": None})
    rows, at = [{"ess": 2_000.0}] * 12, np.zeros((4, 500, 1))
    for place in (0, 1, 9):
        vector = {f"gp[{k}]": orders if k == place else low for k in range(10)}
        found = _natural_tails(run, vector, rows, at)
        assert len(found) == said and all(f"gp[{place}] seems" in text for text in found)
    # Of another vector, of few numbers, or of coordinates themselves.
    for names in (
        ["sd", *(f"gp[{k}]" for k in range(10))],
        [f"gp[{k}]" for k in range(9)],
        [f"k[{k}]" for k in range(10)],
    ):
        assert len(_natural_tails(run, {name: low if k else orders for k, name in enumerate(names)}, rows, at)) == 1


def test_how_far_draws_go_by_hand():
    """In median distances from the median; of what rests at 0 in medians of what is not 0."""
    first, second = [-3.0, 1.0, 2.0, 4.0, 9.0], [2.5, 1.5, 2.0, 3.0, -30.0]
    rest, out = [0.0, 0.0, 0.0, -2.0, 0.0], [0.0, 5.0, 1.0, -40.0, 0.0]
    draws = np.stack([np.array([first, second]), np.array([rest, out]), np.zeros((2, 5))], axis=-1)
    rests, centre, scale, far = _extent(draws)
    assert rests.tolist() == [False, True, True] and centre.tolist() == [2.0, 0.0, 0.0]
    assert scale.tolist() == [1.0, 0.0, 0.0]  # of 0, 0, 0.5, 0.5, 1, 1, 2, 5, 7, 32
    assert far[:2] == pytest.approx([32.0, 40.0 / 3.5]) and math.isnan(far[2])  # unknown of what is always 0
    small = _extent(1e-12 * draws)  # in another unit
    assert small[0].tolist() == rests.tolist() and small[3][:2] == pytest.approx(far[:2])


def test_a_tail_of_one_value_has_no_index():
    draws = np.minimum(draws_of(normal), 0.0) - 1.0  # which has a largest value that is met half of the time
    assert (
        heavy_tails(-draws, np.arange(1), np.array([400.0]))
        == {}
        == heavy_tails(draws, np.arange(1), np.full(1, 400.0))
    )
