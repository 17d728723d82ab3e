"""Planted bugs in SBPS's options, in the sampler with a bound on every batch, and in the models of their paper."""

from __future__ import annotations

from tests.mutations.bugs import Bug

OPTIONS, LIPSCHITZ = "tests/processes/test_sbps_options.py", "tests/processes/test_lipschitz_sbps.py"
MODELS = "tests/models/test_multimodal_models.py"
SBPS, BOUND, FIT = "pdmp/processes/sbps.py", "pdmp/processes/lipschitz_sbps.py", "pdmp/thinning/regression.py"

BUGS = [
    Bug(f"sbps: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the running mean of the noise does not count", SBPS, "return (means[\"ray_noise\"] + means[\"mean_noise\"]) / (means[\"ray_noises\"] + 1.0)", "return means[\"ray_noise\"] / means[\"ray_noises\"]", OPTIONS),
        ("the noise of the last ray is kept", SBPS, "        means[\"ray_noise\"], means[\"ray_noises\"] = 0.0, 0.0\n", "", OPTIONS),
        ("the misfit lowers the bound", SBPS, "k *= math.sqrt(max(1.0, memory.means[0][\"misfit\"]))", "k *= math.sqrt(min(1.0, memory.means[0][\"misfit\"]))", OPTIONS),
        ("the misfit is not squared", SBPS, "means[\"misfit\"] += (z * z - means", "means[\"misfit\"] += (z - means", OPTIONS),
        ("a look ahead is placed where the path is", SBPS, "regression.observe(memory.line[0], then - state.moved[0], g", "regression.observe(memory.line[0], now - state.moved[0], g", OPTIONS),
        ("a look ahead stays here", SBPS, "positions(self.flow, state, then, memory.here)", "positions(self.flow, state, now, memory.here)", OPTIONS),
        ("no second fit after a look ahead", SBPS, "            self.look_ahead(state, now)\n            self.predict(state)\n", "            self.look_ahead(state, now)\n", OPTIONS),
        ("every fit looks ahead", SBPS, "if self.predict(state) < 0.0 and self.auxiliary > 0:", "if self.predict(state) < 1e9 and self.auxiliary > 0:", OPTIONS),
        ("all looks ahead are at one place", SBPS, "then, g = now + p * self.ahead * memory", "then, g = now + self.ahead * memory", OPTIONS),
        ("one look ahead whatever p", SBPS, "for p in range(1, self.auxiliary + 1):", "for p in range(1, 2):", OPTIONS),
        ("Δt is not used", SBPS, "step = self.resolution if self.resolution > 0.0 else min", "step = min", OPTIONS),
        ("published: the noise is pooled", SBPS, 'noise="latest",', 'noise="pooled",', OPTIONS),
        ("published: the slope's mean is learnt in the warm-up only", SBPS, 'slope_mean="running",\n            slope_sd', 'slope_mean="auto",\n            slope_sd', OPTIONS),
        ("a metric: the gradient is not pulled back", SBPS, "            self.metric.pull(memory.metric, memory.gradient)\n", "", OPTIONS),
        ("a metric: the curvature without it", SBPS, "self.metric.trace(self.model, x) if self._given else curvature_at(", "curvature_at(", OPTIONS),
        ("a metric: the first velocity", SBPS, "return self.metric.transform(sphere(rng, self.dim))", "return sphere(rng, self.dim)", OPTIONS),
        ("three observations teach nothing", FIT, 'if line["count"] < 3.0:', 'if line["count"] <= 3.0:', OPTIONS),
        ("the prior is learnt after the warm-up too", SBPS, "if self.by_likelihood and state.counts[ADAPTING] == 1:", "if self.by_likelihood:", OPTIONS),
        ("what was learnt overrides what was given", SBPS, "mean = memory.prior[0][\"mean\"] if self.learns_mean else mean", "mean = memory.prior[0][\"mean\"]", OPTIONS),
        ("lost bounces are counted, not weighed", SBPS, "        lost = float(state.excess[0])\n        return", "        lost = 0.0 * float(state.excess[0])\n        return", OPTIONS),
        ("nobody is warned", SBPS, "        if lost <= LOST or", "        if True or", OPTIONS),
        ("the likelihood forgets the unknown intercept", FIT, "q = line[\"weight_ss\"] - line[\"weight_s\"] * line[\"weight_s\"] / line[\"weight\"]", "q = line[\"weight_ss\"]", OPTIONS),
        ("the likelihood's τ has half a gradient", FIT, "0.5 * (variance * t * t / (spread * spread) - share)", "0.5 * (variance * t * t / spread - share)", OPTIONS),
        ("the learner goes downhill", FIT, "prior[\"mean\"] += min(max(step", "prior[\"mean\"] -= min(max(step", OPTIONS),
        ("two observations teach a slope", FIT, "if line[\"count\"] < 3.0:", "if line[\"count\"] < 2.0:", OPTIONS),
        ("the spread of the slopes may vanish", FIT, "    prior[\"log_variance\"] = max(prior[\"log_variance\"], 2.0 * math.log(LEAST_SD * abs(prior[\"mean\"]) + 1e-300))\n", "", OPTIONS),
    ]
] + [
    Bug(f"Lipschitz SBPS: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the prior is left out of the bound", BOUND, "s = first_arrival(self.level + a, b,", "s = first_arrival(self.level, 0.0,", LIPSCHITZ),
        ("the bound is that of the start", BOUND, "positive(self.level + a + b * s)", "positive(self.level + a)", LIPSCHITZ),
        ("one term, not N", BOUND, "self.level = self.model.n_data * float(bound)", "self.level = float(bound)", LIPSCHITZ),
        ("the gradient is looked up where the path was", BOUND, "positions(self.flow, state, now, memory.here)\n        self.provider.gradient", "positions(self.flow, state, state.moved[0], memory.here)\n        self.provider.gradient", LIPSCHITZ),
        ("refreshments go on without a rate", "pdmp/thinning/constant.py", "if rate == 0.0:", "if rate < 0.0:", LIPSCHITZ),
        ("the velocity is not reflected", BOUND, "            reflect(state.v, state.memory.gradient)\n", "", LIPSCHITZ),
        ("dependent batches are welcome", BOUND, "if not isinstance(provider, Minibatch) or not provider.independent:", "if not isinstance(provider, Minibatch):", LIPSCHITZ),
        ("the shortest row bounds them all", "pdmp/models/regressions/logistic_signed.py", 'np.einsum("ij,ij->i", a, a).max()', 'np.einsum("ij,ij->i", a, a).min()', LIPSCHITZ),
        ("the prior slope is off", "pdmp/models/regressions/glm.py", '"""Σⱼ vⱼ² / prior_scaleⱼ², exactly."""\n        total = 0.0', '"""Σⱼ vⱼ² / prior_scaleⱼ², exactly."""\n        total = -0.1', LIPSCHITZ),
    ]
] + [
    Bug(f"models: {name}", file, old, new, (MODELS,))
    for name, file, old, new in [
        ("the hyperboloid's gradient has its coordinates in place", "pdmp/models/targets/hyperboloid.py", "out[0] += weight * x[1]", "out[0] += weight * x[0]"),
        ("the hyperboloid's Hessian forgets that residuals change", "pdmp/models/targets/hyperboloid.py", "across = 2.0 * a * b - self.y.mean()", "across = a * b - self.y.mean()"),
        ("the product has no prior", "pdmp/models/targets/hyperboloid.py", "return special.k0e(c) * math.exp(-c - 0.5", "return math.exp(-0.5"),
        ("the mode ignores the prior", "pdmp/models/targets/hyperboloid.py", "size = max(abs(mean) - self.prior_precision / (self.n_data * self.noise_precision), 0.0)", "size = abs(mean)"),
        ("the mixture's components swap", "pdmp/models/targets/mixture_sum.py", "(share * a + (1.0 - share) * b)", "(share * b + (1.0 - share) * a)"),
        ("the mixture's scale is the sum's", "pdmp/models/targets/mixture_sum.py", 'self.factor = 1.0 / n_data if scale == "mean" else 1.0', "self.factor = 1.0"),
        ("the mixture's bound lacks N", "pdmp/models/targets/mixture_sum.py", "return self.factor * self.n_data * self.precision * square", "return self.factor * self.precision * square"),
        ("the mixture's potential overflows", "pdmp/models/targets/mixture_sum.py", "total += min(u, w) - math.log1p(math.exp(-abs(u - w)))", "total -= math.log(math.exp(-u) + math.exp(-w))"),
    ]
]  # fmt: skip
