"""Bugs in passes over rows on threads, and in rows that are drawn and asked for ahead."""

from tests.mutations.bugs import Bug

THREADS, NUMERICAL, DESIGN = "pdmp/native/threads.py", "pdmp/models/numerical.py", "pdmp/models/regressions/design.py"
GLM, SIGNED, BLOCKS = (f"pdmp/models/regressions/{name}.py" for name in ("glm", "logistic_signed", "blocks"))
LOGISTIC = "pdmp/models/regressions/logistic.py"
VARIATE, ALIAS, PREFETCH = "pdmp/gradients/control_variate.py", "pdmp/gradients/alias.py", "pdmp/native/prefetch.py"
ZIGZAG, SURVEY, WEIGH = (
    f"pdmp/processes/{name}.py" for name in ("subsampled_zigzag", "regression_zigzag", "regression_boomerang")
)
TESTS, COMPILED = "tests/native/test_threads.py", "tests/native/test_threads_compiled.py"
SUMS, MADE, VARIATES, PARTS, LAWS, LOOKED = (
    f"{TESTS}::test_{name}"
    for name in (
        "gradients_and_hessians",
        "what_a_model_is_made_of",
        "control_variates",
        "an_alias_table_in_parts",
        "regressions",
        "large_data_are_looked_at_in_all_chunks",
    )
)
DRAWN = "tests/formulas/test_parts.py::test_rows_are_drawn_from_blocks_in_proportion"
ASKED = "tests/formulas/test_parts.py::test_rows_of_large_files_are_asked_for"
FAR = "tests/processes/test_subsampled_zigzag.py::test_rows_of_a_file_are_drawn_far_ahead_and_asked_for"
WIDE = f"{TESTS}::test_a_wide_hessian_is_computed_where_it_is_asked_for"
SOME = "tests/models/test_regressions.py::test_some_of_very_many_rows"

BUGS = [
    Bug(f"passes: {name}", file, old, new, (tests,), "formulae" if "formulas" in tests else "")
    for name, file, old, new, tests in [
        ("the last chunk is lost", THREADS, "for first in range(0, n, step)]", "for first in range(0, n - step, step)]", TESTS),
        ("a row between chunks is lost", THREADS, "(first, min(first + step, n))", "(first, min(first + step - 1, n))", TESTS),
        ("a row is in two chunks", THREADS, "(first, min(first + step, n))", "(first, min(first + step + 1, n))", TESTS),
        ("chunks depend on the threads", THREADS, "step = max(max(CHUNK //", "step = max(max(CHUNK // threads() //", TESTS),
        ("results of the last chunk first", THREADS, "if len(waiting) > 2 * workers:\n                yield waiting.popleft().result()", "if len(waiting) > 2 * workers:\n                yield waiting.pop().result()", TESTS),
        ("one result is not taken", THREADS, "while waiting:", "while len(waiting) > 1:", TESTS),
        ("all chunks at once", THREADS, "if len(waiting) > 2 * workers:", "if len(waiting) > 200 * workers:", TESTS),
        ("the last part twice", THREADS, "tuple(a + b for a, b", "tuple(b + b for a, b", TESTS),
        ("the environment is not asked", THREADS, "max(1, min(cpu_count(), config.NUMBA_NUM_THREADS))", "cpu_count()", TESTS),
        ("threads for few chunks", THREADS, "if workers == 1 or len(items) < FEWEST:", "if workers == 1:", TESTS),
        ("the gradient of the last chunk", NUMERICAL, "out += total", "out = total", SUMS),
        ("gradients of all chunks before", NUMERICAL, "_add_data_gradient(native, x, first, stop, total)", "_add_data_gradient(native, x, 0, stop, total)", SUMS),
        ("gradients without the prior", NUMERICAL, "return self._prior_gradient(x) + self.data_gradient(x)", "return self.data_gradient(x)", SUMS),
        ("the potential of the last chunk", NUMERICAL, "total += part", "total = part", SUMS),
        ("potentials without the prior", NUMERICAL, "total = _prior_potential(native, x)", "total = 0.0", SUMS),
        ("runs of rows beyond the last", NUMERICAL, "np.linspace(0, n - RUN, some // RUN)", "np.linspace(0, n, some // RUN)", SOME),
        ("some of very many rows are few", NUMERICAL, "if some <= SOME_ROWS:", "if n > 0:", SOME),
        ("the diagonal twice", DESIGN, "np.tril(lower, -1).T", "np.tril(lower).T", SUMS),
        ("weights of the first block", DESIGN, "weights[start + k] if k < m else 0.0", "weights[k] if k < m else 0.0", f"{TESTS}::test_products_of_several_blocks_of_rows"),
        ("weights of the first chunk", DESIGN, "products(X[first:stop], weights[first:stop])", "products(X[first:stop], weights[: stop - first])", SUMS),
        ("only the first chunk is looked at", DESIGN, "finite = math.isfinite(X[first:stop].sum())", "finite = math.isfinite(X[: stop - first].sum())", LOOKED),
        ("second derivatives of the first chunk", GLM, "_second_derivatives(native, x, first, stop, out[first:stop])", "_second_derivatives(native, x, 0, stop - first, out[first:stop])", TESTS),
        ("a Hessian without the prior", GLM, "hessian + np.diag(self.precision)", "hessian", SUMS),
        ("a logistic Hessian without the prior", LOGISTIC, "hessian + np.diag(self.form.precision)", "hessian", SUMS),
        ("labels of the first chunk", GLM, "read[first:stop] = labels[first:stop] > 0", "read[first:stop] = labels[: stop - first] > 0", LOOKED),
        ("one chunk of labels is right", GLM, "all(each(both, ranges))", "any(each(both, ranges))", LOOKED),
        ("bounds of the first chunk", GLM, "self.second_derivative_bounds(self.target[first:stop])[1]", "self.second_derivative_bounds(self.target[: stop - first])[1]", f"{TESTS}::test_bounds_that_differ_from_row_to_row"),
        ("signs of the first chunk", SIGNED, "2.0 * y[first:stop] - 1.0", "2.0 * y[: stop - first] - 1.0", MADE),
        ("one chunk is in range", SIGNED, "if not all(list(each(write", "if not any(list(each(write", LOOKED),
        ("p for p (1 - p)", SIGNED, "out[i - first] = p * (1.0 - p)", "out[i - first] = p", SUMS),
        ("bounds of the last chunk", VARIATE, "largest = np.maximum(largest, found)", "largest = found", VARIATES),
        ("bounds without the first row of a chunk", VARIATE, "_contributions(native, self.scale, first, stop,", "_contributions(native, self.scale, first + 1, stop,", VARIATES),
        ("what is left of the parts stays", ALIAS, "_balance_rest(native, np.concatenate([*low, *high]), sum(map(len, low)))", "pass", PARTS),
        ("each part has its own mean", ALIAS, "alias_table.size / total, waiting)", "(stop - first) / np.sum(weights[first:stop]), waiting)", PARTS),
        ("aliases of the rest keep their weights", ALIAS, "table[rest[low], ALIAS_INVERSE] = table[rest[high], INVERSE]", "pass", PARTS),
        ("low columns of a part are high", ALIAS, "return waiting[:low].copy(), waiting[high:].copy()", "return waiting[high:].copy(), waiting[:low].copy()", PARTS),
        ("all chunks are the first one", BLOCKS, "(a[first:stop] for a in _rows_of(model))", "(a[: stop - first] for a in _rows_of(model))", LAWS),
        ("the Hessian of columns of the other order", "pdmp/processes/anchored_zigzag.py", "model.n_fixed)[np.ix_(fixed, fixed)]", "model.n_fixed)[: len(fixed), : len(fixed)]", "tests/processes/test_regression_zigzag.py"),
        ("rows are drawn from the other half", ALIAS, "item = queue.items[turn]", "item = queue.items[(turn + ring // 2) % ring]", DRAWN),
        ("the queue stands still", ALIAS, "queue.turn[0] = turn + 1 if turn + 1 < ring else 0", "queue.turn[0] = turn", DRAWN),
        ("a row is not fetched", ALIAS, "queue.items[q] = item\n        model.fetch(item)", "queue.items[q] = item\n        model.fetch(k)", DRAWN),
        ("entries of the table are not asked for", ALIAS, "        if self.asks:\n            ask(self.table, k)", "        pass", ASKED),
        ("rows that stay in memory are asked for", DESIGN, "self.asks = data.nbytes > KEPT_SHARE", "self.asks = data.nbytes < 1e9 * KEPT_SHARE", FAR),
        ("responses are not asked for", DESIGN, "if self.asks and values.shape[0] > 0:", "if False:", ASKED),
        ("chunks of rows are smaller than their matrices", THREADS, "max(CHUNK // max(width, 1), width)", "max(CHUNK // max(width, 1), 1)", TESTS),
        ("a wide look without the Hessian is kept as one with it", BLOCKS, "self._look = key, self.total(_terms, x, key[1])", "self._look = (key[0], True), self.total(_terms, x, key[1])", WIDE),
        ("the Hessian of a wide regression is never computed", BLOCKS, "curved or self.shell.n_fixed < WIDE", "self.shell.n_fixed < WIDE", WIDE),
        ("the Hessian of a wide regression is always computed", BLOCKS, "curved or self.shell.n_fixed < WIDE", "True", WIDE),
        ("sums of dispersions are those of the last look", BLOCKS, "rows, k = self._at(x)[5]", "rows, k = self._look[1][5]", WIDE),
        ("negative eigenvalues are made small", "pdmp/models/regressions/laplace.py", "np.maximum(np.abs(values), 1e-10 * np", "np.maximum(values, 1e-10 * np", f"{TESTS}::test_matrices_that_are_not_definite_have_the_absolute_values_of_their_eigenvalues"),
        ("rows of files are drawn as late as others", ZIGZAG, "(AHEAD_IN_FILE if process.provider.model.in_file else AHEAD)", "AHEAD", FAR),
        ("what is asked for begins in a page", PREFETCH, "word(-mmap.PAGESIZE)", "word(-8)", f"{COMPILED}::test_the_system_takes_what_it_is_asked_for"),
    ]
]  # fmt: skip
