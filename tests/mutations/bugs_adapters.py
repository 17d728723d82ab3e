"""Bugs in what leads to other packages: Stan programs, PyMC, NumPyro."""

from tests.mutations.bugs import Bug

STAN, OWN = ("tests/models/test_stan_programs.py",), ("tests/models/test_bring_your_own.py",)
NUMPYRO = ("tests/models/test_numpyro_models.py",)
PYMC, SAMPLER = ("tests/models/test_pymc_models.py",), ("tests/automatic/test_pymc_sampler.py",)
S, P = "pdmp/models/adapters/stan_model.py", "pdmp/models/adapters/pymc_model.py"
A, N, T = "pdmp/automatic/pymc_sampler.py", "pdmp/models/adapters/numpyro_model.py", "pdmp/models/transforms.py"

#: Without these packages the tests are skipped.
NEEDS = {"Stan": "stanli", "PyMC": "pymc", "PyMC's sampler": "pymc", "NumPyro": "numpyro"}

BUGS = [
    Bug(name, file, old, new, tests, NEEDS[name.split(":")[0]])
    for name, file, old, new, tests in [
        ("Stan: quantities in the order of the library", S, "part[:, order] = out[:, first : first + len(order)]", "part[:, :] = out[:, first : first + len(order)]", OWN),
        ("Stan: every parameter is said to be itself", S, 'variables[f"{name}_unc"] = flat', "variables[name] = flat", OWN),
        ("Stan: lower bounds are forgotten", T, "Log(_rounded(np.mean(y - np.exp(x))))", "Log()", STAN),
        ("Stan: intervals begin at 0", T, "Interval(_rounded(low), _rounded(low + height))", "Interval(0.0, _rounded(low + height))", STAN),
        ("Stan: matrices in rows", S, "else y.transpose(0, *range(y.ndim - 1, 0, -1)).reshape(POINTS, -1)", "else y.reshape(POINTS, -1)", STAN),
        ("Stan: log-likelihoods among the parameters", S, "        found.pop(self._likelihoods, None)\n", "", STAN),
        ("Stan: generated quantities unasked", S, "found = self._write(draws, 1, int(self.arguments[3]))", "found = self._write(draws, 1, 1)", STAN),
        ("Stan: a program is known by its name", S, "        return program, *others\n", "        return program[0], *others\n", STAN),
        ("Stan: the data are not those of the program", S, '{**json.loads(data or "{}"), "__stanli": program}', '{"__stanli": program}', STAN),
        ("Stan: files that are included are sought elsewhere", S, "include_paths=[] if is_text else [path.absolute().parent]", "include_paths=[]", STAN),
        ("Stan: the generator has another seed", S, "bs_rng_construct(self.arguments[2],", "bs_rng_construct(0,", OWN),
        ("PyMC: two threads in one function", P, "        with self._lock:", "        if self._lock:", PYMC),
        ("PyMC: mini-batches of an observed variable", P, "if _has_batches(v, model.rvs_to_values.get(v))", "if _has_batches(v)", PYMC),
        ("PyMC: mini-batches of a Potential", P, "for v in (*model.basic_RVs, *model.potentials)", "for v in model.basic_RVs", PYMC),
        ("PyMC: dims are forgotten", P, "target.dims, target.coords = function.dims, function.coords", "target.coords = function.coords", PYMC),
        ("PyMC: log-likelihoods of a constant model", P, "frozen.logp(vars=observed, sum=False", "frozen.logp(vars=observed, sum=True", PYMC),
        ("PyMC's sampler: as many draws as ArviZ likes", A, "run.to_arviz(draws, log_likelihood", "run.to_arviz(None, log_likelihood", SAMPLER),
        ("PyMC's sampler: starts are forgotten", A, "initial=None if initvals is None else", "initial=None if True else", SAMPLER),
        ("PyMC's sampler: all chains from one start", A, "points = [function(0) for function in functions]", "points = [functions[0](0) for function in functions]", SAMPLER),
        ("PyMC's sampler: the budget is not passed on", A, "                    **self.budget,\n", "", SAMPLER),
        ("PyMC's sampler: a seed by its first number", A, "[int(s) for s in np.ravel(random_seed)]", "[int(np.ravel(random_seed)[0])]", SAMPLER),
        ("PyMC's sampler: any version will do", A, 'if Sampler is None or "sampler" not in', 'if "sampler" in', SAMPLER),
        ("NumPyro: the gradient first", N, "jnp.concatenate([value[None], gradient])", "jnp.concatenate([gradient, value[None]])", NUMPYRO),
        ("NumPyro: parts at the wrong places", N, "            first += size\n", "            first += 1\n", NUMPYRO),
        ("NumPyro: the first block of draws only", N, "for k in range(0, len(x), ROWS)]", "for k in range(0, len(x), ROWS)][:1] * -(-len(x) // ROWS)", NUMPYRO),
        ("NumPyro: every parameter is said to be itself", N, 'name if transform is not None else f"{name}_unc"', "name", NUMPYRO),
        ("NumPyro: the data do not count", N, "for part in self._evaluate(x):", "for part in x:", NUMPYRO),
        ("NumPyro: plates are forgotten", N, "batch = range(-len(site[\"fn\"].batch_shape), 0)", "batch = range(0)", NUMPYRO),
        ("NumPyro: mini-batches as if they were the data", N, "    if batches:\n", "    if False:\n", NUMPYRO),
    ]
]  # fmt: skip
