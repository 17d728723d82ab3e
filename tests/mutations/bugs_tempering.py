"""Bugs in tempering: references, ladders, swaps, paths, the evidence, modes, and what is said."""

from tests.mutations.bugs import Bug

ROOM = "pdmp/automatic/tempering/"
PARTS = ("tests/automatic/test_tempering.py",)

BUGS = [
    Bug(f"tempering: {name}", file if "/" in file else f"{ROOM}{file}.py", old, new, PARTS)
    for name, file, old, new in [
        ("a reference of another norm", "references", "- 0.5 * d * math.log(n * math.pi) for n in", "- 0.5 * math.log(n * math.pi) for n in"),
        ("the slope of a normal in place of a t's", "references", "slope = (freedom + d) / (freedom + square)", "slope = 1.0 + 0.0 * square"),
        ("every draw of a t has the same scale", "references", "self.freedoms[k] / (2.0 * rng.standard_gamma(0.5 * self.freedoms[k]))", "self.freedoms[k] / (self.freedoms[k] - 2.0)"),
        ("a narrow mode within a wide one is not defended", "references", "np.log(np.diag(L) / np.diag(root)).mean() < 1.0", "True"),
        ("modes of no mass are defended", "references", "if not any(near) and mass > log_evidence - BEHIND:", "if not any(near):"),
        ("the wide t knows nothing of where paths began", "references", "centres = np.vstack([centres, begun])", "centres = np.vstack([centres, centres[:1]])"),
        ("rungs at equal shares of β", "ladder", "np.interp(np.linspace(0.0, cumulative[-1], n), cumulative, betas)", "np.linspace(0.0, 1.0, n)"),
        ("always the even pairs", "process", "rung % 2 == memory.scans[0] % 2", "rung % 2 == 0"),
        ("swaps of the wrong sign", "process", "math.exp(min(0.0, step * (upper - lower)))", "math.exp(min(0.0, step * (lower - upper)))"),
        ("swaps by U, without the reference", "process", "lower = memory.potentials[a] - memory.heights[a]", "lower = memory.potentials[a]"),
        ("rejections are counted in the warm-up", "process", "            if not adapting:\n                memory.rejected[rung]", "            if True:\n                memory.rejected[rung]"),
        ("restarts that were never at the reference", "process", "if memory.came[high] == 1 and not adapting:", "if memory.came[high] != -1 and not adapting:"),
        ("a path feels the target alone", "process", "force[j] = beta * memory.gradient[j] + (1.0 - beta) * memory.slope[j]", "force[j] = memory.gradient[j]"),
        ("the momentum is pulled by L, not by its transpose", "process", "total += self.roots[rung, j, k] * force[j]", "total += self.roots[rung, k, j] * force[j]"),
        ("a rejected path is kept", "process", "        if rng.random() < accept:\n            self.keep(memory, r, potential, height)\n        return accept", "        self.keep(memory, r, potential, height)\n        return accept"),
        ("the first of two scans is kept", "process", "trace.works[k, rung] = trace.works[2 * k + 1, rung]", "trace.works[k, rung] = trace.works[2 * k, rung]"),
        ("where U is no number it is as at the last point", "process", "            u = math.inf\n", "            u = memory.potentials[r]\n"),
        ("Bennett with one side's sign", "evidence", "return fermi(lower + ratio).sum() - fermi(-upper - ratio).sum()", "return fermi(lower + ratio).sum() - fermi(upper + ratio).sum()"),
        ("the error as of independent draws", "evidence", "return float(standard_error(np.split(series[:, None], ends), [1.0] * len(each), each)[0])", "return float(series.std() / len(series) ** 0.5)"),
        ("the error of one pair", "evidence", "terms += (a - b) / max(slope, 1e-300)", "terms = (a - b) / max(slope, 1e-300)"),
        ("a chain of components falls apart", "modes", "found[found == found[i]] = found[j]", "found[i] = found[j]"),
        ("components beyond a barrier are one", "modes", "mixture.means[j]) <= BARRIER:", "mixture.means[j]) <= 100.0 * BARRIER:"),
        ("the wide component is a mode", "modes", "mixture.log_terms(part)[:, :-1]", "mixture.log_terms(part)[:, 1:]"),
        ("shares in any order", "answers", "sorted(found, key=lambda mode: -mode.share)", "found"),
        ("tails do not count", "answers", "    found[f\"the tails of {names[k]}\"] = float(tails[k])\n", ""),
        ("chains that disagree about log p", "answers", "rhats = {\"log p\": ", "rhats = {\"log p\": 0.0 * "),
        ("a mode that was missed", "answers", "if visited < MISSED * expected:", "if visited < 0.0:"),
        ("an error of log Z that is not known", "answers", "if not known.error < UNSETTLED:", "if known.error > 10.0 * UNSETTLED:"),
        ("the store of moments", "pdmp/automatic/sampling.py", "if tempered and store == \"moments\":", "if False:"),
        ("options of other samplers are passed over", "pdmp/automatic/preparing.py", "        if tempered and other:\n", "        if False:\n"),
    ]
]  # fmt: skip
