"""Planted bugs in SBPS's options, in the sampler with a bound on every batch, and in the models of their paper."""

from __future__ import annotations

from tests.mutations.bugs import Bug

OPTIONS, LIPSCHITZ = "tests/processes/test_sbps_options.py", "tests/processes/test_lipschitz_sbps.py"
MODELS = "tests/models/test_multimodal_models.py"
SBPS, BOUND, FIT = "pdmp/processes/sbps.py", "pdmp/processes/lipschitz_sbps.py", "pdmp/thinning/regression.py"

BUGS = [
    Bug(f"sbps: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the noise of the last ray is kept", SBPS, "        means[\"ray_noise\"], means[\"ray_noises\"] = 0.0, 0.0\n", "", OPTIONS),
        ("the spread of the slopes may vanish", FIT, "    prior[\"log_variance\"] = max(prior[\"log_variance\"], 2.0 * math.log(LEAST_SD * abs(prior[\"mean\"]) + 1e-300))\n", "", OPTIONS),
    ]
] + [
    Bug(f"Lipschitz SBPS: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the gradient is looked up where the path was", BOUND, "positions(self.flow, state, now, memory.here)\n        self.provider.gradient", "positions(self.flow, state, state.moved[0], memory.here)\n        self.provider.gradient", LIPSCHITZ),
        ("the velocity is not reflected", BOUND, "            reflect(state.v, state.memory.gradient)\n", "", LIPSCHITZ),
    ]
] + [
    Bug(f"models: {name}", file, old, new, (MODELS,))
    for name, file, old, new in [
        ("the mode ignores the prior", "pdmp/models/targets/hyperboloid.py", "size = max(abs(mean) - self.prior_precision / (self.n_data * self.noise_precision), 0.0)", "size = abs(mean)"),
        ("the mixture's potential overflows", "pdmp/models/targets/mixture_sum.py", "total += min(u, w) - math.log1p(math.exp(-abs(u - w)))", "total -= math.log(math.exp(-u) + math.exp(-w))"),
    ]
]  # fmt: skip
