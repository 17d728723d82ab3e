"""Samplers in one learnt metric: effective draws per gradient on published posteriors.

    python -m tests.benchmarks.candidates FOLDER [--only NAME …] [--gradients 20000] [--seed 1] [--samplers NAME …]

FOLDER is that of `tests.benchmarks.own_models`. For each posterior starts and metric are learnt once, and each sampler
of `SAMPLERS` then runs in it, four chains, for so many gradients in all, their own adaptation counted, the learning of
the metric not: it is the same for all.

A row is a posterior; an entry is the least number of effective draws per 1,000 gradients, over means and standard
deviations of all unconstrained coordinates, by the error of the exact path. In brackets the largest error of a mean, in
reference sds, of natural parameters, which are those of the reference. At the end geometric means, relative to HMC.
"""

import argparse
import json
import logging
import math
import pathlib
import warnings

import numpy as np

import discrete
import pdmp
from pdmp.automatic.metric import learn_metric
from pdmp.automatic.preparing import named, settle
from pdmp.automatic.start import find_starts
from tests.benchmarks.own_models import PROGRAMS, natural

#: By label: the class, its options, and whether it gets variances alone.
SAMPLERS = {
    "HMC": (pdmp.HMC, {}, False),
    "BPS": (pdmp.BPS, {}, False),
    "chain": (pdmp.ForwardEventChain, {}, False),
    "ZigZag dense": (pdmp.ZigZag, {}, False),
    "ZigZag speeds": (pdmp.ZigZag, {}, True),
    "Boomerang": (pdmp.Boomerang, {}, False),
    "Boomerang grid": (pdmp.Boomerang, {"thinning": "grid"}, False),
    "chain grid": (pdmp.ForwardEventChain, {"thinning": "grid"}, False),
    "MALA": (discrete.MALA, {}, False),
    "Barker": (discrete.Barker, {}, False),
    "BAOAB": (discrete.BAOAB, {}, False),
}


def prepared(model, seed):
    """Starts and metric, as `pdmp.auto` learns them."""
    for_starts, for_metric = np.random.SeedSequence(seed).spawn(2)
    starts = find_starts(model, 4, np.random.default_rng(for_starts))
    return learn_metric(model, starts, for_metric)


def measured(model, metric, sampler, gradients, seed):
    """(effective draws per 1,000 gradients, the run)."""
    make, options, alone = sampler
    learnt = metric.diagonal() if alone else metric
    if make is pdmp.HMC:
        options = {"duration": 2.0 if metric.far else 0.8}
    process = named(make, model, learnt, dict(options))
    process, learnt, spent = settle(process, learnt, np.random.SeedSequence(seed + 100))
    each = (gradients - spent) / 4
    run = pdmp.sample(process, gradients=each, chains=4, initial=learnt.points, seed=seed, warmup=0.05)
    found = run.effective_draws()
    used = spent + run.stats["data_terms"] / max(model.n_data, 1)
    return 1e3 * min(found["mean"].min(), found["sd"].min()) / used, run


def largest_error(model, run, reference):
    """Of the means, in reference sds."""
    names, moments = list(reference), list(reference.values())
    draws = natural(model, run.draws(1_000), names).reshape(-1, len(names))
    return float(max(abs(m - p["mean"]) / p["sd"] for m, p in zip(draws.mean(axis=0), moments, strict=True)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--samplers", nargs="*", default=list(SAMPLERS))
    parser.add_argument("--gradients", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    references = json.loads((options.folder / "reference.json").read_text())
    table = {}
    print(f"{'':28s}" + "".join(f"{name:>16s}" for name in options.samplers))
    for posterior, program in PROGRAMS.items():
        if options.only and not any(part in posterior for part in options.only):
            continue
        reference = references[posterior]
        data = json.loads((options.folder / "data" / f"{reference['data']}.json").read_text())
        model = pdmp.models.from_stan(program, data)
        print(f"{posterior[:22]:23s}{model.dim:4d} ", end="", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            metric = prepared(model, options.seed)
            for name in options.samplers:
                try:
                    rate, run = measured(model, metric, SAMPLERS[name], options.gradients, options.seed)
                    error = largest_error(model, run, reference["parameters"])
                    table[posterior, name] = rate
                    print(f"{rate:9.1f} ({error:4.2f})", end="", flush=True)
                except (pdmp.SamplingError, ValueError) as error:
                    print(f"{type(error).__name__:>16s}", end="", flush=True)
        print(flush=True)
    for name in options.samplers:
        ratios = [rate / table[p, "HMC"] for (p, s), rate in table.items() if s == name and (p, "HMC") in table]
        if ratios:
            print(f"{name}: geometric mean over HMC's {math.exp(np.mean(np.log(ratios))):.2f}, of {len(ratios)}")


if __name__ == "__main__":
    main()
