"""Bugs in where chains run: what travels to workers and back, and what happens when something is lost there."""

from tests.mutations.bugs import Bug

EXECUTORS, COMPARISON = "tests/engine/test_executors.py", "tests/test_compare.py"
PARTS = "tests/formulas/test_parts.py::test_a_pass_that_waits_for_workers_says_so_once"
E, C, S, R = "pdmp/engine/executors.py", "pdmp/engine/chain.py", "pdmp/engine/storage.py", "pdmp/engine/run.py"

BUGS = [
    Bug(f"executors: {name}", file, old, new, (EXECUTORS,))
    for name, file, old, new in [
        ("a recording is lost", E, "            chain.blocks += blocks\n", "            chain.blocks = blocks\n"),
        ("blocks in reverse", E, "chain.blocks += blocks", "chain.blocks = blocks + chain.blocks"),
        ("the buffer stays behind", C, "        self._store()\n        if self.cause", "        if self.cause"),
        ("the generator starts anew", C, 'SHARED = ("process", "state", "recording", "blocks")', 'SHARED = ("process", "state", "recording", "blocks", "rng")'),
        ("the model of another run", E, "token, spans, end = secrets.token_hex(16), [], 0", "token, spans, end = 32 * type(self._template.process).__name__[0], [], 0"),
        ("the budget of the template", C, '"recording", "blocks")', '"recording", "blocks", "budget", "look")'),
        ("the model with every segment", E, "carries, workers = chain.number in self._returned, self._workers()", "carries, workers = True, self._workers()"),
        ("never asked for the contents", E, "            self._returned.add(chain.number)\n", "            pass\n"),
        ("all carry the contents", E, "or carries and len(self._carriers) >= workers:", "or False:"),
        ("Ctrl-C of the last segment ends the next", E, "    _interrupted.clear()\n", ""),
        ("all that waits is sent", E, "if len(self._away) >= AHEAD * workers or", "if"),
        ("those that wait carry it too", E, "            self._returned.clear()  # those that wait try without\n", ""),
        ("segments of any size", C, "if after - begun >= seconds or self.stored >= size:", "if after - begun >= seconds:"),
        ("the size counts from the start", C, "        size += self.stored\n", ""),
        ("a map that has changed", E, "            raise Absent\n        whole = np.memmap", "            pass\n        whole = np.memmap"),
        ("a private map is read from its file", E, 'or root.mode == "c" or', "or"),
        ("arrays of a map begin where it begins", E, "return np.ndarray(shape, dtype, whole, place, strides)", "return np.ndarray(shape, dtype, whole, 128, strides)"),
        ("arrays stay read-only", E, "_as_was(a if a.flags.writeable else a.copy(), span[2])", "a"),
        ("the file of another run", E, "or os.read(handle, begin) != self.token.encode():", "or not os.read(handle, begin):"),
        ("not aligned in the file", E, "begin = -(-end // LINE) * LINE", "begin = end"),
        ("every parcel stays open", E, "while len(_open) > OPEN_PARCELS:", "while len(_open) > 10 * OPEN_PARCELS:"),
        ("a process that failed goes on", E, "        parcel.close()\n    return pickle", "        pass\n    return pickle"),
        ("local chains apart in memory", C, "        self.recording = self.recording._replace(integrals=integrals, grid=grid)\n        self._lay_out()\n", "        self.recording = self.recording._replace(integrals=integrals, grid=grid)\n"),
        ("the grid stays behind", C, "leaves((self.state, self.recording.integrals, self.recording.grid))", "leaves((self.state, self.recording.integrals, self._buffer(0)[:3]))"),
        ("a chain that waits is forgotten", R, "            waiting = [] if stop.is_set() else submit(waiting)\n", "            submit(waiting)\n                    waiting = []\n"),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"executors: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("a cluster without workers is waited for in silence", E, "        self._said = True\n        warn(", "        self._said = True\n        str(", PARTS),
        ("it is said at every look", E, "        self._said = True\n        warn(", "        warn(", PARTS),
        ("a cluster is said to have no workers though it has", E, '        if there:\n', "        if False:\n", PARTS),
        ("a lost connection ends what waits", E, "except OSError:  # the connection", "except KeyError:  # the connection", PARTS),
        ("chains do not look whether there are workers", R, "                    place.watch()\n", "", "tests/faults/test_clusters.py::test_a_cluster_that_has_no_worker_yet"),
    ]
]  # fmt: skip
