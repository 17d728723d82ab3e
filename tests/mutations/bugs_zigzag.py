"""Planted bugs in Zig-Zag with exact sub-sampling, its bounds, and importance draws."""

from __future__ import annotations

from tests.mutations.bugs import Bug

ALIAS, ZIGZAG = "tests/gradients/test_alias.py", "tests/processes/test_subsampled_zigzag.py"
SUBSAMPLED, EXACT = "pdmp/processes/subsampled_zigzag.py", "pdmp/processes/zigzag.py"
TABLE = "pdmp/gradients/alias.py"
LOGISTIC, LINEAR = "pdmp/models/regressions/logistic_signed.py", "pdmp/models/regressions/linear_gaussian.py"

BUGS = [
    Bug(f"zigzag: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        (
            "stated rates in a metric without refreshments",
            EXACT,
            "out[j] *= pulled\n            if process.refresh_rate[j] > 0.0:",
            "out[j] *= pulled\n            if False:",
            "tests/processes/test_zigzag_mass.py",
        ),
        # the alias table
        (
            "alias: the aliases are taken instead",
            TABLE,
            "if rng.random() < self.table[k, THRESHOLD]:",
            "if rng.random() > self.table[k, THRESHOLD]:",
            ALIAS,
        ),
        (
            "alias: what was given away is not subtracted",
            TABLE,
            "(table[large, THRESHOLD] + table[small, THRESHOLD]) - 1.0",
            "table[large, THRESHOLD] - table[small, THRESHOLD]",
            ALIAS,
        ),
        (
            "alias: the alias's weight is the column's",
            TABLE,
            "return int(self.table[k, ALIAS]), self.table[k, ALIAS_INVERSE]",
            "return int(self.table[k, ALIAS]), self.table[k, INVERSE]",
            ALIAS,
        ),
        (
            "alias: the first column is never drawn",
            TABLE,
            "k = int(rng.random() * self.size)",
            "k = 1 + int(rng.random() * (self.size - 1))",
            ALIAS,
        ),
        (
            "alias: a column that becomes small is forgotten",
            TABLE,
            "if _give(table, waiting[low], waiting[high]):\n            waiting[low] = waiting[high]\n            low += 1",
            "if _give(table, waiting[low], waiting[high]):\n            low += 0",
            ALIAS,
        ),
        # bounds of terms
        ("bounds: no factor ¼", LOGISTIC, "total = 0.25 * math.sqrt(total)", "total = math.sqrt(total)", ALIAS),
        (
            "bounds: the scale is forgotten",
            LOGISTIC,
            "            a = scale[j] * self.feature(i, j)\n            total += a * a\n        total = 0.25",
            "            a = self.feature(i, j)\n            total += a * a\n        total = 0.25",
            ALIAS,
        ),
        (
            "bounds: of the label's sign",
            LOGISTIC,
            "            out[j] = abs(self.feature(i, j))\n\n",
            "            out[j] = max(self.feature(i, j), 0.0)\n\n",
            ALIAS,
        ),
        (
            "bounds: the noise's precision is forgotten",
            LINEAR,
            "total = self.noise_precision * math.sqrt(total)\n        for j in range(self.A.shape[1]):\n            out[j] = total",
            "total = math.sqrt(total)\n        for j in range(self.A.shape[1]):\n            out[j] = total",
            ALIAS,
        ),
        (
            "bounds: a slope without the speed's square",
            "pdmp/models/regressions/glm.py",
            "    def prior_partial_curvature_bound(self, v, j):\n        return self.precision[j] * v[j] * v[j]",
            "    def prior_partial_curvature_bound(self, v, j):\n        return self.precision[j] * v[j]",
            ALIAS,
        ),
        (
            "a partial difference the other way round",
            LOGISTIC,
            "return (expit_of_minus(w) - expit_of_minus(z)) * self.feature(i, j)",
            "return (expit_of_minus(z) - expit_of_minus(w)) * self.feature(i, j)",
            ALIAS,
        ),
        # importance
        (
            "importance: weights for a batch of one",
            "pdmp/gradients/drawing.py",
            "            memory.weights[k] = weight / self.size\n        return self.size, 1.0, 1.0",
            "            memory.weights[k] = weight\n        return self.size, 1.0, 1.0",
            ALIAS,
        ),
        (
            "importance: the variance without weights",
            "pdmp/gradients/control_variate.py",
            "            p, factor = 0.0, self.drawing.factor(memory, k)\n",
            "            p, factor = 0.0, 1.0\n",
            ALIAS,
        ),
        (
            "importance: the sd without weights",
            "pdmp/gradients/control_variate.py",
            "            factor = self.drawing.factor(memory, k)\n            for j",
            "            factor = 1.0\n            for j",
            ALIAS,
        ),
        (
            "importance: contributions without the scale",
            "pdmp/gradients/control_variate.py",
            "            c = scale[j] * bounds[j]\n",
            "            c = bounds[j]\n",
            ALIAS,
        ),
        (
            "importance: differences without weights",
            "pdmp/models/regressions/logistic_rows.py",
            "weights[k] = factors[start + k] * (weights[k] - others[k])",
            "weights[k] = weights[k] - others[k]",
            ALIAS,
        ),
        (
            "noise: uniform draws are taken for distinct ones",
            "discrete/curvature.py",
            '"draw", "iid") not in ("distinct", "reshuffle", "epoch"):',
            '"draw", "iid") not in ("uniform", "distinct", "reshuffle", "epoch"):',
            "tests/discrete/test_langevin.py",
        ),
        (
            "noise: importance is taken for uniform",
            "discrete/curvature.py",
            '"draw", "iid") != "importance":',
            '"draw", "iid") != "by importance":',
            "tests/discrete/test_langevin.py",
        ),
        # mini-batches
        (
            "batches: not scaled up",
            "pdmp/gradients/drawing.py",
            "            weights[k, m] = self.total / self.size",
            "            weights[k, m] = 1.0 / self.size",
            ZIGZAG,
        ),
        (
            "batches: the bound of one datum is not scaled up",
            SUBSAMPLED,
            "each = n_data * self.speed * largest",
            "each = self.speed * largest",
            ZIGZAG,
        ),
        (
            "batches: bounds without speeds",
            SUBSAMPLED,
            "each = n_data * self.speed * largest",
            "each = n_data * largest",
            ZIGZAG,
        ),
        (
            "batches: the first datum's bound",
            SUBSAMPLED,
            "            out[j] = bounds[j] if not bounds[j] <= out[j] else out[j]\n",
            "            out[j] = bounds[j] if i == 0 else out[j]\n",
            ZIGZAG,
        ),
        (
            "batches: no prior in the rate",
            SUBSAMPLED,
            "        partial = model.prior_partial(here, j) + known[j]\n        for",
            "        partial = known[j]\n        for",
            ZIGZAG,
        ),
        # control variates
        (
            "control variates: the distance does not grow",
            SUBSAMPLED,
            "distance, pace = math.sqrt(square), math.sqrt(float(d))",
            "distance, pace = math.sqrt(square), 0.0",
            ZIGZAG,
        ),
        (
            "control variates: the known gradient is left out",
            "pdmp/gradients/anchors.py",
            "return positive(v * (partial + bank.anchor_gradient[j]))",
            "return positive(v * partial)",
            ZIGZAG,
        ),
        (
            "control variates: distances not in units of speeds",
            SUBSAMPLED,
            "z = (here[j] - anchor[j]) / self.speed[j]",
            "z = here[j] - anchor[j]",
            ZIGZAG,
        ),
        (
            "control variates: the largest without N",
            SUBSAMPLED,
            "each = n_data * provider.largest()",
            "each = provider.largest()",
            ZIGZAG,
        ),
        (
            "control variates: the rate where the clock looked last",
            SUBSAMPLED,
            "        # Its rate, for this batch.\n        self.find_position(process, state, now)\n",
            "        # Its rate, for this batch.\n",
            ZIGZAG,
        ),
        (
            "control variates: speeds are not the provider's units",
            SUBSAMPLED,
            "                provider = provider.rescaled(self.speed)\n",
            "                pass\n",
            ZIGZAG,
        ),
        (
            "importance: coordinates by bounds without weights",
            SUBSAMPLED,
            "share = distance * memory.weights[b, m]",
            "share = distance",
            ZIGZAG,
        ),
        (
            "importance: the weight of a batch of one",
            "pdmp/gradients/drawing.py",
            "            weights[k, m] = weight / self.size",
            "            weights[k, m] = weight",
            ZIGZAG,
        ),
        # the ring
        (
            "ring: a batch is used twice",
            SUBSAMPLED,
            "memory.turn[0] = turn + 1 if turn + 1 < ring else 0",
            "memory.turn[0] = turn + turn % 2 if turn + 1 < ring else 0",
            ZIGZAG,
        ),
        (
            "ring: batches are never renewed",
            SUBSAMPLED,
            "        drawing.prepare(memory.tickets, turn, memory.provider, rng)\n        memory.turn",
            "        memory.turn",
            ZIGZAG,
        ),
        ("data are not counted", SUBSAMPLED, "        state.counts[DATA] += n\n", "", ZIGZAG),
        # excess rates and speeds
        (
            "excess: in the bound alone",
            SUBSAMPLED,
            "return total * ((positive(state.v[j] * partial) + process.refresh_rate[j]) / bounds[j])",
            "return total * (positive(state.v[j] * partial) / bounds[j])",
            ZIGZAG,
        ),
        (
            "excess: of all coordinates for each",
            EXACT,
            "rate = process.total_refresh_rate if process.one_clock else process.refresh_rate[i]",
            "rate = process.total_refresh_rate",
            ZIGZAG,
        ),
        (
            "excess: always the same coordinate",
            EXACT,
            "state.memory.flipping[0] = draw_component(process.refresh_rate, rng.random() * rate)",
            "state.memory.flipping[0] = 0",
            ZIGZAG,
        ),
        (
            "excess: the later of the two times",
            EXACT,
            "if excess < time:",
            "if excess > time:",
            ZIGZAG,
        ),
        (
            "speeds: the curvature's root is not taken",
            EXACT,
            "return 1.0 / np.sqrt(curvatures)",
            "return 1.0 / curvatures",
            ZIGZAG,
        ),
        (
            "speeds: all are one",
            EXACT,
            "return signs * self.speed",
            "return signs",
            ZIGZAG,
        ),
    ]
]
