"""hpo-trainer --memory-suite on emulated cards, each with torch's allocator as it is and with expandable segments:
predicted against measured peaks, limits around the need, out-of-memory errors in a row."""

import dataclasses
import os
import statistics
from concurrent.futures import ThreadPoolExecutor

from emulated import card as emulated_card
import figures

SECONDS = 900
CONFIGURATIONS = 64
EXPANDABLE_PAGE = 2 << 20
STORM_CYCLES = 1000
QUICK_STORM_CYCLES = 100


@dataclasses.dataclass
class Run:
    card: str
    allocator: str  # of emulated_card.ALLOCATORS
    lines: list

    def of_type(self, name):
        return [line for line in self.lines if line["type"] == name]

    @property
    def name(self):
        return f"{self.card} {self.allocator}"


def run_one(build, card, allocator, cycles, folder):
    traces = folder / f"{card}-{allocator}"
    traces.mkdir(parents=True)
    command = emulated_card.on_card(
        build, card, os.path.join(build, "bin", "hpo-trainer"), "--memory-suite", str(traces), "--storm-cycles",
        str(cycles), "--device", "cuda:0", "--threads", "1", "--log-level", "off")
    printed = emulated_card.run(command, SECONDS, emulated_card.ALLOCATORS[allocator])
    return Run(card, allocator, emulated_card.json_lines(printed))


def run(build, cards, cycles, folder, at_once):
    """[Run]: each card with each allocator."""
    with ThreadPoolExecutor(at_once) as pool:
        runs = [pool.submit(run_one, build, card, allocator, cycles, folder)
                for card in cards for allocator in emulated_card.ALLOCATORS]
        return [one.result() for one in runs]


# ---- What is read out of the lines --------------------------------------------------------------


def error(line, what):
    """Signed, relative to what was measured; of reserved bytes in the order in which the trainer's passes run."""
    return line[f"predicted_{what}_bytes"] / line[f"measured_{what}_bytes"] - 1


def configurations(runs):
    """Those that completed, with their run."""
    return [(run, line) for run in runs for line in run.of_type("configuration") if line["completed"]]


def ladder(runs):
    return [(run, step) for run in runs for step in run.of_type("ladder")]


def did_not_fit(runs):
    """Configurations that ran out of memory on their whole card; and of these, which were to fit."""
    for run in runs:
        card = next((line["device"] for line in run.of_type("profile")), {})
        for line in run.of_type("configuration"):
            if not line["completed"]:
                yield run, line, line["predicted_reserved_bytes"] + card["base_bytes"] <= card["total_bytes"]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def storm_drifts(run):
    """By how many live and reserved bytes the device differs after all errors."""
    storm = run.of_type("storm")[0]
    return abs(storm["live_drift_bytes"]), abs(storm["reserved_drift_bytes"])


def is_whole(run, cycles):
    """Nothing was skipped, and every limit of the storm was met and left at the baseline."""
    storms = run.of_type("storm")
    return (len(run.of_type("configuration")) >= CONFIGURATIONS and not run.of_type("skipped") and len(run.of_type("done")) == 1
            and len(storms) == 1 and storms[0]["met"] == storms[0]["at_baseline"] == storms[0]["cycles"] == cycles)


def told(runs):
    """Lines for people, the largest errors first."""
    for what, shown_above in (("live", 0.0005), ("reserved", 0.003)):
        for run, line in sorted(configurations(runs), key=lambda pair: -abs(error(pair[1], what))):
            if abs(error(line, what)) > shown_above:
                fragile = ", fragile" if line["fragile"] else ""
                yield f"{what} {100 * error(line, what):+.3f} %{fragile}: {run.name}: {line['name']}"
    for run, step in ladder(runs):
        if step["expected"] != step["ran"]:
            what = "ran although refused" if step["ran"] else "ran out although admitted"
            yield f"{what}: {run.name}: {step['name']} at {step['share']} of its need"
    for run, line, was_to_fit in did_not_fit(runs):
        if was_to_fit:
            yield f"ran out although admitted: {run.name}: {line['name']} on the whole card"
    for run in runs:
        live, reserved = storm_drifts(run)
        if live or reserved:
            yield f"storm: live {live} B, reserved {reserved} B: {run.name}"


def judged(runs, cycles):
    measured = [line for _, line in configurations(runs)]
    live = [100 * abs(error(line, "live")) for line in measured]
    reserved = [100 * abs(error(line, "reserved")) for line in measured]
    steps = [step for _, step in ladder(runs)]
    right = 100 * sum(step["expected"] == step["ran"] for step in steps) / len(steps)
    ran_out = sum(step["expected"] and not step["ran"] for step in steps)
    ran_out += sum(was_to_fit for *_, was_to_fit in did_not_fit(runs))
    refused = 100 * sum(step["ran"] and not step["expected"] for step in steps) / len(steps)
    drifts = [(run.allocator, *storm_drifts(run)) for run in runs]
    whole = sum(is_whole(run, cycles) for run in runs)
    return [
        figures.figure("suite_runs_whole", whole, "runs", f"all of {len(runs)}", whole == len(runs)),
        figures.at_most("suite_live_worst_error", round(max(live), 4), "%", 0.5),
        figures.at_most("suite_reserved_median_error", round(statistics.median(reserved), 4), "%", 0.3),
        figures.at_most("suite_reserved_p95_error", round(percentile(reserved, 0.95), 4), "%", 2),
        figures.at_least("suite_ladder_right_share", round(right, 3), "%", 99.5),
        figures.at_most("suite_admitted_ran_out", ran_out, "limits", 0),
        figures.at_most("suite_refused_though_it_runs", round(refused, 3), "%", 0.5),
        figures.at_most("storm_drift_bytes", max(live for _, live, _ in drifts), "B live", 0),
        figures.at_most("storm_drift_bytes_reserved",
                        max((reserved for kind, _, reserved in drifts if kind == "default"), default=0),
                        "B reserved", 0),
        figures.at_most("storm_drift_bytes_expandable",
                        max((reserved for kind, _, reserved in drifts if kind == "expandable"), default=0),
                        "B reserved", EXPANDABLE_PAGE),
    ]
