"""What every fixed-step sampler owes its users, with every gradient provider that fits it.

Paths, counts and several chains of every sampler are those of `tests.digests`.
"""

import math

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian

pytestmark = [
    pytest.mark.exact,
    pytest.mark.filterwarnings("ignore:.*refreshed every:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*cancels over an epoch:UserWarning"),
]

RNG = np.random.default_rng(71)
A = RNG.standard_normal((12, 2))
MODEL = LinearGaussian(A, A @ [1.0, -1.0] + RNG.standard_normal(12))
PROVIDERS = {
    "model": MODEL,
    "Full": Full(MODEL),
    "Noisy": Noisy(MODEL, 0.5),
    "iid": Minibatch(MODEL, 3),
    "distinct": Minibatch(MODEL, 3, draw="distinct"),
    "reshuffle": Minibatch(MODEL, 5, draw="reshuffle"),
    "epoch": Minibatch(MODEL, 5, draw="epoch"),
    "control variate": ControlVariate(MODEL, 3),
    "importance": ControlVariate(MODEL, 3, draw="importance"),
}
SAMPLERS = {
    "SGD": lambda provider, step: discrete.SGD(provider, step),
    "SGD, clipped": lambda provider, step: discrete.SGD(provider, step, clip_norm=1.0),
    "SGLD": lambda provider, step: discrete.SGLD(provider, step),
    "SGLD, preconditioned": lambda provider, step: discrete.SGLD(
        provider, step, temperature=2.0, metric=pdmp.Metric(covariance=[[1.0, 0.5], [0.5, 2.0]])
    ),
    "SGLD, RMSprop": lambda provider, step: discrete.SGLD(
        provider, step, metric=discrete.preconditioners.RMSprop(include_gamma=True, eps=1.0)
    ),
    "SGLD, corrected": lambda provider, step: discrete.SGLD(provider, step, correction="corrected"),
    "SGLD, modified": lambda provider, step: discrete.SGLD(provider, step, correction="modified"),
    "SGLD, extreme": lambda provider, step: discrete.SGLD(provider, step, correction="extreme"),
    "SGBD": lambda provider, step: discrete.SGBD(provider, step),
    "SGBD, corrected": lambda provider, step: discrete.SGBD(provider, step, "corrected"),
    "SGBD, extreme": lambda provider, step: discrete.SGBD(provider, step, "extreme"),
    "SGHMC": lambda provider, step: discrete.SGHMC(provider, step),
    "SGHMC, semi-implicit": lambda provider, step: discrete.SGHMC(
        provider, step, scheme="semi_implicit", refresh_every=3, batch_every=3
    ),
    "SGHMC, explicit": lambda provider, step: discrete.SGHMC(provider, step, friction=5.0, scheme="explicit"),
    "BAOAB": lambda provider, step: discrete.BAOAB(provider, step),
    "UBU": lambda provider, step: discrete.UBU(provider, step),
    "SGNHT": lambda provider, step: discrete.SGNHT(provider, step),
    "SGNHT, per block": lambda provider, step: discrete.SGNHT(provider, step, thermostat="per_block", blocks=[1, 1]),
    "MSGNHT": lambda provider, step: discrete.MSGNHT(provider, step),
    "BADODAB": lambda provider, step: discrete.BADODAB(provider, step),
    "SGRRLD": lambda provider, step: discrete.SGRRLD(provider, step),
    "SGRRHMC": lambda provider, step: discrete.SGRRHMC(provider, step),
    "Richardson-Romberg": lambda provider, step: discrete.RichardsonRomberg(
        discrete.UBU(provider, step), correlation=[[0.8, 0.1], [0.0, 0.5]], weights="paper"
    ),
    "SGZZ": lambda provider, step: discrete.SGZZ(provider, step),
    "SGBPS": lambda provider, step: discrete.SGBPS(provider, step),
    "Zig-Zag splitting": lambda provider, step: discrete.ZigZagSplitting(provider, step),
    "BPS splitting": lambda provider, step: discrete.BPSSplitting(provider, step),
}
EXACT_ONLY = {
    "GD": lambda provider, step: discrete.GD(provider, step),
    "MALA": lambda provider, step: discrete.MALA(provider, step),
    "Barker": lambda provider, step: discrete.Barker(provider, step),
    "Barker, one sign": lambda provider, step: discrete.Barker(provider, step, increments="gaussian", signs="single"),
    "adjusted Zig-Zag splitting": lambda provider, step: discrete.ZigZagSplitting(provider, step, adjusted=True),
    "adjusted BPS splitting": lambda provider, step: discrete.BPSSplitting(provider, step, adjusted=True),
}
#: Each sampler with every third provider, from another one on than the sampler before.
PAIRS = [(s, p) for i, s in enumerate(SAMPLERS) for k, p in enumerate(PROVIDERS) if (i - k) % 3 == 0]
PAIRS += [(s, p) for s in EXACT_ONLY for p in ("model", "Full")]
if not config.DISABLE_JIT:  # variants of a sampler that are one class share their machine code
    PAIRS = [pair for k, pair in enumerate(PAIRS) if k % 3 == 0]


def process_of(sampler, provider, step=0.02):
    return (SAMPLERS.get(sampler) or EXACT_ONLY[sampler])(PROVIDERS[provider], step)


@pytest.mark.parametrize("sampler", EXACT_ONLY)
@pytest.mark.parametrize("provider", ["Noisy", "iid", "reshuffle", "control variate"])
def test_what_needs_the_exact_gradient_refuses_noise(sampler, provider):
    with pytest.raises(TypeError, match="exact gradient") as caught:
        process_of(sampler, provider)
    assert "\n" not in str(caught.value)


#: Those whose steps are bounded, or rejected, cannot diverge.
BOUNDED = ("SGBD", "MALA", "Barker", "SGZZ", "SGBPS", "Zig-Zag", "BPS", "adjusted", "SGLD, RMSprop", "SGD, clipped")
#: Stable at any step, where the friction is that large.
BOUNDED += ("SGHMC", "SGRRHMC")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*stability limit:UserWarning")
@pytest.mark.parametrize(
    "sampler, provider",
    [pair for pair in PAIRS if pair[0] == "SGHMC, semi-implicit" or not pair[0].startswith(BOUNDED)],
)
def test_a_chain_that_diverges_says_who_and_where_and_keeps_its_path(sampler, provider):
    process = process_of(sampler, provider, 50.0)
    with pytest.raises(
        pdmp.SamplingError, match=rf"^{type(process).__name__} diverged at step \d+: .*LinearGaussian"
    ) as e:
        pdmp.sample(process, steps=5_000, seed=2, initial=[0.5, 0.5])
    step = int(str(e.value).split("step ")[1].split(":")[0])
    path = e.value.run.trajectories[0]
    assert (step - 1) * process.ticks <= e.value.run.events[0] < step * process.ticks
    assert np.all(np.isfinite(path.positions))


def test_the_step_of_a_users_sampler_has_the_name_that_it_gives():
    class Named(discrete.Brownian):
        def __init__(self, provider, pace):
            super().__init__(provider, pace, "pace")

        @pdmp.compiled
        def move(self, x, v, memory, z, rng, counts):
            return True

    with pytest.raises(ValueError, match="^`pace` must be positive and finite, got -1"):
        Named(MODEL, -1.0)


def test_a_schedule_that_explores_is_for_those_that_can():
    cyclical = discrete.schedules.cyclical(0.1, 10, exploration=0.5)
    held = [discrete.SGHMC, discrete.SGBD, discrete.BADODAB, discrete.ZigZagSplitting]
    for make in (*held, discrete.SGZZ, discrete.SGBPS):
        name = getattr(make, "step_name", "step")
        with pytest.raises(ValueError, match=f"^`{name}`: {make.__name__} has no steps that explore"):
            make(MODEL, cyclical)
    discrete.SGD(MODEL, cyclical)
    discrete.SGLD(MODEL, cyclical)


#: With a curvature of 2: the step from which on each diverges, and its other arguments.
LIMITS = {
    "SGD": (discrete.SGD, 1.0, {}),
    "GD": (discrete.GD, 1.0, {}),
    "SGLD": (discrete.SGLD, 1.0, {}),
    "SGLD, preconditioned": (discrete.SGLD, 0.5, {"metric": 0.5}),
    "SGHMC": (discrete.SGHMC, 1.46114, {"friction": 0.5}),  # ε² λ = 4 cosh(Dε/2)
    "SGHMC, semi-implicit": (discrete.SGHMC, np.sqrt(2.25) - 0.5, {"scheme": "semi_implicit"}),
    "SGHMC, explicit": (discrete.SGHMC, 0.5, {"scheme": "explicit"}),
    "BAOAB": (discrete.BAOAB, np.sqrt(2.0), {}),
    "SGRRLD": (discrete.SGRRLD, 1.0, {}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_step_at_the_stability_limit_is_a_warning_that_names_it(name):
    make, limit, options = LIMITS[name]
    model = Gaussian([0.0, 0.0], [2.0, 0.5])
    with pytest.warns(UserWarning, match=rf"{make.__name__.replace('RR', '')}: .*stability limit of {limit:.4g}"):
        make(model, 1.0001 * limit, **options).resolve(np.zeros(2))
    make(model, 0.999 * limit, **options).resolve(np.zeros(2))


def test_every_sampler_is_here():
    known = {name for name in vars(discrete) if isinstance(getattr(discrete, name), type)}
    made = {type(process_of(name, "Full")).__name__ for name in [*SAMPLERS, *EXACT_ONLY]}
    assert known - made <= {"RichardsonRomberg", "Ticking", "Brownian"}, known - made


@pytest.mark.filterwarnings("ignore:.*no step keeps the marginal variances:UserWarning")
@pytest.mark.parametrize("sampler", [*SAMPLERS, *EXACT_ONLY])
def test_what_a_run_resolves_is_a_copy(sampler):
    """The process itself stays as it was, with its automatic step, for another start or another run."""
    for step in (0.02, "auto"):
        try:
            process = process_of(sampler, "Full", step)
            before = dict(vars(process))
            found = process.resolve(np.array([0.3, -0.4]))
        except ValueError:  # no rule for an automatic step, or none that is stable
            assert step == "auto"
            continue
        assert vars(process).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(process).items())
        if step == "auto":
            assert found is not process and math.isnan(process.schedule.step(0)) and found.schedule.step(0) > 0.0
        elif isinstance(process, discrete.RichardsonRomberg):
            assert found is not process and found.coarse.schedule.step(0) == 2.0 * found.fine.schedule.step(0)
