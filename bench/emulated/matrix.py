"""Jobs of every family, precision, technique and task on emulated cards: whether they complete, and what they used
against what the trainer predicted for them. Both sides hold the baseline: what the device held before the trial."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

from emulated import card as emulated_card
from emulated import jobs as emulated_jobs
import figures

JOB_SECONDS = 300  # of a machine that has other work: most take a second or two of a processor


@dataclasses.dataclass
class Result:
    name: str
    completed: bool
    why: str = ""
    phase: str = ""  # in which most was live
    # Bytes, or None where the trainer does not say.
    live: "int | None" = None
    predicted_live: "int | None" = None
    reserved: "int | None" = None
    predicted_reserved: "int | None" = None

    def excess(self, what):
        """Used above predicted, as a share of what was predicted; negative where less was used."""
        used, predicted = getattr(self, what), getattr(self, "predicted_" + what)
        return used / predicted - 1 if used and predicted else None


def result_of(name, said):
    outcome = said[-1]
    ending = outcome["outcome"] or {"kind": "stopped"}
    if ending["kind"] != "completed":
        why = ending.get("message") or ending.get("error_message") or ending["kind"]
        return Result(name, False, f"{ending['kind']}: {why}".splitlines()[0])
    if not outcome.get("clean", True):
        return Result(name, False, "completed, but memory is left over or the device is lost")
    probe = next((line for line in said if line.get("stage") == "Probe"), {})
    memory = outcome["memory"]
    return Result(name, True, phase=memory.get("peak_phase", ""), live=memory.get("live_peak_bytes"), predicted_live=probe.get("predicted_bytes"),
                  reserved=memory.get("reserved_peak_bytes"),
                  predicted_reserved=probe.get("predicted_reserved_bytes"))


def run_card(build, card, jobs, folder):
    """One trainer, one job after the other."""
    trainer = emulated_card.Trainer(build, card, folder, JOB_SECONDS)
    results = []
    try:
        for number, job in enumerate(jobs):
            try:
                said = trainer.run(emulated_jobs.message(job, folder, number))
                results.append(result_of(job.name, said))
            except RuntimeError as ended:
                results.append(Result(job.name, False, str(ended)))
    finally:
        trainer.close()
    return results


def run(build, cards, quick, folder, at_once):
    """[Result]: the jobs of these cards; the few of CI where `quick`."""
    chosen = [job for job in emulated_jobs.all_jobs() if job.card in cards and (job.in_ci or not quick)]
    with ThreadPoolExecutor(at_once) as pool:
        runs = []
        for card in sorted({job.card for job in chosen}):
            (folder / card).mkdir(parents=True)
            jobs = [job for job in chosen if job.card == card]
            runs.append(pool.submit(run_card, build, card, jobs, folder / card))
        return [result for one in runs for result in one.result()]


def told(results):
    """Lines for people: jobs that did not complete, then the others, those furthest from their prediction first."""
    for result in results:
        if not result.completed:
            yield f"did not complete: {result.name}: {result.why}"
    measured = [result for result in results if result.completed]
    for result in sorted(measured, key=furthest, reverse=True):
        shares = ", ".join(f"{what} {describe(result.excess(what))}" for what in ("live", "reserved"))
        yield f"used above predicted: {shares}: {result.name} ({result.phase})"


def describe(share):
    return "not predicted" if share is None else f"{100 * share:+.3f} %"


def furthest(result):
    return max(abs(result.excess(what) or 0.0) for what in ("live", "reserved"))


def worst_under_prediction(results):
    """Share; None where a job's prediction is missing."""
    shares = [result.excess(what) for result in results if result.completed for what in ("live", "reserved")]
    return None if not shares or None in shares else max(0.0, *shares)


def judged(results):
    completed = sum(result.completed for result in results)
    worst = worst_under_prediction(results)
    percent = None if worst is None else round(100 * worst, 4)
    return [
        figures.figure("matrix_jobs_completed", completed, "jobs", f"all of {len(results)}",
                       completed == len(results) > 0),
        figures.figure("matrix_worst_under_prediction", percent, "%", "<= 0.1",
                       None if percent is None else percent <= 0.1),
    ]
