"""Planted bugs in what samplers do with a metric: `Process.in_metric`, the Zig-Zag's mass, preconditioners."""

from __future__ import annotations

from tests.mutations.bugs import Bug

SAMPLERS, MASS = ("tests/automatic/test_samplers.py",), ("tests/processes/test_zigzag_mass.py",)
METRIC, PREPARING = "pdmp/automatic/metric.py", "pdmp/automatic/preparing.py"
ZIGZAG, MASSES, EXACT = "pdmp/processes/zigzag.py", "pdmp/metric.py", "pdmp/processes/exact.py"
MOMENTA, KINETIC, BARKER = "discrete/momenta.py", "discrete/kinetic.py", "discrete/barker.py"

BUGS = [
    Bug(f"metrics: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        (
            "a covariance is taken for its root",
            "pdmp/metric.py",
            "return np.sqrt(array) if array.ndim == 1 else np.linalg.cholesky(array)",
            "return array if array.ndim == 1 else np.linalg.cholesky(array)",
            ("tests/test_metric.py",),
        ),
        (
            "variances along directions are taken for scales",
            "pdmp/metric.py",
            "np.sqrt(self.variances) - 1.0",
            "self.variances - 1.0",
            ("tests/test_metric.py",),
        ),
        (
            "what is singular depends on units",
            "pdmp/metric.py",
            "** 2 / np.diag(array)\n",
            "** 2\n",
            ("tests/test_metric.py",),
        ),
        # who gets what
        (
            "HMC: the step is learnt anew",
            "pdmp/processes/hmc.py",
            '            own["step"] = learnt.step\n',
            "            pass\n",
            SAMPLERS,
        ),
        (
            "HMC: the step of another acceptance",
            "pdmp/processes/hmc.py",
            '{"metric", "target_acceptance"} & set(options)',
            '{"metric"} & set(options)',
            SAMPLERS,
        ),
        (
            "HMC: the step of the covariance with variances alone",
            METRIC,
            "mass=Diagonal(sd), step=None)",
            "mass=Diagonal(sd))",
            SAMPLERS,
        ),
        ("HMC: goes on adapting", "pdmp/processes/hmc.py", "        process.adapts = False\n", "", SAMPLERS),
        (
            "variances of the marginals alone",
            METRIC,
            "return np.sqrt((self.root**2).sum(axis=1) / (inverse**2).sum(axis=0))",
            "return (self.root**2).sum(axis=1)",
            SAMPLERS,
        ),
        (
            "BPS: its mass is not the learnt one",
            "pdmp/processes/bps.py",
            'target, {"metric": learnt.mass} | options)',
            "target, options)",
            SAMPLERS,
        ),
        (
            "Boomerang: the reference is not transposed back",
            "pdmp/processes/boomerang.py",
            "else DenseReference.from_root(root)",
            "else DenseReference.from_root(np.linalg.inv(root).T)",
            SAMPLERS,
        ),
        (
            "speeds are variances",
            ZIGZAG,
            "own = Metric(scales=np.sqrt(learnt.variances))",
            "own = Metric(scales=learnt.variances)",
            SAMPLERS,
        ),
        (
            "the grid although the rates could be predicted",
            EXACT,
            'return cls(target, **options, thinning="predicted")',
            "return process",
            SAMPLERS,
        ),
        (
            "a sampler without a metric goes on",
            PREPARING,
            "if sampler.in_metric.__func__ is Process.in_metric.__func__:",
            "if sampler.in_metric.__func__ is None:",
            SAMPLERS,
        ),
        (
            "the adapted step is thrown away",
            PREPARING,
            "process = process.resolve(metric.points[0]).adapted([record.statistics for record in run.records])",
            "process = process.resolve(metric.points[0])",
            SAMPLERS,
        ),
        (
            "chains start where the last window began",
            PREPARING,
            "return process, metric._replace(points=ends(run, metric.points)), gradients_of(run)",
            "return process, metric, gradients_of(run)",
            SAMPLERS,
        ),
        # the Zig-Zag's mass
        (
            "zigzag: the velocity does not follow the flip",
            ZIGZAG,
            "metric.u[j] = -metric.u[j]\n        self.metric.push(metric, state.v)",
            "metric.u[j] = -metric.u[j]",
            MASS,
        ),
        (
            "zigzag: the gradient is not pulled back",
            ZIGZAG,
            "out[j] = metric.u[j] * metric.pulled[j]",
            "out[j] = metric.u[j] * state.memory.gradient[j]",
            MASS,
        ),
        (
            "zigzag: a slope bound without the spread of the Hessian",
            ZIGZAG,
            "out[j] += math.sqrt(positive(self.spread[j, j]) * positive(total))",
            "out[j] += 0.0 * total",
            MASS,
        ),
        (
            "zigzag: bounds on the Hessian without the metric",
            ZIGZAG,
            "metric.root.T @ np.asarray(bound) @ metric.root for bound in bounds",
            "np.asarray(bound) for bound in bounds",
            MASS,
        ),
        (
            "zigzag: rates rise by the speeds squared",
            ZIGZAG,
            "    def square(self, state, j):\n        return 1.0",
            "    def square(self, state, j):\n        return state.v[j] * state.v[j]",
            MASS,
        ),
        # preconditioners
        (
            "momenta: the estimate is not pulled back",
            MOMENTA,
            "out[j] = memory.metric.pulled[j]",
            "out[j] = memory.full[j]",
            SAMPLERS,
        ),
        (
            "momenta: the position stays",
            MOMENTA,
            "self.metric.push(memory.provider.metric, state.x)",
            "self.metric.push(memory.provider.metric, memory.provider.point)",
            SAMPLERS,
        ),
        (
            "momenta: the same batch at another place",
            MOMENTA,
            "        self.go(x, memory)\n        self.inner.gradient_again",
            "        self.inner.gradient_again",
            SAMPLERS,
        ),
        (
            "momenta: an automatic step without the metric",
            KINETIC,
            "hessian, noise = self.own(there), self.own(noise)",
            "hessian, noise = there, noise",
            SAMPLERS,
        ),
        (
            "momenta: the start is not brought along",
            KINETIC,
            "state.memory.provider.metric.u[:] = self.metric.inverse(state.x)",
            "state.memory.provider.metric.u[:] = state.x",
            SAMPLERS,
        ),
        (
            "Barker: the way back without the preconditioner",
            BARKER,
            "before, after = at_state[j], at_proposal[j]",
            "before, after = at_state[j], memory.next_gradient[j]",
            SAMPLERS,
        ),
        (
            "Barker: increments along the axes",
            BARKER,
            "            memory.metric.u[j] = w[j]\n        self.move_along(x, memory)",
            "            memory.proposal[j] = x[j] + w[j]",
            SAMPLERS,
        ),
        (
            "low rank: u where a wall has changed v",
            MASSES,
            "metric.products[k] = self.gains[k] / (1.0 + self.gains[k]) * total",
            "metric.products[k] = self.gains[k] * total",
            SAMPLERS,
        ),
    ]
]
