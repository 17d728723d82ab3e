"""Scores of predictions by hand and against scikit-learn; calibration of draws whose calibration is known."""

import numpy as np
import pytest
from sklearn import metrics

from pdmp.diagnostics.predictive import accuracy, ece, log_loss, mce, reliability, rmse, running_log_loss

pytestmark = pytest.mark.exact

Y = np.array([1, 0, 1, 1, 0])
P = np.array([[0.9, 0.2, 0.6, 0.7, 0.4], [0.7, 0.4, 0.2, 0.9, 0.6]])


def test_log_loss_and_accuracy_of_the_mean_probability():
    mean = P.mean(axis=0)
    expected = -np.log(np.where(Y == 1, mean, 1.0 - mean)).mean()
    both = np.stack([1.0 - P, P], axis=-1)
    for p in (P, mean, both, both.mean(axis=0)):
        assert log_loss(Y, p) == pytest.approx(expected)
        assert accuracy(Y, p) == pytest.approx(0.8)  # 0.8 0.3 0.4 0.8 0.5: the third is wrong, a tie is class 0
    assert expected == pytest.approx(metrics.log_loss(Y, mean))
    np.testing.assert_allclose(running_log_loss(Y, P), [log_loss(Y, P[:1]), expected])


def test_rmse_of_draws_and_of_their_mean():
    y, predictions = np.array([1.0, 5.0]), np.array([[0.0, 7.0], [2.0, 5.0]])
    each, mean = rmse(y, predictions, 1.0, 5.0)
    np.testing.assert_allclose(each, [0.0, np.sqrt(0.5)])
    assert mean == pytest.approx(0.0)  # (1, 6), clipped after averaging
    assert rmse(y, predictions)[1] == pytest.approx(np.sqrt(0.5))


def test_scores_of_several_classes():
    """Of draws of three classes, whose bins have other confidences than their middles; and long runs of them."""
    rng = np.random.default_rng(5)
    p, y = rng.dirichlet([0.6, 1.0, 2.0], size=(7, 40)), rng.integers(0, 3, 40)
    mean = p.mean(axis=0)
    assert log_loss(y, p) == pytest.approx(-np.mean(np.log(mean[np.arange(40), y])))
    assert accuracy(y, p) == np.mean(mean.argmax(axis=1) == y)
    found, confidence = reliability(y, p, 7), mean.max(axis=1)
    gaps = []
    for k, (left, right) in enumerate(zip(found["left"], found["right"], strict=True)):
        inside = (confidence >= left) & (confidence < right)
        assert found["count"][k] == inside.sum() and (left, right) == pytest.approx((k / 7, (k + 1) / 7))
        if inside.any():
            assert found["confidence"][k] == pytest.approx(confidence[inside].mean())
            assert found["accuracy"][k] == np.mean(mean.argmax(axis=1)[inside] == y[inside])
            gaps.append((inside.mean(), abs(found["accuracy"][k] - found["confidence"][k])))
    assert len(gaps) > 2 and ece(y, p, 7) == pytest.approx(sum(w * gap for w, gap in gaps))
    assert mce(y, p, 7) == pytest.approx(max(gap for _, gap in gaps))
    q, labels = rng.random((5, 12)), rng.integers(0, 2, 12)
    steps = [log_loss(labels, q[: k + 1]) for k in range(5)]
    np.testing.assert_allclose(running_log_loss(labels, q), steps, rtol=1e-12)


def test_calibration_by_hand():
    """Confidences 0.95, 0.85 and 0.85 of right, right and wrong predictions."""
    p = np.array([[0.95, 0.05], [0.85, 0.15], [0.15, 0.85]])
    found = reliability([0, 0, 0], p)
    assert found["count"].tolist() == [0] * 8 + [2, 1]
    np.testing.assert_allclose(found["accuracy"][8:], [0.5, 1.0])
    assert ece([0, 0, 0], p) == pytest.approx((2 * 0.35 + 0.05) / 3)
    assert mce([0, 0, 0], p) == pytest.approx(0.35)


def test_the_other_convention():
    """Bins of the range, its right edge dropped; geometric means that do not sum to 1."""
    p = np.array([[[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], [[0.4, 0.6], [0.6, 0.4], [0.7, 0.3]]])
    confidence = np.sqrt([0.36, 0.36, 0.49])
    found = reliability([0, 1, 0], p, bins=2, convention="mamba")
    np.testing.assert_allclose([found["left"][0], found["right"][-1]], [confidence.min(), confidence.max()])
    assert found["count"].tolist() == [2, 0]
    assert ece([0, 1, 0], p, bins=2, convention="mamba") == pytest.approx(2 / 3 * 0.1)
    assert ece([0, 1, 0], p) != pytest.approx(2 / 3 * 0.1)


def test_calibrated_predictions_have_no_calibration_error():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    y = (rng.random(200_000) < p).astype(int)
    assert ece(y, p) < 0.005 < 0.05 < ece(y, p**2)


CASES = {
    "labels": (lambda: log_loss([0, 2], [0.5, 0.5]), "`y` must hold the numbers 0 … 1"),
    "probabilities": (lambda: log_loss([0, 1], [0.5, 1.5]), r"`p` must hold probabilities in \[0, 1\]"),
    "nan": (lambda: ece([0, 1], [0.5, np.nan]), "`p` must hold probabilities"),
    "sum": (lambda: accuracy([0, 1], [[0.5, 0.1], [0.5, 0.5]]), "`p` must sum to 1"),
    "shape": (lambda: accuracy([0, 1, 1], [0.5, 0.1]), "`p` must have shape"),
    "no labels": (lambda: accuracy([], []), "`y` must be labels"),
    "bins": (lambda: ece(Y, P, bins=0), "`bins`"),
    "convention": (lambda: mce(Y, P, convention="best"), "`convention`.*'best'"),
    "nan predictions": (lambda: rmse([1.0, 2.0], [1.0, np.nan]), "`predictions` must be finite"),
    "nan labels": (lambda: rmse([1.0, np.nan], [1.0, 2.0]), "`y` must be finite"),
    "nan on the way": (
        lambda: running_log_loss(Y, np.where([[False], [True]], np.nan, P)),
        "`p` must hold probabilities",
    ),
    "predictions": (lambda: rmse([1.0, 2.0], [1.0]), "`predictions`"),
    "running": (lambda: running_log_loss(Y, P[:, :3]), r"`p` must have shape \(draws, 5\)"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(name):
    make, message = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_as_many_draws_as_labels():
    """Their shape is that of the probabilities of classes, and what is said tells what to give instead."""
    draws = np.stack([P[0], P[1], P[0], P[1], P[1]])
    with pytest.raises(
        ValueError, match=r"^`p` must sum .*; of as many draws as labels give both classes, \(draws, n, 2\)"
    ):
        log_loss(Y, draws)
    assert log_loss(Y, np.stack([1.0 - draws, draws], axis=-1)) == pytest.approx(log_loss(Y, draws.mean(axis=0)))
    with pytest.raises(ValueError, match=r"^`p` must sum to 1 over the classes\.$"):
        accuracy([0, 1, 1], [[0.5, 0.1], [0.5, 0.5], [0.5, 0.5]])
