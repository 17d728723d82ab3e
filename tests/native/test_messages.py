"""What is said of a compiled method that does not compile: one line, with the file and line of whoever wrote it."""

import inspect
import math
import os

import numpy as np
import pytest

import pdmp
from pdmp.native.explanations import explained, explanation
from tests.native.processes import JIT, needs_compiler


def plain(x):
    return x[0]


class Bowl(pdmp.Model):
    def __init__(self):
        super().__init__(dim=2, n_data=3)

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[self.dim - 2] ** 2 + x[self.dim - 1] ** 2) / self.n_data

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        for j in range(self.dim):
            out[j] += x[j] / self.n_data


class Text(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        text = f"{i}"  # here
        return float(len(text))

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += len(f"{i} of {self.n_data}")  # here


class Creates(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        return np.sum(x * 2.0)  # here

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        z = np.zeros(3)  # here
        out[0] += z[0]


class Misspelt(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        return self.sise * x[0]  # here

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += self.sise  # here


class Plain(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        return plain(x)  # here

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += plain(x)  # here


class Mixed(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        return x + "a"  # here

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += self.term_potential(x)  # here


class Absent(Bowl):
    @pdmp.compiled
    def term_potential(self, x, i):
        return np.linalg.eigenvalue(x)  # here

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += np.linalg.eigenvector(x)  # here


#: What the potential's error says, and the gradient's.
SAID = {
    Text: ("makes a string", "makes a string"),
    Creates: ("creates an array", "creates an array"),
    Misspelt: ("'sise'", "'sise'"),
    Plain: ("`plain` is a plain Python function", "@numba.njit"),
    Mixed: (r"add\(array\(float64, 1d, C\), Literal\[str\]\(a\)\)", "missing a required argument"),
    Absent: ("no attribute 'eigenvalue'", "no attribute 'eigenvector'"),
}


def line_of(method):
    """The line of the method that says `# here`."""
    lines, first = inspect.getsourcelines(method)
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@needs_compiler
@pytest.mark.parametrize("cls", SAID, ids=lambda cls: cls.__name__)
def test_a_model_that_does_not_compile(cls):
    model, x = cls(), np.ones(2)
    for ask, name, said in (
        (lambda: model.potential(x), "term_potential", SAID[cls][0]),
        (lambda: model.gradient(x), "add_term_gradient", SAID[cls][1]),
        (lambda: model.term_gradients(x, [0]), "add_term_gradient", SAID[cls][1]),
    ):
        with pytest.raises(TypeError, match=said) as raised:
            ask()
        assert f"method of {cls.__name__} " in str(raised.value)
        assert f"{__file__}, line {line_of(getattr(cls, name))}:" in str(raised.value)
        assert "\n" not in str(raised.value)
        if cls is Text:
            assert "array:" not in str(raised.value)


@pytest.mark.exact
def test_compiled_methods_know_the_dimension_and_the_number_of_data():
    model, x = Bowl(), np.array([1.0, 3.0])
    assert model.potential(x) == pytest.approx(5.0, rel=1e-15)
    np.testing.assert_allclose(model.gradient(x), x, rtol=1e-15)
    assert JIT or model.native.dim == 2


@pytest.mark.exact
def test_how_many_entries_are_not_finite():
    """Of the first argument that has such, where another package's error does not name it."""

    def made(scales, table):
        return np.linalg.cholesky(table)

    scales, table = [1.0, 2.0], [[1.0, np.nan, 2.0], [np.inf, 1.0, 3.0]]
    with pytest.raises(np.linalg.LinAlgError) as caught:
        made(scales, np.array([[1.0, 2.0], [2.0, 1.0]]))
    error = caught.value
    said = str(explanation(made, (scales, table), {}, error))
    assert said == "`table` must be finite; 2 entries are not."
    said = str(explanation(made, (math.nan, np.eye(3)), {}, error))
    assert said == "`scales` must be finite, got nan."
    said = str(explanation(made, (scales, np.eye(3)), {}, error))
    assert (
        said == "a matrix among `scales` of shape (2,), `table` of shape (3, 3) is singular, or not positive definite."
    )


@pytest.mark.exact
def test_what_is_no_number_is_named():
    """True is no number, whatever Python says; what fits is not to blame."""

    @explained
    def count(n: int):
        return [][0]

    @explained
    def scale(s: float):
        return [][0]

    for function, bad, wanted in (
        (count, (True, 1.5, "1"), "`n` must be an integer"),
        (scale, (True, 1j, "1"), "`s` must be a number"),
    ):
        for value in bad:
            with pytest.raises((TypeError, ValueError)) as said:
                function(value)
            assert isinstance(value, complex) or str(said.value).startswith(f"{wanted}, got ")
        with pytest.raises(IndexError):
            function(np.int64(2))


@pytest.mark.exact
def test_the_innermost_place_is_named():
    """numba's text has it first; of places all in this package too."""
    from pdmp.native import messages

    ours = [os.path.join(messages._PACKAGE, name) for name in ("one.py", "two.py")]
    text = "\n".join(f'File "{path}", line {k}:' for k, path in enumerate(ours, 3))
    assert messages._place(text, []) == (ours[0], "3")
    assert messages._place(text + '\nFile "/home/users.py", line 9:', []) == ("/home/users.py", "9")
