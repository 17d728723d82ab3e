"""Images of a point under symmetries of a likelihood: the same likelihood elsewhere, and a mode there is found."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp.automatic.images import images_of, moved, words_of
from pdmp.automatic.start import Evaluations, Gaussian
from pdmp.models.priors import Normal
from pdmp.models.regressions.moved_coordinates import natural_of

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_steps")]

N1 = Normal(0.3, 1.0)


def table(n=40):
    rng = np.random.default_rng(4)
    return pandas.DataFrame(
        {
            "x": rng.uniform(0.3, 4.0, n),
            "z": rng.normal(2.0, 1.5, n),
            "g": rng.integers(0, 4, n),
            "h": rng.integers(0, 3, n),
            "y": rng.normal(2.0, 1.0, n),
            "k": rng.poisson(3.0, n),
        }
    )


#: What images are equal in: formulas, family, links, and the parameters that are tried, in their order in words.
CASES = {
    "a mixture": ({"y": "y ~ 1", "mu2": "~ 1"}, "mixture_gaussian", {}, 1),
    "a mixture of counts": ({"y": "k ~ 1", "mu2": "~ 1"}, "mixture_poisson", {}, 1),
    "groups and columns": (
        {"y": "y ~ x + (1 + z | g)", "mu2": "~ x + (1 + z | g)", "sigma1": "~ z", "sigma2": "~ z", "theta": "~ x"},
        "mixture_gaussian",
        {},
        1,
    ),
    "curves": ({"y": "y ~ s(x, k=5) + gp(z)", "mu2": "~ s(x, k=5) + gp(z)"}, "mixture_gaussian", {}, 1),
    "a factor model": ({"y": "y ~ b * c + square(c)", "b": "~ 1 + (1 | h)", "c": "~ 1 + (1 | g)"}, "gaussian", {}, 1),
    "two that are alike": ({"y": "y ~ b * c", "b": "~ x", "c": "~ x"}, "gaussian", {}, 3),
    "a curve": ({"y": "y ~ square(b) + c", "b": "~ s(x, k=4) + mo(h)", "c": "~ z"}, "gaussian", {}, 1),
    "two decays": (
        {"y": "y ~ b * exp(-c * x) + d * exp(-e * x)", "b + d": "~ 1 + (1 | g)", "c + e": "~ 1"},
        "gaussian",
        {"c": "log", "e": "log"},
        1,
    ),
}


def made(what):
    formula, family, links, count = CASES[what]
    names = {name for name in "bcde" if any(name in key.split(" + ") for key in formula)}
    priors = dict.fromkeys(names, N1) | {f"{name}: mo(h)": N1 for name in names if "mo(" in formula.get(name, "")}
    fit = pdmp.regression(formula, table(), family, priors, link=links, sample=False, seed=1)
    return fit, count


@pytest.mark.parametrize("what", CASES)
def test_an_image_has_the_same_likelihood_elsewhere(what):
    """And the image of an image is the point itself."""
    fit, count = made(what)
    x = fit.model.initial + 0.4 * np.random.default_rng(2).normal(size=fit.model.dim)
    found = [moved(fit.model, x, word) for word in words_of(fit.model, x)]
    assert len(found) == count
    here = fit.model.pointwise_log_likelihood(x)
    for other in found:
        np.testing.assert_allclose(fit.model.pointwise_log_likelihood(other), here, rtol=1e-8)
        assert np.abs(other - x).max() > 0.05
    for k in range(len(fit.model.reported.symmetries)):
        there_and_back = natural_of(fit.model, moved(fit.model, x, (k, k)))
        np.testing.assert_allclose(there_and_back, natural_of(fit.model, x), rtol=1e-6, atol=1e-8)
    spreads = [name for name in fit.model.constrain(x) if "sd(" in name]
    if what == "a factor model":
        assert len(spreads) == 2
        for name in spreads:
            assert fit.model.constrain(found[0])[name] == pytest.approx(fit.model.constrain(x)[name])
    if what == "curves":
        before, after = fit.model.constrain(x), fit.model.constrain(found[0])
        lengths = [name for name in before if name.startswith("length")]
        assert lengths and all(after[name] == pytest.approx(before[f"mu2: {name}"]) for name in lengths)
    if what == "groups and columns":
        before, after = fit.model.constrain(x), fit.model.constrain(found[0])
        exchanged = [("sd(g)", "mu2: sd(g)"), ("mu2: sd(g)", "sd(g)"), ("mu2: sd(z|g)", "sd(z|g)")]
        for name, other in (*exchanged, ("mu2: cor(1, z|g)", "cor(1, z|g)")):
            assert after[name] == pytest.approx(before[other]) and before[name] != pytest.approx(before[other], rel=0.1)


def test_what_one_of_two_components_alone_has_is_0_in_the_other():
    fit = pdmp.regression({"y": "y ~ x + (1 | g)", "mu2": "~ 1"}, table(), "mixture_gaussian", sample=False, seed=1)
    x = fit.model.initial + 0.4 * np.random.default_rng(2).normal(size=fit.model.dim)
    before, after = fit.model.constrain(x), fit.model.constrain(fit.model.images(x)[0])
    assert after["x"] == pytest.approx(0.0, abs=1e-12) and np.allclose(after["1|g"], 0.0)
    pairs = {"Intercept": "mu2: Intercept", "mu2: Intercept": "Intercept", "sigma1": "sigma2", "sigma2": "sigma1"}
    for name, other in (pairs | {"sd(g)": "sd(g)"}).items():
        assert after[name] == pytest.approx(before[other])
    assert after["theta"] == pytest.approx(1.0 - before["theta"])


def test_models_without_symmetries_have_no_images():
    fit = pdmp.regression({"y": "y ~ x", "sigma": "~ z"}, table(), sample=False, seed=1)
    assert words_of(fit.model, fit.model.initial) == []
    fit = pdmp.regression("y ~ x + (1 | g)", table(), sample=False, seed=1)
    assert words_of(fit.model, fit.model.initial) == []
    assert words_of(pdmp.models.Gaussian(np.zeros(2), np.eye(2)), np.zeros(2)) == []


def turned(*matrices):
    """A model of which only its symmetries are known, all linear."""
    return SimpleNamespace(images=lambda x: [m @ x for m in matrices])


QUARTER, MIRROR = np.array([[0.0, -1.0], [1.0, 0.0]]), np.diag([-1.0, 1.0])


def test_all_seven_images_by_the_symmetries_of_a_square():
    """The first of a word comes first; and of more images than seven there are seven."""
    model, x = turned(QUARTER, MIRROR), np.array([1.0, 3.0])
    words = words_of(model, x)
    assert words == [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 0, 1)]
    found = [tuple(moved(model, x, word).tolist()) for word in words]
    assert found == [(-3, 1), (-1, 3), (-1, -3), (3, 1), (-3, -1), (3, -1), (1, -3)]
    signs = [np.diag(np.where(np.arange(4) == k, -1.0, 1.0)) for k in range(4)]
    assert len(words_of(turned(*signs), np.arange(1.0, 5.0))) == 7


def test_the_shape_of_an_image():
    """Directions are turned; above the dimensions of matrices the widths are those of the places that were moved."""
    visited = np.random.default_rng(3).normal(size=(16, 2)) * [0.5, 3.0] + [4.0, 9.0]
    target = SimpleNamespace(potential=lambda x: 0.0)
    root = np.array([[0.5, 0.0], [1.5, 2.0]])
    for own, wanted in ((root, QUARTER @ root), (np.ones(2), visited.std(axis=0)[::-1])):
        learnt = SimpleNamespace(gaussian=Gaussian(visited[0], own), visited=visited, points=visited[:1])
        image, *_ = images_of(turned(QUARTER), target, learnt)
        np.testing.assert_allclose(image.gaussian.root, wanted, atol=1e-9)  # of differences over 1e-4


def mirrored(low, high, n=30, **options):
    """y about b², with a prior under which the other sign has exp(-2 m b) of the mass."""
    data = pandas.DataFrame({"y": np.random.default_rng(5).normal(4.0, 0.2, n), "se": np.full(n, 0.3)})
    return pdmp.regression(
        {"y": "y | se(se) ~ square(b)", "b": "~ 1"}, data, priors={"b": Normal(low, high)}, sample=False, **options
    ).model


def learnt_at(model, root=0.05):
    """What a warm-up learns of the positive mode."""
    mode, rng = model.mode(np.full(1, 2.0)), np.random.default_rng(1)
    visited = mode + root * rng.normal(size=(64, 1))
    return SimpleNamespace(gaussian=Gaussian(mode, np.full((1, 1), root)), visited=visited, points=visited[:4])


@pytest.mark.parametrize("mean", [0.0, 0.2])
def test_the_mass_of_an_image_is_by_the_priors(mean):
    model = mirrored(mean, 1.0)
    (image,) = images_of(model, Evaluations(model), learnt := learnt_at(model))
    centre = model.constrain(image.gaussian.centre)["b: Intercept"]
    assert centre == pytest.approx(-model.constrain(learnt.gaussian.centre)["b: Intercept"])
    # The mean of exp(-2 m b) over the 16 places is within a hundredth of that at their mean.
    places = model.constrain(learnt.visited[np.linspace(0, 63, 16).astype(int)])["b: Intercept"]
    assert image.behind == pytest.approx(-math.log(np.mean(np.exp(-2.0 * mean * places))), abs=1e-9)
    assert np.abs(image.gaussian.root) == pytest.approx(learnt.gaussian.root, rel=1e-6)
    assert image.share == 0.0 and image.is_rare
