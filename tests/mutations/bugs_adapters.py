"""Bugs in what leads to other packages: Stan programs, PyMC, NumPyro."""

from tests.mutations.bugs import Bug

STAN = ("tests/models/test_stan_programs.py",)
S = "pdmp/models/adapters/stan_model.py"

#: Without these packages the tests are skipped.
NEEDS = {"Stan": "stanli", "PyMC": "pymc", "NumPyro": "numpyro"}

BUGS = [
    Bug(name, file, old, new, tests, NEEDS[name.split(":")[0]])
    for name, file, old, new, tests in [
        ("Stan: log-likelihoods among the parameters", S, "        found.pop(self._likelihoods, None)\n", "", STAN),
    ]
]  # fmt: skip
