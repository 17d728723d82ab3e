"""Bugs in how code is compiled, kept on disk and spoken of."""

from tests.mutations.bugs import Bug

FINGERPRINTS, INTERNALS, MESSAGES = (
    f"pdmp/native/{name}.py" for name in ("fingerprints", "numba_internals", "messages")
)
ADDRESSES, CALLED = "pdmp/native/addresses.py", "tests/native/test_addresses.py"
HASHED, DISK = "tests/native/test_fingerprints.py", "tests/native/test_disk.py"
CAME = "test_code_that_came_with_the_package_is_run_and_what_did_not_come_is_compiled"
SAID, CHANGED = "tests/native/test_messages.py", "tests/native/test_numba_internals.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "fingerprint: a file with the name of one of Python's counts as that",
            FINGERPRINTS,
            "return root in sys.stdlib_module_names and file.startswith(_STANDARD)",
            "return root in sys.stdlib_module_names",
            HASHED,
        ),
        (
            "shipped: run by any processor",
            INTERNALS,
            "if all(features.get(name, False) for name in needed)",
            "if any(features.get(name, False) for name in needed)",
            CHANGED,
        ),
        (
            "shipped: for AVX-512, whatever of it a processor has",
            INTERNALS,
            'LEVEL_3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}',
            'LEVEL_3 | {"avx512f"}',
            CHANGED,
        ),
        (
            "shipped: the oldest first",
            INTERNALS,
            "[made for made, needed in GENERATIONS.items()",
            "[made for made, needed in reversed(GENERATIONS.items())",
            CHANGED,
        ),
        (
            "shipped: though a processor is named",
            INTERNALS,
            "numba.config.CPU_NAME is not None or",
            "numba.config.CPU_NAME is False or",
            CHANGED,
        ),
        (
            "shipped: under the name of this processor's",
            INTERNALS,
            "(codegen.magic_tuple()[0], *made)",
            "codegen.magic_tuple()",
            CHANGED,
        ),
        (
            "shipped: from one generation alone",
            INTERNALS,
            "        for made in shipped():\n",
            "        for made in shipped()[:1]:\n",
            f"{CHANGED} {DISK}::{CAME}",
        ),
        (
            "shipped: not looked for",
            INTERNALS,
            "        for made in shipped():\n",
            "        for made in ():\n",
            f"{DISK}::{CAME}",
        ),
        (
            "addresses: another numba goes unsaid",
            ADDRESSES,
            "        getattr(BaseContext, _part)\n",
            "        pass\n",
            CHANGED,
        ),
        (
            "fingerprint: default arguments are left out",
            FINGERPRINTS,
            "        self.value(function.__defaults__)\n",
            "",
            HASHED,
        ),
        (
            "fingerprint: numpy scalars by their type alone",
            FINGERPRINTS,
            "        if isinstance(value, (np.ndarray, np.generic)):\n",
            "        if isinstance(value, np.generic):\n            pass\n        elif isinstance(value, np.ndarray):\n",
            f"{HASHED} {DISK}",
        ),
        (
            "fingerprint: arrays as they print",
            FINGERPRINTS,
            'self.digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")',
            "self.add(repr(array))",
            HASHED,
        ),
        (
            "fingerprint: sets in the order of the day",
            FINGERPRINTS,
            "self.add(*sorted(self.apart(item) for item in value))",
            "self.add(*(self.apart(item) for item in value))",
            HASHED,
        ),
        (
            "fingerprint: what cannot be hashed is left out",
            FINGERPRINTS,
            "        self.complete = False\n        kind =",
            "        kind =",
            HASHED,
        ),
        (
            "fingerprint: attributes taken for globals",
            FINGERPRINTS,
            "    text = repr((kept, arguments,",
            "    paths += [[name] for name in code.co_names]\n    text = repr((kept, arguments,",
            HASHED,
        ),
        (
            "fingerprint: docstrings count",
            FINGERPRINTS,
            "    text = repr((kept, arguments,",
            "    text = repr((code.co_consts, kept, arguments,",
            HASHED,
        ),
        (
            "fingerprint: overloads of the names in a function are not followed",
            FINGERPRINTS,
            "        self.overloads(named, code.co_names)\n",
            "",
            HASHED,
        ),
        (
            "fingerprint: overloads are those of the first time that it is asked",
            FINGERPRINTS,
            "                source[1] += 1\n",
            "                source[1] = 10**9\n",
            HASHED,
        ),
        (
            "fingerprint: overloads of operators have no name",
            FINGERPRINTS,
            ' or getattr(key, "__module__", None) == "_operator":',
            ":",
            HASHED,
        ),
        (
            "fingerprint: LLVM's types with what they have been asked",
            FINGERPRINTS,
            'if _root(kind.__module__) == "llvmlite" or isinstance(value, Type):',
            "if isinstance(value, Type):",
            f"{HASHED} {DISK}::test_compiling_changes_no_fingerprint",
        ),
        (
            "fingerprint: the version of what is being written",
            FINGERPRINTS,
            "version is None or not file.startswith(_INSTALLED):",
            "version is None:",
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
            "decorators: sums are reordered where the first caller reorders its own",
            "pdmp/native/decorators.py",
            'EXACT = {"fastmath": False}',
            "EXACT = {}",
            "tests/native/test_classes.py::test_what_compiled_a_function_first_does_not_change_its_sums",
        ),
        (
            "disk: the function itself is not part of the key",
            INTERNALS,
            "made_from = fingerprint([self.function]), [",
            "made_from = [",
            DISK,
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
        (
            "numba: other arguments are not noticed",
            INTERNALS,
            'if list(inspect.signature(getattr(owner, name)).parameters) != ["self", *parameters]:',
            "if not hasattr(owner, name):",
            CHANGED,
        ),
        (
            "numba: no fall-back",
            "pdmp/native/decorators.py",
            "except (ImportError, AttributeError):",
            "except ZeroDivisionError:",
            CHANGED,
        ),
        ("messages: the package's own line", MESSAGES, "    if own:\n        return own[0]\n", "", SAID),
        (
            "messages: an f-string creates an array",
            MESSAGES,
            "            if line and (",
            "            if not line and (",
            SAID,
        ),
        (
            "messages: term gradients as numba tells it",
            "pdmp/models/numerical.py",
            "        with readable(type(self).__name__):\n            _add_term_gradients(",
            "        if True:\n            _add_term_gradients(",
            SAID,
        ),
        (
            "addresses: a field that was replaced is not seen",
            ADDRESSES,
            "    return old is new or not isinstance(new, np.ndarray) and type(old) is type(new) and old == new\n",
            "    return True\n",
            CALLED,
        ),
        ("addresses: the arrays of a record are let go", ADDRESSES, "    memory.kept = native\n", "", CALLED),
        (
            "addresses: an exception is lost",
            ADDRESSES,
            "                context.call_conv.return_status_propagate(builder, status)\n",
            "                pass\n",
            CALLED,
        ),
        (
            "addresses: the potential without its gradient",
            "pdmp/models/called.py",
            "            self.add_gradient(x, out)\n            return self.total_potential(x)\n",
            "            return self.total_potential(x)\n",
            CALLED,
        ),
        (
            "addresses: HMC is compiled for each model",
            "pdmp/processes/hmc.py",
            "    target: ByAddress\n",
            "    target: object\n",
            CALLED,
        ),
    )
]
