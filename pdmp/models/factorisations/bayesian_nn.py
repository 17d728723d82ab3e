"""Bayesian neural network for classification: dense layers, a softmax output, Gaussian priors on every weight."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.derived import reordered
from pdmp.models.normal_prior import IsotropicPrior
from pdmp.native.arguments import count, matrix, one_of, positive, real, same_rows
from pdmp.native.classes import allocating, compiled
from pdmp.native.prefetch import prefetch
from pdmp.native.vectors import exp

if TYPE_CHECKING:
    from pdmp.models.base import Model

ACTIVATIONS = ("softmax", "sigmoid", "relu", "tanh")
SOFTMAX, SIGMOID, RELU, TANH = range(4)
CHUNK = 1_024  #: data that go through the network together: products of matrices of this many rows
LARGEST_SEARCH = 10**7  #: above this many multiplications in a full gradient the mode is searched for with batches


@allocating
def _softmax(z):
    """Rows of z by their softmax, in place."""
    for k in range(z.shape[0]):
        top = z[k, 0]
        for j in range(1, z.shape[1]):
            top = max(top, z[k, j])
        total = 0.0
        for j in range(z.shape[1]):
            z[k, j] = exp(float(z[k, j] - top))
            total += z[k, j]
        for j in range(z.shape[1]):
            z[k, j] /= total


@allocating
def _activate(z, kind):
    """z by the activation, in place."""
    if kind == SOFTMAX:
        _softmax(z)
        return
    for k in range(z.shape[0]):
        if kind == SIGMOID:
            for j in range(z.shape[1]):
                z[k, j] = 1.0 / (1.0 + exp(float(-z[k, j])))
        elif kind == RELU:
            for j in range(z.shape[1]):
                z[k, j] = max(z[k, j], 0.0)
        else:
            for j in range(z.shape[1]):
                z[k, j] = 1.0 - 2.0 / (1.0 + exp(float(2.0 * z[k, j])))


@allocating
def _differentiate(h, kind, slope):
    """From the derivative by the activations h to that by what went in, in place."""
    for k in range(h.shape[0]):
        if kind == SOFTMAX:
            total = 0.0
            for j in range(h.shape[1]):
                total += h[k, j] * slope[k, j]
            for j in range(h.shape[1]):
                slope[k, j] = h[k, j] * (slope[k, j] - total)
        elif kind == SIGMOID:
            for j in range(h.shape[1]):
                slope[k, j] *= h[k, j] * (1.0 - h[k, j])
        elif kind == RELU:
            for j in range(h.shape[1]):
                slope[k, j] = slope[k, j] if h[k, j] > 0.0 else 0.0
        else:
            for j in range(h.shape[1]):
                slope[k, j] *= 1.0 - h[k, j] * h[k, j]


@allocating
def _gather(X, rows, start, m, out):
    for k in range(min(4, m)):
        prefetch(X, rows[start + k])
    for k in range(m):
        if k + 4 < m:
            prefetch(X, rows[start + k + 4])
        for j in range(X.shape[1]):
            out[k, j] = X[rows[start + k], j]


@allocating
def _places(sizes, layer):
    """Where the weights of a layer begin in x, and where its outputs begin among those of all layers of one datum."""
    weights, outputs = 0, 0
    for k in range(layer):
        weights += (sizes[k] + 1) * sizes[k + 1]
        outputs += sizes[k + 1]
    return weights, outputs


@allocating
def _forward(inputs, w, sizes, kind, logits, outputs):
    """Outputs of all layers, one after the other in `outputs`; of the last the logits, or their softmax."""
    m, layers = inputs.shape[0], sizes.shape[0] - 1
    for layer in range(layers):
        p, q = sizes[layer], sizes[layer + 1]
        weights, place = _places(sizes, layer)
        h = outputs[m * place : m * (place + q)].reshape(m, q)
        matrix = w[weights : weights + p * q].reshape(p, q)
        if layer == 0:
            np.dot(inputs, matrix, h)
        else:
            np.dot(outputs[m * (place - p) : m * place].reshape(m, p), matrix, h)
        for k in range(m):
            for j in range(q):
                h[k, j] += w[weights + p * q + j]
        if layer + 1 < layers:
            _activate(h, kind)
        elif not logits:
            _softmax(h)


@allocating
def _backward(y, first, rows, start, w, sizes, kind, m, outputs, slopes):
    """Derivatives of the potentials by what goes into each layer's activation, in the layout of `outputs`."""
    layers = sizes.shape[0] - 1
    for layer in range(layers - 1, -1, -1):
        q = sizes[layer + 1]
        weights, place = _places(sizes, layer)
        h = outputs[m * place : m * (place + q)].reshape(m, q)
        slope = slopes[m * place : m * (place + q)].reshape(m, q)
        if layer + 1 == layers:
            for k in range(m):
                label = y[rows[start + k]] if first < 0 else y[first + start + k]
                for j in range(q):
                    slope[k, j] = h[k, j]
                slope[k, label] -= 1.0
        else:
            after = sizes[layer + 2]
            weights += (sizes[layer] + 1) * q
            matrix = w[weights : weights + q * after].reshape(q, after)
            np.dot(slopes[m * (place + q) : m * (place + q + after)].reshape(m, after), matrix.T, slope)
            _differentiate(h, kind, slope)


@allocating
def _add_products(inputs, sizes, outputs, slopes, product, out):
    """Add the gradient: for each layer what goes in, transposed, times the slopes."""
    m, layers = inputs.shape[0], sizes.shape[0] - 1
    for layer in range(layers):
        p, q = sizes[layer], sizes[layer + 1]
        weights, place = _places(sizes, layer)
        slope = slopes[m * place : m * (place + q)].reshape(m, q)
        matrix = product[: p * q].reshape(p, q)
        if layer == 0:
            np.dot(inputs.T, slope, matrix)
        else:
            np.dot(outputs[m * (place - p) : m * place].reshape(m, p).T, slope, matrix)
        for j in range(p * q):
            out[weights + j] += product[j]
        for k in range(m):
            for j in range(q):
                out[weights + p * q + j] += slope[k, j]


@allocating
def _square(a):
    for j in range(a.shape[0]):
        a[j] *= a[j]


@allocating
def _add_projections(inputs, v, sizes, outputs, slopes, room, p):
    """p[k] += v·∇U of datum k: for each layer the slopes times what the layer with weights v makes of its input."""
    m, layers = inputs.shape[0], sizes.shape[0] - 1
    for layer in range(layers):
        a, q = sizes[layer], sizes[layer + 1]
        weights, place = _places(sizes, layer)
        slope = slopes[m * place : m * (place + q)].reshape(m, q)
        matrix = v[weights : weights + a * q].reshape(a, q)
        there = room[: m * q].reshape(m, q)
        if layer == 0:
            np.dot(inputs, matrix, there)
        else:
            np.dot(outputs[m * (place - a) : m * place].reshape(m, a), matrix, there)
        for k in range(m):
            for j in range(q):
                p[k] += slope[k, j] * (there[k, j] + v[weights + a * q + j])


@allocating
def _through(X, y, x, first, rows, n, sizes, kind, v, out, squares, what):
    """Gradients of n data: rows[0], …, or first, first + 1, … where that is not negative.

    what = 0: add their sum to `out`; 1: and the sum of their squares to `squares`; 2: their sum, and return the sums
    of their products with v and of the squares of these.
    """
    width, widest, largest = 0, 0, 0
    for layer in range(sizes.shape[0] - 1):
        width += sizes[layer + 1]
        widest = max(widest, sizes[layer + 1])
        largest = max(largest, sizes[layer] * sizes[layer + 1])
    w = x.astype(X.dtype)
    velocity = v.astype(X.dtype) if what == 2 else w[:0]
    chunk = min(CHUNK, n)
    outputs, slopes = np.empty(chunk * width, X.dtype), np.empty(chunk * width, X.dtype)
    product = np.empty(largest, X.dtype)
    gathered = np.empty((chunk if first < 0 else 0, X.shape[1]), X.dtype)
    room = np.empty(chunk * widest if what == 2 else 0, X.dtype)
    p, total, total_squares = np.zeros(chunk), 0.0, 0.0
    for start in range(0, n, chunk):
        m = min(chunk, n - start)
        if first < 0:
            _gather(X, rows, start, m, gathered)
        inputs = gathered[:m] if first < 0 else X[first + start : first + start + m]
        _forward(inputs, w, sizes, kind, False, outputs)
        _backward(y, first, rows, start, w, sizes, kind, m, outputs, slopes)
        _add_products(inputs, sizes, outputs, slopes, product, out)
        if what == 1:  # the gradient of a weight is a product, and so is its square
            _square(gathered[:m].reshape(m * X.shape[1]))
            _square(outputs)
            _square(slopes)
            _add_products(gathered[:m], sizes, outputs, slopes, product, squares)
        elif what == 2:
            p[:m] = 0.0
            _add_projections(inputs, velocity, sizes, outputs, slopes, room, p)
            for k in range(m):
                total += p[k]
                total_squares += p[k] * p[k]
    return total, total_squares


@allocating
def _misfit(X, y, x, first, n, sizes, kind):
    """Σ -log p(yᵢ) over first <= i < first + n."""
    width, classes, total = 0, sizes[sizes.shape[0] - 1], 0.0
    for layer in range(sizes.shape[0] - 1):
        width += sizes[layer + 1]
    w, chunk = x.astype(X.dtype), min(CHUNK, n)
    outputs = np.empty(chunk * width, X.dtype)
    for start in range(0, n, chunk):
        m = min(chunk, n - start)
        _forward(X[first + start : first + start + m], w, sizes, kind, True, outputs)
        z = outputs[m * (width - classes) : m * width].reshape(m, classes)
        for k in range(m):
            top, mass = z[k, 0], 0.0
            for j in range(1, classes):
                top = max(top, z[k, j])
            for j in range(classes):
                mass += exp(float(z[k, j] - top))
            total += math.log(mass) + float(top - z[k, y[first + start + k]])
    return total


class BayesianNN(IsotropicPrior):
    r"""Posterior of the weights of a neural network with dense layers that classifies.

    h₀ = x, h_l = activation(h_{l-1} W_l + b_l) for the hidden layers and p = softmax(h W + b) for the classes; all
    weights and biases are N(0, prior_scale²). With the softmax, over the units, as the hidden activation too, one layer
    of 100 units and MNIST's 784 pixels and 10 classes this is the network of [1]_, in d = 79,510 dimensions: its B, b,
    A and a are W1, b1, W2 and b2. One term for each datum, Uᵢ = -log p(yᵢ | xᵢ), with, back from the output,

        δ = p - onehot(yᵢ),   ∂Uᵢ/∂W = h δᵀ,   ∂Uᵢ/∂b = δ,   δ ← (W δ) · activation'.

    The units of a hidden layer can be exchanged without a change of U. Zero is a saddle; `initial` has weights
    N(0, 1 / inputs) and no biases.

    Data go through the network by the hundreds, as products of matrices by BLAS, in the precision `dtype`; their number
    of threads is BLAS's (``OPENBLAS_NUM_THREADS``, or the package threadpoolctl). A call makes its own room, that of
    1,024 data and one layer, whatever N.

    Parameters
    ----------
    X : array_like, shape (N, P)
        Inputs.
    y : array_like of int, shape (N,)
        Labels 0, …, K - 1.
    hidden : int or sequence of int, default 100
        Units of the hidden layer, or of each of several.
    activation : {"softmax", "sigmoid", "relu", "tanh"}, default "softmax"
        Of the hidden layers.
    prior_scale : float, default 1.0
        Standard deviation of a weight or bias under the prior.
    n_classes : int, optional
        K; one more than the largest label when omitted.
    dtype : {numpy.float64, numpy.float32}, default numpy.float64
        How the inputs are kept and the network is computed. float32 halves memory and time, for gradients exact to
        about six digits; positions and sums stay in double precision.

    Raises
    ------
    ValueError
        If `X` is not a finite matrix, `y` does not fit it or is not made of labels 0, …, K - 1, `hidden` or
        `n_classes` does not fit, `activation` or `dtype` is unknown, or `prior_scale` is not positive.

    References
    ----------
    .. [1] Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient MCMC,
       Stat. Comput. 33, section 4.3.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> model = pdmp.models.BayesianNN(X, [0, 1] * 10, hidden=4)
    >>> list(model.variables)
    ['W1', 'b1', 'W2', 'b2']
    """

    data: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray
    kind: int

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        hidden: int = 100,
        activation: str = "softmax",
        prior_scale: ArrayLike = 1.0,
        n_classes: int | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"`dtype` must be float64 or float32, got {np.dtype(dtype)}.")
        one_of("activation", activation, ACTIVATIONS)
        same_rows(X=X, y=y)
        X = matrix("X", X, dtype, "P", copy=False)
        y, classes = _labels(y, len(X), n_classes)
        sizes = [X.shape[1], *_units(hidden), classes]
        variables = {}
        for k, (p, q) in enumerate(zip(sizes[:-1], sizes[1:], strict=True), 1):
            variables |= {f"W{k}": (p, q), f"b{k}": (q,)}
        dim = sum((p + 1) * q for p, q in zip(sizes[:-1], sizes[1:], strict=True))
        super().__init__(dim=dim, n_data=len(X), variables=variables)
        self.data, self.labels = X, y
        self.sizes, self.kind, self.activation = np.array(sizes), ACTIVATIONS.index(activation), activation
        self.prior_precision = positive("prior_scale", prior_scale) ** -2
        rng, start = np.random.default_rng(0), 0
        for p, q in zip(sizes[:-1], sizes[1:], strict=True):
            self.initial[start : start + p * q] = rng.standard_normal(p * q) / math.sqrt(p)
            start += (p + 1) * q

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def term_potential(self, x, i):
        return _misfit(self.data, self.labels, x, i, 1, self.sizes, self.kind)

    @compiled
    def total_potential(self, x):
        return self.prior_potential(x) + _misfit(self.data, self.labels, x, 0, self.n_data, self.sizes, self.kind)

    @compiled
    def through(self, x, first, rows, n, v, out, squares, what):
        return _through(self.data, self.labels, x, first, rows, n, self.sizes, self.kind, v, out, squares, what)

    @compiled
    def add_term_gradient(self, x, i, out):
        self.add_block_gradient(x, i, i + 1, out)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        if last > first:
            self.through(x, first, self.sizes, last - first, x, out, out, 0)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        self.through(x, -1, rows, n, x, out, out, 0)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return self.through(x, -1, rows, n, v, out, out, 2)

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        self.through(x, -1, rows, n, x, out, squares, 1)

    def rearranged(self, rows: np.ndarray) -> Model | None:
        return reordered(
            self, rows, lambda rows: {"data": np.ascontiguousarray(self.data[rows]), "labels": self.labels[rows]}
        )

    @property
    def searches_by_batches(self) -> bool:
        """Whether there are more than 10⁷ / N weights. A mode is one of many: the units can be exchanged."""
        return self.n_data * self.dim > LARGEST_SEARCH

    def _log_probabilities(self, x, X):
        h = X
        for k in range(1, len(self.sizes)):
            parts = self.constrain(x)
            h = h @ parts[f"W{k}"] + parts[f"b{k}"]
            if k + 1 == len(self.sizes):
                return _log_softmax(h)
            if self.activation == "softmax":
                h = np.exp(_log_softmax(h))
            elif self.activation == "sigmoid":
                h = 0.5 * (1.0 + np.tanh(0.5 * h))
            else:
                h = np.maximum(h, 0.0) if self.activation == "relu" else np.tanh(h)

    def _each(self, x, X):
        """Log probabilities (..., n, K) at points x (..., dim)."""
        x = real("x", x, self.dim)
        X = self.data if X is None else matrix("X", X, self.data.dtype, "P", copy=False)
        if X.shape[1] != self.sizes[0]:
            raise ValueError(f"`X` must have {self.sizes[0]} columns, got {X.shape[1]}.")
        out = np.empty((math.prod(x.shape[:-1]), len(X), self.sizes[-1]))
        for k, point in enumerate(x.reshape(-1, self.dim)):
            out[k] = self._log_probabilities(point, X)
        return out.reshape(*x.shape[:-1], len(X), self.sizes[-1])

    def predict(self, x: ArrayLike, X: ArrayLike | None = None) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        x : array_like, shape (..., dim)
            One set of weights or several.
        X : array_like, shape (n, P), optional
            Inputs; those of the data when omitted.

        Returns
        -------
        ndarray, shape (..., n, K)
        """
        return np.exp(self._each(x, X))

    def log_likelihood(self, x: ArrayLike, X: ArrayLike | None = None, y: ArrayLike | None = None) -> np.ndarray:
        """log p(y | x) of each label.

        Parameters
        ----------
        x, X : array_like
            As in `predict`.
        y : array_like of int, shape (n,), optional
            Labels; those of the data when omitted, together with `X`.

        Returns
        -------
        ndarray, shape (..., n)
        """
        if (X is None) != (y is None):
            raise ValueError("`X` and `y` must be given together, or neither of them.")
        same_rows(X=X, y=y)
        logs = self._each(x, X)
        y = self.labels if y is None else _labels(y, logs.shape[-2], int(self.sizes[-1]))[0]
        return logs[..., np.arange(len(y)), y]

    def observed_data(self) -> dict[str, np.ndarray]:
        return {"y": np.asarray(self.labels)}

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return self.log_likelihood(draws)


def _log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def _labels(y, n, classes):
    """Labels as 32-bit integers, and their number K."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"`y` must have shape ({n},), one label for each row of `X`, got {y.shape}.")
    if y.dtype.kind not in "iuf" or not np.all(y == np.floor(y)) or y.min() < 0:
        raise ValueError(f"`y` must hold the labels 0, …, K - 1, got {np.unique(y)[:5].tolist()}.")
    most = int(y.max())
    if classes is None:
        if most == 0 or len(np.unique(y)) <= most:
            missing = sorted(set(range(most + 1)) - set(np.unique(y).tolist()))[:5]
            what = f"has none of {missing}" if missing else "has a single class"
            raise ValueError(f"`y` must hold the labels 0, …, K - 1, and {what}; give `n_classes` if that is meant.")
        return y.astype(np.int32), most + 1
    classes = count("n_classes", classes, least=2)
    if most >= classes:
        raise ValueError(f"`n_classes` must be above the largest label {most}, got {classes}.")
    return y.astype(np.int32), classes


def _units(hidden):
    units = [count("hidden", width) for width in (hidden if np.iterable(hidden) else [hidden])]
    if not units:
        raise ValueError("`hidden` must have at least one layer.")
    return units
