"""Planted bugs in automatic steps and in what is offered for tuning."""

from __future__ import annotations

from tests.mutations.bugs import Bug

LAWS, TUNING, CLI = "tests/discrete/test_laws.py", "tests/tuning/test_tuning.py", "tests/test_cli.py"
RUN, OFFERED, FIGURES = (
    f"tests/tuning/test_options.py::test_{name}"
    for name in (
        "every_option_of_an_arm_reaches_the_process_that_runs",
        "the_arms_that_a_sampler_offers",
        "the_settings_of_the_figures_reach_the_processes",
    )
)
SGLD, KINETIC, CURVATURE = "discrete/sgld.py", "discrete/kinetic.py", "discrete/curvature.py"

BUGS = [
    Bug(f"automatic: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the error is not the one that was asked for", "discrete/tick.py", "settings, worst = self.choose_settings(hessian, noise, error)", "settings, worst = self.choose_settings(hessian, noise, 0.1)", LAWS),
        ("the preconditioner is not in the law", "discrete/laws.py", "p = np.eye(len(hessian)) if preconditioner is None else preconditioner", "p = np.eye(len(hessian))", LAWS),
        ("the target is at temperature one", SGLD, "return max(self.temperature.step(0), 1e-300) * np.linalg.inv(hessian)", "return np.linalg.inv(hessian)", LAWS),
        ("corrections are not counted", SGLD, "injected = self.correction.injected(gamma, temperature, p, noise)", "injected = None", LAWS),
        ("modified: the coefficient is forgotten", SGLD, "factor = np.maximum(temperature - 2.0 * gamma * self.coefficient * p * np.diag(noise), 0.0)", "factor = np.maximum(temperature - 2.0 * gamma * p * np.diag(noise), 0.0)", LAWS),
        ("corrected: γ in place of γ²", SGLD, "2.0 * gamma * temperature * p - gamma**2 * p**2 * np.diag(noise)", "2.0 * gamma * temperature * p - gamma * p**2 * np.diag(noise)", LAWS),
        ("the friction that was given is not kept", KINETIC, "if math.isnan(friction) else [friction]", "if True else [friction]", LAWS),
        ("the diffusion that was chosen is lost", "discrete/thermostat.py", 'return {"schedule": Constant(step), "diffusion": diffusion}, worst', 'return {"schedule": Constant(step)}, worst', LAWS),
        ("the start in place of the mode", CURVATURE, "found = provider.anchor if provider.anchor is not None else provider.model.mode(x)", "found = None", LAWS),
        ("downhill directions are left out", CURVATURE, "curvature = np.maximum(np.abs(curvature), 1e-6", "curvature = np.maximum(curvature, 1e-6", LAWS),
        ("the noise of one term for that of a batch", CURVATURE, "_finite_population_factor(provider) / provider.size * max(float(variance), 0.0)", "_finite_population_factor(provider) * max(float(variance), 0.0)", LAWS),
        ("no word of an error that cannot be kept", "discrete/tick.py", "if worst > 1.01 * error:", "if worst > 100.0 * error:", LAWS),
        ("the shape of Barker dynamics is forgotten", "discrete/sgbd.py", "barker_covariance(hessian, noise, sigma * shape, name)", "barker_covariance(hessian, noise, sigma * np.ones_like(shape), name)", LAWS),
        ("MALA: the preconditioner is forgotten", "discrete/mala.py", "np.linalg.eigvalsh(root.T @ hessian @ root)", "np.linalg.eigvalsh(hessian)", "tests/discrete/test_metropolis.py"),
        ("SGRRLD: the coarse chain's own step", "discrete/richardson_romberg.py", "coarse.schedule = Constant(step)\n", "pass\n", LAWS),
        ("the stiffest direction's noise is not squared by coordinate", CURVATURE, "noise = float(np.sum((u * provider.scale) ** 2))", "noise = float(np.sum(u * provider.scale) ** 2)", LAWS),
        ("MALA: the wrong power of the dimension", "discrete/mala.py", "return 1.4 / (self.dim ** (1.0 / 3.0) * curvature)", "return 1.4 / (self.dim ** (2.0 / 3.0) * curvature)", "tests/discrete/test_metropolis.py"),
        ("walls: no room for rounding", "pdmp/processes/bounded.py", "WALL_ROUNDING = 1e-9", "WALL_ROUNDING = 0.0", "tests/processes/test_bounded.py"),
        ("SGNHT: θ moves by the old momentum", "discrete/sgnht.py", "kick = step * np.array([step, 1.0])", "kick = step * np.array([0.0, 1.0])", LAWS),
        ("mamba: arms of any target are compared", "pdmp/tuning/competition.py", "not same_values(model, model_values(model, x), model_values(other, x))", "False", TUNING),
        ("mamba: the path is read past its end", "pdmp/tuning/competition.py", "np.minimum(begun + (record.end - begun) * np.arange(1, n + 1) / n, record.end)", "begun + (record.end - begun) * np.arange(1, n + 1) / n", TUNING),
        ("mamba: what overflowed is scored", "pdmp/tuning/competition.py", "return function(x, s) if np.all(np.isfinite(s)) else math.inf", "return function(x, s)", TUNING),
        ("mamba: infinite scores have no reason", "pdmp/tuning/competition.py", '        elif score == math.inf:\n            self.failure = "diverged"\n', "", TUNING),
        ("mamba: the table knows the last round only", "pdmp/tuning/competition.py", '"spent": p.spent, "score"', '"spent": played[-1].spent, "score"', TUNING),
        ("mamba: the file without its first row", "pdmp/tuning/competition.py", "writer.writerows(self.table)", "writer.writerows(self.table[1:])", TUNING),
        ("mamba: arms side by side where seconds count", "pdmp/tuning/competition.py", 'workers = 1 if clock == "seconds" else cpu_count()', "workers = cpu_count()", TUNING),
        ("mamba: the seconds of the first chain's compilation", "pdmp/engine/run.py", "                    chains[0].compile()\n", "                    pass\n", TUNING),
        ("halving: NaN is the best score", "pdmp/tuning/halving.py", "scores = [math.inf if math.isnan(score)", "scores = [-math.inf if math.isnan(score)", TUNING),
        ("grid: the first of each", "pdmp/tuning/competition.py", "for each in itertools.product(*values.values())]", "for each in zip(*values.values(), strict=False)]", TUNING),
        ("grid search: the worst", "pdmp/tuning/competition.py", "best = int(np.argmin(found))", "best = int(np.argmax(found))", TUNING),
        ("grid search: each arm starts somewhere else", "pdmp/tuning/competition.py", "        start = _noisy_start(made[0].process, initial, start_noise, seed)\n        for arm in made:\n            arm.initial = start", "        for arm in made:\n            arm.initial = _noisy_start(made[0].process, initial, start_noise, arm.seed)", TUNING),
        ("grid search: from the mode whatever is given", "pdmp/tuning/competition.py", "    if initial is None:\n        initial = process.model.mode() if process.anchor is None else process.anchor\n", "    if True:\n        initial = process.model.mode() if process.anchor is None else process.anchor\n", TUNING),
        ("grid search: from the mode, not the anchor", "pdmp/tuning/competition.py", "initial = process.model.mode() if process.anchor is None else process.anchor", "initial = process.model.mode()", TUNING),
        ("grid search: the noise's size is forgotten", "pdmp/tuning/competition.py", "return initial + noise * np.random", "return initial + np.random", TUNING),
        ("held out: the mean loss, not the loss of the mean", "pdmp/tuning/competition.py", "return log_loss(y, predicted) if", "return float(np.mean([log_loss(y, p) for p in model.predict(x, *inputs)])) if", TUNING),
        ("held out: accuracy for error", "pdmp/tuning/competition.py", "else 1.0 - accuracy(y, predicted)", "else accuracy(y, predicted)", TUNING),
        ("held out: ratings beyond the scale", "pdmp/tuning/competition.py", "return rmse(y, predicted, lowest, highest)[1]", "return rmse(y, predicted)[1]", TUNING),
        ("held out: what diverged is scored", "pdmp/tuning/competition.py", "        if not np.all(np.isfinite(predicted)):\n            return math.inf\n", "", TUNING),
        ("the heuristic: 1/√N", "pdmp/tuning/competition.py", "return 1.0 / max(model.n_data, 1)", "return max(model.n_data, 1) ** -0.5", TUNING),
        ("arms of the wrong batch size", "discrete/tick.py", "return cls(Minibatch(model, size) if size else Full(model), **settings)", "return cls(Full(model), **settings)", TUNING),
        ("the command's seed is not used", "pdmp/cli.py", '            clock="data",\n            seed=seed,', '            clock="data",\n            seed=None,', CLI),
    ]
] + [
    Bug(f"options of arms: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("all arms are the first", "pdmp/tuning/competition.py", "_Arm(make, values, one, initial, options)", "_Arm(make, arms[0], one, initial, options)", RUN),
        ("the table has other arms' options", "pdmp/tuning/competition.py", "        arm = made[p.arm]\n        why", "        arm = made[0]\n        why", RUN),
        ("the run of another arm", "pdmp/tuning/competition.py", "clock, metric, seed, made[best].run)", "clock, metric, seed, made[0].run)", RUN),
        ("a batch of a fixed size", "pdmp/gradients/minibatch.py", "self.size, self.draw, self.seed = check_size(size, model), draw", "self.size, self.draw, self.seed = check_size(2, model), draw", RUN),
        ("control variates of a fixed size", "pdmp/gradients/control_variate.py", "self.size, self.draw = check_size(size, model), draw", "self.size, self.draw = check_size(1, model), draw", RUN),
        ("control variates at the mode, not at their anchor", "pdmp/gradients/control_variate.py", 'points = model.check(anchor, "anchor")[None]', "points = model.mode()[None]", RUN),
        ("a friction that is not kept", "discrete/sghmc.py", "super().__init__(provider, step, friction, metric)", "super().__init__(provider, step, None, preconditioner)", RUN),
        ("momenta are never refreshed", "discrete/sghmc.py", 'count("refresh_every", refresh_every)', "0", RUN),
        ("from_h drops the leapfrog steps", "discrete/sghmc.py", "noise_estimate=beta_hat / eps, **options", "noise_estimate=beta_hat / eps", FIGURES),
        ("from_h forgets the friction", "discrete/sghmc.py", 'friction=positive("alpha", alpha) / eps', "friction=1.0", FIGURES),
        ("every arm has the automatic step", "discrete/tick.py", "{name: chosen.schedule.step(0) * f}", "{name: chosen.schedule.step(0)}", OFFERED),
        ("friction and diffusion are not offered", "discrete/tick.py", 'for key in ("friction", "diffusion") if hasattr(chosen, key)', "for key in ()", OFFERED),
        ("the figures: leapfrog steps", "examples/papers/_mamba.py", "refresh_every=leaps", "refresh_every=10", FIGURES),
        ("the figures: control variates", "examples/papers/_mamba.py", "self.provider(bool(controlled), share)", "self.provider(False, share)", FIGURES),
        ("the figures: where they are anchored", "examples/papers/_mamba.py", "ControlVariate(self.model, size, anchor=self.start)", "ControlVariate(self.model, size)", FIGURES),
        ("the figures: batches", "examples/papers/_mamba.py", "size = max(2, round(share * self.model.n_data))", "size = 4", FIGURES),
        ("the figures: steps", "examples/papers/_mamba.py", "10.0**log_step, leaps, **options", "10.0**self.log_steps[0], leaps, **options", FIGURES),
        ("the figures: the noise at the start of the grid search", "examples/papers/_mamba.py", "start_noise=self.noise", "start_noise=0.0", FIGURES),
        ("the figures: friction", "examples/papers/_mamba.py", "provider, step, ALPHA, scheme=scheme", "provider, step, scheme=scheme, alpha=0.02", FIGURES),
    ]
]  # fmt: skip
