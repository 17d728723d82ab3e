"""Bugs in how code is compiled, kept on disk and spoken of."""

from tests.mutations.bugs import Bug

FINGERPRINTS, INTERNALS, MESSAGES = (
    f"pdmp/native/{name}.py" for name in ("fingerprints", "numba_internals", "messages")
)
HASHED, DISK = "tests/native/test_fingerprints.py", "tests/native/test_disk.py"
SAID = "tests/native/test_messages.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "fingerprint: arrays as they print",
            FINGERPRINTS,
            'self.digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")',
            "self.add(repr(array))",
            HASHED,
        ),
        (
            "decorators: functions that allocate take `_nrt` from their caller",
            "pdmp/native/decorators.py",
            '(FLAGS | {"_nrt": True} if "_nrt" in FLAGS else FLAGS)',
            '{name: value for name, value in FLAGS.items() if name != "_nrt"}',
            "tests/models/test_factorisations.py::test_a_compiled_gradient_is_that_of_the_paper",
        ),
        (
            "disk: files are not checked",
            INTERNALS,
            "if hashlib.sha256(content[32:]).digest() != content[:32]:",
            "if not content:",
            DISK,
        ),
        (
            "disk: without a folder nothing runs",
            INTERNALS,
            "except (RuntimeError, OSError, TypeError):\n            if",
            "except OSError:\n            if",
            DISK,
        ),
        ("messages: the package's own line", MESSAGES, "    if own:\n        return own[0]\n", "", SAID),
        (
            "messages: term gradients as numba tells it",
            "pdmp/models/base.py",
            "        with readable(type(self).__name__):\n            _add_term_gradients(",
            "        if True:\n            _add_term_gradients(",
            SAID,
        ),
    )
]
