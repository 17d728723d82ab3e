"""What compiled methods of processes ask of their models is there, in branches too that plain Python never takes.

A compiler types all of them: an attribute that one kind of model lacks is an error for every call with it.
"""

import ast
import inspect
import textwrap

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import Normal
from pdmp.models.regressions.likelihoods import LogitLaw, NormalLaw, PoissonLaw
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.row_zigzag import RowZigZag
from tests.checks import plain_only
from tests.processes.helpers_regression_zigzag import crossed, regression

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]


def sum_of_terms():
    p = pdmp.Parameters(beta=2)
    X = np.column_stack([np.ones(40), np.linspace(-1.0, 1.0, 40)])
    rows = pdmp.terms(lambda y, z: np.exp(z) - y * z, [np.arange(40) % 4], [X @ p.beta])
    return pdmp.models.sum_of_terms(p, [rows], priors={"beta": Normal(0.0, 1.0)})


PAIRS = {
    "zigzag": (RegressionZigZag, lambda: regression(NormalLaw)),
    "zigzag, no dispersion": (RegressionZigZag, lambda: regression(PoissonLaw)),
    "zigzag, groups": (RegressionZigZag, lambda: regression(NormalLaw, 3, n=40)),
    "zigzag, correlated slopes": (RegressionZigZag, lambda: regression(NormalLaw, 3, n=40, slopes=1, eta=1.0)),
    "zigzag, crossed": (RegressionZigZag, lambda: crossed(LogitLaw)),
    "boomerang": (RegressionBoomerang, lambda: regression(NormalLaw)),
    "boomerang, terms": (RegressionBoomerang, sum_of_terms),
    "bps": (RegressionBPS, lambda: regression(NormalLaw)),
    "bps, terms": (RegressionBPS, sum_of_terms),
    "row zigzag": (RowZigZag, lambda: regression(LogitLaw)),
    "row zigzag, terms": (RowZigZag, sum_of_terms),
}


def test_the_coordinate_sampler_asks_terms_for_no_bounds_that_they_lack():
    """They have bounds within a distance, of all coordinates."""
    process = pdmp.CoordinateSampler(sum_of_terms())
    assert type(process.thinning) is pdmp.thinning.Grid
    run = pdmp.sample(process, events=30, initial=np.zeros(2), seed=1, progress=False)
    assert run.stats["total_events"] == 30


def asked(method):
    """Attributes of `self.model`, and of what a method calls `model` if that is it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    own = {ast.dump(ast.parse("self.model", mode="eval").body)}
    if any(
        isinstance(node, ast.Assign) and "self.model" in ast.unparse(node.value).split(", ") for node in ast.walk(tree)
    ):
        own.add(ast.dump(ast.parse("model", mode="eval").body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.dump(node.value) in own:
            yield node.attr


@plain_only
@pytest.mark.parametrize("name", PAIRS)
def test_a_model_has_what_is_asked_of_it(name):
    kind, make = PAIRS[name]
    process = kind(make())
    model = type(process.model)
    known, found = {*model._annotations, *model._methods}, set()
    for method in type(process)._methods.values():
        found |= set(asked(method))
    assert len(found) > 2
    assert found <= known, f"{model.__name__} lacks {sorted(found - known)}"


@plain_only
@pytest.mark.parametrize("name", PAIRS)
def test_a_process_has_what_it_asks_of_itself(name):
    process = type(PAIRS[name][0](PAIRS[name][1]()))
    known, found = {*process._annotations, *process._methods}, set()
    for method in process._methods.values():
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method)))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
    assert found <= known, f"{process.__name__} lacks {sorted(found - known)}"
