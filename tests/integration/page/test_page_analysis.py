"""The charts of a study, what they say in numbers, and what a choice in one does to all others."""

from browser import DESK, PHONE, Browser
from harness import wait_until

import imported_trials

TRIALS = 200
CHARTS = ("Parallel coordinates", "Importance", "Contour", "Slices", "Rank", "Distribution", "Intermediate values",
          "Timeline")


class Analysis(Browser):
    STUDY = imported_trials.STUDY.format(trials=TRIALS + 20)

    def setUp(self):
        super().setUp()
        self.serve()

    def fill(self):
        for line in imported_trials.lines("toy", TRIALS):
            self.assertEqual(self.ask("POST", "/api/StudyService/ImportTrials", line,
                                      {"Content-Type": "application/x-ndjson"})[0], 200)

    def see(self, tab, text):
        tab.get_by_text(text).first.wait_for()

    def show(self, *charts, path="/studies/toy/analysis", **options):
        """The page with these charts alone."""
        tab = self.open(path, **options)
        group = tab.get_by_role("group", name="Charts")
        group.wait_for()
        for name in CHARTS:
            button = group.get_by_role("button", name=name, exact=True)
            if (button.get_attribute("aria-pressed") == "true") != (name in charts):
                button.click()
        return tab

    def test_a_study_without_trials_says_so(self):
        self.see(self.open("/studies/toy/analysis"), "The study has no trials yet.")

    def test_every_chart_has_a_name_and_numbers(self):
        self.fill()
        for name in CHARTS:
            with self.subTest(name):
                tab = self.show(name)
                card = tab.locator(".card", has=tab.get_by_role("heading", name=name)).first
                card.wait_for()
                card.get_by_text("Reading").first.wait_for(state="detached")
                if name == "Timeline":  # imported trials ran on no worker
                    self.see(tab, "No worker has run an attempt yet.")
                    continue
                card.locator("canvas, svg").first.wait_for()
                card.get_by_text("Numbers").first.click()
                card.get_by_role("table").first.wait_for()
                self.assertGreater(card.get_by_role("row").count(), 1)
                self.assert_fits(tab, name)

    def test_the_most_important_parameter_is_first(self):
        self.fill()
        tab = self.show("Importance")
        chart = tab.locator('[aria-label*="the largest is"]')
        chart.wait_for()
        self.assertIn("the largest is lr", chart.get_attribute("aria-label"))

    def test_a_brush_filters_all_charts_and_leads_to_the_table(self):
        self.fill()
        tab = self.show("Parallel coordinates", "Slices")
        handle = tab.get_by_role("slider", name="lr: lower end")
        handle.focus()
        handle.press("ArrowUp")
        for _ in range(20):
            handle.press("ArrowUp")
        chosen = tab.get_by_role("group", name="Chosen trials")
        wait_until(lambda: "lr" in chosen.inner_text(), "the condition of the brush")
        chosen.get_by_role("button", name="These trials as a table").or_(
            chosen.get_by_role("link", name="These trials as a table")).click()
        wait_until(lambda: "/trials?" in tab.url and "where=" in tab.url, "the table with the same conditions")
        tab.go_back()
        tab.get_by_role("slider", name="lr: lower end").press("Escape")
        wait_until(lambda: "where=" not in tab.url, "all trials again")

    def test_charts_are_saved(self):
        self.fill()
        tab = self.show("Slices")
        for kind in ("SVG", "PNG"):
            with tab.expect_download() as saving:
                tab.get_by_role("button", name=kind).first.click()
            content = saving.value.path().read_bytes()
            self.assertIn(b"<svg" if kind == "SVG" else b"\x89PNG", content[:400])
            self.assertGreater(len(content), 1000)

    def test_themes_widths_and_axe(self):
        self.fill()
        for scheme, size in (("light", DESK), ("dark", DESK), ("light", PHONE)):
            with self.subTest(scheme=scheme, width=size["width"]):
                tab = self.open("/studies/toy/analysis", color_scheme=scheme, viewport=size)
                tab.locator('[aria-label*="the largest is"]').wait_for()
                self.assert_fits(tab, "the analysis")
                self.assert_accessible(tab, "the analysis")


class OfWorkers(Browser):
    def test_attempts_are_on_the_timeline(self):
        self.serve()
        self.start_worker("w0")
        wait_until(lambda: self.study()["counts"]["completed"] >= 3, "three trials")
        tab = self.open("/studies/toy/analysis?charts=timeline")
        tab.locator('[aria-label*="of 1 worker"]').first.wait_for()
