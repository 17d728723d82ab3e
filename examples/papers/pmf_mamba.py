"""Figures 2, 4 and 5 (middle) and tables 2, 6 and 7 of "Efficient and generalizable tuning strategies for stochastic
gradient MCMC" (Coullon, South & Nemeth, 2023): probabilistic matrix factorisation of MovieLens 100K.

Rank 20, split u1: 52,580 parameters, 80,000 ratings. SGLD, SGHMC and SGNHT with and without control variates are tuned
by successive halving on the Stein discrepancy (MAMBA), by a grid search for the least error on held-out ratings, and by
γ = 1/N. Everything starts where stochastic gradient descent has led, where control variates are anchored too; the grid
search N(0, I) off it. A second, reduced problem has the 100 users and the 150 films with most ratings, and rank 5: for
it a long exact run, Hamiltonian Monte Carlo, tells the standard deviations, those of predicted ratings, as factors can
be rotated. The paper's own reference took six hours for 11,000 draws.

What is reproduced: KSD is least with MAMBA's hyper-parameters, or close to that; grid search for the least error takes
steps that are far too large for the law, and its KSD is several times larger; all predict better than the mean rating.

    python examples/papers/pmf_mamba.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Needs MovieLens 100K (PDMP_DATA). Writes a table, pictures and what was found, and ends with exit code 1 if a criterion
fails. Time: about a minute with --quick, the reduced problem alone; two hours without, on two processors.
"""

import functools
import math
import sys
import warnings

import _common as common
import _mamba as mamba
import numpy as np
from _common import Row
from _mamba import BUDGETS, NAMES, at

import discrete
import pdmp
from pdmp import tuning
from pdmp.diagnostics import ksd, rmse, scores, sd_error

TUNERS = ("M-KSD", "grid", "1/N")
STEPS = np.arange(-2.0, -7.6, -0.5)  #: log10 of the steps of the paper's grid, for its 80,000 data
SIZES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
WHOLE = 80_000
MEAN_PREDICTOR = 1.331  #: mean squared error of the mean rating
#: Table 2: KSD of the whole problem in the order of `NAMES`.
PUBLISHED = {
    "M-KSD": (213, 231, 438, 543, 163, 205),
    "grid": (429, 546, 3180, 4289, 170, 221),
    "1/N": (237, 284, 3942, 4546, 164, 210),
}
NOISY = (
    "the noise of the scores of small batches adds more to the statistic, by its diagonal, than the discrepancy "
    "itself, which hardly depends on the size of the batch here; without the diagonal small batches come out ahead"
)
LONG = "a setting at the limit of stability wins the short rounds of the tuner, and diverges in a run as long as this"
DIFFERENT = "in data passes, not seconds, a small batch does not pay with its overhead, and other arms come out ahead"


class Factorisation(mamba.Problem):
    """The posterior of the whole problem or of the reduced one."""

    def __init__(self, which, s):
        data, rank = pdmp.data.movielens_100k(1), 20 if which == "whole" else 5
        parts = [(part.users, part.items, part.ratings) for part in (data.train, data.test)]
        shape = data.shape
        if which == "reduced":
            users = np.argsort(-np.bincount(data.train.users, minlength=shape[0]), kind="stable")[:100]
            items = np.argsort(-np.bincount(data.train.items, minlength=shape[1]), kind="stable")[:150]
            parts, shape = [restricted(part, users, items) for part in parts], (100, 150)
        (users, items, ratings), self.test = parts
        model = pdmp.models.BPMF(
            users, items, ratings, rank=rank, n_users=shape[0], n_items=shape[1], shape=4.0, rate=5.0
        )
        steps = STEPS + math.log10(WHOLE / model.n_data)
        super().__init__(model, None, steps[s["every"] // 2 :: s["every"]], [1.0, 0.1, 0.01], 1.0)
        self.settings, self.which = s, which
        descent = discrete.SGD(self.provider(False, 0.1), step=10.0 ** (-4.0 + math.log10(WHOLE / model.n_data)))
        run = pdmp.sample(descent, steps=s["descent"], initial=model.initial, seed=0, store="grid", draws=4)
        self.start = run.draws(1)[0, 0]
        self.kept = s["kept"] if which == "whole" else 2 * s["kept"]

    def predicted(self, x):
        return self.model.predict(x, *self.test[:2])

    @functools.cached_property
    def reference(self):
        """Standard deviations of the predicted ratings by a long exact run; with the largest R-hat of predictions."""
        s = self.settings
        process = pdmp.HMC(self.model, duration=1.5)
        run = pdmp.sample(
            process, steps=s["HMC"], warmup=0.2, chains=2, seed=5, initial=self.start, store="grid", draws=500
        )
        predicted = np.array([self.predicted(x) for x in run.draws(500)])
        some = predicted[:, :, :: max(predicted.shape[2] // 50, 1)]
        return predicted.std(axis=(0, 1)), float(np.max(pdmp.diagnostics.rhat(some)))

    def choose(self, tuner, name):
        s, seed = self.settings, 100 * TUNERS.index(tuner) + NAMES.index(name)
        if tuner == "1/N":
            return self.heuristic()
        if tuner == "grid":
            users, items, ratings = self.test
            error = tuning.held_out(ratings, users, items, loss="rmse", lowest=1.0, highest=5.0)
            return self.grid(name, error, s["grid passes"], seed, 5)
        return self.mamba(name, "ksd", s["budget"], seed, s["scored"])

    def evaluate(self, name, arm, seed):
        """A run with these hyper-parameters."""
        measures = ("ksd", "MSE", "rMSE of the mean", "samples") + (("xi",) if self.which == "reduced" else ())
        options = {"data_passes": self.settings["passes"], "store": "grid", "draws": self.kept}
        run = self.run(self.make(name, **arm), seed, **options)
        x = None if run is None else run.draws(min(self.kept, int(run.records[0].grid.used[0])))[0]
        if x is None or not np.all(np.isfinite(scores(self.model, x[-1:]))):
            return dict.fromkeys(measures, math.inf) | {"curve": [math.inf] * BUDGETS}
        score, predicted = scores(self.model, x), self.predicted(x)
        ends = np.maximum(len(x) * np.arange(1, BUDGETS + 1) // BUDGETS, 1)
        curve = [ksd(x[:end], score[:end], threads=1) for end in ends]
        each, mean = rmse(self.test[2], predicted, 1.0, 5.0)
        found = {"ksd": curve[-1], "MSE": np.mean(each**2), "rMSE of the mean": mean, "samples": int(run.events[0])}
        if self.which == "reduced":
            found["xi"] = sd_error(predicted, self.reference[0], stretches=2).value
        return found | {"curve": curve}


def restricted(part, users, items):
    """The ratings of these films by these users, numbered from 0."""
    place = np.full(max(part[0].max(), users.max()) + 1, -1), np.full(max(part[1].max(), items.max()) + 1, -1)
    place[0][users], place[1][items] = np.arange(len(users)), np.arange(len(items))
    i, j = place[0][part[0]], place[1][part[1]]
    rows = (i >= 0) & (j >= 0)
    return i[rows], j[rows], part[2][rows]


@functools.cache
def problem(which, items):
    return Factorisation(which, dict(items))


def main_one(s):
    """The problem of figures 4 and 5: the whole one, if the preset has it."""
    return s["problems"][-1]


def series(which, tuner):
    return tuner if which == "whole" else f"reduced: {tuner}"


def tuners(s):
    return [series(main_one(s), tuner) for tuner in TUNERS]


def pieces(s):
    def of(which):
        warnings.simplefilter("ignore", UserWarning)  # of schemes and steps that are known to be biased; of few draws
        return problem(which, tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in s.items()))

    def shift(which):
        return math.log10(WHOLE / of(which).model.n_data)

    def f4(table, work):
        its, options = of(main_one(s)), {"steps": s["steps F4"], "store": "grid", "draws": s["kept"]}
        places = STEPS + shift(main_one(s))
        found = [mamba.estimates(its, step, 0.01, 10 * k, **options) for k, step in enumerate(places)]
        mamba.add_estimates(table, "F4", places, found)

    def f5(table, work):
        its, options = of(main_one(s)), {"data_passes": s["passes F5"], "store": "grid", "draws": s["kept"]}
        step, shares = -4.5 + shift(main_one(s)), SIZES[SIZES * its.model.n_data >= 20.0]
        found = [mamba.estimates(its, step, share, 10 * k, **options) for k, share in enumerate(shares)]
        mamba.add_estimates(table, "F5", 100.0 * shares, found)

    def reference(table, work):
        its = of("reduced")
        table.add("reference", "R-hat of predictions, largest", 0, its.reference[1])
        table.add("reference", "sd of predictions, mean", 0, its.reference[0].mean())

    def tuned(which, tuner, name):
        def piece(table, work):
            its, label = of(which), series(which, tuner)
            arm = its.choose(tuner, name)
            mamba.add_choice(table, label, name, arm)
            runs = mamba.everywhere(its.evaluate, [(name, arm, seed) for seed in range(s["runs"])])
            mamba.add_measures(table, label, name, runs)
            places = s["passes"] * np.arange(1, BUDGETS + 1) / BUDGETS
            mamba.add_curve(table, label, name, places, [run["curve"] for run in runs])

        return piece

    found = {"F4": f4, "F5": f5, "reference": reference}
    return found | {
        f"{which}, {tuner}, {name}": tuned(which, tuner, name)
        for which in s["problems"]
        for tuner in TUNERS
        for name in NAMES
    }


def criteria(table, s):
    rows = mamba.agreement(table, "F4", Row, evidence=NOISY) + mamba.agreement(table, "F5", Row, evidence=NOISY)
    for which in s["problems"]:
        bandit, grid, rule = (series(which, tuner) for tuner in TUNERS)
        values = {t: np.array([at(table, "ksd", t, name) for name in NAMES]) for t in (bandit, grid, rule)}
        good = int(np.sum(values[bandit] <= 1.05 * np.minimum(values[grid], values[rule])))
        what = f"T2 {which}: samplers with the least KSD by MAMBA (within 5 %)"
        rows.append(Row(what, f"{good} of 6", ">= 5", good >= 5, DIFFERENT))
        worst = max(at(table, "MSE", bandit, name) for name in NAMES)
        what = f"T7 {which}: mean squared error of draws by MAMBA, largest of the samplers"
        rows.append(Row(what, f"{worst:.3f}", f"< {MEAN_PREDICTOR}, the mean rating", worst < MEAN_PREDICTOR, LONG))
        small = int(np.sum(table.y("chosen batch [%]", bandit) <= 1.0 + 1e-9))
        rows.append(Row(f"T6 {which}: batches of at most 1 % by MAMBA", f"{small} of 6", ">= 4", small >= 4, DIFFERENT))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = values[grid][:4] / values[bandit][:4]
        what = f"T2 {which}: KSD grid / MAMBA, SGLD and SGHMC with and without CV, least"
        rows.append(Row(what, f"{np.nanmin(ratio):.2f}", "> 1", np.nanmin(ratio) > 1.0, DIFFERENT))
        some = [series(which, tuner) for tuner in TUNERS]
        rows += mamba.choices(table, some, Row)
        for figure in ("ksd", "MSE", "rMSE of the mean", "samples") + (("xi",) if which == "reduced" else ()):
            rows += mamba.measured(table, figure, some, Row, digits=6 if figure == "samples" else 3)
    for tuner, published in PUBLISHED.items():
        rows.append(Row(f"T2 as published, after 20 s, {tuner}", " ".join(map(str, published))))
    rhat = table.value("reference", "R-hat of predictions, largest")
    return [*rows, Row("T2 reduced: R-hat of the reference's predictions", f"{rhat:.3f}", "< 1.05", rhat < 1.05)]


def curves(table, s):
    return mamba.draw_curves(table, tuners(s), "KSD", f"{main_one(s)} problem, {s['runs']} runs")


def estimators(table, s):
    return mamba.draw_estimates(table, f"SGLD, {main_one(s)} problem; left: batches of 1 %; right: one step")


def measures(table, s):
    return mamba.draw_measures(table, tuners(s), [("ksd", "KSD", 1.0), ("MSE", "squared error of draws", 1.0)])


STUDY = common.Study(
    name="pmf_mamba",
    quick={
        "seed": 0, "problems": ["reduced"], "runs": 2, "budget": 10, "scored": 20, "grid passes": 10, "passes": 20,
        "kept": 40, "every": 6, "steps F4": 200, "passes F5": 3, "HMC": 300, "descent": 300,
    },
    full={
        "seed": 0, "problems": ["reduced", "whole"], "runs": 3, "budget": 30, "scored": 30, "grid passes": 30,
        "passes": 200, "kept": 60, "every": 1, "steps F4": 600, "passes F5": 10, "HMC": 20_000, "descent": 1_500,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"": curves, "f4_f5": estimators, "t2": measures},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
