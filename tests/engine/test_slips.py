"""What goes wrong in practice: each slip is one readable error, and never another answer or a crash."""

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from pdmp.engine.run import extend
from pdmp.models import from_function

needs_compiler = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="about compilation")
GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


def target(power):
    """A class that always has the same name: what a notebook cell becomes when it is edited and run again."""

    class Target(pdmp.Model):
        s: float

        def __init__(self):
            super().__init__(dim=1)
            self.s = 1.0

        @pdmp.compiled
        def potential(self, x):
            return x[0] ** power / power

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0] ** (power - 1)

    return Target()


@pytest.mark.exact
def test_classes_of_the_same_name_do_not_share_their_machine_code():
    models = [target(2), target(4)]
    assert [float(m.gradient([2.0])[0]) for m in models] == [2.0, 8.0]
    variances = [pdmp.sample(pdmp.ZigZag(m), events=4_000, seed=1).var()[0] for m in models]
    assert 0.9 < variances[0] < 1.1 and 0.6 < variances[1] < 0.75  # 1 and 0.676


@pytest.mark.exact
def test_a_checkpoint_of_another_function_or_preconditioner_is_refused(tmp_path):
    def run(process, name):
        return pdmp.sample(process, events=50, seed=1, initial=np.zeros(2), checkpoint=tmp_path / name)

    run(pdmp.ZigZag(from_function(lambda x: (0.5 * x @ x, x), 2)), "function.npz")
    with pytest.raises(ValueError, match="another call: `process` differs"):
        run(pdmp.ZigZag(from_function(lambda x: (5.0 * x @ x, 10.0 * x), 2)), "function.npz")
    noisy = pdmp.gradients.Noisy(GAUSSIAN, 1.0)
    run(pdmp.SBPS(noisy, precondition=[1.0, 9.0]), "scale.npz")
    with pytest.raises(ValueError, match="another call: `process` differs"):
        run(pdmp.SBPS(noisy, precondition=[9.0, 1.0]), "scale.npz")


class Regular(pdmp.Process):
    """An event at every unit of time; `kind` is what the jump returns after time 2."""

    kind: int
    events = ("tick",)

    def __init__(self, kind=0, **options):
        super().__init__(dim=1, **options)
        self.kind = kind

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + 1.0, pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        return self.kind if now > 2.0 else 0


@pytest.mark.exact
def test_a_kind_of_event_without_a_name_stops_the_run():
    with pytest.raises(pdmp.SamplingError, match="kind of event that is not a place in its `events`"):
        pdmp.sample(Regular(kind=1), events=5)


@pytest.mark.exact
@pytest.mark.parametrize(
    "options, message",
    [
        ({"scope": [[7]]}, "`scope` must name coordinates 0 … 0"),
        ({"scope": [[0], [0]]}, "`scope` must have a row for each of the 1 clocks"),
        ({"dependents": [[0, 3]]}, "`dependents` must name clocks 0 … 0"),
        ({"dependents": [[0], [0]]}, "`dependents` must have a row for each of the 1 clocks"),
    ],
)
def test_places_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Regular(**options)


@pytest.mark.exact
def test_a_velocity_of_the_wrong_length_is_refused():
    class Long(Regular):
        def velocity(self, x, rng):
            return np.ones(3)

    with pytest.raises(ValueError, match=r"Long has dimension 1, but starts with .* v of \(3,\)"):
        pdmp.sample(Long(), events=5)


@pytest.mark.exact
def test_a_method_with_other_arguments_is_refused():
    with pytest.raises(TypeError, match=r"Bad.jump must take the arguments \(self, state, i, now, rng\)"):

        class Bad(Regular):
            @pdmp.compiled
            def jump(self, state, now, rng):
                return 0


@needs_compiler
def test_a_method_that_creates_arrays_is_told_how():
    class Creates(pdmp.Model):
        @pdmp.compiled
        def potential(self, x):
            return 0.5 * (x * x).sum()

        @pdmp.compiled
        def add_gradient(self, x, out):
            out += x

    with pytest.raises(TypeError, match=r"Creates does not compile.*creates an array.*allocates=True"):
        Creates(dim=2).potential([1.0, 2.0])


@pytest.mark.exact
def test_a_run_is_not_extended_backwards():
    run = pdmp.sample(pdmp.ZigZag(GAUSSIAN), time=20.0, seed=1)
    with pytest.raises(ValueError, match="smaller than what the run has already spent"):
        extend(run, time=10.0)


@pytest.mark.exact
def test_a_damaged_file_is_said_to_be_so(tmp_path):
    path = tmp_path / "run.npz"
    pdmp.sample(pdmp.ZigZag(GAUSSIAN), events=50, seed=1).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="is damaged, or not a file that this package wrote"):
        pdmp.load(path)


@pytest.mark.exact
def test_the_grid_stops_where_the_target_ends():
    """A density that ends inside its support stops the run at the edge; looking over it from inside does not."""

    def half(x):
        return (0.5 * x @ x, x) if x[0] < 1.0 else (np.nan, np.full(2, np.nan))

    with pytest.raises(pdmp.SamplingError, match="not finite") as caught:
        pdmp.sample(pdmp.BPS(from_function(half, 2)), events=1_000, seed=1)
    assert caught.value.position[0] == pytest.approx(1.0, abs=1e-6)

    def barrier(x):  # U grows without bound at the edge: the path turns before it
        if x[0] <= 0.0:
            return np.nan, np.full(1, np.nan)
        return x[0] - 3.0 * np.log(x[0]), 1.0 - 3.0 / x

    run = pdmp.sample(pdmp.BPS(from_function(barrier, 1, initial=[3.0]), refresh_rate=0.2), events=3_000, seed=1)
    assert run.mean()[0] == pytest.approx(4.0, abs=0.5)  # Gamma(4, 1)


@pytest.mark.exact
def test_a_minimum_at_infinity_is_not_a_mode():
    X = np.array([[1.0, 0.9], [2.0, 2.2], [-1.0, -1.1], [-1.5, -1.0]])
    model = pdmp.models.LogisticRegression(X, [1.0, 1.0, 0.0, 0.0], prior_scale=np.inf)
    assert model.mode() is None


@pytest.mark.exact
def test_sbps_warns_of_gradients_without_noise():
    with pytest.warns(UserWarning, match="without noise.*pdmp.BPS"):
        pdmp.SBPS(GAUSSIAN)


@pytest.mark.exact
@pytest.mark.parametrize("step", ["0.1", True])
def test_steps_are_numbers(step):
    with pytest.raises(TypeError, match="`step` must be a number"):
        discrete.SGLD(GAUSSIAN, step=step)


def test_the_effective_sample_size_is_not_bounded_by_the_number_of_draws():
    run = pdmp.sample(discrete.SGLD(GAUSSIAN, step=0.2), steps=100_000, seed=1)
    rho = np.array([0.8, 0.2])  # 1 - γλ: an autoregression of order one
    assert run.ess() == pytest.approx(100_000 * (1.0 - rho) / (1.0 + rho), rel=0.25)


def test_chains_that_agree_have_as_many_effective_draws_under_every_store():
    stores = [
        pdmp.sample(discrete.SGLD(GAUSSIAN, step=0.2), steps=40_000, warmup=0.1, chains=4, seed=2, store=store).ess()
        for store in ("skeleton", "moments")
    ]
    assert stores[1] == pytest.approx(stores[0], rel=0.5)  # 32 to 64 batches of each chain: 10 %; 3 standard errors


def test_chains_that_disagree_have_few_effective_draws_under_every_store():
    for store in ("skeleton", "moments"):
        run = pdmp.sample(
            discrete.SGLD(GAUSSIAN, step=1e-5), steps=5_000, chains=2, seed=1, store=store, initial=[[5.0, 5], [-5, -5]]
        )
        assert run.ess().max() < 10.0


@pytest.mark.exact
def test_a_budget_of_data_without_end_is_a_number_like_any_other():
    model = pdmp.models.LinearGaussian(np.ones((4, 1)), np.zeros(4), 1.0, 1.0)
    run = pdmp.sample(discrete.SGLD(model, step=0.1), data_passes=1e300, steps=3, seed=1)
    assert run.stats["data_terms"] == 12
