"""Server, worker and trainer on emulated cards: studies of which about half does not fit, and what becomes of faults
of a card. The programs that run them are the tests' own (tests/integration)."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from emulated import card as emulated_card
import figures

STUDY_SECONDS = 900
FAULTS_SECONDS = 300
SEED = 1
POLICIES = ("plan", "strict")


def script(build, name, *options, seconds):
    """The JSON line that it ends with, after the lines for people."""
    command = ["env", f"HPO_BIN_DIR={os.path.join(build, 'bin')}", "PYTHONDONTWRITEBYTECODE=1", sys.executable,
               str(emulated_card.ROOT / "tests" / "integration" / name), *options]
    *remarks, last = emulated_card.run(command, seconds, statuses=(0, 3)).splitlines()
    return remarks, emulated_card.json_lines(last)[0]


def run_studies(build, trials, at_once):
    """What each policy's study came to; `trials` of each."""
    with ThreadPoolExecutor(at_once) as pool:
        runs = [pool.submit(script, build, "emulated_study.py", "--policy", policy, "--trials", str(trials), "--seed",
                            str(SEED), seconds=STUDY_SECONDS) for policy in POLICIES]
        return [one.result()[1] for one in runs]


def judged_studies(studies):
    trials = sum(study["trials"] for study in studies)
    ran_out = sum(len(study["ran_out"]) for study in studies)
    refused = sum(len(study["refused_wrongly"]) for study in studies)
    feasible = sum(study["completed"] for study in studies) + refused
    infeasible = [100 * study["refused_share_of_drawn"] for study in studies]
    others = sum(len(study["other_ends"]) for study in studies)
    return [
        figures.at_most("study_oom_share", round(100 * ran_out / trials, 3), "%", 0.5),
        figures.at_most("study_refused_feasible", round(100 * refused / feasible, 3), "%", 1),
        figures.figure("study_infeasible_share", [round(share, 1) for share in infeasible], "% of each policy's draws",
                       "40 to 60", all(40 <= share <= 60 for share in infeasible)),
        figures.at_most("study_failed", others, "trials", 0),
    ]


def told_studies(studies):
    for study in studies:
        for kind in ("ran_out", "refused_wrongly", "other_ends"):
            for trial in study[kind]:
                yield f"{study['policy']}: {kind.replace('_', ' ')}: {trial}"


def run_faults(build):
    """Its lines for people, and the counts."""
    return script(build, "fault_cases.py", seconds=FAULTS_SECONDS)


def judged_faults(counts):
    cases, good = counts["fault_cases"], counts["fault_cases_as_expected"]
    return [figures.figure("fault_cases_as_expected", good, "cases", f"all of {cases}, at least 26",
                           good == cases >= 26)]
