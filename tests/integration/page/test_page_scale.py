"""The page on a study of 100,000 trials: the table, its ends, its order and its conditions."""

import time

from browser import Browser
from harness import wait_until

import imported_trials

TRIALS = 100_000
SOON_S = 30.0  # a bound for busy machines; bench/page measures


class Scale(Browser):
    STUDY = imported_trials.STUDY.format(trials=TRIALS + 20)

    def test_a_hundred_thousand_trials(self):
        self.serve()
        for line in imported_trials.lines("toy", TRIALS, steps=0):
            self.assertEqual(self.ask("POST", "/api/StudyService/ImportTrials", line,
                                      {"Content-Type": "application/x-ndjson"})[0], 200)
        begin = time.monotonic()
        tab = self.open("/studies/toy/trials")
        tab.get_by_text("of 100,000").first.wait_for()
        self.assertLess(time.monotonic() - begin, SOON_S)
        rows = tab.locator("table.trials tbody tr")
        last = tab.get_by_role("group", name="Pages").get_by_role("button", name="Last")
        last.click()
        wait_until(lambda: last.is_disabled() and rows.count() > 0, "the last page", SOON_S)
        tab.get_by_role("columnheader", name="loss").first.get_by_role("button").click()
        best = str(self.study()["best_trial"])
        wait_until(lambda: rows.first.locator("td").nth(1).inner_text() == best, "the best trial first", SOON_S)
        tab.get_by_label("Condition", exact=True).fill("lr>9e-3")
        tab.get_by_role("button", name="Add", exact=True).click()
        tab.get_by_text("(100,000 trials in all)").wait_for()
        tab.get_by_role("link", name="Overview").or_(tab.get_by_role("link", name="Study")).first.click()
        tab.get_by_text("100,000").first.wait_for()
