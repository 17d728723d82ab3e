"""Planted bugs in the targets that users test on, in transforms, and in what calls other packages' densities."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TARGETS, TRANSFORMS, OWN = (
    "tests/models/test_standard_targets.py",
    "tests/models/test_transforms.py",
    "tests/models/test_bring_your_own.py",
)
MODELS = "tests/models/test_models.py"

BUGS = [
    Bug(f"targets: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("banana: half the chain rule", "pdmp/models/targets/banana.py", "out[0] += x[0] / (self.scale * self.scale) - 2.0 * self.bend * x[0] * pull", "out[0] += x[0] / (self.scale * self.scale) - self.bend * x[0] * pull", TARGETS),
        ("banana: its factor forgets the bend", "pdmp/models/targets/banana.py", "            out[0] -= 2.0 * self.bend * x[0] * pull\n", "", TARGETS),
        ("banana: the cubic coefficient of the wrong sign", "pdmp/models/targets/banana.py", "r2 = -q * self.bend", "r2 = q * self.bend", TARGETS),
        ("banana: a cross term too few", "pdmp/models/targets/banana.py", "out[0, 1] += p * v[0] + c * (v[0] * r0 + x[0] * r1)", "out[0, 1] += p * v[0] + c * (x[0] * r1)", TARGETS),
        ("banana: variance without its factor two", "pdmp/models/targets/banana.py", "self.noise**2 + 2.0 * self.bend**2", "self.noise**2 + self.bend**2", TARGETS),
        ("banana: Hessian of a parabola", "pdmp/models/targets/banana.py", "(x[1] - 3.0 * self.bend * x[0] ** 2)", "(x[1] - self.bend * x[0] ** 2)", TARGETS),
        ("banana: draws that are not bent", "pdmp/models/targets/banana.py", "x[:, 1] = self.bend * x[:, 0] ** 2 + self.noise * x[:, 1]", "x[:, 1] *= self.noise", TARGETS),
        ("funnel: the logarithm of the scale is lost", "pdmp/models/targets/funnel.py", "return 0.5 * (w * w + (self.dim - 1) * x[0] + square)", "return 0.5 * (w * w + square)", TARGETS),
        ("funnel: one coordinate too many", "pdmp/models/targets/funnel.py", "0.5 * ((self.dim - 1) - precision * square)", "0.5 * (self.dim - precision * square)", TARGETS),
        ("funnel: the factor's sign", "pdmp/models/targets/funnel.py", "out[0] += 0.5 * (1.0 - pull * x[f])", "out[0] += 0.5 * (1.0 + pull * x[f])", TARGETS),
        ("funnel: its variance is the median's", "pdmp/models/targets/funnel.py", "math.exp(0.5 * self.scale**2))", "1.0)", TARGETS),
        ("funnel: the mode of the prior", "pdmp/models/targets/funnel.py", "mode[0] = -0.5 * (self.dim - 1) * self.scale**2", "mode[0] = 0.0", TARGETS),
        ("mixture: no determinants", "pdmp/models/targets/gaussian_mixture.py", "self.offsets = np.log(self.weights) - 0.5 * (log_det + ", "self.offsets = np.log(self.weights) - 0.5 * (0.0 * log_det + ", TARGETS),
        ("mixture: the largest part is lost", "pdmp/models/targets/gaussian_mixture.py", "total = total * math.exp(top - part) + 1.0", "total = total + 1.0", TARGETS),
        ("mixture: all pulls alike", "pdmp/models/targets/gaussian_mixture.py", "out[i] += share * row", "out[i] += row / self.offsets.shape[0]", TARGETS),
        ("mixture: the bound is the last curvature", "pdmp/models/targets/gaussian_mixture.py", "largest = max(largest, total)", "largest = total", TARGETS),
        ("mixture: covariance within only", "pdmp/models/targets/gaussian_mixture.py", " + (self.weights * away.T) @ away", "", TARGETS),
        ("mixture: Hessian without its covariance", "pdmp/models/targets/gaussian_mixture.py", " - (shares * (pulls - mean).T) @ (pulls - mean)", "", TARGETS),
        ("field: τ on the ridge only", "pdmp/models/hierarchies/markov_random_field.py", "sparse.csr_array(tau * laplacian)", "sparse.csr_array(laplacian + (tau - 1.0) * kappa**2 * sparse.eye_array(d))", TARGETS),
        ("field: κ is not squared", "pdmp/models/hierarchies/markov_random_field.py", ".ravel() + kappa**2", ".ravel() + kappa", TARGETS),
        ("field: edges one way", "pdmp/models/hierarchies/markov_random_field.py", "    off = off + off.T\n", "", TARGETS),
        ("field: weights are forgotten", "pdmp/models/hierarchies/markov_random_field.py", "sparse.coo_array((w.astype(float), (i, j))", "sparse.coo_array((np.ones(len(w)), (i, j))", TARGETS),
        ("hierarchy: no Jacobian of log τ", "pdmp/models/hierarchies/hierarchical_normal.py", "total = 0.5 * self.mu_precision * (x[0] * x[0]) - x[1]\n", "total = 0.5 * self.mu_precision * (x[0] * x[0])\n", TARGETS),
        ("hierarchy: no normalisation of the groups", "pdmp/models/hierarchies/hierarchical_normal.py", "total += 0.5 * (r * r) + x[1]", "total += 0.5 * (r * r)", TARGETS),
        ("hierarchy: τ is not pulled by the data", "pdmp/models/hierarchies/hierarchical_normal.py", "            out[1] += pull * tau * x[2 + i]\n", "", TARGETS),
        ("hierarchy: half-normal τ", "pdmp/models/hierarchies/hierarchical_normal.py", "out[1] += 1.0 - 2.0 / (1.0 + u)", "out[1] += u - 1.0", TARGETS),
        ("hierarchy: μ is pulled the other way", "pdmp/models/hierarchies/hierarchical_normal.py", "            out[0] -= precision * away\n", "            out[0] += precision * away\n", TARGETS),
        ("hierarchy: θ without μ", "pdmp/models/hierarchies/hierarchical_normal.py", 'natural["mu"][..., None] + natural["tau"]', 'natural["tau"]', TARGETS),
        ("hierarchy: moments without the determinant", "pdmp/models/hierarchies/hierarchical_normal.py", " - 0.5 * np.linalg.slogdet(Q)[1]", "", TARGETS),
        ("hierarchy: moments without the spread given τ", "pdmp/models/hierarchies/hierarchical_normal.py", "            second[k][np.ix_(rest, rest)] += covariance\n", "", TARGETS),
        ("Cox: no area in the gradient", "pdmp/models/hierarchies/log_gaussian_cox.py", "out[i] += self.area * math.exp(x[i]) - self.counts[i]", "out[i] += math.exp(x[i]) - self.counts[i]", TARGETS),
        ("Cox: concave and convex are exchanged", "pdmp/models/hierarchies/log_gaussian_cox.py", "        if v[i] > 0.0:\n            out[row, 0]", "        if v[i] < 0.0:\n            out[row, 0]", TARGETS),
        ("Cox: the slope of the concave part", "pdmp/models/hierarchies/log_gaussian_cox.py", "out[row, 2] += v[i] * rate", "out[row, 2] += rate", TARGETS),
        ("Cox: pairs of neighbours repel", "pdmp/models/hierarchies/log_gaussian_cox.py", "out[j] += abs(q) * b + q * a", "out[j] += abs(q) * b - q * a", TARGETS),
        ("Cox: the field's diagonal twice", "pdmp/models/hierarchies/log_gaussian_cox.py", "self.rest = self.field.curvatures() - beside", "self.rest = self.field.curvatures()", TARGETS),
        ("Cox: the mean of the field, not of the intensity", "pdmp/models/hierarchies/log_gaussian_cox.py", "mean = math.log(points) - 0.5 * variance", "mean = math.log(points)", TARGETS),
        ("transforms: the bound of an upper one", "pdmp/models/transforms.py", "return self.upper - np.exp(x)", "return np.exp(x) - self.upper", TRANSFORMS),
        ("transforms: the interval's width is no part of the Jacobian", "pdmp/models/transforms.py", "return math.log(self.upper - self.lower) - np.logaddexp(0.0, x)", "return -np.logaddexp(0.0, x)", TRANSFORMS),
        ("transforms: the first of ordered numbers is moved too", "pdmp/models/transforms.py", "        gradient[..., 0] = 0.0\n", "", TRANSFORMS),
        ("transforms: a simplex without its last", "pdmp/models/transforms.py", "total = np.log(y).sum(axis=-1, keepdims=True) + ", "total = np.log(y[..., :-1]).sum(axis=-1, keepdims=True) + ", TRANSFORMS),
        ("transforms: parts are cut at the wrong places", "pdmp/models/transforms.py", "        first += size\n", "        first += 1\n", TRANSFORMS),
        ("transforms: a file forgets their numbers", "pdmp/models/transforms.py", "return [type(self).__name__.lower(), *astuple(self)]", "return [type(self).__name__.lower()]", TRANSFORMS),
        ("a run's names are of other coordinates", "pdmp/engine/result.py", "return transforms.coordinate_names(self.variables, self.transforms)", "return transforms.coordinate_names(self.variables)", TRANSFORMS),
        ("a loaded run makes do without its model", "pdmp/engine/result.py", 'if self._info.get("constrains", False):', "if False:", TRANSFORMS),
        ("Stan: the sign of the gradient", "pdmp/models/adapters/stan_model.py", "total[j] -= gradient[j] if code == 0 else np.nan", "total[j] += gradient[j] if code == 0 else np.nan", OWN),
        ("Stan: a refused point is as good as any", "pdmp/models/adapters/stan_model.py", "        return np.inf\n", "        return -value[0]\n", OWN),
        ("Stan: no Jacobian", "pdmp/models/adapters/stan_model.py", 'self._call("bs_log_density_gradient", 1, 1,', 'self._call("bs_log_density_gradient", 1, 0,', OWN),
        ("Stan: libraries without threads in threads", "pdmp/models/adapters/stan_model.py", 'self.compiled = "STAN_THREADS=true" in self._text("bs_model_info") and', "self.compiled =", OWN),
        ("Stan: the failure is kept for ever", "pdmp/models/adapters/function.py", "            self.failure = None\n            raise failure\n", "            raise failure\n", OWN),
    ]
]  # fmt: skip
