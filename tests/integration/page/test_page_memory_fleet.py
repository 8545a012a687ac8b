"""Memory and the fleet on the page: what fits which GPU, what trials measured, and workers as they come and go."""

from browser import Browser
from harness import wait_until

SPACE = """\
name: toy
objective: {metric: macro_f1, direction: maximize}
trainer: {task: text-classification, train: train.jsonl, validation: valid.jsonl, epochs: 1, labels: ["no", "yes"]}
budget: {trials: 6}
memory: {policy: plan}
sampler: {type: random, seed: 3}
pruner: {type: none}
parameters:
  model.name: {choices: [distilbert-base-uncased, bert-base-uncased]}
  tok.max_length: {choices: [64, 128, 256, 512]}
  train.batch_size: {choices: [8, 16, 32, 64]}
  train.lr: {float: [1.0e-5, 1.0e-3], log: true}
"""


def region(tab, name):
    return tab.get_by_role("region", name=name, exact=True)


class Space(Browser):
    """Memory over a search space that the server knows the models of, without a worker."""

    STUDY = SPACE

    def open_memory(self, query="", **options):
        tab = self.open(f"/studies/toy/memory{query}", **options)
        tab.get_by_role("heading", name="What fits a GPU of 12 GiB").first.wait_for()
        return tab

    def test_what_fits_and_what_to_cut(self):
        self.serve()
        tab = self.open_memory()
        fits = region(tab, "What fits")
        said = self.call("GetMemoryFit", {"study": "toy", "capacities": [12 << 30]}, service="AnalysisService")[1]
        self.assertEqual(len(said["models"]), 2, said)
        fits.get_by_role("rowheader", name="bert-base-uncased", exact=True).wait_for()
        self.see(tab, "The search space has 32 configurations that differ in memory.")
        fits.get_by_role("columnheader", name="Fit with smaller micro-batches").wait_for()
        self.see(tab, "Which parameter to cut for 12 GiB" if "cut" in said["gpus"][0]["literal"] else "All 32 configurations fit with the full batch.")
        gpus = tab.get_by_role("group", name="Memory of GPUs")
        gpus.get_by_role("button", name="8 GiB").first.click()
        fits.get_by_role("columnheader", name="Fit 8 GiB").wait_for()
        tab.get_by_label("Details for").select_option(label="8 GiB (RTX 4060, RTX 3070)")
        tab.get_by_role("heading", name="What fits a GPU of 8 GiB").first.wait_for()
        tab.reload()
        tab.get_by_role("heading", name="What fits a GPU of 8 GiB").first.wait_for()
        own = tab.get_by_label("Other memory, in GiB")
        own.fill("many")
        own.press("Enter")
        self.see(tab, "Expected the memory of a GPU")
        own.fill("11.8")
        own.press("Enter")
        fits.get_by_role("columnheader", name="Fit 11.8 GiB").wait_for()

    def test_the_frontier(self):
        self.serve()
        tab = self.open_memory()
        frontier = region(tab, "Out-of-memory frontier")
        frontier.get_by_role("img", name="Required memory over tok.max_length and train.batch_size").wait_for()
        frontier.get_by_label("Horizontal axis").select_option("train.batch_size")
        frontier.get_by_role("img", name="Required memory over train.batch_size and tok.max_length").wait_for()
        frontier.locator("fieldset select").select_option("bert-base-uncased")
        box = frontier.locator("canvas").bounding_box()
        frontier.locator("canvas").hover(position={"x": box["width"] / 2, "y": box["height"] / 2})
        frontier.get_by_text("12 GiB:").first.wait_for()
        self.assertIn("bert-base-uncased", tab.url)
        with tab.expect_download() as saved:
            frontier.get_by_role("button", name="Save “Out-of-memory frontier” as SVG").click()
        picture = saved.value.path().read_text()
        for word in ("train.batch_size", "Required memory (100 %: limit of 12 GiB)"):
            self.assertIn(word, picture)
        # A choice that the server refuses can be taken back.
        tab = self.open("/studies/toy/memory?x=nothing")
        tab.get_by_role("button", name="Reset the choices of the frontier").click()
        tab.get_by_role("img", name="Required memory over tok.max_length").wait_for()

    def test_looks(self):
        self.serve()
        self.assert_looks("/studies/toy/memory", "What fits a GPU of 12 GiB")


class Measured(Browser):
    """Trials that ran out of memory and went on with smaller micro-batches."""

    STUDY = Browser.STUDY.replace('memory: {policy: "off"}', "memory: {policy: plan, allow_checkpointing: true}")

    def test_nothing_is_known_yet(self):
        self.serve()
        tab = self.open("/studies/toy/memory")
        region(tab, "What fits").wait_for()
        self.assertEqual(tab.get_by_role("button", name="Try again").count(), 0)
        region(tab, "GPU time lost").wait_for()

    def test_ladders_measurements_and_hours(self):
        self.serve()
        self.run_study(environment={"HPO_FAKE_OOM_ABOVE": "200", "HPO_FAKE_RECOVER": "1"})
        tab = self.open("/studies/toy/memory")
        ladder = region(tab, "Recovery from out-of-memory errors")
        ladder.get_by_role("link", name="trial 5", exact=True).wait_for()
        scatter = region(tab, "Predicted and measured memory")
        for measure in scatter.get_by_role("group", name="What was measured").get_by_role("button").all():
            measure.click()
            self.assertEqual(measure.get_attribute("aria-pressed"), "true")
        region(tab, "GPU hours by use").get_by_role("cell", name="useful").wait_for()
        ladder.get_by_role("link", name="trial 5", exact=True).click()
        tab.get_by_role("heading", name="Trial 5", exact=True).wait_for()
        self.assert_looks("/studies/toy/memory", "Recovery from out-of-memory errors")

    def test_memory_is_read_anew_as_trials_end(self):
        self.serve()
        tab = self.open("/studies/toy/memory")
        region(tab, "What fits").wait_for()
        asked = []
        tab.on("request", lambda request: asked.append(request.url))
        self.run_study(environment={"HPO_FAKE_OOM_ABOVE": "200", "HPO_FAKE_RECOVER": "1"})
        for method in ("GetMemoryFit", "GetMemoryFrontier"):
            wait_until(lambda one=method: tab.evaluate("1") and any(one in url for url in asked), method)


class Fleet(Browser):
    def row(self, tab, name):
        return tab.get_by_role("row").filter(has=tab.get_by_text(name, exact=True))

    def test_no_worker_yet(self):
        self.serve()
        self.see(self.open("/fleet"), "No worker has connected since the server started")
        self.assert_looks("/fleet", "No worker has connected since the server started")

    def test_a_worker_comes_is_drained_and_goes(self):
        self.serve()
        tab = self.open()
        tab.get_by_role("link", name="Fleet").click()
        self.see(tab, "No worker has connected")
        self.start_worker("slurm-17_3", environment={"HPO_FAKE_PACE_MS": "100", "HPO_FAKE_MEASUREMENTS": "5000"})
        row = self.row(tab, "slurm-17_3")
        row.get_by_text("busy").first.wait_for()
        row.get_by_text("Slurm job 17, array task 3").wait_for()
        row.get_by_role("link", name="trial 0").wait_for()
        tab.get_by_label("Name, device or study").fill("nothing like it")
        self.see(tab, "No worker that is alive matches.")
        tab.get_by_label("Name, device or study").fill("slurm")
        tab.get_by_label("State").select_option("busy")
        row.wait_for()
        self.assert_looks("/fleet", "Slurm job 17, array task 3")
        row.get_by_role("button", name="Drain slurm-17_3").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("The worker saves its trial now").check()
        self.assert_accessible(tab, "the dialog")
        dialog.get_by_role("button", name="Drain the worker").click()
        tab.get_by_label("State").select_option("")
        self.see(tab, "1 worker has gone")
        tab.get_by_text("1 worker has gone").click()
        tab.get_by_role("button", name="Resume slurm-17_3").click()
        self.see(tab, "slurm-17_3 may get trials again.")
        wait_until(lambda: self.trial(0)["state"] == "QUEUED", "the trial in the queue again")

    def test_an_idle_worker_says_why(self):
        self.serve()
        self.hpo("study", "pause", "toy")
        self.start_worker("w0")
        tab = self.open("/fleet")
        row = self.row(tab, "w0")
        row.get_by_text("idle").first.wait_for()
        wait_until(lambda: tab.evaluate("1") and "paused" in row.inner_text(), "why it idles")
        tab.get_by_role("button", name="Drain all").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        self.assertTrue(tab.get_by_role("button", name="Resume all").is_disabled())
        self.hpo("study", "resume", "toy")
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")
