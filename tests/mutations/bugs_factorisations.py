"""Planted bugs in the factorisations, independent component analysis and the neural network."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/models/test_factorisations.py",)
BASE, MF, B, P, ICA, NN = (
    f"pdmp/models/factorisations/{name}.py"
    for name in ("factorisation", "matrix_factorization", "bpmf", "ppmf", "ica", "bayesian_nn")
)

BUGS = [
    Bug(f"factorisations: {name}", file, old, new, TESTS)
    for name, file, old, new in [
        ("items begin where users do", BASE, "self.rank * (self.rows + self.data[i][\"item\"])", "self.rank * self.data[i][\"item\"]"),
        ("only users are drawn to their ratings", BASE, "    for k in range(rank):\n        out[b + k] += weight * x[a + k]\n", ""),
        ("the misfit pushes away", BASE, "return -self.noise_precision * (rating - r)", "return self.noise_precision * (rating - r)"),
        ("half a slope along the velocity", BASE, "return _product(x, v, a, b, self.rank) + _product(v, x, a, b, self.rank)", "return _product(x, v, a, b, self.rank)"),
        ("squares of items without their square", BASE, "        squares[b + k] += g * g", "        squares[b + k] += g"),
        ("projections of all that is in the rows", BASE, "        first, second = 0.0, 0.0\n        for k in range(n):", "        first, second = 0.0, 0.0\n        for k in range(rows.shape[0]):"),
        ("the difference to itself", BASE, "self.add_slopes(y, a, b, -weights[k] * self.weight(y, rows[k]), out)", "self.add_slopes(y, a, b, -weights[k] * self.weight(x, rows[k]), out)"),
        ("a partial derivative of the other row", BASE, "return self.weight(x, i) * self.derivative(x, b, a, j - b)", "return self.weight(x, i) * self.derivative(x, a, b, j - b)"),
        ("predictions forget the mean", BASE, "row[piece] = self.offset + np.einsum", "row[piece] = np.einsum"),
        ("ratings are not centred", BASE, "ratings - ratings.dtype.type(self.offset) if self.offset else ratings", "ratings"),
        ("a user too many is let in", BASE, "    if most >= size:", "    if most > size:"),
        ("negative numbers count from the end", BASE, "    if least < 0:", "    if least < -(2**31):"),
        ("a copy in the old order", BASE, "other.data = self.data[rows]", "other.data = self.data.copy()"),
        ("users' prior on items", MF, "_add_scaled(x, middle, self.dim, self.item_precision, out)", "_add_scaled(x, middle, self.dim, self.user_precision, out)"),
        ("scales are variances", MF, "positive_number(user_scale, \"user_scale\") ** -2", "positive_number(user_scale, \"user_scale\") ** -1"),
        ("the rates' quadratic part", MF, "out[row, 2] += c * here + q * slope", "out[row, 2] += 2.0 * c * here + q * slope"),
        ("a factor on the wrong item", MF, "self.rank * (self.n_users + self.data[\"item\"].astype(np.int64))", "self.rank * self.data[\"item\"].astype(np.int64)"),
        ("the mean has no prior", B, "precision[k] * (sums[k] - means[k])", "precision[k] * sums[k]"),
        ("no Jacobian", B, "- 0.5 * (rows + 1) - shape\n", "- 0.5 * (rows + 1) - shape + 1.0\n"),
        ("precisions of users for items", B, "mean + k, mean + 3 * k, self.shape, self.rate, out)", "mean + k, mean + 2 * k, self.shape, self.rate, out)"),
        ("as many determinants as rows", B, "- (0.5 * (rows + 1) + shape) * x[log + k]", "- (0.5 * rows + shape) * x[log + k]"),
        ("log precisions are called precisions", B, "{\"precision_U\": Log(), \"precision_V\": Log()}", "{}"),
        ("zero counts weigh", P, "return 1.0 - rating / r", "return 1.0 - (rating + 1.0) / r"),
        ("the rates' normaliser counts once", P, "out[place] += epsilon * (factors + rate) - self.rank * shape - own", "out[place] += epsilon * (factors + rate) - shape - own"),
        ("the rate of a rate is its shape", P, "self.activity_shape / positive_number(activity_mean, \"activity_mean\")", "self.activity_shape * positive_number(activity_mean, \"activity_mean\")"),
        ("users' shapes for items", P, "return self.item_shape, self.popularity_shape, self.popularity_rate", "return self.user_shape, self.popularity_shape, self.popularity_rate"),
        ("halves of a count", P, "(ratings < 0) | (ratings != np.floor(ratings))", "(ratings < 0)"),
        ("rates are not clipped", P, "rates = np.clip(self.predict(x, users, items), lowest, highest)", "rates = self.predict(x, users, items)"),
        ("products of logarithms", P, "        return np.exp(x)\n", "        return x\n"),
        ("the inverse is not transposed", ICA, "out[i * d + j] += weight * inverse[j, i]", "out[i * d + j] += weight * inverse[i, j]"),
        ("no pivoting", ICA, "            if abs(a[i, c]) > abs(a[p, c]):", "            if abs(a[i, c]) > math.inf:"),
        ("tanh of the whole", ICA, "y[k, c] = 1.0 - 2.0 / (1.0 + exp(y[k, c]))", "y[k, c] = 1.0 - 2.0 / (1.0 + exp(2.0 * y[k, c]))"),
        ("one determinant for a batch", ICA, "if _add_inverse(x, self.channels, -float(n), out):", "if _add_inverse(x, self.channels, -1.0, out):"),
        ("projections without the determinant", ICA, "            share += v[j] * shift[j]\n", ""),
        ("the old tile is in the last one's sum", ICA, "                for c in range(m):\n                    total += y[k, c] * tile[j, c]\n", "                for c in range(BLOCK):\n                    total += y[k, c] * tile[j, c]\n"),
        ("whitened to variance one", ICA, "self.initial = (math.pi / math.sqrt(3.0) * (vectors", "self.initial = (1.0 * (vectors"),
        ("a softmax without its own part", NN, "slope[k, j] = h[k, j] * (slope[k, j] - total)", "slope[k, j] = h[k, j] * slope[k, j]"),
        ("derivative of the sigmoid", NN, "slope[k, j] *= h[k, j] * (1.0 - h[k, j])", "slope[k, j] *= h[k, j] * (1.0 + h[k, j])"),
        ("derivative of tanh", NN, "slope[k, j] *= 1.0 - h[k, j] * h[k, j]", "slope[k, j] *= 1.0 - h[k, j]"),
        ("all units are open", NN, "slope[k, j] = slope[k, j] if h[k, j] > 0.0 else 0.0", "slope[k, j] = slope[k, j]"),
        ("no bias", NN, "                h[k, j] += w[weights + p * q + j]", "                h[k, j] += 0.0"),
        ("labels of the first chunk", NN, "y[rows[start + k]] if first < 0 else y[first + start + k]", "y[rows[start + k]] if first < 0 else y[first + k]"),
        ("rows of the first chunk", NN, "out[k, j] = X[rows[start + k], j]", "out[k, j] = X[rows[k], j]"),
        ("squares of the outputs alone", NN, "            _square(slopes)\n", ""),
        ("projections without biases", NN, "(there[k, j] + v[weights + a * q + j])", "there[k, j]"),
        ("projections add up over chunks", NN, "            p[:m] = 0.0\n", ""),
        ("the logits' top is lost", NN, "total += math.log(mass) + float(top - z", "total += math.log(mass) + float(-z"),
        ("labels beyond the classes", NN, "if classes < 2 or most >= classes:", "if classes < 2 or most > classes:"),
    ]
] + [
    Bug(f"factorisations, by law: {name}", file, old, new, (f"tests/statistics/test_factorisation_laws.py::{test}",))
    for name, file, old, new, test in [
        ("users' prior on items", MF, "_add_scaled(x, middle, self.dim, self.item_precision, out)", "_add_scaled(x, middle, self.dim, self.user_precision, out)", "test_the_product_of_two_factors_has_its_law"),
        ("half a datum's misfit", BASE, "return -self.noise_precision * (rating - r)", "return -0.5 * self.noise_precision * (rating - r)", "test_the_product_of_two_factors_has_its_law"),
        ("the mean has no prior", B, "precision[k] * (sums[k] - means[k])", "precision[k] * sums[k]", "test_the_bouncy_particle_sampler[BPMF-0.15]"),
        ("no Jacobian", B, "- 0.5 * (rows + 1) - shape\n", "- 0.5 * (rows + 1) - shape + 1.0\n", "test_the_bouncy_particle_sampler[BPMF-0.15]"),
        ("zero counts weigh", P, "return 1.0 - rating / r", "return 1.0 - (rating + 1.0) / r", "test_the_bouncy_particle_sampler[PPMF-0.1]"),
        ("the rates' normaliser without the activity", P, "out[place] += epsilon * (factors + rate) - self.rank * shape - own", "out[place] += epsilon * (factors + rate) - self.rank * shape", "test_the_bouncy_particle_sampler[PPMF-0.1]"),
        ("tanh of the whole", ICA, "y[k, c] = 1.0 - 2.0 / (1.0 + exp(y[k, c]))", "y[k, c] = 1.0 - 2.0 / (1.0 + exp(2.0 * y[k, c]))", "test_the_bouncy_particle_sampler[ICA-0.15]"),
        ("the inverse is not transposed", ICA, "out[i * d + j] += weight * inverse[j, i]", "out[i * d + j] += weight * inverse[i, j]", "test_the_bouncy_particle_sampler[ICA-0.15]"),
        ("no bias", NN, "                h[k, j] += w[weights + p * q + j]", "                h[k, j] += 0.0", "test_each_family_once[BayesianNN by MALA]"),
        ("the logits' top is lost", NN, "total += math.log(mass) + float(top - z", "total += math.log(mass) + float(-z", "test_each_family_once[BayesianNN by MALA]"),
    ]
]  # fmt: skip
