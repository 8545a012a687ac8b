"""The rows of docs/gpu/OWED.md: what each wants to see, and what was seen."""

import dataclasses

MIB = 1 << 20

# What a peak may be above its prediction.
LARGEST_RATIO = 1.001
# The job whose loss is compared, how the names of those end that it is compared with, and by how much
# they may differ.
LOSSES = {"precision": ("fp32", "", 0.05),
          "unpadded": ("padded fp32, dropout 0.0", "dropout 0.0", 0.05)}

# Key -> the row's words, as the tables of OWED.md have them.
WANTED = {
    "module": "`lib/hpo_cuda.so` loads LibTorch's CUDA libraries at run time",
    "study": "a study on `--gpu 0` with a `bert-large` configuration, `model.init: random`",
    "replanned": "a forced OOM is re-planned and finishes",
    "baseline": "live bytes return to the baseline after each trial",
    "nvml": "NVML's readings against `nvidia-smi`",
    "estimate": "estimate against measured peaks of the study's trials",
    "all": "`--gpu all`: one worker a card",
    "precision": "`train.precision` tf32, bf16, fp16, and `memory.checkpoint_every`",
    "adapters": "adapters: `lora.rank`, and `lora.base` fp32, bf16, nf4",
    "families": "families other than BERT; regression, language modelling, multi-query, spans",
    "unpadded": "`memory.unpadded: true` in fp32, bf16 and fp16, with dropout and without",
    "small_batches": "losses read late, batches from pinned pages: steps a second of small batches",
    "clear_cache": "what `memory.clear_cache_every: 1` costs",
    "resumed": "a trial continued from a checkpoint of a card",
    "replay": "decisions by replay: predicted against measured, `gpu_memory_suite`",
    "profile": "base bytes and workspaces of the device profile",
}


@dataclasses.dataclass
class Row:
    key: str
    seen: str
    as_expected: bool

    def cells(self):
        return [WANTED[self.key], self.seen.replace("|", "/"), "yes" if self.as_expected else "NO"]


def mib(count):
    return f"{count / MIB:,.0f} MiB"


def ratio_text(ratios):
    return f"used / predicted {min(ratios):.3f} to {max(ratios):.3f}" if ratios else "no prediction"


def attempts_of(trials):
    return [attempt for trial in trials for attempt in trial.get("attempts") or []]


def used_over_predicted(attempts):
    """Reserved peak over prediction, of the attempts that have both: one that failed early has
    neither."""
    pairs = [((attempt.get("memory") or {}).get("reserved_peak_bytes"),
              attempt.get("predicted_bytes")) for attempt in attempts]
    return [used / predicted for used, predicted in pairs if used and predicted]


def study_rows(trials):
    ordinary = [trial for trial in trials if not trial.get("demonstration")]
    forced = [trial for trial in trials if trial.get("demonstration")]
    attempts = attempts_of(trials)
    states = [trial["state"] for trial in ordinary]
    replans = [(attempt.get("memory") or {}).get("num_replans") or 0
               for attempt in attempts_of(forced)]
    baselines = {attempt["memory"]["baseline_bytes"] for attempt in attempts
                 if (attempt.get("memory") or {}).get("baseline_bytes")}
    ratios = used_over_predicted(attempts)
    ended = [trial["state"] for trial in trials if trial["state"] != "WAITING"]
    return [
        Row("module", f"outcomes of {len(ended)} trials", bool(ended) and bool(baselines)),
        Row("study", f"{states.count('COMPLETED')} of {len(states)} completed",
            bool(states) and set(states) == {"COMPLETED"}),
        Row("replanned", f"{', '.join(trial['state'] for trial in forced) or 'not run'}, "
            f"{max(replans, default=0)} re-plans",
            bool(forced) and forced[0]["state"] == "COMPLETED" and max(replans, default=0) >= 1),
        Row("baseline", "baseline " + (", ".join(map(mib, sorted(baselines))) or "unknown"),
            len(baselines) == 1),
        Row("estimate", ratio_text(ratios), bool(ratios) and max(ratios) <= 1.0),
    ]


def peaks_of(job):
    """Used and predicted of a job's probe and end: live bytes, reserved bytes; those that it has."""
    probe = (job.of("memory", stage="Probe") or [{}])[-1]
    pairs = {"live": (probe.get("peak_bytes"), probe.get("predicted_bytes")),
             "reserved": (job.memory().get("reserved_peak_bytes"),
                          probe.get("predicted_reserved_bytes"))}
    return {kind: used / predicted for kind, (used, predicted) in pairs.items()
            if used and predicted}


def job_row(key, ended, left_out=()):
    """One row of several jobs: [(name, gpu_checks.programs.Ended)]; names of those that there was
    no time for."""
    wrong = [f"no time for {name}" for name in left_out]
    ratios = []
    num_completed = 0
    for name, job in ended:
        kind, text = job.outcome()
        num_completed += kind == "completed"
        if kind != "completed":
            wrong.append(f"{name}: {kind} {text}".strip())
        peaks = peaks_of(job)
        ratios += peaks.values()
        wrong += [f"{name}: {peak} {ratio:.4f} of what was predicted"
                  for peak, ratio in peaks.items() if ratio > LARGEST_RATIO]
    seen = f"{num_completed} of {len(ended)} completed; {ratio_text(ratios)}"
    return Row(key, "; ".join([seen, *wrong]), bool(ended) and not wrong)


def with_numbers(row, ended):
    """What a card alone can show: losses near that of one of them, and speed."""
    base, ending, tolerance = LOSSES.get(row.key, ("", "", 0))
    losses = {name: job.metric("loss") for name, job in ended
              if job.metric("loss") is not None and name.endswith(ending)}
    if base in losses:
        row.seen += "; loss " + ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
        row.as_expected &= all(abs(loss - losses[base]) <= tolerance for loss in losses.values())
    speeds = [f"{name} {job.steps() / job.seconds():.1f}" for name, job in ended if job.seconds()]
    if row.key in ("small_batches", "clear_cache", "unpadded", "precision") and speeds:
        row.seen += "; steps a second: " + ", ".join(speeds)
    return row


def profile_row(profile):
    return Row("profile", f"base {mib(profile['base_bytes'])}, workspaces "
               f"{mib(profile['workspace_bytes'])}, attention {profile['attention']}, source "
               f"{profile['source']}", profile["source"] == "measured")


def nvml_row(ours, cards):
    """`ours`: the cards of `hpo memory status`; `cards`: (name, driver, MiB) of nvidia-smi."""
    if not cards:
        return Row("nvml", "no nvidia-smi", False)
    same = len(ours) == len(cards) and all(
        (name, driver) == (card["name"], card["driver"])
        and abs(int(total) - card["total_bytes"] / MIB) <= 1
        for card, (name, driver, total) in zip(ours, cards))
    shown = ", ".join(f"{card['name']}, {mib(card['total_bytes'])}, driver {card['driver']}"
                      for card in ours)
    told = ", ".join(f"{name}, {total} MiB, driver {driver}" for name, driver, total in cards)
    return Row("nvml", f"{shown or 'no card'}; nvidia-smi: {told}", same)


def table(rows):
    lines = ["| what | seen | as expected |", "|---|---|---|"]
    return lines + ["| " + " | ".join(row.cells()) + " |" for row in rows]
