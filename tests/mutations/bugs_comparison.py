"""Bugs in the rows of a comparison that have a warm-up of their own, and in calibration from one call."""

from tests.mutations.bugs import Bug

ROWS, CALIBRATE = ("tests/test_compare_extra.py",), ("tests/validation/test_calibrate.py",)
C, V = "pdmp/comparison.py", "pdmp/validation/simulation.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("compare: auto's warm-up is free", C, "data_passes=data_passes - spent,", "data_passes=data_passes,", ROWS),
        ("compare: auto's warm-up is not in its passes", C, 'passes = run.stats["data_passes"] / chains + spent', 'passes = run.stats["data_passes"] / chains', ROWS),
        ("compare: auto's curve begins before its warm-up ends", C, "passes = spent + fractions *", "passes = fractions *", ROWS),
        ("compare: auto starts elsewhere", C, "process = auto(process, chains=chains, seed=seed, initial=initial)", "process = auto(process, chains=chains, seed=seed)", ROWS),
        ("compare: NUTS goes on when its gradients are spent", C, 'enough = int(np.searchsorted(used, gradients, side="right"))', "enough = len(used)", ROWS),
        ("compare: all chains of NUTS are one", C, "x, used = self._chain(start, count, seed + k)", "x, used = self._chain(start, count, seed)", ROWS),
        ("compare: NUTS has the effective draws of all chains", C, '**_scores(means, sds, np.mean([draws_ess(x[None], "mean") for x in draws], axis=0)', '**_scores(means, sds, np.sum([draws_ess(x[None], "mean") for x in draws], axis=0)', ROWS),
        ("compare: the largest error of any chain", C, '"max_mean_error": float(errors.max(axis=1).mean())', '"max_mean_error": float(errors.max())', ROWS),
        ("calibrate: the same posterior for all", V, "posterior = model.simulate(x, rng) if isinstance(model, Model)", "posterior = model if isinstance(model, Model)", CALIBRATE),
        ("calibrate: draws above, not below", V, "below, equal = (values < truth[:, None]).sum(axis=1)", "below, equal = (values > truth[:, None]).sum(axis=1)", CALIBRATE),
        ("calibrate: one seed for all runs", V, "gradients=gradients, seed=int(rng.integers(2**62))", "gradients=gradients, seed=seed", CALIBRATE),
        ("calibrate: draws of one chain", V, "found = run.draws(draws // chains)", "found = run.draws(draws)", CALIBRATE),
        ("calibrate: coordinates in another order", V, "np.array([named[name].ravel() for name in names])", "np.array([named[name].ravel() for name in sorted(names, reverse=True)])", CALIBRATE),
        ("calibrate: warnings are swallowed", V, "    if said:\n", "    if len(said) > replicates:\n", CALIBRATE),
    ]
]  # fmt: skip
