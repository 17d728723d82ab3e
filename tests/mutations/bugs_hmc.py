"""Planted bugs of `pdmp.HMC`, and of potentials that come with their gradients."""

from __future__ import annotations

from tests.mutations.bugs import Bug

HMC = "pdmp/processes/hmc.py"
TESTS = ("tests/processes/test_hmc.py",)

BUGS = [
    Bug("HMC: " + name, file, old, new, TESTS)
    for name, file, old, new in [
        (
            "around: the velocity of the state stays",
            HMC,
            "memory.place[j], v[j] = memory.metric.u[j], 0.0",
            "memory.place[j] = memory.metric.u[j]",
        ),
        (
            "around: z of the state before",
            HMC,
            "        if self.centre.shape[0] > 0:\n            self.standardise(state)\n",
            "        if self.centre.shape[0] > 0 and state.memory.counted[0] == 0.0:\n            self.standardise(state)\n",
        ),
        (
            "the old gradient after an acceptance",
            HMC,
            "            memory.gradient[j] = gradient[j]\n",
            "            pass\n",
        ),
        (
            "second: whatever the path back is",
            HMC,
            "if outside or back_accept >= LOST or limit",
            "if outside or limit",
        ),
        (
            "second: without what rejects the path back",
            HMC,
            "limit >= ratio * (1.0 - back_accept):",
            "limit >= ratio:",
        ),
        (
            "second: without what rejected the first",
            HMC,
            "rng.random() * (1.0 - accept)",
            "rng.random()",
        ),
        (
            "second: the end of the path back",
            HMC,
            "memory.second[0], memory.second[1], potential)",
            "memory.proposal, memory.second[1], potential)",
        ),
        (
            "second: the gradient where the first ended",
            HMC,
            "        self.metric.pull(memory.metric, memory.gradient)\n        there = self.path(state, step / FINER",
            "        there = self.path(state, step / FINER",
        ),
        (
            "second: those accepted are lost",
            HMC,
            "OUTSIDE else 1.0 - again",
            "OUTSIDE else 1.0",
        ),
    ]
]
