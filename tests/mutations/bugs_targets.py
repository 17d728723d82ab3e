"""Planted bugs in the targets that users test on, in transforms, and in what calls other packages' densities."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TARGETS, TRANSFORMS = "tests/models/test_standard_targets.py", "tests/models/test_transforms.py"
BOUNDS = "tests/models/test_verification.py::test_no_bound_of_any_model_is_violated[Banana]"

BUGS = [
    Bug(f"targets: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("banana: its factor forgets the bend", "pdmp/models/targets/banana.py", "            out[0] -= 2.0 * self.bend * x[0] * pull\n", "", BOUNDS),
        ("banana: draws that are not bent", "pdmp/models/targets/banana.py", "x[:, 1] = self.bend * x[:, 0] ** 2 + self.noise * x[:, 1]", "x[:, 1] *= self.noise", TARGETS),
        ("funnel: its variance is the median's", "pdmp/models/targets/funnel.py", "math.exp(0.5 * self.scale**2))", "1.0)", TARGETS),
        ("funnel: the mode of the prior", "pdmp/models/targets/funnel.py", "mode[0] = -0.5 * (self.dim - 1) * self.scale**2", "mode[0] = 0.0", TARGETS),
        ("field: τ on the ridge only", "pdmp/models/hierarchies/markov_random_field.py", "sparse.csr_array(tau * laplacian)", "sparse.csr_array(laplacian + (tau - 1.0) * kappa**2 * sparse.eye_array(d))", TARGETS),
        ("field: edges one way", "pdmp/models/hierarchies/markov_random_field.py", "    off = off + off.T\n", "", TARGETS),
        ("hierarchy: τ is not pulled by the data", "pdmp/models/hierarchies/hierarchical_normal.py", "            out[1] += pull * tau * x[2 + i]\n", "", TARGETS),
        ("hierarchy: moments without the spread given τ", "pdmp/models/hierarchies/hierarchical_normal.py", "            second[k][np.ix_(rest, rest)] += covariance\n", "", TARGETS),
        ("transforms: the first of ordered numbers is moved too", "pdmp/models/transforms.py", "        gradient[..., 0] = 0.0\n", "", TRANSFORMS),
    ]
]  # fmt: skip
