"""Planted bugs in expressions: enclosures, derivatives, registers, rows of several kinds, and bounds of single rows."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TAPE, NODES, SPECIAL = "pdmp/expressions/tape.py", "pdmp/expressions/nodes.py", "pdmp/expressions/special.py"
SUMS, BOUNDS = "pdmp/models/sums_of_terms.py", "pdmp/processes/row_bounds.py"
TAPES, TRACES = "tests/expressions/test_tape.py", "tests/expressions/test_nodes.py"
MODELS, ROWS = "tests/models/test_sums_of_terms.py", "tests/processes/test_row_bounds.py"

FAMILIES, FAMILY_TESTS = "pdmp/models/families.py", "tests/models/test_families.py"
FAMILY_LAWS = "tests/statistics/test_family_laws.py"

BUGS = [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        (
            "a traced function that changes from call to call",
            NODES,
            "    if called() is not found:",
            "    if called() is None:",
            TRACES,
        ),
        (
            "values: log1p at the end of what is defined",
            TAPE,
            "else (-math.inf if x == -1.0 else math.nan)",
            "else math.nan",
            TAPES,
        ),
        (
            "enclosures: products are rounded inward",
            TAPE,
            "return down(min(min(p, q), min(r, s))), up(max(max(p, q), max(r, s)))",
            "return up(min(min(p, q), min(r, s))), down(max(max(p, q), max(r, s)))",
            TAPES,
        ),
        (
            "enclosures: sums are not rounded",
            TAPE,
            "high[out, i] = (other + q) + (ROUNDING * (abs(other) + abs(q)) + TINY)",
            "high[out, i] = other + q",
            TAPES,
        ),
        (
            "enclosures: the falling branch of multiples",
            TAPE,
            "low[out, i], high[out, i] = down(min(p, q)), up(max(p, q))",
            "low[out, i], high[out, i] = down(p), up(q)",
            TAPES,
        ),
        (
            "enclosures: an extreme is missed",
            TAPE,
            "        if a <= -0.83 and b >= -0.85:\n            low = min(low, -0.12769)\n",
            "",
            TAPES,
        ),
        (
            "enclosures: the minimum of an even power is at an end",
            TAPE,
            "    if n % 2 == 0 and inside:\n        low = 0.0\n",
            "",
            TAPES,
        ),
        ("enclosures: waves far out are known", TAPE, "if not (max(abs(a), abs(b)) < FAR):", "if a != a:", TAPES),
        (
            "enclosures: what cancels has no rounding error",
            TAPE,
            "size = max(size, 0.0) + 1e-13 * most",
            "size = max(size, 0.0)",
            TAPES,
        ),
        (
            "enclosures: small differences have small errors",
            TAPE,
            "SMALL_DIFFERENCE = 1e-15",
            "SMALL_DIFFERENCE = 0.0",
            TAPES,
        ),
        (
            "enclosures: exponentials stop at the largest number",
            TAPE,
            "(high if b < 708.0 else math.inf)",
            "high",
            TAPES,
        ),
        (
            "tape: a register is freed after its first reader",
            TAPE,
            "if last[line] == position:",
            "if last[line] >= position:",
            TAPES,
        ),
        (
            "tape: operands of a choice are swapped",
            TAPE,
            "registers[out, i] = registers[b, i] if registers[a, i] != 0.0 else registers[c, i]",
            "registers[out, i] = registers[c, i] if registers[a, i] != 0.0 else registers[b, i]",
            TAPES,
        ),
        ("tape: mixed second derivatives count once", TAPE, "rho[g] -= h * there[f, 0]", "pass", TAPES),
        ("log(1 - e^-u): of almost 1", SPECIAL, "if u > 0.7:", "if u > 1e9:", TAPES),
        ("nodes: a wrong derivative", NODES, '"cos": lambda u, f: -u.graph', '"cos": lambda u, f: u.graph', TRACES),
        (
            "nodes: a number less a value",
            NODES,
            "return self.graph.sum([(-1.0, self), (1.0, other)])",
            "return self.graph.sum([(1.0, self), (-1.0, other)])",
            TRACES,
        ),
        ("nodes: powers of multiples forget the multiple", NODES, "coefficient *= c**e", "coefficient *= c", TRACES),
        (
            "nodes: text is taken for a number",
            NODES,
            "float(value if not isinstance(value, str | bytes) else None)",
            "float(value)",
            TRACES,
        ),
        (
            "terms: gradients of factors are not added",
            SUMS,
            "out[f - self.n_data] += self.prior_partial",
            "out[f - self.n_data] = self.prior_partial",
            MODELS,
        ),
        (
            "terms: the prior of another coordinate",
            SUMS,
            "return derivative(self.kinds[j], n[j, 0], n[j, 1], n[j, 2], x[j])",
            "return derivative(self.kinds[j], n[0, 0], n[0, 1], n[0, 2], x[j])",
            MODELS,
        ),
        (
            "terms: batches are all of the first row's kind",
            SUMS,
            "and self.kind_of(rows[done + lanes]) == k:",
            "and k >= 0:",
            MODELS,
        ),
        (
            "terms: mixed curvature counts once along a path",
            SUMS,
            "self.results[place], 1.0 if f == g else 2.0",
            "self.results[place], 1.0",
            MODELS,
        ),
        ("terms: the lower end for all products", SUMS, "q * (high if q > 0.0 else low)", "q * low", MODELS),
        (
            "terms: a whole block is one functional",
            SUMS,
            "if isinstance(functional, Block) and functional.size > 1:",
            "if False:",
            MODELS,
        ),
        (
            "row bounds: factors of the shell before",
            BOUNDS,
            "ratio = np.divide(found[s], weights",
            "ratio = np.divide(found[s - 1], weights",
            ROWS,
        ),
        (
            "row bounds: boxes of half the size",
            BOUNDS,
            "width = r * math.sqrt(boxes.square[f, f, lane])",
            "width = 0.2 * r * math.sqrt(boxes.square[f, f, lane])",
            ROWS,
        ),
        (
            "row bounds: half-widths are forgotten",
            BOUNDS,
            "(small.total[0, lane] + small.norm[lane]) * (1.0 + 1e-9)",
            "small.total[0, lane]",
            ROWS,
        ),
        ("row bounds: one root of S too few", BOUNDS, "size * (s * math.sqrt(s))", "size * s", ROWS),
        ("row bounds: the row before is named", BOUNDS, "model.name_of_row(i)", "model.name_of_row(i - 1)", ROWS),
        (
            "families: no constant in the log-likelihood of rows",
            SUMS,
            "found[..., first : first + self._rows(k)] + observed.constant()",
            "found[..., first : first + self._rows(k)]",
            FAMILY_TESTS,
        ),
        (
            "families: a hurdle's counts may be 0",
            FAMILIES,
            "softplus(w) + loss + log1mexp(surprise)",
            "softplus(w) + loss",
            FAMILY_TESTS,
        ),
        (
            "families: censored on the other side",
            FAMILIES,
            "where(censored == 1.0, -beyond(ly)",
            "where(censored == -1.0, -beyond(ly)",
            FAMILY_TESTS,
        ),
        (
            "families: the law of a hurdle without its truncation",
            FAMILIES,
            "softplus(w) + loss + log1mexp(surprise)",
            "softplus(w) + loss",
            FAMILY_LAWS,
        ),
        (
            "families: the law of a category without what is below its gap",
            FAMILIES,
            "softplus(-h) + softplus(h - g) - log1mexp(g)",
            "softplus(-h) - log1mexp(g)",
            FAMILY_LAWS,
        ),
        (
            "families: draws of gamma by the rate of another mean",
            FAMILIES,
            "mu / shape * rng.standard_gamma",
            "mu * shape * rng.standard_gamma",
            FAMILY_TESTS,
        ),
        ("families: half the tangent", FAMILIES, "sin(u) / (1.0 + cos(u))", "sin(u) / (1.0 - cos(u))", FAMILY_TESTS),
        ("families: any angle", FAMILIES, "np.abs(y) <= math.pi,", "np.abs(y) <= 400.0,", FAMILY_TESTS),
        (
            "families: angles about the other side",
            FAMILIES,
            "(cos(y) + sin(y) * z)",
            "(cos(y) - sin(y) * z)",
            FAMILY_TESTS,
        ),
        (
            "special functions: a ratio of Bessel functions without its second term",
            SPECIAL,
            "total = (total - k * SERIES[k]) / x",
            "total = (total - SERIES[k]) / x",
            TAPES,
        ),
        (
            "special functions: a term too many of the third derivative",
            SPECIAL,
            "x * r * (r - s - 2.0 *",
            "x * r * (r - 2.0 *",
            TAPES,
        ),
        ("enclosures: the least of the third derivative of log I0", TAPE, "b >= 1.02888", "b < 1.02888", TAPES),
    ]
]

FUNCTIONALS, TRANSFORMS = "pdmp/expressions/functionals.py", "pdmp/models/transforms.py"
NAMED = ("tests/models/test_transforms.py::test_names_that_are_also_those_of_others",)
PICKLED = (f"{FAMILY_TESTS}::test_families_of_models_in_other_processes",)
BUGS += [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("terms: a block without its index beside a coordinate", FUNCTIONALS, "if isinstance(other, Block) and other.size > 1:", "if False:", (MODELS,)),
        ("terms: a table of pandas is whatever pandas says", FUNCTIONALS, '.startswith("pandas."):', '.startswith("none."):', (MODELS,)),
        ("terms: arrays are those of the caller", FUNCTIONALS, ">= SHARED else True", ">= 0 else True", (MODELS,)),
        ("terms: a prior of e^x beside any transform", SUMS, "known.setdefault(name, Log()) != Log():", "known.setdefault(name, Log()) is None:", (MODELS,)),
        ("terms: attributes of arrays are whatever Python says", NODES, 'if name.startswith("__"):', "if name:", (TRACES,)),
        ("families: links are those of the name in another process", FAMILIES, "is None or family.links == links", "is not False", PICKLED),
        ("families: one of one's own is that of its name", FAMILIES, "if FAMILIES.get(base.name) is base else None", "", PICKLED),
        ("families: copies are of the name alone", FAMILIES, "def __deepcopy__(", "def _deepcopy(", PICKLED),
        ("families: a link twice is of the first change", FAMILIES, 'object.__setattr__(found, "_base", self.__dict__.get("_base", self))', 'object.__setattr__(found, "_base", self)', PICKLED),
        ("names: two coordinates have one", TRANSFORMS, "named.count(name) > 1", "named.count(name) > 9", NAMED),
        ("names: one coordinate of a block is another variable", TRANSFORMS, "(bracket and whole in named)", "False", NAMED),
        ("names: of columns of a table of draws", TRANSFORMS, '"chain", "draw"]', '""]', NAMED),
    ]
]  # fmt: skip
