"""Writes README.md of this folder: a picture and a paragraph of each of the five papers, and a row for each figure
and table of it, from the results of the scripts.

    python examples/papers/_page.py

Outcome, number, minutes and the list of runs come from results/NAME.json, the claims and the paragraphs are here. A
row's outcome is that of all criteria with its label, as the scripts print them.
"""

from __future__ import annotations

import json
import pathlib
import re
import tomllib
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent
PAGE = HERE / "README.md"


class Paper(NamedTuple):
    """A paper with one picture of the results, and what was found in a paragraph."""

    title: str
    picture: str
    found: str


PAPERS = {
    "000": Paper(
        "Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics",
        "barker_f2",
        "SGBD moves each coordinate by a step whose direction, not its length, depends on the noisy gradient. On "
        "skewed targets its bias stays small where that of SGLD explodes (F2a), on Sepsis it mixes faster (F11), and "
        "on Arrhythmia its test loss is the smaller one at every effective size (F15). Six claims do not hold in "
        "every criterion: the corrected probability of a move is off further than allowed in some coordinates (F1, "
        "F8), at an effective size of 2,000 the variances of corrected SGBD are more biased than those of corrected "
        "SGLD (F4), with skewed covariates SGLD is sometimes less biased than SGBD (F10), on Sepsis neither SGBD nor "
        "its smaller step has the smallest test loss (F13), and among the Poisson factorisations e-SGBD is not the "
        "best (F16).",
    ),
    "001": Paper(
        "Bayesian learning by stochastic gradient and SGLD, a handout on Welling & Teh (2011)",
        "sgd",
        "SGD settles near the maximum of the likelihood; SGLD, which adds noise, samples around it, but too widely. "
        "Its width at batches of 100 (F4.2) and the effect of the temperature (F4.3) are those of the handout. SGD "
        "stays further from the maximum than the criterion allows (F4.1).",
    ),
    "002": Paper(
        "Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, supplement",
        "hyperboloid",
        "SBPS bounces by gradients of mini-batches, under a bound that it predicts from those it has seen. It stays "
        "in the narrow ridge and goes far (F1), and the bound is violated less often the larger its margin of k "
        "standard deviations is (F5). Within 1,000 epochs the four modes are not visited evenly enough, and with the "
        "sum of densities as printed no path crosses from one to another (F2). The time between bounces is a little "
        "less linear in the batch size than the criterion asks, and autocorrelations per datum differ by up to 2.2 "
        "times, where twice is allowed (F4).",
    ),
    "003": Paper(
        "Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient MCMC",
        "logistic_mamba_t1",
        "MAMBA chooses steps and batch sizes by a race between settings, judged by a Stein discrepancy. For the "
        "logistic regression its discrepancy is the least, or within 10 % of it, for all six samplers (T1), and it "
        "chooses small batches (T4); for the factorisation of reduced data that holds for five of six within 5 %, and "
        "grid search is better there by up to 2 % (F2, T2); the squared error of some draws there is infinite (T7). "
        "Discrepancies by mini-batches rank batch sizes as those by all data do for the logistic regression only "
        "(F5); over steps they do for all three, but the minimum for the factorisation is two steps of the grid away "
        "(F4). SGNHT does not diverge at the steps that the paper names (T8).",
    ),
    "004": Paper(
        "Durmus, Simsekli, Moulines, Badeau & Richard (2016), Stochastic gradient Richardson-Romberg MCMC",
        "richardson_f2",
        "The extrapolation runs two chains, one with half the step, and combines their averages such that the first "
        "order of the bias cancels. The orders γ and γ² (F2) and the best decays of the step (F3) are those of the "
        "paper. At the paper's step the bias of the variance is nearly ten times what is claimed (F1a), the mean "
        "squared error is not the square of SGLD's (F1b), SGRRHMC is better than SGHMC at the smallest step too (F4), "
        "and on MovieLens SGRRLD is behind SGLD with twice its steps (F5).",
    ),
}
OWN = "every_sampler"  #: the script of a figure that is in none of the papers
INTRODUCTION = """\
# The figures and tables of five papers

Each script repeats a group of figures with the library's own samplers and models, prints every criterion with what was
measured, and ends with exit code 1 if one is not met. `--quick` takes about a minute and shows how it works; what
counts is the full preset, `python examples/papers/NAME.py --output examples/papers/results`. The same command resumes
an interrupted run. The data are read by `pdmp.data`, from the folder `PDMP_DATA` or by a download.

"Reproduced" means that all criteria of a row are met by the full preset, "partly" that some are; the script says of
each that is not why, and `results/NAME.json` has them all. What is found is one of them, with its criterion in
brackets, and up to two more that are not met.
Minutes are those of the whole script. `python examples/papers/_page.py` writes this page from these files.
"""


class Claim(NamedTuple):
    """A figure or table: what is claimed, the labels of its criteria by script, and the row whose number is shown."""

    figure: str
    claim: str
    criteria: dict[str, str]
    number: str


ARRHYTHMIA, SEPSIS, BARKER, SBPS, RICHARDSON = "arrhythmia", "sepsis", "barker", "sbps", "richardson"
LOGISTIC, PMF, BNN = "logistic_mamba", "pmf_mamba", "bnn_mamba"
CLAIMS = [
    Claim("000-F1", "The plain estimate of Barker's probability shrinks to ½; the corrected one is right up to its breaking point.", {ARRHYTHMIA: "F1"}, "coordinate 63, |z|"),
    Claim("000-F2a", "SGLD's bias explodes with the skewness of the target, SGBD's stays small.", {BARKER: "F2a"}, "SGLD, σ = 0.5 sd, α = 99.5"),
    Claim("000-F2b", "The density of SGLD's draws is far off at a large skewness and step, SGBD's is not.", {BARKER: "F2b"}, "α = 20, σ = 0.5 sd"),
    Claim("000-F3", "Sepsis: SGLD inflates the first coordinate, more with the larger step; SGBD modestly.", {SEPSIS: "F3"}, "SGLD σ = 4e-4"),
    Claim("000-F4", "Arrhythmia: where the effective size is large SGBD has less bias than SGLD.", {ARRHYTHMIA: "F4"}, "bias of variance at a median ESS of .*: v-SGBD"),
    Claim("000-F5", "Arrhythmia: SGBD has the smaller test loss in each variant, c-SGBD the smallest.", {ARRHYTHMIA: "F5"}, "final log-loss, .*: c-SGBD"),
    Claim("000-F6", "MEG: all samplers are nearly equal, c-SGBD is highest.", {"meg": "F6"}, "c-SGBD's is highest"),
    Claim("000-F7", "MovieLens, BPMF: SGBD is better than SGLD; v-SGBD has the best averages, about .97.", {"bpmf": "F7"}, "published: about 0.97"),
    Claim("000-F8", "As F1, in four coordinates.", {ARRHYTHMIA: "F8"}, "median of"),
    Claim("000-F9", "With much noise and large steps the corrected SGBD is better; Barker is more robust than SGLD.", {BARKER: "F9|F9a|F9b"}, "F9b"),
    Claim("000-F10", "Logistic regression with skewed covariates: SGLD fails also with small steps, SGBD's bias is bounded.", {BARKER: "F10"}, "σ = 0.2 sd, s >= 5"),
    Claim("000-F11", "Sepsis, all coordinates: SGBD's means are right, and it mixes faster.", {SEPSIS: "F11"}, "ESS of 2 to 4: SGBD small"),
    Claim("000-F12", "Sepsis: SGBD's marginals are close in coordinates 2 to 4.", {SEPSIS: "F12"}, "SGBD large"),
    Claim("000-F13", "Sepsis: smaller steps have the smaller test loss, SGBD's the smallest.", {SEPSIS: "F13"}, "SGBD is best"),
    Claim("000-F14", "Sepsis, a step for each coordinate: SGBD matches the marginals, SGLD inflates them.", {SEPSIS: "F14"}, "SGBD σ = 0.2 sd"),
    Claim("000-F15", "Arrhythmia: SGBD has the smaller test loss at every effective size.", {ARRHYTHMIA: "F15"}, "v-SGBD"),
    Claim("000-F16", "MovieLens, PPMF: all samplers are similar, e-SGBD is slightly better.", {"ppmf": "F16"}, "raw: spread"),
    Claim("001-F4.1", "SGD settles at the maximum of the likelihood, and fluctuates less with larger batches.", {"sgd": "F4.1"}, "max"),
    Claim("001-F4.2", "SGLD is too wide, less so with larger batches.", {"sgd": "F4.2"}, "m = 100: sd"),
    Claim("001-F4.3", "A higher temperature makes it wider.", {"sgd": "F4.3"}, "T = 10 / sd"),
    Claim("002-F1", "SBPS stays in a narrow curved ridge and goes far; SGLD and mSGNHT leave it, or are slow.", {"hyperboloid": "F1"}, "the square is that"),
    Claim("002-F2", "SBPS visits all four modes.", {"modes": "F2"}, "crossings per unit of time"),
    Claim("002-F3", "SGLD's step of .1 is the largest with a variance of the loss below Laplace's.", {SBPS: "F3"}, "largest step"),
    Claim("002-F4", "The time between bounces is linear in the batch size; autocorrelations per datum are similar.", {SBPS: "F4"}, "linear in n"),
    Claim("002-F5", "Violations of the bound fall with k; small k is biased, large k slow.", {SBPS: "F5"}, "violations / proposal, as published"),
    Claim("003-F1", "Logistic regression: the discrepancy falls with the budget; SGHMC with γ = 1/N fails.", {LOGISTIC: "F1"}, "slope of log KSD"),
    Claim("003-F2", "PMF: MAMBA's discrepancy is the smallest.", {PMF: "T2"}, "least KSD by MAMBA"),
    Claim("003-F3", "Neural network: MAMBA's calibration error is the smallest, mostly.", {BNN: "T3"}, "SGLD: ECE"),
    Claim("003-F4", "The discrepancy by mini-batches has its minimum where that by all data has it, over steps.", {LOGISTIC: "F4", PMF: "F4", BNN: "F4"}, "batch, every sample: rank"),
    Claim("003-F5", "The same over batch sizes.", {LOGISTIC: "F5", PMF: "F5", BNN: "F5"}, "batch, every sample: rank"),
    Claim("003-T1", "Logistic regression: MAMBA has the least discrepancy, and control variates lessen it.", {LOGISTIC: "T1"}, "samplers with the least"),
    Claim("003-T2", "PMF: MAMBA has the least discrepancy for all samplers.", {PMF: "T2"}, "least KSD by MAMBA"),
    Claim("003-T3", "Neural network: calibration errors by tuner.", {BNN: "T3"}, "SGLD: ECE"),
    Claim("003-T4", "Logistic regression: MAMBA chooses small batches, and steps as printed.", {LOGISTIC: "T4"}, "M-KSD: batches"),
    Claim("003-T5", "Logistic regression: the accuracy is the same everywhere.", {LOGISTIC: "T5"}, "accuracies"),
    Claim("003-T6", "PMF: MAMBA chooses small batches.", {PMF: "T6"}, "batches"),
    Claim("003-T7", "PMF: errors of predictions below that of the mean rating.", {PMF: "T7"}, "mean squared error"),
    Claim("003-T8", "Neural network: small batches are chosen; SGNHT is unstable from a step of 10^-4.5 on.", {BNN: "T8"}, "SGNHT diverges"),
    Claim("003-T9", "Neural network: accuracies and calibration.", {BNN: "T3"}, "SGLD: ECE"),
    Claim("004-F1a", "The variance by SGLD is off by some 10⁻², by SGRRLD by some 10⁻⁴.", {RICHARDSON: "F1a"}, "SGRRLD: bias of the variance, the paper's"),
    Claim("004-F1b", "SGRRLD's mean squared error is the square of SGLD's, in every dimension.", {RICHARDSON: "F1b"}, "slope of log MSE"),
    Claim("004-F2", "Bias of order γ and γ², and the best steps.", {RICHARDSON: "F2"}, "SGRRLD: slope"),
    Claim("004-F3", "Steps γ = c K^-a are best for a = 1/3 (bias) and 1/5 (mean squared error).", {RICHARDSON: "F3"}, "SGRRLD, bias: best a"),
    Claim("004-F4", "SGRRHMC is better than SGHMC for large steps and worse for small ones.", {RICHARDSON: "F4"}, "top third"),
    Claim("004-F5", "MovieLens: SGRRLD has SGLD's accuracy in half the time.", {"matrix_factorisation": "F5"}, "1M, γ = 2e-06: RMSE"),
]  # fmt: skip


LABEL = r"[FT]\d+(?:\.\d)?[a-z]?"


def labels(what: str) -> list[str]:
    """Those that a criterion begins with: "F1, F8 coordinate 63" is one of figures 1 and 8."""
    found = re.match(rf"{LABEL}(, {LABEL})*(?=,? )", what)
    return found[0].split(", ") if found else []


def results(name: str) -> dict | None:
    """What a script has found, if it has run."""
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def rows(about: dict, pattern: str) -> list[dict]:
    """The criteria of a run with such a label."""
    return [r for r in about["criteria"] if any(re.fullmatch(pattern, label) for label in labels(r["what"]))]


def outcome(judged: list[bool], missing: list[str], scripts: int) -> str:
    """In words; `missing` are the scripts without a full run."""
    met, n = sum(judged), len(judged)
    if missing:
        which = "" if len(missing) == scripts else f" of {', '.join(missing)}"
        return f"no full run yet{which}" + (f"; {met} of {n} criteria met so far" if n else "")
    if not n:
        return "no verdict"
    return "reproduced" if met == n else "not reproduced" if not met else f"partly: {met} of {n}"


def shown(row: dict) -> str:
    """What was measured, with its criterion."""
    what = row["what"][len(", ".join(labels(row["what"]))) :].lstrip(", ")
    return f"{what}: {row['measured']}" + (f" [{row['criterion']}]" if row["criterion"] else "")


def entry(claim: Claim) -> tuple[str, ...]:
    """A row of the page."""
    judged, numbers, minutes, missing = [], [], [], []
    for name, pattern in claim.criteria.items():
        about = results(name)
        if about is None or about["preset"] != "full":
            missing.append(name)
        if about is not None:
            found = rows(about, pattern)
            judged += [r["passed"] for r in found if r["passed"] is not None]
            chosen = next(r for r in found if re.search(claim.number, r["what"]))
            failed = [r for r in found if r["passed"] is False and r is not chosen]
            numbers += [("**not met:** " if r["passed"] is False else "") + shown(r) for r in (chosen, *failed[:2])]
            minutes.append(f"{about['minutes']:g}")
    scripts = ", ".join(f"[{name}]({name}.py)" for name in claim.criteria)
    text = "; ".join(dict.fromkeys(numbers)).replace("|", "\\|")
    verdict = outcome(judged, missing, len(claim.criteria))
    return claim.figure, claim.claim, verdict, text, scripts, ", ".join(minutes)


def table(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """Of Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ("---",) * len(header), *lines]) + "\n"


def own_figure() -> str:
    """What `OWN` has found: its rows as they are."""
    about = results(OWN)
    text = (
        f"## A figure that none of the papers has\n\nThe samplers of all five on three posteriors: [{OWN}]({OWN}.py).\n"
    )
    if about is None:
        return text + "No full run yet.\n"
    lines = [(row["what"], row["measured"], row["criterion"]) for row in about["criteria"]]
    told = tomllib.loads((HERE / "pictures.toml").read_text(encoding="utf-8"))
    pictures = "".join(f"\n![{told[name]}](results/{name}.png)\n" for name in (OWN, f"{OWN}_seconds"))
    return text + pictures + "\n" + table(("what", "found", "criterion"), lines)


def page() -> str:
    """The whole of README.md."""
    entries = [entry(claim) for claim in CLAIMS]
    kinds = "reproduced", "partly", "not reproduced", "no full run yet"
    counts = {kind: sum(e[2].startswith(kind) for e in entries) for kind in kinds}
    whole = (
        f"Of {len(entries)} figures and tables: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) + "."
    )
    parts = [INTRODUCTION, whole + "\n"]
    told = tomllib.loads((HERE / "pictures.toml").read_text(encoding="utf-8"))
    for paper, (title, picture, found) in PAPERS.items():
        parts.append(f"## {title}\n\n![{told[picture]}](results/{picture}.png)\n\n{found}\n")
        header = "figure", "claim", "outcome", "found", "script", "minutes"
        parts.append(table(header, [(e[0].partition("-")[2], *e[1:]) for e in entries if e[0].startswith(paper)]))
    parts.append(own_figure())
    runs = []
    for name in dict.fromkeys([*(name for claim in CLAIMS for name in claim.criteria), OWN]):
        about = results(name)
        if about is None:
            runs.append((name, "none yet", "", "", "", ""))
            continue
        settings = ", ".join(f"{key} {value}" for key, value in about["settings"].items())
        commit = about["commit"][:10] + about["commit"][40:]
        runs.append((name, about["preset"], settings, about["date"], commit, about["machine"]))
    parts.append("## The runs\n")
    parts.append(table(("script", "preset", "settings", "date", "commit", "machine"), runs))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
