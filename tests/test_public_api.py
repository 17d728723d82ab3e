"""What a user calls from Python is annotated, documented as numpydoc asks, and its examples run."""

import ast
import doctest
import functools
import importlib.util
import inspect
import itertools
import pathlib
import pkgutil
import re

import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString

import discrete
import pdmp
from pdmp.native.classes import Compiled, lookup_order
from tests.checks import plain_only

pytestmark = pytest.mark.exact

PACKAGES = (
    "pdmp",
    "pdmp.models",
    "pdmp.gradients",
    "pdmp.diagnostics",
    "pdmp.validation",
    "pdmp.tuning",
    "pdmp.data",
    "pdmp.plots",
    "pdmp.formulas",
    "pdmp.shards",
    "pdmp.thinning",
    "discrete",
    "discrete.schedules",
    "discrete.preconditioners",
)
OURS = ("pdmp", "discrete")


def is_ours(thing):
    return getattr(thing, "__module__", "").partition(".")[0] in OURS


def exported():
    """Everything in the `__all__` of these packages that is a class or a function, by where it lives."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and is_ours(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def owners(cls):
    """Where its methods are: the class, its bases, and the defaults of its kind."""
    return lookup_order(cls) if issubclass(cls, Compiled) else cls.__mro__


def methods(cls):
    """What a user calls on instances of `cls`, with the class that defines it; without compiled methods."""
    for owner in owners(cls):
        if is_ours(owner):
            for name, member in vars(owner).items():
                if name.startswith("_") or isinstance(member, type):
                    continue
                if isinstance(member, (staticmethod, classmethod)):
                    member = member.__func__
                if isinstance(member, property):
                    yield name, owner, member.fget
                elif isinstance(member, functools.cached_property):
                    yield name, owner, member.func
                elif inspect.isfunction(member) and not getattr(member, "__compiled__", False):
                    yield name, owner, member


EXPORTED = exported()
CLASSES = {name: thing for name, thing in EXPORTED.items() if inspect.isclass(thing)}
FUNCTIONS = {name: thing for name, thing in EXPORTED.items() if not inspect.isclass(thing)}
METHODS = {
    f"{owner.__module__}.{owner.__qualname__}.{name}": (owner, name, function)
    for cls in CLASSES.values()
    for name, owner, function in methods(cls)
}


def constructor(cls):
    """What is called when an instance is made, or None for an exception or a named tuple, which have no code for it."""
    made = cls.__init__ if cls.__init__ is not object.__init__ else cls.__new__
    return made if inspect.isfunction(made) and is_ours(made) else None


def parameters(function):
    """Parameters by name, without self and cls."""
    found = inspect.signature(function).parameters
    return {name: p for name, p in found.items() if name not in ("self", "cls") and not name.startswith("_")}


def missing_annotations(function):
    """Names of arguments without annotation, and "return"."""
    names = [name for name, p in parameters(function).items() if p.annotation is inspect.Parameter.empty]
    if inspect.signature(function).return_annotation is inspect.Signature.empty and function.__name__ != "__init__":
        names.append("return")
    return names


def documented(doc, *sections):
    """Names in these sections: `*args` and `x, y` as they are written."""
    return {name.strip().lstrip("*") for s in sections for p in doc[s] for name in p.name.split(",")}


def undocumented_arguments(doc, function):
    return sorted(
        parameters(function).keys() - documented(doc, "Parameters", "Attributes") if function is not None else ()
    )


def unknown_arguments(doc, function):
    """What is documented, but is no argument: a name that has changed since."""
    known = parameters(function)
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return []
    return sorted(documented(doc, "Parameters") - known.keys())


def repeated_arguments(doc):
    names = [p.name for p in doc["Parameters"]]
    return sorted({name for name in names if names.count(name) > 1})


def says_what_comes_back(doc, function):
    returned = inspect.signature(function).return_annotation
    return str(returned) in ("None", "NoReturn", "Any") or bool(doc["Returns"] or doc["Yields"])


def overrides(owner, name):
    """Whether a class further up documents this method."""
    return any(inspect.getdoc(vars(base)[name]) for base in owners(owner)[1:] if name in vars(base) and is_ours(base))


def faults(function, doc):
    """What annotations and a docstring lack; `function` is None where nothing is called."""
    found = [f"{name} without annotation" for name in (missing_annotations(function) if function else ())]
    found += [f"{name} is not documented" for name in undocumented_arguments(doc, function)]
    found += [f"{name} is no argument" for name in (unknown_arguments(doc, function) if function else ())]
    return found + [f"{name} is documented twice" for name in repeated_arguments(doc)]


def faults_of_function(function):
    doc = NumpyDocString(inspect.getdoc(function) or "")
    lacks = {"docstring": function.__doc__, "Returns": says_what_comes_back(doc, function), "Examples": doc["Examples"]}
    return [f"no {what}" for what, there in lacks.items() if not there] + faults(function, doc)


def faults_of_class(cls):
    doc = NumpyDocString(inspect.getdoc(cls) or "")
    lacks = {"docstring": cls.__doc__, "Examples": doc["Examples"]}
    return [f"no {what}" for what, there in lacks.items() if not there] + faults(constructor(cls), doc)


def faults_of_method(given):
    owner, name, function = given
    if overrides(owner, name):  # annotated and documented where it is declared
        return []
    if name in documented(NumpyDocString(inspect.getdoc(owner) or ""), "Attributes"):
        return missing_annotations(function)
    doc = NumpyDocString(inspect.getdoc(function) or "")
    found = faults(function, doc) if doc["Parameters"] else missing_annotations(function)
    return found if function.__doc__ else ["no docstring", *found]


def test_what_a_model_and_a_process_show():
    """At most 15 methods of a model and 20 names of a process; the rest are defaults, and no fields."""
    shown = {cls: {name for name in dir(cls) if not name.startswith("_")} for cls in (pdmp.Model, pdmp.Process)}
    of_model = shown[pdmp.Model] - {"by_address", "model", "native"}
    assert len(of_model) <= 15 and {"potential", "add_gradient", "gradient", "term_gradients", "mode"} <= of_model
    assert len(shown[pdmp.Process]) <= 20 and {"rate", "velocity", "memory", "prepare"} <= shown[pdmp.Process]
    model, process = pdmp.models.Banana(), pdmp.BPS(pdmp.models.Banana())
    assert model.rearranged([0]) is None and model.dims == {} and not model.has("rearranged")
    assert process.copies == (1.0,) and process.tick_length() is None
    assert [*pdmp.Model._annotations] == ["dim", "n_data"] and "copies" not in pdmp.Process._annotations


@pytest.mark.parametrize(
    "things, look, least",
    [(FUNCTIONS, faults_of_function, 100), (CLASSES, faults_of_class, 90), (METHODS, faults_of_method, 400)],
    ids=["functions", "classes", "methods"],
)
def test_what_is_public_is_annotated_and_documented(things, look, least):
    assert {name: found for name, thing in things.items() if (found := look(thing))} == {}
    assert len(things) > least


def modules():
    for package in (pdmp, discrete):
        yield package.__name__
        yield from (m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))


def examples_of(name):
    """How many lines of examples the file of a module has."""
    return pathlib.Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8").count(">>> ")


EXAMPLES = {name: examples_of(name) for name in modules() if not name.endswith("__main__")}


@plain_only
@pytest.mark.parametrize("name", [name for name, examples in EXAMPLES.items() if examples])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    tests = doctest.DocTestFinder(exclude_empty=True).find(
        module, extraglobs={"pdmp": pdmp, "discrete": discrete, "np": np}
    )
    assert tests
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    said = []
    with np.printoptions(precision=6, suppress=False):
        for test in tests:
            runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_there_are_examples():
    assert sum(EXAMPLES.values()) > 700


# -- defaults ---------------------------------------------------------------------------------------------------------


def with_parameters():
    """(name, text, signature) of every function and class of both packages that describes its parameters."""
    for package in (pdmp, discrete):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name.endswith("__main__"):
                continue
            try:
                module = importlib.import_module(info.name)
            except ImportError:  # of an optional package
                continue
            for name, thing in vars(module).items():
                if getattr(thing, "__module__", None) != info.name or not (isinstance(thing, type) or callable(thing)):
                    continue
                own = [(f"{name}.{m}", getattr(f, "__func__", f)) for m, f in vars(thing).items() if m[0] != "_"]
                for where, one in [(name, thing), *(own if isinstance(thing, type) else [])]:
                    if inspect.isfunction(one) or isinstance(one, type):
                        function = one.__init__ if isinstance(one, type) else one
                        if one.__doc__ and inspect.isfunction(function):
                            yield f"{info.name}.{where}", one.__doc__, inspect.signature(function).parameters


def stated(text):
    """(name, what is said of its type, the default that is stated) of each parameter of a numpydoc text.

    A default is stated as "default 1.0", of several parameters as "default 1.0 and 5.0", or as the first of a set.
    """
    lines, inside = inspect.cleandoc(text).splitlines(), False
    for line, below in itertools.pairwise([*lines, ""]):
        if below and set(below) == {"-"}:
            inside = line in ("Parameters", "Other Parameters")
        elif inside and (found := re.match(r"(\w+(?:, \w+)*) : (.*)$", line)):
            names = found[1].split(", ")
            said = re.search(r"default (.+)$", found[2]) or re.match(r"\{?(\".*?\"|None|[\d.]+)[,} ]", found[2])
            values = [None] * len(names) if said is None or "optional" in found[2] else said[1].split(" and ")
            yield from zip(
                names, [found[2]] * len(names), len(names) * values if len(values) == 1 else values, strict=True
            )


#: What is no literal of Python.
VALUES = {"numpy.float64": np.float64, "√1e5": 1e5**0.5, "1/8": 0.125}


def test_defaults_are_those_that_are_documented():
    """And every finite number, truth value and word that is a default is documented."""
    wrong, missing, compared = [], [], 0
    for where, text, parameters in with_parameters():
        for name, kind, default in stated(text):
            parameter = parameters.get(name)
            if parameter is None or parameter.default is parameter.empty:
                continue
            given = parameter.default
            if default is not None:
                compared += 1
                value = VALUES[default] if default in VALUES else ast.literal_eval(default.replace(",", ""))
                if value != given or isinstance(value, bool) != isinstance(given, bool):
                    wrong.append(f"{where}: {name} is {given!r}, documented as {kind!r}")
            elif isinstance(given, str) and given or isinstance(given, int | float) and 0.0 < abs(given) < 1e9:
                missing.append(f"{where}: {name} = {given!r}")
    assert not wrong and not missing, "\n".join([*wrong, *missing])
    assert compared > 400
