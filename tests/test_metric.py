"""The argument `metric`: what it stands for in every form and for every sampler, words, bad input, old names."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import discrete
import pdmp
from pdmp.engine.storage import leaves
from pdmp.metric import check_metric, covariance_of, differences, mean_curvature
from pdmp.models.priors import Normal
from pdmp.models.regressions.likelihoods import PoissonLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.process import ADAPTING
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 3.0]])
TARGET = pdmp.models.Gaussian([0.0, 1.0, -1.0], PRECISION)
NOISY = pdmp.gradients.Noisy(TARGET, 0.1)
M = np.array([[1.5, 0.3, 0.1], [0.3, 2.0, -0.4], [0.1, -0.4, 0.7]])
DIAGONAL = np.array([4.0, 0.25, 1.0])
SCALES, AXIS = np.array([2.0, 0.5, 1.0]), np.array([[0.6], [0.0], [0.8]])
TWO = np.column_stack([AXIS, [0.0, 1.0, 0.0]])
LOW = pdmp.Metric(scales=SCALES, directions=TWO, variances=[9.0, 0.25])
LOW_COVARIANCE = np.diag(SCALES) @ (np.eye(3) + TWO @ np.diag([8.0, -0.75]) @ TWO.T) @ np.diag(SCALES)

#: What is given, and the covariance M⁻¹ that it stands for.
FORMS = {
    "number": (4.0, np.eye(3) / 4.0),
    "vector": (DIAGONAL, np.diag(1.0 / DIAGONAL)),
    "matrix": (M, np.linalg.inv(M)),
    "precision": (pdmp.Metric(M), np.linalg.inv(M)),
    "covariance": (pdmp.Metric(covariance=M), M),
    "variances": (pdmp.Metric(covariance=DIAGONAL), np.diag(DIAGONAL)),
    "scales": (pdmp.Metric(scales=SCALES), np.diag(SCALES**2)),
    "one scale": (pdmp.Metric(scales=3.0), 9.0 * np.eye(3)),
    "low rank": (LOW, LOW_COVARIANCE),
    "sparse": (pdmp.Metric(sparse.csr_array(PRECISION[::-1, ::-1])), np.linalg.inv(PRECISION)[::-1, ::-1]),
    "none": (None, np.eye(3)),
}


def of_zigzag(metric):
    """L Lᵀ of the velocities L s, s = ±1, which they are."""
    process = pdmp.ZigZag(TARGET, metric=metric).resolve(np.zeros(3))
    root = np.diag(process.speed) if process.metric is None else process.rates.root
    signs = np.linalg.solve(root, process.velocity(np.zeros(3), np.random.default_rng(3)))
    np.testing.assert_allclose(np.abs(signs), 1.0, rtol=1e-12)
    return root @ root.T


def of_sgld(process):
    p = process.preconditioner.matrix
    return np.eye(3) if p is None else np.diag(p) if p.ndim == 1 else p


def of_metric(process):
    metric = process.resolve(np.zeros(3)).metric
    if metric is None:
        return np.eye(3)
    return np.array([metric.transform(metric.transposed(e)) for e in np.eye(3)])


def of_reference(process):
    return process.reference.root @ process.reference.root.T


#: M⁻¹ as each sampler keeps it.
KEPT = {
    "BPS": lambda metric: of_metric(pdmp.BPS(TARGET, metric=metric)),
    "DirectionalBPS": lambda metric: of_metric(pdmp.DirectionalBPS(TARGET, metric=metric)),
    "GeneralisedBPS": lambda metric: of_metric(pdmp.GeneralisedBPS(TARGET, metric=metric)),
    "ForwardEventChain": lambda metric: of_metric(pdmp.ForwardEventChain(TARGET, metric=metric)),
    "HMC": lambda metric: of_metric(pdmp.HMC(TARGET, metric=metric)),
    "Boomerang": lambda metric: of_reference(pdmp.Boomerang(TARGET, metric=metric)),
    "ZigZag": of_zigzag,
    "SBPS": lambda metric: of_metric(pdmp.SBPS(NOISY, metric=metric)),
    "SGLD": lambda metric: of_sgld(discrete.SGLD(NOISY, 0.1, metric=metric)),
    "SGRRLD": lambda metric: of_sgld(discrete.SGRRLD(NOISY, 0.1, metric=metric).fine),
    "MALA": lambda metric: of_metric(discrete.MALA(TARGET, 0.1, metric=metric)),
    "Barker": lambda metric: of_metric(discrete.Barker(TARGET, 0.1, metric=metric)),
    **{
        make.__name__: partial(lambda make, metric: of_metric(make(NOISY, 0.1, metric=metric)), make)
        for make in (discrete.SGHMC, discrete.SGNHT, discrete.MSGNHT, discrete.BAOAB, discrete.BADODAB, discrete.UBU)
    },
}


@pytest.mark.parametrize("sampler", KEPT)
def test_every_form_is_the_same_matrix_in_every_sampler(sampler):
    for given, covariance in FORMS.values():
        np.testing.assert_allclose(KEPT[sampler](given), covariance, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("sampler", [partial(pdmp.HMC, step=0.1), pdmp.BPS, partial(pdmp.BPS, velocities="gaussian")])
@pytest.mark.parametrize("metric", ["dense", "diagonal", "fortran"])
def test_what_a_chain_learns_is_its_own(metric, sampler, d):
    """No other chain has the same memory, nor has the process; of a matrix of one row a transpose is no copy."""
    given = np.asfortranarray(np.eye(d)) if metric == "fortran" else metric
    process = sampler(pdmp.models.Gaussian(np.zeros(d), np.eye(d)), metric=given).resolve(np.zeros(d))
    chains = [process.begin(np.zeros(d), np.random.default_rng(k)) for k in (1, 2)]
    first, second = ([a for a in leaves(chain) if isinstance(a, np.ndarray)] for chain in chains)
    assert len(first) > 10
    assert not any(np.shares_memory(a, b) for a in first for b in (*second, process.metric.root) if a.size and b.size)


def test_speeds_and_standard_deviations():
    """They are 1 / √M, to the last digit."""
    for given, covariance in FORMS.values():
        if np.count_nonzero(covariance) == 3:
            speed = np.sqrt(np.diag(covariance))
            np.testing.assert_array_equal(pdmp.ZigZag(TARGET, metric=given).speed, speed)
            np.testing.assert_array_equal(pdmp.FactorisedBoomerang(TARGET, metric=given).reference.sd, speed)


def test_words():
    """What each stands for: the Hessian is `PRECISION` everywhere."""
    whole, diagonal = np.linalg.inv(PRECISION), np.diag(1.0 / np.diag(PRECISION))
    for make in (pdmp.BPS, pdmp.DirectionalBPS, pdmp.GeneralisedBPS, pdmp.ForwardEventChain, pdmp.HMC):
        for word, start, adapts in (("auto", whole, False), ("diagonal", diagonal, True), ("dense", whole, True)):
            process = make(TARGET, metric=word).resolve(np.zeros(3))
            assert process.metric.adaptive == adapts
            assert process.waits_for_warmup() == (f'metric="{word}"' if adapts else None) or make is pdmp.HMC
            np.testing.assert_allclose(of_metric(process), start, rtol=1e-5, atol=1e-7)
    assert pdmp.DirectionalBPS(TARGET).metric == "auto"
    for word, expected in (("auto", whole), ("dense", whole), ("diagonal", diagonal)):
        np.testing.assert_allclose(of_reference(pdmp.Boomerang(TARGET, metric=word)), expected, rtol=1e-9)
        expected = whole if word == "dense" else diagonal
        np.testing.assert_allclose(of_zigzag(word), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(
        pdmp.Boomerang(TARGET).reference.root, pdmp.Boomerang(TARGET, metric="auto").reference.root
    )
    for word in ("auto", "diagonal"):
        np.testing.assert_allclose(of_reference(pdmp.FactorisedBoomerang(TARGET, metric=word)), diagonal, rtol=1e-9)
        assert pdmp.SBPS(NOISY, metric=word).waits_for_warmup() == 'metric="diagonal"'


MODEL = MixedRegression(np.ones((40, 1)), np.arange(40) % 4, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)])


def test_regressions():
    """The same forms; "auto" is what they found for themselves before."""
    sd = pdmp.Metric(scales=0.3)
    assert RegressionZigZag(MODEL, metric=sd).speed == RegressionBoomerang(MODEL, metric=sd).reference.sd == 0.3
    assert RegressionBPS(MODEL, metric=4.0).reference.sd == 0.5 and RegressionZigZag(MODEL, metric=None).speed == 1.0
    for make in (RegressionZigZag, RegressionBPS, RegressionBoomerang):
        one, other = make(MODEL), make(MODEL, metric="diagonal")
        sds = [each.speed if make is RegressionZigZag else each.reference.sd for each in (one, other)]
        np.testing.assert_allclose(*sds, rtol=1e-12)
    for make in (RegressionZigZag, RegressionBPS):
        with pytest.raises(ValueError, match="`metric`.*got 'dense'"):
            make(MODEL, metric="dense")
    with pytest.raises(ValueError, match="`metric` of RegressionBoomerang must be diagonal"):
        RegressionBoomerang(MODEL, metric=[[1.0]])


BAD = {
    "shape": (np.ones(2), ValueError, r"`metric` must be a number or have shape \(3,\) or \(3, 3\), got \(2,\)"),
    "matrix": (np.eye(2), ValueError, r"`metric` must be a number or have shape .* got \(2, 2\)"),
    "not square": (np.ones((2, 3)), ValueError, "`metric` must be a number, a vector or a square matrix"),
    "nothing": ([], ValueError, r"`metric` must be a number, a vector or a square matrix, got shape \(0,\)"),
    "negative": (-1.0, ValueError, "`metric` must be positive definite; got -1"),
    "zero": ([1.0, 0.0, 2.0], ValueError, "`metric` must be positive definite; entry 1 is 0"),
    "nan": ([1.0, np.nan, 2.0], ValueError, "`metric` must be finite"),
    "skew": (np.triu(M), ValueError, "`metric` must be symmetric; it differs from its transpose by up to 0.4"),
    "indefinite": (M - np.eye(3), ValueError, "`metric` must be positive definite; its smallest eigenvalue is -0"),
    "singular": (np.ones((3, 3)), ValueError, "`metric` must be positive definite; its smallest eigenvalue"),
    "a word": ("hessian", ValueError, "`metric` of .* must be None, a number, an array.*, got 'hessian'"),
    "text": (["1", "2", "3"], TypeError, "`metric` must be a number or an array, got"),
    "True": (True, TypeError, "`metric` must be a number or an array, got True"),
    "a function": (lambda x: x, TypeError, "`metric` must be a number or an array, got"),
    "scales": (pdmp.Metric(scales=[1.0, 2.0]), ValueError, r"must be a number or have shape \(3,\), got \(2,\)"),
    "directions": (
        pdmp.Metric(scales=1.0, directions=[[0.6], [0.8]], variances=[2.0]),
        ValueError,
        r"`metric` must be a number or have shape \(3,\), got \(2, 1\)",
    ),
}
ALL = KEPT | {"FactorisedBoomerang": lambda metric: pdmp.FactorisedBoomerang(TARGET, metric=metric)}


def test_what_is_no_metric_is_refused():
    for make in ALL.values():
        for given, error, message in BAD.values():
            with pytest.raises(error, match=message):
                make(given)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({}, TypeError, "takes one of `precision`, `covariance` and `scales`, got 0"),
        ({"covariance": 1.0, "scales": 1.0}, TypeError, "takes one of `precision`, `covariance` and `scales`, got 2"),
        ({"scales": M}, ValueError, r"`scales` must be a number or a vector, got shape \(3, 3\)"),
        ({"scales": [1.0, -2.0]}, ValueError, "`scales` must be positive definite; entry 1 is -2"),
        ({"covariance": np.triu(M)}, ValueError, "`covariance` must be symmetric"),
        ({"covariance": np.ma.masked_array([1.0, 2.0], [False, True])}, ValueError, "`covariance` has 1 masked"),
        ({"covariance": 1.0, "directions": AXIS, "variances": [1.0]}, TypeError, "`directions` .* go with `scales`"),
        ({"scales": 1.0, "directions": AXIS}, TypeError, "`directions` .* go with `scales` and `variances`"),
        ({"scales": 1.0, "directions": 2.0 * AXIS, "variances": [1.0]}, ValueError, "must be orthonormal columns"),
        (
            {"scales": 1.0, "directions": AXIS, "variances": [1.0, 2.0]},
            ValueError,
            "one for each of the 1 `dir",
        ),
        ({"scales": 1.0, "directions": AXIS, "variances": [-1.0]}, ValueError, "`variances` must be positive definite"),
    ],
)
def test_bad_metrics(options, error, message):
    with pytest.raises(error, match=message):
        pdmp.Metric(**options)


def test_scales_of_any_size_are_positive_definite():
    """What is singular does not depend on units."""
    units = np.array([1e-9, 1.0, 1e9])
    covariance = covariance_of(check_metric(pdmp.Metric(covariance=M * np.outer(units, units)), 3, "pdmp.BPS"))
    np.testing.assert_allclose(covariance / np.outer(units, units), M, rtol=1e-12)


def test_samplers_that_find_none_name_what_learns_one():
    for make in (discrete.MALA, discrete.SGHMC):
        with pytest.raises(ValueError, match=rf"pdmp.auto\(model, sampler=discrete.{make.__name__}\) learns a metric"):
            make(TARGET, 0.1, metric="dense")
    with pytest.raises(TypeError, match="`metric` of discrete.SGHMC must be constant, .* got a RMSprop"):
        discrete.SGHMC(TARGET, 0.1, metric=discrete.preconditioners.RMSprop())
    with pytest.raises(ValueError, match='`metric` of pdmp.ZigZag must be diagonal, or "auto", with batches'):
        pdmp.ZigZag(pdmp.gradients.ControlVariate(pdmp.models.LinearGaussian(M, SCALES), 1), metric=M)


def test_old_names_say_what_is_written_now():
    says = {
        "mass": '"hessian" is "auto"',
        "preconditioner": "metric=pdmp.Metric(covariance=...)",
        "precondition": "pdmp.Metric(covariance=P @ P)",
        "covariance": "metric=pdmp.Metric(covariance=...)",
        "speed": "metric=pdmp.Metric(scales=...)",
    }
    for make in (pdmp.BPS, pdmp.ZigZag, pdmp.Boomerang, discrete.SGLD, discrete.SGRRLD, discrete.UBU):
        options = {"step": 0.1} if make.__module__.startswith("discrete") else {}
        for name, text in says.items():
            with pytest.raises(TypeError, match=f"`{name}=` of .* became `metric=`") as caught:
                make(TARGET, **options, **{name: 2.0})
            assert text in str(caught.value)


def test_other_old_names():
    with pytest.raises(TypeError, match="`mass=` of BADODAB became `thermal_mass=`, with the same number"):
        discrete.BADODAB(TARGET, 0.1, mass=2.0)
    with pytest.raises(TypeError, match=r"`reference=` of RegressionBoomerang became `metric=`.*scales=\.\.\."):
        RegressionBoomerang(MODEL, reference=[1.0])
    with pytest.raises(TypeError, match=r"`scale=` of RegressionBPS became `metric=`.*scales=\.\.\."):
        RegressionBPS(MODEL, scale=[1.0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'mass'"):  # it never had a metric
        pdmp.LocalBPS(TARGET, mass=2.0)
    for make in (pdmp.Boomerang, pdmp.FactorisedBoomerang):  # a number would be the rate of refreshments
        with pytest.raises(TypeError, match="positional"):
            make(TARGET, [0.0, 0.0, 0.0], 2.0)
    for make in (pdmp.BPS, pdmp.SBPS, pdmp.ZigZag, discrete.SGLD, discrete.MALA, discrete.SGHMC, pdmp.HMC):
        with pytest.raises(TypeError, match="positional|must be True or False, got None"):
            make(NOISY, *[None] * 20)


@pytest.mark.parametrize("given", [LOW, pdmp.Metric(sparse.csr_array(PRECISION))], ids=["low rank", "sparse"])
def test_the_mean_curvature_that_a_given_metric_sees(given):
    """tr(M⁻¹H) / d, from random directions: of the target's own precision 1, and of three times that 3."""
    made = check_metric(given, 3, "BPS")
    inverse = np.linalg.inv(covariance_of(made))
    for times in (1.0, 3.0):
        model = pdmp.models.Gaussian(np.zeros(3), times * inverse)
        assert made.trace(model, np.zeros(3)) == pytest.approx(times, rel=1e-4)


@pytest.mark.parametrize("form", [name for name in FORMS if name != "none"])
def test_what_compiled_code_does_is_what_python_does(form):
    """Of every form of a metric: L z, L⁻¹ v and Lᵀ g, of one vector and of several, and their matrix."""
    given, covariance = FORMS[form]
    made = check_metric(given, 3, "BPS")
    z, g = np.random.default_rng(0).standard_normal((2, 4, 3))
    root = np.array([made.transform(e) for e in np.eye(3)]).T
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        covariance_of(made), covariance if covariance_of(made).ndim == 2 else np.diag(covariance)
    )
    for u, gradient in zip(z, g, strict=True):
        metric = made.memory(np.zeros(3))
        state = SimpleNamespace(v=root @ u, memory=SimpleNamespace(metric=metric))
        made.velocity_changed(state)
        np.testing.assert_allclose(metric.u, u, rtol=1e-11)
        np.testing.assert_allclose(made.inverse(root @ u), u, rtol=1e-11)
        assert made.square(state) == pytest.approx(u @ u)
        state.v[:] = math.nan
        made.push(metric, state.v)
        np.testing.assert_allclose(state.v, root @ u, rtol=1e-11)
        made.pull(metric, gradient)
        np.testing.assert_allclose(metric.pulled, root.T @ gradient, rtol=1e-11)
        np.testing.assert_allclose(made.transposed(gradient), root.T @ gradient, rtol=1e-11)
    assert made.trace(TARGET, np.zeros(3)) == pytest.approx(np.trace(covariance @ PRECISION) / 3.0, rel=0.5)
    once = pdmp.models.Gaussian(np.zeros(3), 3.0 * np.linalg.inv(covariance))  # of every direction the same
    assert made.trace(once, np.zeros(3)) == pytest.approx(3.0, rel=1e-4)


@pytest.mark.parametrize("form", ["diagonal", "dense"])
@pytest.mark.parametrize("event", ["bounce", "refresh"])
def test_paths_are_learnt_from_in_the_warm_up_only(form, event):
    process = pdmp.BPS(TARGET, metric=form).resolve(np.zeros(3))
    rng = np.random.default_rng(0)
    state = process.begin(np.ones(3), rng)
    for adapting, learnt in ((1, 1.0), (0, 1.0), (1, 2.0)):
        state.counts[ADAPTING] = adapting
        getattr(process.metric, event)(process, state, 1.0 + learnt, rng)
        assert state.memory.metric.window.events[0] == learnt
        np.testing.assert_allclose(state.v, process.metric.transform(state.memory.metric.u), rtol=1e-12)


def test_the_mean_curvature_by_differences():
    """tr H / d: exact of a diagonal Hessian, whatever the signs of the directions and the width."""
    model = pdmp.models.Gaussian(np.ones(4), [1.0, 4.0, 7.0, 20.0])
    for width in (1e-4, 0.3, 5.0):
        assert differences(model, [3.0, 0.0, -1.0, 2.0], width) == pytest.approx(8.0, rel=1e-9)
    assert mean_curvature(model, np.zeros(4)) == pytest.approx(8.0, rel=1e-4)


def test_a_sparse_matrix_is_solved_with_in_an_order_without_fill():
    """An arrow, which fills entirely if its point comes first; and what is refused."""
    d = 40
    arrow = np.diag(2.0 + np.arange(d) / d)
    arrow[0, 1:] = arrow[1:, 0] = 0.1
    made = check_metric(sparse.coo_array(arrow), d, "BPS")
    assert len(made.values) == 2 * d - 1
    np.testing.assert_allclose(made.product(np.eye(d)), arrow, atol=1e-12)
    np.testing.assert_allclose(covariance_of(made), np.linalg.inv(arrow), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(made.inverse(made.transform(np.eye(d))), np.eye(d), atol=1e-12)
    metric, z = made.memory(np.zeros(d)), np.random.default_rng(0).standard_normal(d)
    state = SimpleNamespace(v=z.copy(), memory=SimpleNamespace(metric=metric))
    made.velocity_changed(state)  # what compiled code does, in an order that is not that of the coordinates
    np.testing.assert_allclose(metric.u, made.inverse(z), rtol=1e-12)
    made.push(metric, state.v)
    np.testing.assert_allclose(state.v, z, rtol=1e-12)
    made.pull(metric, z)
    np.testing.assert_allclose(metric.pulled, made.transposed(z), rtol=1e-12)
    units = np.logspace(-9, 9, d)  # a pivot is small beside its own diagonal entry, and not beside another's
    scaled = check_metric(sparse.coo_array(arrow * np.outer(units, units)), d, "BPS")
    np.testing.assert_allclose(scaled.inverse(z / units), made.inverse(z), rtol=1e-10)
    for value, expected in (
        (
            {"covariance": sparse.eye_array(3)},
            "`covariance` must not be sparse: the inverse of a sparse matrix is dense",
        ),
        ({"precision": sparse.csr_array([[1.0, 2.0], [2.0, 1.0]])}, "`precision` must be positive definite; a pivot"),
        ({"precision": sparse.csr_array([[1.0, 1.0], [1.0, 1.0]])}, "`precision` must be positive definite; a pivot"),
        ({"precision": sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])}, "`precision` must be positive definite; a pivot"),
        ({"precision": sparse.csr_array([[1.0, 0.5], [0.0, 1.0]])}, "`precision` must be symmetric; .* up to 0.5"),
        ({"precision": sparse.csr_array([[1.0, np.nan], [np.nan, 1.0]])}, "`precision` must be finite"),
        ({"precision": sparse.csr_array(np.ones((2, 3)))}, r"must be a square matrix where it is sparse.*\(2, 3\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=expected):
            pdmp.Metric(**value)
    with pytest.raises(ValueError, match=r"must be a number or have shape \(2,\) or \(2, 2\), got \(3, 3\)"):
        pdmp.HMC(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), metric=sparse.eye_array(3))


@pytest.mark.parametrize("form", ["diagonal", "dense"])
def test_each_window_is_learnt_from_its_own_path(form):
    """By Gauss's two points on each straight piece, exact for squares; mixed with what was before as 20 events."""
    dense = form == "dense"
    metric = pdmp.BPS(TARGET, metric=form).resolve(np.zeros(3)).metric
    x, rng, now, learnt = np.array([1.0, -3.0, 0.5]), np.random.default_rng(3), 0.0, 0
    memory = metric.memory(x + 2.0)
    expected = memory.root @ memory.root.T if dense else memory.root**2
    for _ in range(3):
        length, mean = int(memory.window.length[0]), rng.normal(size=3)
        places, weights = [], []
        for _ in range(length):
            v, s = rng.normal(size=3) - 0.3 * (x - mean), rng.exponential()
            places += [x + (0.5 + side) * s * v for side in (-1.0 / math.sqrt(12.0), 1.0 / math.sqrt(12.0))]
            weights += [s, s]
            x, now = x + s * v, now + s
            assert memory.window.adaptations[0] == learnt
            metric.learn(memory, x, v, now)
        learnt += 1
        new, share = np.cov(np.array(places).T, aweights=weights, bias=True), length / (length + 20.0)
        expected = share * (new if dense else np.diag(new)) + (1.0 - share) * expected
        np.testing.assert_allclose(memory.root @ memory.root.T if dense else memory.root**2, expected, rtol=1e-9)
        if dense:
            np.testing.assert_array_equal(memory.columns, memory.root.T)
    assert memory.window.length[0] == 2 * length and memory.window.adaptations[0] == 3.0
