"""Bugs in what leads to other packages: Stan programs, PyMC, NumPyro."""

from tests.mutations.bugs import Bug

STAN, OWN = ("tests/models/test_stan_programs.py",), ("tests/models/test_bring_your_own.py",)
S = "pdmp/models/adapters/stan_model.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("Stan: quantities in the order of the library", S, "part[:, order] = out[:, first : first + len(order)]", "part[:, :] = out[:, first : first + len(order)]", OWN),
        ("Stan: every parameter is said to be itself", S, 'variables[f"{name}_unc"] = flat', "variables[name] = flat", OWN),
        ("Stan: lower bounds are forgotten", S, "Log(_rounded(np.mean(y - np.exp(x))))", "Log()", STAN),
        ("Stan: intervals begin at 0", S, "Interval(_rounded(low), _rounded(low + height))", "Interval(0.0, _rounded(low + height))", STAN),
        ("Stan: matrices in rows", S, "else y.transpose(0, *range(y.ndim - 1, 0, -1)).reshape(POINTS, -1)", "else y.reshape(POINTS, -1)", STAN),
        ("Stan: log-likelihoods among the parameters", S, "        found.pop(self._likelihoods, None)\n", "", STAN),
        ("Stan: generated quantities unasked", S, "found = self._write(draws, 1, int(self.arguments[3]))", "found = self._write(draws, 1, 1)", STAN),
        ("Stan: a program is known by its name", S, "        return program, *others\n", "        return program[0], *others\n", STAN),
        ("Stan: the data are not those of the program", S, '{**json.loads(data or "{}"), "__stanli": program}', '{"__stanli": program}', STAN),
        ("Stan: files that are included are sought elsewhere", S, "include_paths=[] if is_text else [path.absolute().parent]", "include_paths=[]", STAN),
        ("Stan: the generator has another seed", S, "bs_rng_construct(self.arguments[2],", "bs_rng_construct(0,", OWN),
    ]
]  # fmt: skip
