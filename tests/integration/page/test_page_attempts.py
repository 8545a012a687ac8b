"""Attempts that workers really made, on the page: a bar for each of them by worker, and curves with each reported step."""

import collections
import os
import re

from browser import Browser
from harness import BIN, wait_until

TRIALS = 6
PROGRAM = """\
import sys
x = float(sys.argv[1])
print("epoch 1")
if x > 0.5:
    raise KeyError("macro_f1")
print({"macro_f1": x})
"""
PATH = re.compile(r'<path d="([^"]*)"([^>]*)/>')


def drawn_bars(svg):
    """Left, top, right and bottom of each bar of a saved timeline. Bars alone are rectangles that are clipped."""
    rectangles = [list(map(float, re.findall(r"-?[\d.]+", path))) for path, look in PATH.findall(svg)
                  if path.endswith("Z") and "clip-path" in look and 'fill="none"' not in look]
    return [(one[0], one[1], one[4], one[5]) for one in rectangles]


def drawn_curves(svg):
    """Number of points of each curve of a saved picture: lines that are clipped and no mark of a trial's end."""
    return [len(re.findall(r"[ML]", path)) for path, look in PATH.findall(svg)
            if 'stroke-width="1.3"' in look and "clip-path" in look]


class Attempts(Browser):
    """Worker w0 waits for a byte in a FIFO before each measurement of its trial; w1 runs all others meanwhile."""

    STUDY = Browser.STUDY.replace("  y: ", "  fake.measurements: {choices: [2, 5, 9]}\n  y: ")

    def setUp(self):
        super().setUp()
        os.mkfifo(self.folder / "pace")
        # Open for reading and writing: neither end ever waits for the other one.
        self.pace = os.open(self.folder / "pace", os.O_RDWR)
        self.addCleanup(os.close, self.pace)

    def measure(self, times):
        os.write(self.pace, b"x" * times)

    def start_both(self):
        """w0 holds trial 0, the other trials have ended."""
        self.serve()
        self.hpo("enqueue", "--study", "toy", "fake.measurements=9", "x=0.5", "y=0.25")
        self.start_worker("w0", environment={"HPO_FAKE_PACE_FIFO": str(self.folder / "pace")})
        wait_until(lambda: self.trials() and self.trial(0)["state"] == "RUNNING", "trial 0 on w0")
        self.start_worker("w1")
        wait_until(lambda: self.study()["counts"]["completed"] == TRIALS - 1, "the trials of w1")

    def card(self, tab, name):
        return tab.get_by_role("region", name=name, exact=True)

    def numbers(self, card):
        """The rows of a chart's folded table."""
        card.locator("details.numbers > summary").click()
        rows = card.locator("details.numbers tbody tr")
        rows.first.wait_for()
        return [[cell.strip() for cell in row.locator("td").all_inner_texts()] for row in rows.all()]

    def saved(self, tab, name):
        with tab.expect_download() as download:
            self.card(tab, name).get_by_role("button", name=f"Save “{name}” as SVG").click()
        return download.value.path().read_text()

    def steps(self):
        """The steps that each trial has reported, by the server."""
        answers = [self.call("GetTrial", {"study": "toy", "number": number})[1]["trial"] for number in range(TRIALS)]
        return {int(trial.get("number", 0)): [int(one["step"]) for one in trial["measurements"]] for trial in answers}

    def test_timeline_and_curves_grow_with_the_study(self):
        self.start_both()
        tab = self.open("/studies/toy/analysis?charts=timeline.curves")
        timeline = self.card(tab, "Timeline by worker")
        timeline.get_by_role("img", name=f"{TRIALS} attempts of 2 workers").wait_for()
        timeline.locator(".legend").get_by_text("running").wait_for()
        self.measure(1)
        wait_until(lambda: self.trial(0).get("last_measurement"), "a measurement of trial 0")
        self.hpo("trial", "preempt", "0", "--study", "toy")
        self.measure(1)
        wait_until(lambda: len(self.trial(0)["attempts"]) == 2, "the second attempt")
        self.measure(20)
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")
        # Without a reload: a bar for each attempt, and none of them runs any more.
        timeline.get_by_role("img", name=f"{TRIALS + 1} attempts of 2 workers").wait_for()
        timeline.locator(".legend").get_by_text("running").wait_for(state="detached")
        self.check_timeline(tab, timeline)
        self.check_curves(tab)

    def check_timeline(self, tab, timeline):
        attempts = [(one["worker"], number, one["number"]) for number in range(TRIALS) for one in self.trial(number)["attempts"]]
        rows = self.numbers(timeline)
        self.assertEqual(sorted((row[0], int(row[1].split()[-1]), int(row[2])) for row in rows), sorted(attempts))
        uses = collections.Counter(row[5] for row in rows)
        self.assertEqual(uses, {"useful": TRIALS, "preempted": 1})
        bars = drawn_bars(self.saved(tab, "Timeline by worker"))
        self.assertEqual(len(bars), len(attempts), bars)
        # A line for each worker, with as many bars as it made attempts.
        lines = collections.Counter(top for _, top, _, _ in bars)
        self.assertEqual(sorted(lines.values()), sorted(collections.Counter(worker for worker, _, _ in attempts).values()))
        self.assertTrue(all(right > left for left, _, right, _ in bars), bars)

    def check_curves(self, tab):
        steps = self.steps()
        curves = self.card(tab, "Intermediate values of macro_f1")
        wait_until(lambda: tab.evaluate("1") and sorted(drawn_curves(self.saved(tab, "Intermediate values of macro_f1")))
                   == sorted(map(len, steps.values())), f"curves with the steps {steps}")
        rows = {int(row[0].split()[-1]): int(row[2]) for row in self.numbers(curves)}
        self.assertEqual(rows, {number: of[-1] for number, of in steps.items()})
        # The page of a trial lists each step.
        tab.goto(self.at("/studies/toy/trials/0"))
        self.see(tab, f"{len(steps[0])} values")
        card = self.card(tab, "Intermediate values of trial 0")
        card.get_by_text("As a table").click()
        self.assertEqual([int(text) for text in card.locator("tbody tr td:first-child").all_inner_texts()], steps[0])

    def test_a_bar_leads_to_its_trial(self):
        self.start_both()
        self.measure(20)
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")
        tab = self.open("/studies/toy/analysis?charts=timeline")
        timeline = self.card(tab, "Timeline by worker")
        canvas = timeline.get_by_role("img", name=f"{TRIALS} attempts of 2 workers")
        canvas.wait_for()
        # w0 has run trial 0 alone, from the beginning to the end: wherever its line is pointed at, there it is.
        workers = self.call("GetTimeline", {"study": "toy"}, service="AnalysisService")[1]["workers"]
        box = canvas.bounding_box()
        at = {"x": box["width"] / 2, "y": 6 + 24 * workers.index("w0") + 12}
        canvas.hover(position=at)
        timeline.get_by_text("w0: trial 0, attempt 1, useful").wait_for()
        canvas.click(position=at)
        tab.get_by_role("heading", name="Trial 0", exact=True).wait_for()


class Programs(Browser):
    """A program of the study's own, which hpo-command-trainer runs."""

    STUDY = Browser.STUDY.replace("trainer: {task: custom, epochs: 1}",
                                  "trainer: {command: [python3, PROGRAM, '{x}']}")

    def start_program(self):
        program = self.folder / "train.py"
        program.write_text(PROGRAM)
        (self.folder / "toy.yaml").write_text(self.STUDY.replace("PROGRAM", str(program)))
        self.serve()
        for x in ("0.25", "0.75"):
            self.hpo("enqueue", "--study", "toy", f"x={x}", "y=0.5")
        self.start("w0", BIN / "hpo-worker", "--server", self.address, "--device", "cpu", "--memory-limit", "1GiB",
                   "--name", "w0", "--state-dir", self.folder / "state-w0", "--study", "toy", "--allow-commands")
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")

    def test_what_a_program_said_is_shown(self):
        self.start_program()
        tab = self.open("/studies/toy/trials/0")
        self.see(tab, "It ran to its end.")
        tab.get_by_label("End of the log").get_by_text("epoch 1").wait_for()
        tab.goto(self.at("/studies/toy/trials/1"))
        self.see(tab, "KeyError: 'macro_f1'")
        tab.get_by_role("button", name="Retry").wait_for()
        failed = [trial["number"] for trial in self.trials() if trial["state"] == "FAILED"]
        tab.goto(self.at("/studies/toy/trials"))
        tab.get_by_role("button", name="failed", exact=True).click()
        self.see(tab, f"Rows 1 to {len(failed)} of {len(failed)}")
        tab.get_by_role("columnheader", name="message").wait_for()
        tab.locator("td.said").nth(len(failed) - 1).wait_for()
        self.assertEqual(tab.locator("td.said").all_inner_texts(), ["KeyError: 'macro_f1'"] * len(failed))
