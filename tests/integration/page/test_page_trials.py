"""The table of trials, one trial, and several side by side."""

import json

from browser import DESK, PHONE, Browser
from harness import wait_until

import imported_trials

TRIALS = 120


class Trials(Browser):
    STUDY = imported_trials.STUDY.format(trials=TRIALS + 20)

    def setUp(self):
        super().setUp()
        self.serve()

    def fill(self, trials=TRIALS):
        for line in imported_trials.lines("toy", trials):
            status, _, body = self.ask("POST", "/api/StudyService/ImportTrials", line,
                                       {"Content-Type": "application/x-ndjson"})
            self.assertEqual(status, 200, body)

    def see(self, tab, text):
        tab.get_by_text(text).first.wait_for()

    def see_trial(self, tab, number):
        tab.get_by_role("heading", name=f"Trial {number}", exact=True).wait_for()

    def numbers(self, tab):
        """Of the rows that are shown."""
        return [int(text) for text in tab.locator("table.trials tbody tr td:nth-child(2)").all_inner_texts()]

    def test_no_trial_is_said(self):
        self.see(self.open("/studies/toy/trials"), "This study has no trials yet.")

    def test_pages_lead_to_the_ends_and_back(self):
        self.fill()
        tab = self.open("/studies/toy/trials?size=50")
        pages = tab.get_by_role("group", name="Pages")
        self.see(tab, f"of {TRIALS}")
        first = self.numbers(tab)
        self.assertTrue(pages.get_by_role("button", name="First").is_disabled())
        pages.get_by_role("button", name="Next").click()
        wait_until(lambda: self.numbers(tab) not in ([], first), "the next page")
        second = self.numbers(tab)
        self.assertFalse(set(first) & set(second))
        pages.get_by_role("button", name="Last").click()
        wait_until(lambda: pages.get_by_role("button", name="Next").is_disabled(), "the last page")
        pages.get_by_role("button", name="First").click()
        wait_until(lambda: self.numbers(tab) == first, "the first page")
        tab.get_by_label("Rows").select_option("100")
        wait_until(lambda: len(self.numbers(tab)) == 100, "a larger page")

    def test_columns_sort_by_a_click(self):
        self.fill()
        tab = self.open("/studies/toy/trials")
        self.see(tab, f"of {TRIALS}")
        heading = tab.get_by_role("columnheader", name="loss").first
        heading.get_by_role("button").click()
        best = self.study()["best_trial"]
        wait_until(lambda: self.numbers(tab)[:1] == [best], "the best trial first")
        self.assertEqual(heading.get_attribute("aria-sort"), "ascending")
        heading.get_by_role("button").click()
        wait_until(lambda: heading.get_attribute("aria-sort") == "descending", "the other order")
        # A link restores what was chosen.
        again = self.open(tab.url.partition(f":{self.port}")[2])
        wait_until(lambda: self.numbers(again) == self.numbers(tab), "the same rows")

    def test_conditions_and_states_filter(self):
        self.fill()
        tab = self.open("/studies/toy/trials")
        self.see(tab, f"of {TRIALS}")
        tab.get_by_role("group", name="Trials of a state").get_by_role("button", name="Failed").click()
        failed = set(imported_trials.numbers("failed", TRIALS))
        wait_until(lambda: set(self.numbers(tab)) == failed, "the failed trials")
        tab.get_by_role("group", name="Trials of a state").get_by_role("button", name="All").click()
        box = tab.get_by_label("Condition", exact=True)
        box.fill("lr>oops")
        tab.get_by_role("button", name="Add", exact=True).click()
        self.assertIn("lr", tab.get_by_role("alert").inner_text())
        box.fill("lr>1e-3")
        tab.get_by_role("button", name="Add", exact=True).click()
        expected = {one["number"] for one in self.trials("--limit", 1000) if one["params"]["lr"] > 1e-3}
        wait_until(lambda: set(self.numbers(tab)) == expected, "trials with a large rate")
        box.fill("lr>1")
        tab.get_by_role("button", name="Add", exact=True).click()
        self.see(tab, f"None of {TRIALS} trials matches")
        tab.get_by_role("button", name="Remove all conditions").click()
        self.see(tab, f"of {TRIALS}")

    def test_columns_are_chosen(self):
        self.fill()
        tab = self.open("/studies/toy/trials")
        self.see(tab, f"of {TRIALS}")
        tab.get_by_text("Columns (").click()
        tab.locator("details.chooser").get_by_label("optimizer", exact=True).uncheck()
        tab.get_by_role("columnheader", name="optimizer").wait_for(state="detached")
        tab.get_by_role("button", name="Default columns").click()
        tab.get_by_role("columnheader", name="optimizer").wait_for()

    def test_all_that_match_are_saved(self):
        self.fill()
        tab = self.open("/studies/toy/trials")
        self.see(tab, f"of {TRIALS}")
        with tab.expect_download() as saving:
            tab.get_by_role("button", name="Save as JSON").click()
        saved = json.loads(saving.value.path().read_text())
        self.assertEqual(len(saved), TRIALS)
        with tab.expect_download() as saving:
            tab.get_by_role("button", name="Save as CSV").click()
        self.assertEqual(len(saving.value.path().read_text().splitlines()), TRIALS + 1)

    def test_trials_are_compared(self):
        self.fill()
        tab = self.open("/studies/toy/trials")
        self.see(tab, f"of {TRIALS}")
        compare = tab.get_by_role("button", name="Compare")
        self.assertTrue(compare.is_disabled())
        chosen = self.numbers(tab)[:2]
        for number in chosen:
            tab.get_by_label(f"Compare trial {number}", exact=True).check()
        tab.get_by_role("button", name="Compare 2").click()
        self.see(tab, "What differs between 2 trials")
        for number in chosen:
            tab.get_by_role("link", name=f"Trial {number}", exact=True).first.wait_for()
        self.assert_fits(tab, "the comparison")
        self.assert_accessible(tab, "the comparison")

    def test_why_a_trial_failed(self):
        self.fill()
        number = imported_trials.numbers("failed", TRIALS)[0]
        tab = self.open("/studies/toy/trials")
        tab.get_by_role("group", name="Trials of a state").get_by_role("button", name="Failed").click()
        tab.get_by_role("link", name=str(number), exact=True).click()
        self.see_trial(tab, number)
        self.see(tab, "the loss is not a number at step 120")
        tab.get_by_role("button", name="Retry").click()
        tab.get_by_role("link", name="Show trial").click()
        self.see_trial(tab, TRIALS)
        tab.get_by_role("button", name="Cancel").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel the trial").click()
        wait_until(lambda: self.trial(TRIALS)["state"] == "CANCELLED", "the cancellation")

    def test_what_an_out_of_memory_error_required(self):
        self.fill()
        number = imported_trials.numbers("out_of_memory", TRIALS)[0]
        tab = self.open(f"/studies/toy/trials/{number}")
        self.see(tab, "Tried to allocate 192.00 MiB")
        self.see(tab, "backward")

    def test_notes_tags_and_attributes(self):
        self.fill(3)
        tab = self.open("/studies/toy/trials/0")
        tab.get_by_role("button", name="Edit …").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("Note").fill("look at this one")
        dialog.get_by_role("button", name="Save").click()
        self.see(tab, "look at this one")
        self.assertEqual(self.trial(0)["note"], "look at this one")

    def test_a_trial_that_is_not_there(self):
        self.see(self.open("/studies/toy/trials/77"), "77")
        self.see(self.open("/studies/toy/trials/none"), "There is no")

    def test_themes_widths_and_axe(self):
        self.fill()
        failed = imported_trials.numbers("failed", TRIALS)[0]
        places = {"/studies/toy/trials": f"of {TRIALS}", f"/studies/toy/trials/{failed}": "not a number"}
        for path, text in places.items():
            for scheme, size in (("light", DESK), ("dark", DESK), ("light", PHONE)):
                with self.subTest(path=path, scheme=scheme, width=size["width"]):
                    tab = self.open(path, color_scheme=scheme, viewport=size)
                    self.see(tab, text)
                    self.assert_fits(tab, path)
                    self.assert_accessible(tab, path)

    def test_the_keyboard_reaches_a_trial(self):
        self.fill(3)
        tab = self.open("/studies/toy/trials")
        tab.get_by_role("link", name="0", exact=True).focus()
        tab.keyboard.press("Enter")
        self.see_trial(tab, 0)
        tab.go_back()
        tab.get_by_role("link", name="0", exact=True).wait_for()


class OfWorkers(Browser):
    def test_a_running_trial_is_seen_to_end(self):
        self.serve()
        tab = self.open("/studies/toy/trials")
        self.start_worker("w0", environment={"HPO_FAKE_PACE_MS": "200"})
        tab.get_by_text("running").first.wait_for()
        tab.get_by_role("link", name="0", exact=True).click()
        tab.get_by_role("heading", name="Trial 0", exact=True).wait_for()
        wait_until(lambda: self.trial(0)["state"] == "COMPLETED", "the trial's end")
        tab.get_by_text("completed").first.wait_for()
        tab.get_by_text("w0").first.wait_for()
