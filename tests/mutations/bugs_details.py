"""Planted bugs in details: options, statistics, limits, chosen steps; diagnostics and tuning."""

from __future__ import annotations

from tests.mutations.bugs import BARKER, LANGEVIN, ROMBERG, RUNS, Bug

TUNING, STEIN = "tests/tuning/test_tuning.py", "tests/diagnostics/test_stein.py"
SGD, KINETIC = "tests/discrete/test_sgd.py", "tests/discrete/test_kinetic.py"
PDMPS, LAWS = "tests/discrete/test_discretised_pdmps.py", "tests/discrete/test_laws.py"
VERIFICATION = "tests/models/test_verification.py"
PREDICTIVE, REFERENCE = "tests/diagnostics/test_predictive.py", "tests/diagnostics/test_distances.py"

BUGS = [
    Bug(f"details: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("checkpoint: the time that was spent", "pdmp/engine/chain.py", 'NUMBERS = ("seconds", "stopped", "warming", "stored", "look")', 'NUMBERS = ("stopped", "warming", "stored", "look")', RUNS),
        ("check_gradient: one of two sums", "pdmp/models/verification.py", 'copies[-2:] if method == "add_batch_squares" else copies[-1:]', "copies[-1:]", VERIFICATION),
        ("SGLD: noise is removed where there is none", "discrete/sgld.py", "        if variance > 0.0:\n            return math.sqrt(variance) * z[j]\n        memory.noiseless[0] += temperature > 0.0", "        if variance > 0.0:\n            return math.sqrt(variance) * z[j]\n        memory.noiseless[0] += 1", LANGEVIN),
        ("SGLD: the chosen step knows no noise", "discrete/sgld.py", "lambda gamma: self.covariance(hessian, noise, gamma)", "lambda gamma: self.covariance(hessian, 0.0 * noise, gamma)", LAWS),
        ("SGD: exploration counts", "discrete/sgd.py", "return 0.0 if self.schedule.explores(k) else self.schedule.step(k)", "return self.schedule.step(k)", SGD),
        ("RMSprop: division by a gradient of zero", "discrete/preconditioners.py", "if self.include_gamma and root > 0.0:", "if self.include_gamma:", LANGEVIN),
        ("SGBD: the first adaptive step is the largest", "discrete/sgbd.py", "                if self.current or memory.taken[0] == 0:\n                    s = new\n", "", BARKER),
        ("SGBD: the length of an adaptive run is taken to be known", "discrete/sgbd.py", "            self.regular = False\n", "            pass\n", BARKER),
        ("SGHMC: the root of a negative noise", "discrete/sghmc.py", "max(self.friction - 0.5 * eps * self.noise_variance, 0.0)", "(self.friction - 0.5 * eps * self.noise_variance)", KINETIC),
        ("SGHMC: the limit at large friction is lost", "discrete/sghmc.py", "np.linspace(2.0, 5.0, 400)", "np.linspace(2.0, 3.0, 400)", KINETIC),
        ("extrapolation: statistics of the coarse chain", "discrete/richardson_romberg.py", "fine.report.statistics(fine, state._replace(memory=state.memory.fine))", "process.coarse.report.statistics(process.coarse, state._replace(memory=state.memory.coarse))", ROMBERG),
        ("extrapolation: the noise of from_h is β̂", "discrete/richardson_romberg.py", "noise_estimate=beta_hat / eps", "noise_estimate=beta_hat", ROMBERG),
        ("extrapolation: the chosen step is the fine chain's", "discrete/richardson_romberg.py", "None if found[1] is None else self.copies[0] * found[0] + self.copies[1] * found[1]", "None if found[1] is None else found[0]", ROMBERG),
        ("laws: not the closest step but the last", "discrete/laws.py", "        if worst < best[0]:\n            best", "        if True:\n            best", LAWS),
        ("SG-BPS: a bounce in a gradient that is not finite", "discrete/sgbps.py", "            if not finite(memory.gradient):\n                return False\n", "", PDMPS),
        ("splitting: the acceptance is not a number", "discrete/splitting.py", "elif log_accept < 0.0:", "else:", PDMPS),
        ("halving: a budget without end", "pdmp/tuning/halving.py", 'count("eta", eta, 2), positive("budget", budget)', 'count("eta", eta, 2), float(budget)', TUNING),
        ("halving: gaps are not squared", "pdmp/tuning/halving.py", "np.arange(2, m + 1) / gaps**2", "np.arange(2, m + 1) / gaps", TUNING),
        ("halving: η in the numerator", "pdmp/tuning/halving.py", "exponent = total / (4.0 * eta * sigma**2", "exponent = eta * total / (4.0 * sigma**2", TUNING),
        ("halving: rounds by logarithms", "pdmp/tuning/halving.py", "    while left >= eta:  # not by logarithms: log 243 / log 3 is 4.999…\n        left //= eta\n        n += 1\n", "    n = int(math.log(arms) / math.log(eta))\n", TUNING),
        ("halving: a round too many is promised", "pdmp/tuning/halving.py", "total = budget * arms * n / sum(eta**i for i in range(n))", "total = budget * arms * n / sum(eta**i for i in range(n + 1))", TUNING),
        ("halving: the worst are kept", "pdmp/tuning/halving.py", "key=lambda k: scores[k])  # stable", "key=lambda k: -scores[k])  # stable", TUNING),
        ("mamba: scores forget which round they are of", "pdmp/tuning/competition.py", "begun = 0.0 if self.run is None or self.window == \"all\" else", "begun = 0.0 if self.run is None else", TUNING),
        ("mamba: arms start anywhere", "pdmp/tuning/competition.py", "self.process, initial=self.initial, seed=self.seed", "self.process, initial=None, seed=self.seed", TUNING),
        ("mamba: the first score is the last", "pdmp/tuning/competition.py", "if p.arm == best][-1]", "if p.arm == best][0]", TUNING),
        ("mamba: all arms share one stream", "pdmp/tuning/competition.py", "self.seed, self.initial = values, make(**values), seed, initial", "self.seed, self.initial = values, make(**values), 1, initial", TUNING),
        ("stein: no diagonal", "pdmp/diagnostics/stein/kernel_discrepancy.py", "return math.sqrt(max(off + float(np.dot(weights**2, pairs.diagonal)), 0.0))", "return math.sqrt(max(off, 0.0))", STEIN),
        ("stein: half the pairs", "pdmp/diagnostics/stein/kernel_discrepancy.py", "off = 2.0 * float(np.dot(weights, pairs.row_sums", "off = 1.0 * float(np.dot(weights, pairs.row_sums", STEIN),
        ("stein: the trace of the identity with any Γ", "pdmp/diagnostics/stein/pairs.py", "self.trace = float(np.sum(inverse**2))", "self.trace = float(d)", STEIN),
        ("stein: φ'' of the wrong sign", "pdmp/diagnostics/stein/kernels.py", "return root, -0.5 * cube, 0.75 * cube * inverse", "return root, -0.5 * cube, -0.75 * cube * inverse", STEIN),
        ("stein: U-statistics divide by all pairs", "pdmp/diagnostics/stein/kernel_discrepancy.py", "weights.sum() ** 2 - np.dot(weights, weights)", "weights.sum() ** 2", STEIN),
        ("stein: the median of the warm-up", "pdmp/diagnostics/stein/kernels.py", "some = y[:: max(len(y) // MEDIAN_DRAWS, 1)]", "some = y[:MEDIAN_DRAWS]", STEIN),
        ("stein: scores without their sign", "pdmp/diagnostics/stein/score_function.py", "out[i, j] = -out[i, j]", "out[i, j] = out[i, j]", STEIN),
        ("fssd: no gradient of the kernel", "pdmp/diagnostics/stein/finite_set.py", "total += weights[p, i] * (s[p, k, i] * buffer[0, i] + 2.0 * buffer[1, i] * (x[p, k, i] - vk))", "total += weights[p, i] * s[p, k, i] * buffer[0, i]", STEIN),
        ("fssd: not divided by the number of features", "pdmp/diagnostics/stein/finite_set.py", "biased = float(np.sum(mean * mean)) / v.size", "biased = float(np.sum(mean * mean))", STEIN),
        ("fssd: the locations go downhill", "pdmp/diagnostics/stein/adam.py", "v += rate * (first", "v -= rate * (first", STEIN),
        ("slices: used on the draws that they were searched on", "pdmp/diagnostics/stein/sliced.py", "x, scores = x[1::2], scores[1::2]", "x, scores = x[::2], scores[::2]", STEIN),
        ("thinning: the diagonal counts in full", "pdmp/diagnostics/stein/thinning.py", "objective, chosen = 0.5 * pairs.diagonal", "objective, chosen = pairs.diagonal.copy()", STEIN),
        ("calibration: bins closed on the right", "pdmp/diagnostics/predictive.py", "place = np.minimum(np.searchsorted(edges, confidence, side=\"right\") - 1", "place = np.minimum(np.searchsorted(edges, confidence, side=\"left\") - 1", PREDICTIVE),
        ("calibration: every bin weighs the same", "pdmp/diagnostics/predictive.py", "np.nansum(found[\"count\"] * gap) / len(np.asarray(y))", "np.nanmean(gap)", PREDICTIVE),
        ("log-loss: the mean of the losses, not of the probabilities", "pdmp/diagnostics/predictive.py", "mean = np.cumsum(p, axis=0) / np.arange(1, len(p) + 1)[:, None]", "mean = p", PREDICTIVE),
        ("rmse: no root", "pdmp/diagnostics/predictive.py", "each = np.sqrt(np.mean(", "each = (np.mean(", PREDICTIVE),
        ("jackknife: a factor too little", "pdmp/diagnostics/estimates.py", "error = np.sqrt((m - 1.0) / m * np.sum(", "error = np.sqrt(1.0 / m * np.sum(", REFERENCE),
        ("mmd: the diagonal counts", "pdmp/diagnostics/distances.py", "(kernel(x, x).sum() - m) / (m * (m - 1))", "kernel(x, x).mean()", REFERENCE),
        ("errors of variances in units of variances", "pdmp/diagnostics/distances.py", "unit = sd**2 if relative else sd", "unit = sd**2", REFERENCE),
        ("summary: a frozen chain goes unsaid", "pdmp/diagnostics/summary.py", "if not COLD < temperature < HOT and", "if not 0.0 < temperature < HOT and", KINETIC),
        ("stein: draws far away lose their digits", "pdmp/diagnostics/stein/pairs.py", "x = x - x.mean(axis=0)  # centred", "x = x - 0.0  # centred", STEIN),
        ("plots: no path in one dimension", "pdmp/plots/paths.py", "columns = (0, 1) if d > 1 else (0,)", "columns = (0, 1)", LANGEVIN),
        ("chain: nothing goes alongside", "pdmp/engine/chain.py", "with self.process.helper_threads(self.state):", "if True:", ROMBERG),
    ]
]  # fmt: skip
