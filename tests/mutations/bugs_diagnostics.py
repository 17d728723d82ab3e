"""Bugs in Monte Carlo errors, event rates, bounds, summaries, reports and Stein sums."""

from tests.mutations.bugs import Bug

ERRORS = ("tests/diagnostics/test_monte_carlo_error.py",)
EVENTS = ("tests/diagnostics/test_diagnostic_events.py",)
SUMMARY = ("tests/diagnostics/test_summary.py",)
STEIN = ("tests/diagnostics/test_stein.py",)
REFERENCE = ("tests/diagnostics/test_distances.py",)
POOLING, M = ("tests/engine/test_pooling.py",), "pdmp/diagnostics/variable_selection.py"
PREDICTIVE = ("tests/diagnostics/test_predictive.py",)
E, V, S = "pdmp/diagnostics/monte_carlo_error.py", "pdmp/diagnostics/events.py", "pdmp/diagnostics/summary.py"
T = "pdmp/engine/trajectory.py"
P, N = "pdmp/diagnostics/predictive.py", "pdmp/diagnostics/effective_size.py"

BUGS = [
    Bug(f"diagnostics: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("models: those of the last chain", M, 'sum(r.accumulated["models"] for r in records)', 'records[-1].accumulated["models"]', POOLING),
        ("models: the path of the last chain", M, "for path in run.trajectories:", "for path in run.trajectories[-1:]:", POOLING),
        ("counts: the largest is the last", "pdmp/engine/result.py", "stats[name] = max(stats.get(name, value), value)", "stats[name] = value", POOLING),
        ("comparison: errors after a time are not divided by it", "pdmp/comparison.py", "np.reshape(total / (t - path.warmup),", "np.reshape(total * (t - path.warmup),", POOLING),
        ("batches: the last stretches are left out", E, "series[len(series) - count * size :]", "series[: count * size]", ("tests/diagnostics/test_by_hand.py",)),
        ("the metric of other coordinates for the second reference", "pdmp/comparison.py", "metric=None if whitened else hessian", "mass=hessian", ("tests/test_passed_on.py",)),
        ("a negative extrapolated variance is no draw", "pdmp/diagnostics/summary.py", "np.where(ess < 0.0, math.inf, np.where(ess > 0.0, ess, 0.0))", "np.where(ess > 0.0, ess, 0.0)", ("tests/diagnostics/test_summary.py",)),
        ("too short a path is many draws", "pdmp/diagnostics/summary.py", "np.where(ess < 0.0, math.inf, np.where(ess > 0.0, ess, 0.0))", "np.where(ess > 0.0, ess, math.inf)", ("tests/diagnostics/test_summary.py",)),
        ("a factor 2 in the error", E, "return np.sqrt(within)", "return np.sqrt(2.0 * within)", ERRORS),
        ("a factor 2 in ess", "pdmp/engine/result.py", "self.var() / error**2, np.nan)", "2.0 * self.var() / error**2, np.nan)", ERRORS),
        ("batches: their number for their size", E, "return size * means.var(axis=0, ddof=1)", "return count * means.var(axis=0, ddof=1) * 0.9", ERRORS),
        ("batches: divided by their number", E, "return size * means.var(axis=0, ddof=1)", "return size * means.var(axis=0)", ERRORS),
        ("spectral: not squared", E, "1e-12) ** 2\n", "1e-12)\n", ERRORS),
        ("spectral: reflections of the wrong sign", E, "weights[:p] = weights[:p] - reflection", "weights[:p] = weights[:p] + reflection", ERRORS),
        ("spectral: never an autoregression", E, "better = criterion < best", "better = criterion < -np.inf", ERRORS),
        ("stretches do not count", E, "return (stretch * long).reshape(shape)", "return long.reshape(shape)", ERRORS),
        ("chains that disagree go unseen", E, "within = np.where(differ, between, within)", "pass", ERRORS),
        ("between chains: not divided", E, "between = apart * np.sum(weights**2) / (1.0 - np.sum(weights**2))", "between = apart", ERRORS),
        ("chains weigh the same", E, "w * w * (stretch * one) / length", "w * (stretch * one) / length", ERRORS),
        ("the variance is by whatever method", "pdmp/engine/result.py", "asymptotic_variance(s, h, method) for s, h", "asymptotic_variance(s, h) for s, h", ERRORS),
        ("cost: of draws, not of the path", E, "    ess = run.ess(method) if ess is None else ess", "    ess = run.ess() if ess is None else ess", ERRORS),
        ("cost: of the wrong unit", E, '"per_event": stats["total_events"],', '"per_event": stats["proposals"] + 1,', ERRORS),
        ("stretches: ends off by one", T, "which = np.clip(np.searchsorted(ends, until - 0.5 * h) - 1, 0, n - 1)", "which = np.clip(np.searchsorted(ends, until - 0.5 * h), 0, n - 1)", ERRORS),
        ("stretches: velocities forgotten", T, "value = value + along * v - across", "value = value - across", ERRORS),
        ("stretches: a local path without its start", T, "return np.diff(so_far.reshape(m, -1), axis=1) + start[:, None] * np.diff(ends)", "return np.diff(so_far.reshape(m, -1), axis=1)", ERRORS),
        ("stretches: blocks begin at the warm-up", T, "            now = until[-1]\n", "            now = a\n", ERRORS),
        ("chain means: the centre is forgotten", "pdmp/engine/result.py", "mean = r.integrals.centre + r.integrals.first / r.length", "mean = r.integrals.first / r.length", ERRORS),
        ("errors: only the fine chain", "pdmp/engine/result.py", "averages = weights @ averages.reshape(len(averages), len(weights), averages.shape[1] // len(weights))", "averages = averages[:, : averages.shape[1] // len(weights)]", ERRORS),
        ("rates: the warm-up counts", V, "np.histogram(times[times > path.warmup], ends)[0]", "np.histogram(np.maximum(times, path.warmup), ends)[0]", EVENTS),
        ("rates: a sphere of another dimension", V, "math.lgamma(0.5 * d) - math.lgamma(0.5 * (d + 1))) / (2.0", "math.lgamma(0.5 * (d + 1)) - math.lgamma(0.5 * (d + 2))) / (2.0", EVENTS),
        ("rates: both signs of a flip", V, "0.5 * np.abs(g).mean(axis=0)", "np.abs(g).mean(axis=0)", EVENTS),
        ("rates: no 1/√(2π)", V, "return root / length / math.sqrt(2.0 * math.pi)", "return root / length", EVENTS),
        ("rates: the precision for its root", V, "np.sqrt(np.diag(_precision(precision)) / (2.0 * math.pi))", "np.diag(_precision(precision)) / np.sqrt(2.0 * math.pi)", EVENTS),
        ("bounds: acceptance of all proposals", V, '"acceptance": 1.0 - rejected / thinned', '"acceptance": rejected / thinned', EVENTS),
        ("bounds: one chain's share", V, "-math.expm1(-missed / run.chains)", "-math.expm1(-missed)", EVENTS),
        ("bounds: the mean excess for the sum", V, 'missed = stats["bound_violations"] * stats["mean_excess"]', 'missed = stats["mean_excess"]', EVENTS),
        ("times between: of every kind", V, "keep &= path.kinds == names.index(kind)", "pass", EVENTS),
        ("acf: lags in draws", V, 'spacing = float(np.mean(run.end - run.warmup)) / draws', "spacing = 1.0", EVENTS),
        ("acf: the narrowest direction twice", V, "vectors[:, [-1, 0]].T", "vectors[:, [0, 0]].T", EVENTS),
        ("acf: one lag late", V, "[:, :lags] / (draws", "[:, 1 : lags + 1] / (draws", EVENTS),
        ("acf: the end meets the beginning", V, "np.fft.rfft(z, 2 * draws)", "np.fft.rfft(z, draws)", EVENTS),
        ("acf: not by the number of products", V, "/ (draws - np.arange(lags))", "/ draws", EVENTS),
        ("integrated time: lag 0 twice", V, "axis=-1) - values[..., 0]", "axis=-1)", EVENTS),
        ("integrated time: all positive pairs", V, "np.logical_and.accumulate(pairs > 0.0, axis=-1)", "pairs > 0.0", EVENTS),
        ("integrated time: NaN passes for noise", V, "np.where(np.isnan(values).any(axis=-1), np.nan, total)", "np.asarray(total)", EVENTS),
        ("temperature: about the origin", V, "here = both[:, :d] - both[:, :d].mean(axis=0)", "here = both[:, :d]", EVENTS),
        ("temperature: not divided by d", V, "/ ((len(both) - 1) * d)", "/ (len(both) - 1)", EVENTS),
        ("temperature: half the Laplacian", V, "- model.gradient(x[place] - step)[j]) / (2.0 * h)", "- model.gradient(x[place] - step)[j]) / (4.0 * h)", EVENTS),
        ("summary: a density that does not fall goes unsaid", S, "found += _no_density(run, names, rhat)", "pass", SUMMARY),
        ("summary: no density, the sign", S, "gradients)[:, high]", "-gradients)[:, high]", SUMMARY),
        ("summary: no density beside a wall", S, "or process.rests or process.walled:", "or process.rests:", SUMMARY),
        ("summary: no density, without its error", S, "most = value + 3.0", "most = value + 0.0", SUMMARY),
        ("summary: no density, the first coordinates", S, "names, high[flat_ones])} the density", "names, flat_ones)} the density", SUMMARY),
        ("summary: heat goes unsaid", S, "found += _heat(run)", "pass", EVENTS),
        ("summary: few draws go unsaid", S, "low = np.flatnonzero((ess < FEW) & light)", "low = np.flatnonzero(ess < 0.0)", SUMMARY),
        ("summary: R-hat goes unsaid", S, "high = np.flatnonzero((rhat > LARGE) & ~apart)", "high = np.flatnonzero(rhat > 100.0)", SUMMARY),
        ("summary: reducible processes go unsaid", "pdmp/processes/bps.py", "if process.refresh_rate != 0.0 or process.dim == 1:", "if process.refresh_rate == 0.0 or process.dim == 1:", SUMMARY),
        ("R-hat: no folding", "pdmp/diagnostics/effective_size.py", "found = np.maximum(*found)", "found = found[0]", SUMMARY),
        ("R-hat: chains are not split", "pdmp/diagnostics/effective_size.py", "halves = np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])", "halves = np.concatenate([draws[:, :half], draws[:, :half]])", SUMMARY),
        ("R-hat: ties in the order of the draws", "pdmp/diagnostics/effective_size.py", "    if len(row):\n", "    if len(row) > 10**9:\n", SUMMARY),
        ("R-hat: the median of an odd number", "pdmp/diagnostics/effective_size.py", "ordered[:, (count - 1) // 2] + ordered", "ordered[:, count // 2] + ordered", SUMMARY),
        ("R-hat: distances in the order of their numbers", "pdmp/diagnostics/effective_size.py", "_twice_ranks(np.take_along_axis(order, again, axis=1), np", "_twice_ranks(again, np", SUMMARY),
        ("thin: the first draws", "pdmp/engine/result.py", "return x[stein_thin(x, scores(target, x), n, preconditioner=preconditioner)]", "return x[:n]", SUMMARY),
        ("stein: pairs of a tile counted twice", "pdmp/diagnostics/stein/pairs.py", "total += (weights[p, j] if j > after else 0.0) * buffer[0, j]", "total += weights[p, j] * buffer[0, j]", STEIN),
        ("stein: a row too many", "pdmp/diagnostics/stein/pairs.py", "two += (weights[p, j] if j > after + 1 else 0.0) * value", "two += (weights[p, j] if j > after else 0.0) * value", STEIN),
        ("stein: only the first two coordinates", "pdmp/diagnostics/stein/pairs.py", "buffer[2, j] = (buffer[2, j] if k > 0 else 0.0)", "buffer[2, j] = 0.0", STEIN),
        ("fssd: pull of the wrong sign", "pdmp/diagnostics/stein/finite_set.py", "out[j, k] -= 2.0 * total", "out[j, k] += 2.0 * total", STEIN),
        ("fssd: the mean does not move the variance", "pdmp/diagnostics/stein/finite_set.py", "variance_ascent = self.jacobian_products(v, 8.0 / (n * size) * along, mean, through_mean, 0.0)", "variance_ascent = self.jacobian_products(v, 8.0 / (n * size) * along, mean, 0.0 * mean, 0.0)", STEIN),
        ("fssd: padding counts", "pdmp/diagnostics/stein/finite_set.py", "return along * self.is_draw, square * self.is_draw", "return along, square + 1.0 - self.is_draw", STEIN),
        ("report: noise is a difference", "pdmp/diagnostics/estimates.py", "abs(difference.value) > z * difference.error", "abs(difference.value) > 0.0 * z * difference.error", REFERENCE),
        ("differences: errors subtract", "pdmp/diagnostics/estimates.py", "np.hypot(self.error, other.error)", "abs(self.error - other.error)", REFERENCE),
        ("log-likelihood: a mean", "pdmp/diagnostics/predictive.py", "return -len(np.asarray(y)) * log_loss(y, p)", "return -log_loss(y, p)", PREDICTIVE),
        ("accuracy: the least probable class", P, "np.mean(np.argmax(p, axis=1) == y)", "np.mean(np.argmin(p, axis=1) == y)", PREDICTIVE),
        ("log-loss: of the first draw", P, "if geometric else p.mean(axis=0)", "if geometric else p[0]", PREDICTIVE),
        ("mce: a mean", P, "np.nanmax(np.abs(found", "np.nanmean(np.abs(found", PREDICTIVE),
        ("mamba's bins: those of the standard", P, "np.linspace(confidence.min(), confidence.max(), bins + 1)", "np.linspace(0.0, 1.0, bins + 1)", PREDICTIVE),
        ("rmse: the mean of the draws' errors", P, "float(metrics.root_mean_squared_error(y, mean))", "float(each.mean())", PREDICTIVE),
        ("predictions that are NaN on the way", P, "if not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)):", "if np.any(p < 0.0):", PREDICTIVE),
        ("mean error: in units of x", "pdmp/diagnostics/distances.py", "np.abs(x.mean(axis=0) - mean) / sd)", "np.abs(x.mean(axis=0) - mean))", REFERENCE),
        ("sd error: of variances", "pdmp/diagnostics/distances.py", "np.linalg.norm(x.std(axis=0) - sd)", "np.linalg.norm(x.var(axis=0) - sd**2)", REFERENCE),
        ("Wasserstein: of other marginals", "pdmp/diagnostics/distances.py", "zip(x.T, reference.T, strict=True)", "zip(x.T, reference.T[::-1], strict=True)", REFERENCE),
        ("sliced Wasserstein: directions of any length", "pdmp/diagnostics/distances.py", "directions /= np.linalg.norm(directions, axis=1, keepdims=True)", "pass", REFERENCE),
        ("distances: few draws go unsaid", "pdmp/diagnostics/distances.py", "if chains * n < d:", "if chains * n < 0:", REFERENCE),
        ("power kernel: β once too often", "pdmp/diagnostics/stein/kernels.py", "(self.beta - 1.0) * first / b", "self.beta * first / b", STEIN),
        ("Gaussian kernel: another bandwidth", "pdmp/diagnostics/stein/kernels.py", "self.rate = 0.5 / float(bandwidth) ** 2", "self.rate = 1.0 / float(bandwidth) ** 2", STEIN),
        ("stein: chains that ran away", "pdmp/diagnostics/stein/inputs.py", "> FARTHEST", "> math.inf", STEIN),
        ("stein: singular covariances", "pdmp/diagnostics/stein/inputs.py", "least = 1e-10  #", "least = 0.0  #", STEIN),
        ("ess of what never moved", N, "np.where(_constant(draws), np.nan, _each", "np.where(False, np.nan, _each", SUMMARY),
        ("draws that never moved go unsaid", N, "    if len(constant):\n", "    if len(constant) > 10**9:\n", SUMMARY),
        ("acf: fewer draws than dimensions", V, "if run.chains * draws <= run.dim:", "if run.chains * draws <= 0:", EVENTS),
        ("acf: directions of no movement go unsaid", V, "    if len(still):\n", "    if len(still) > 10**9:\n", EVENTS),
        ("summary: the error of a variance for that of a standard deviation", S, "0.5 * error / squares", "error / squares", SUMMARY),
        ("summary: few draws are a loose standard deviation", S, "np.where(error > CORRELATED * alone,", "np.where(error > 0.0 * alone,", SUMMARY),
        ("summary: squares about the first draw", S, "squares = (draws - draws.mean(axis=(0, 1))) ** 2", "squares = (draws - draws[:, :1]) ** 2", SUMMARY),
        ("summary: loose standard deviations go unsaid", S, "wide = np.flatnonzero((loose > LOOSE) & light)", "wide = np.flatnonzero(loose > 100.0)", SUMMARY),
        ("summary: chains apart are told to run longer", S, "low = np.flatnonzero((ess < FEW) & light)", "low = np.flatnonzero(ess < FEW)", SUMMARY),
        ("summary: chains on their way are in modes", S, "chain.ess(\"spectral\")[found] > SETTLED", "chain.ess(\"spectral\")[found] > -1.0", SUMMARY),
        ("summary: chains that drift are in modes", S, 'found[found] = draws_rhat(one[None, :, found], "rank") < LARGE', "pass", SUMMARY),
        ("summary: the sd of what is nearly always zero", S, "loose[np.mean(draws == 0.0, axis=(0, 1)) > RESTING] = 0.0", "pass", SUMMARY),
        ("a probability of 1 without an error", "pdmp/engine/result.py", "np.where(found.error <= 1e-12 * np.abs(found.value), np.nan, found.error)", "found.error", ("tests/engine/test_run.py::test_an_average_that_never_changes_has_no_error",)),
        ("natural parameters of one position", "pdmp/models/transforms.py", "reshape((*draws.shape[:-1], *shape))", "reshape(*draws.shape[:-1], *shape)", ("tests/engine/test_export.py::test_natural_parameters_of_one_position",)),
        ("summary: few events go unsaid", S, "if int(run.events.sum()) < d:", "if int(run.events.sum()) < 0:", SUMMARY),
        ("reliability diagram: left edges", "pdmp/plots/comparisons.py", "above.errorbar(confidence, accuracy, error", "above.errorbar(found[\"left\"][used], accuracy, error", PREDICTIVE),
    ]
]  # fmt: skip

UNREAL, SQUARE = (
    "tests/diagnostics/test_names.py::test_masked_and_complex_draws_are_refused",
    "tests/diagnostics/test_predictive.py::test_as_many_draws_as_labels",
)
BUGS += [
    Bug(f"diagnostics: {name}", f"pdmp/diagnostics/{file}.py", old, new, (test,))
    for name, file, old, new, test in [
        ("draws below a mask", "effective_size", '    refuse_unreal("draws", draws)\n', "    pass\n", UNREAL),
        ("scores below a mask", "stein/inputs", "    refuse_unreal(name, scores)\n", "    pass\n", UNREAL),
        ("a reference below a mask", "distances", '    refuse_unreal("reference", reference)\n', "    pass\n", UNREAL),
        ("predictions below a mask", "predictive", 'arguments.refuse_unreal("predictions", predictions)', "pass", UNREAL),
        ("averages below a mask", "monte_carlo_error", '    refuse_unreal("averages", averages)\n', "    pass\n", UNREAL),
        ("as many draws as labels are whatever sums to 1", "predictive", "if p.shape[1] == len(y) else", "if False else", SQUARE),
        ("other classes are said to be draws", "predictive", "if p.shape[1] == len(y) else", "if True else", SQUARE),
    ]
]  # fmt: skip
