"""The analysis on the page: each chart, the brush that filters all of them, and pictures that are saved."""

import json
import pathlib
import urllib.parse

from browser import PHONE, Browser

IMPORTED = 400
# Each chart by its button, with the card that it adds.
CHARTS = {
    "Parallel coordinates": "Parallel coordinates", "Importance": "Importance for val_loss",
    "Contour": "Contour of val_loss", "Slices": "Slices of val_loss", "Rank": "Rank of val_loss",
    "Distribution": "Distribution of val_loss", "Intermediate values": "Intermediate values of val_loss",
    "Timeline": "Timeline by worker"}
ALL = "/studies/big/analysis?charts=parallel.importance.contour.slice.rank.edf.curves.timeline"
PAIR = """name: pair
objective:
  - {metric: loss, direction: minimize}
  - {metric: seconds, direction: minimize}
trainer: {task: custom, epochs: 1}
budget: {trials: 60}
sampler: {type: random, seed: 1}
memory: {policy: "off"}
parameters:
  x: {float: [0, 1]}
"""


class Analysis(Browser):
    def setUp(self):
        super().setUp()
        self.serve()
        self.fill("big", IMPORTED)

    def card(self, tab, name):
        return tab.get_by_role("region", name=name, exact=True)

    def open_all(self, **options):
        tab = self.open(ALL, **options)
        for name in CHARTS.values():
            self.card(tab, name).wait_for()
        return tab

    def test_each_chart_is_chosen_and_put_away(self):
        tab = self.open("/studies/big/analysis?charts=none")
        self.see(tab, "Choose a chart above.")
        buttons = tab.get_by_role("group", name="Charts")
        for button, name in CHARTS.items():
            buttons.get_by_role("button", name=button, exact=True).click()
            self.card(tab, name).wait_for()
        # One objective has no front.
        self.assertEqual(buttons.get_by_role("button", name="Pareto front").count(), 0)
        tab.reload()
        for name in CHARTS.values():
            self.card(tab, name).wait_for()
        for button, name in CHARTS.items():
            buttons.get_by_role("button", name=button, exact=True).click()
            self.card(tab, name).wait_for(state="detached")

    def test_a_brush_filters_the_page_and_the_address(self):
        tab = self.open_all()
        self.see(tab, f"All {IMPORTED} trials are shown.")
        strip = tab.locator(".parallel .strip").nth(1)
        strip.scroll_into_view_if_needed()
        box = strip.bounding_box()
        x = box["x"] + box["width"] / 2
        tab.mouse.move(x, box["y"] + box["height"] * 0.25)
        tab.mouse.down()
        tab.mouse.move(x, box["y"] + box["height"] * 0.6, steps=6)
        tab.mouse.up()
        # What the brush says at once; the address and the other charts follow it.
        chosen = int(tab.locator(".readout", has_text="chosen").first.inner_text().split()[0])
        self.see(tab, f"{chosen} of {IMPORTED} trials are shown:")
        where = self.conditions(tab)
        self.assertTrue(where, tab.url)
        matching = int(self.call("QueryTrials", {"study": "big", "where": where, "page_size": 1})[1]["matching"])
        self.assertTrue(0 < matching < IMPORTED, where)
        self.assertEqual(matching, chosen, where)
        # The same trials as a table, and the link restores the brush.
        tab.get_by_role("link", name="These trials as a table").click()
        self.see(tab, f"of {matching}")
        tab.go_back()
        self.see(tab, f"{matching} of {IMPORTED} trials are shown:")
        tab.get_by_role("button", name="Show all").click()
        self.see(tab, f"All {IMPORTED} trials are shown.")

    def conditions(self, tab):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(tab.url).query).get("where", [])

    def test_a_brush_by_the_keyboard(self):
        tab = self.open_all()
        end = tab.get_by_role("slider", name="lr: lower end")
        end.focus()
        for _ in range(3):
            tab.keyboard.press("PageUp")
        self.see(tab, f"of {IMPORTED} trials are shown:")
        self.assertGreater(float(end.get_attribute("aria-valuenow")), 0)
        tab.keyboard.press("Escape")
        self.see(tab, f"All {IMPORTED} trials are shown.")

    def test_controls_of_the_charts(self):
        tab = self.open_all()
        for name in CHARTS.values():
            card = self.card(tab, name)
            for chooser in card.get_by_role("combobox").all():
                options = chooser.locator("option").all()
                chooser.select_option(index=len(options) - 1)
            for more in card.locator("details.numbers > summary").all():
                more.click()
        self.see(tab, "50 of")
        table = self.card(tab, "Parallel coordinates").get_by_role("table")
        table.get_by_role("link").first.click()
        tab.locator("h2.title").wait_for()

    def test_every_chart_is_saved(self):
        tab = self.open_all()
        for name in CHARTS.values():
            for kind, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
                save = self.card(tab, name).get_by_role("button", name=f"Save “{name}” as {kind}", exact=True)
                if save.count() == 0:
                    self.assertIn(name, ("Timeline by worker", "Intermediate values of val_loss"), "nothing was run here")
                    continue
                with tab.expect_download() as saved:
                    save.click()
                self.assertEqual(pathlib.Path(saved.value.path()).read_bytes()[:len(begin)], begin, name)

    def test_two_objectives(self):
        self.send("StudyService/CreateStudy", {"yaml": PAIR, "origin": "pair"})
        trials = [{"origin": f"pair#{i}", "params": {"x": {"double_value": i / 40}},
                   "outcome": {"completed": {"metrics": {"loss": i % 7, "seconds": (40 - i) % 11}}}} for i in range(40)]
        self.send("StudyService/ImportTrials", self.line("pair", trials), "application/x-ndjson")
        tab = self.open("/studies/pair/analysis?charts=pareto.hypervolume")
        for name in ("Pareto front", "Hypervolume"):
            self.card(tab, name).locator("canvas").first.wait_for()
        tab.get_by_role("main").get_by_label("Objective").first.select_option("seconds")
        self.assert_looks("/studies/pair/analysis?charts=pareto.hypervolume", "Pareto front")

    def line(self, study, trials):
        return json.dumps({"study": study, "trials": trials}).encode()

    def test_conditions_that_nothing_meets(self):
        tab = self.open("/studies/big/analysis?where=lr%3E1")
        self.see(tab, "No trial meets these conditions.")
        tab.get_by_role("button", name="Show all").click()
        self.see(tab, f"All {IMPORTED} trials are shown.")
        self.see(self.open("/studies/toy/analysis"), "The study has no trials yet.")

    def test_looks(self):
        self.assert_looks(ALL, f"All {IMPORTED} trials are shown.")
        tab = self.open(ALL, viewport=PHONE)
        tab.get_by_text("Numbers", exact=True).first.click()
        self.assert_fits(tab, "the numbers of a chart")
        self.assert_accessible(tab, "the numbers of a chart")
