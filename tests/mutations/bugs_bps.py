"""Planted bugs of the Bouncy Particle family."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT, LAWS = "tests/processes/test_bps.py", "tests/statistics/test_bps_laws.py"
BPS, MASS, VELOCITIES = "pdmp/processes/bps.py", "pdmp/metric.py", "pdmp/native/velocities.py"
DIRECTIONAL, GENERALISED = "pdmp/processes/directional_bps.py", "pdmp/processes/generalised_bps.py"
FORWARD, LOGISTIC, GAUSSIAN = (
    "pdmp/processes/forward_event_chain.py",
    "pdmp/models/regressions/logistic_signed.py",
    "pdmp/models/targets/gaussian.py",
)

BUGS = [
    Bug(f"BPS family: {name}", file, old, new, (EXACT,))
    for name, file, old, new in [
        ("the gradient is not carried to a bounce", BPS, "            self.carry(state, now)\n            self.metric.bounce", "            self.metric.bounce"),
        ("a carried gradient is never renewed", BPS, "if memory.carried[0] < CARRIED and not", "if not"),
        ("many dimensions: an isotropic mass without its root", MASS, "Dense(np.eye(d) / math.sqrt(mean_curvature(model, x)), adaptive=True)", "Dense(np.eye(d) / mean_curvature(model, x), adaptive=True)"),
        ("many dimensions: probes are not divided by their number", MASS, "return total / probes / model.dim", "return total / model.dim"),
        ("products forget the rest of a length", VELOCITIES, "for j in range(4 * (n // 4), n):", "for j in range(5 * (n // 4), n):"),
        ("full refreshments are partial", BPS, 'persistence if refresh == "partial" else 0.0', "persistence"),
        ("Gaussian refreshment rates forget the speed", BPS, "curvature * (self.dim if self.gaussian else 1.0)", "curvature"),
        ("no warning in the metric of a mass", BPS, "a = metric.transposed(model.gradient(mode + metric.transform(z)))", "a = model.gradient(mode + z)"),
        ("autoregression with 1 - ρ", VELOCITIES, "    c = math.sqrt(1.0 - persistence * persistence)\n    for j", "    c = 1.0 - persistence\n    for j"),
        ("partial refreshments keep no correlation", VELOCITIES, "u[j] = persistence * u[j] + c * scratch[j]", "u[j] = c * scratch[j] / math.sqrt(1.0 - persistence * persistence)"),
        ("the root is of M, not of its inverse", MASS, "return 1.0 / np.sqrt(precision)", "return np.sqrt(precision)"),
        ("the pulled gradient is pushed", MASS, "metric.pulled[j] += metric.root[i, j] * gradient[i]", "metric.pulled[i] += metric.root[i, j] * gradient[j]"),
        ("a mass adapts for ever", MASS, "        process.refresh(metric.u, metric.scratch, rng)\n        if self.learns and state.counts[ADAPTING] == 1:", "        process.refresh(metric.u, metric.scratch, rng)\n        if self.learns:"),
        ("a segment's own spread is forgotten", MASS, "metric.second[j] += s * (middle * middle + s * s * v[j] * v[j] / 12.0)", "metric.second[j] += s * middle * middle"),
        ("no weights in the covariance", MASS, "metric.second[j, k] += s * (middle", "metric.second[j, k] += (middle"),
        ("the columns are not those of the new root", MASS, "                    metric.columns[j, k] = metric.root[k, j]\n", "                    metric.columns[j, k] = metric.columns[j, k]\n"),
        ("generalised: no flip", GENERALISED, "u[j] -= along * a[j]", "u[j] += along * a[j]"),
        ("generalised: the old direction stays", GENERALISED, "            normals(u, rng)\n", ""),
        ("generalised: the new draw has a component along the gradient", GENERALISED, "            across(u, a)\n", ""),
        ("event chain: the exponent of d - 2", FORWARD, "rng.random() ** (2.0 / (d - 1))", "rng.random() ** (2.0 / (d - 2))"),
        ("event chain: a normal for a Rayleigh variable", FORWARD, "r = math.sqrt(2.0 * rng.standard_exponential())", "r = abs(rng.standard_normal())"),
        ("event chain: turns at every event", FORWARD, "if self.orthogonal != KEEP and rng.random() < self.probability:", "if self.orthogonal != KEEP:"),
        ("event chain: the plane is not orthogonal", FORWARD, "        across(f, e)\n", ""),
        ("event chain: always positive", FORWARD, "if self.positive and kept < 0.0", "if kept < 0.0"),
        ("rays: margins do not advance", LOGISTIC, "            ray_advance(room, s, ray)", "            pass"),
        ("rays: the prior does not change along the ray", LOGISTIC, "ray[ONE] + ray[PRIOR] + s * ray[PRIOR_SLOPE]", "ray[ONE] + ray[PRIOR]"),
        ("rays: weights that are not those of the turn", LOGISTIC, "ray[AT] = 0.0 if ray[AT] == s else math.nan", "ray[AT] = 0.0"),
        ("rays: the fourth derivative's bound is a third of it", "pdmp/models/regressions/logistic_rays.py", "FOURTH = 1.0 / 24.0", "FOURTH = 1.0 / 200.0"),
        ("rays: the third derivative has the wrong sign", "pdmp/models/regressions/logistic_rays.py", "c += w * (1.0 - w) * (w + w - 1.0)", "c += w * (1.0 - w) * (1.0 - w - w)"),
        ("rays: no prior in the bound", LOGISTIC, "        return most + ray[PRIOR_SLOPE]", "        return most"),
        ("rays: the gradient of a Gaussian where the ray began", GAUSSIAN, "out[j] = ray[j] + s * ray[self.dim + j]", "out[j] = ray[j]"),
        ("directional: the bound is valid for ever", DIRECTIONAL, "        if wait > h:\n            return now + h, HORIZON\n", ""),
        ("directional: the bound has the rate's slope at its start", DIRECTIONAL, "return now + wait, first + slope * wait", "return now + wait, first + second * wait"),
        ("directional: rays go on from where they began", DIRECTIONAL, "        memory.began[0] = now\n        memory.at[0]", "        memory.at[0]"),
        ("directional: the last look outlives the turn", DIRECTIONAL, "        memory.at[0] = math.nan\n", ""),
        ("directional: the estimate does not double", DIRECTIONAL, "            ray.third_derivative[0] *= 2.0\n", ""),
    ]
]  # fmt: skip
BUGS.append(
    Bug(
        "BPS family: an arrival beyond the horizon of an estimated bound",
        DIRECTIONAL,
        "return ray.second_derivative[0] + 0.5 * SAFETY * ray.third_derivative[0] * h",
        "return ray.second_derivative[0]",
        (EXACT, LAWS),
    )
)
