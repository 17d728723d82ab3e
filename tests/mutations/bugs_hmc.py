"""Planted bugs of `pdmp.HMC`, and of potentials that come with their gradients."""

from __future__ import annotations

from tests.mutations.bugs import Bug

HMC = "pdmp/processes/hmc.py"
TESTS = ("tests/processes/test_hmc.py",)

BUGS = [
    Bug("HMC: " + name, file, old, new, TESTS)
    for name, file, old, new in [
        ("around: the Gaussian pulls twice", HMC, "u[j] += 0.5 * step * place[j]", "u[j] += step * place[j]"),
        ("around: a rotation backwards", HMC, "memory.kept[j] = c * u[j] - s * z[j]", "memory.kept[j] = c * u[j] + s * z[j]"),
        ("around: the new u turns z", HMC, "z[j] = c * z[j] + s * u[j]", "z[j] = c * z[j] + s * memory.kept[j]"),
        ("around: at another place", HMC, "y[j], u[j] = self.centre[j] + memory.velocity[j], memory.kept[j]", "y[j], u[j] = memory.velocity[j], memory.kept[j]"),
        ("around: z about 0", HMC, "v[j] = state.x[j] - self.centre[j]", "v[j] = state.x[j]"),
        ("around: the velocity of the state stays", HMC, "memory.place[j], v[j] = memory.mass.u[j], 0.0", "memory.place[j] = memory.mass.u[j]"),
        ("around: z of the state before", HMC, "        if split:\n            self.standardise(state)\n", "        if split and memory.counted[0] == 0.0:\n            self.standardise(state)\n"),
        ("around: steps without end", HMC, "min(memory.log_step[0], math.log(LONGEST_STEP))", "memory.log_step[0]"),
        ("around: a mass that adapts", HMC, 'if around is not None and isinstance(self.mass, str) and', 'if False and'),
        ("around: a step beyond a quarter", HMC, "not self.adapts and self.step > LONGEST_STEP", "False"),
        ("a whole kick in place of half a one", HMC, "u[j] -= 0.5 * step * pulled[j]", "u[j] -= step * pulled[j]"),
        (
            "the second kick by the old gradient",
            HMC,
            "            self.mass.pull(memory.mass, memory.next_gradient)\n",
            "",
        ),
        ("one step more", HMC, "n = 1 + int(min(2.0", "n = 2 + int(min(2.0"),
        (
            "durations up to T, not 2T",
            HMC,
            "min(2.0 * self.duration * rng.random() / step",
            "min(self.duration * rng.random() / step",
        ),
        (
            "the kinetic energy at the end is left out",
            HMC,
            "min(before - there - 0.5 * dot(u, u), 0.0)",
            "min(before - there, 0.0)",
        ),
        (
            "the kinetic energy at the start is left out",
            HMC,
            "memory.potential[0] + 0.5 * dot(u, u)",
            "memory.potential[0]",
        ),
        (
            "the old potential after an acceptance",
            HMC,
            "memory.potential[0], memory.held[0] = there, 0.0",
            "memory.held[0] = 0.0",
        ),
        (
            "the old gradient after an acceptance",
            HMC,
            "                    memory.gradient[j] = memory.next_gradient[j]\n",
            "",
        ),
        ("velocities without the mass", HMC, "y[j] += step * memory.velocity[j]", "y[j] += step * u[j]"),
        (
            "only the last gradient of a path is counted",
            HMC,
            "            state.counts[DATA] += terms\n            if k == n - 1 and",
            "            state.counts[DATA] += terms if k == n - 1 else 0\n            if k == n - 1 and",
        ),
        (
            "a potential that comes with its gradient is counted",
            HMC,
            '0 if self.model.has("potential_and_gradient") else 1',
            "1",
        ),
        ("the step adapts after the warm-up", HMC, "        elif self.adapts:", "        if self.adapts:"),
        ("a step that was given adapts", HMC, "        elif self.adapts:", "        else:"),
        (
            "the step adapts the wrong way",
            HMC,
            "(accept - self.target_acceptance)",
            "(self.target_acceptance - accept)",
        ),
        (
            "the adaptation's gain is not restarted with a new mass",
            HMC,
            "memory.adapted[0], memory.adapted[1] = 0.0, adaptations",
            "memory.adapted[1] = adaptations",
        ),
        (
            "a NaN gradient on the way is a rejection",
            HMC,
            "                if self.target.total_potential(y) != math.inf:\n                    return -1\n",
            "",
        ),
        (
            "what is outside is not counted",
            HMC,
            "if k == n - 1 and there == math.inf:  # where the density is zero the gradient need not exist\n                memory.outside[0] += 1",
            "if k == n - 1 and there == math.inf:  # where the density is zero the gradient need not exist\n                memory.outside[0] += 0",
        ),
        (
            "divergences in the warm-up only",
            HMC,
            "memory.divergences[0] += 0 if adapting else 1",
            "memory.divergences[0] += 1 if adapting else 0",
        ),
        (
            "divergences of the warm-up count",
            HMC,
            "memory.divergences[0] += 0 if adapting else 1",
            "memory.divergences[0] += 1",
        ),
        (
            "held paths are not counted",
            HMC,
            "accept, memory.held[0] = 0.0, memory.held[0] + 1.0",
            "accept, memory.held[0] = 0.0, 0.0",
        ),
        (
            "largest statistics are added up over chains",
            "pdmp/engine/result.py",
            'if name.startswith("max_"):',
            'if name.startswith("maximum_"):',
        ),
        ("held for one unit of time", HMC, "return now + self.duration, CERTAIN", "return now + 1.0, CERTAIN"),
        ("a start for the step as in one dimension", HMC, "self.dim**-0.25 / math.sqrt", "1.0 / math.sqrt"),
        ("a low-rank mass before its scale", "pdmp/processes/mass.py", "        self.stretch(v, mass.products)\n", ""),
        (
            "a low-rank mass without what it stretches",
            "pdmp/processes/mass.py",
            "        self.stretch(mass.pulled, mass.products)\n",
            "",
        ),
    ]
]
