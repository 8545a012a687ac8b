"""The table of trials on the page, and trials compared."""

import csv
import json

from browser import Browser
from harness import wait_until

IMPORTED = 600


class Table(Browser):
    """The table of trials of all states, which were imported."""

    def setUp(self):
        super().setUp()
        self.serve()
        self.fill("big", IMPORTED)

    def open_table(self, query="", **options):
        tab = self.open(f"/studies/big/trials{query}", **options)
        tab.get_by_role("columnheader", name="val_loss").first.wait_for()
        return tab

    def rows(self, tab):
        return tab.locator("table.trials tbody tr")

    def query(self, **request):
        return self.call("QueryTrials", {"study": "big", **request})[1]

    def first_is(self, tab, number):
        self.rows(tab).first.get_by_role("link", name=str(number), exact=True).wait_for()

    def test_sorting_paging_and_links(self):
        tab = self.open_table()
        self.see(tab, f"Rows 1 to 100 of {IMPORTED}")
        heading = tab.get_by_role("columnheader", name="val_loss")
        heading.get_by_role("button").click()
        best = self.query(sort="value", page_size=1)["numbers"][0]
        self.first_is(tab, best)
        self.assertEqual(heading.get_attribute("aria-sort"), "ascending")
        heading.get_by_role("button").click()
        self.first_is(tab, self.query(sort="-value", page_size=1)["numbers"][0])
        pages = tab.get_by_role("group", name="Pages")
        self.assertTrue(pages.get_by_role("button", name="Previous").is_disabled())
        for button, rows in (("Next", "101 to 200"), ("Last", "501 to 600"), ("Previous", "401 to 500"),
                             ("First", "1 to 100")):
            pages.get_by_role("button", name=button).click()
            self.see(tab, f"Rows {rows} of {IMPORTED}")
        tab.get_by_label("Rows").select_option("500")
        self.see(tab, f"Rows 1 to 500 of {IMPORTED}")
        tab.reload()
        self.see(tab, f"Rows 1 to 500 of {IMPORTED}")
        self.assertEqual(heading.get_attribute("aria-sort"), "descending")

    def test_conditions_and_columns(self):
        tab = self.open_table()
        tab.get_by_role("group", name="Trials of a state").get_by_role("button", name="failed").click()
        failed = int(self.query(where=["state=failed"])["matching"])
        self.see(tab, f"Rows 1 to {failed} of {failed}")
        condition = tab.get_by_label("Condition", exact=True)
        condition.fill("lr>small")
        condition.press("Enter")
        self.see(tab, "expected a number, got 'small'")
        condition.fill("lr>1e-4")
        condition.press("Enter")
        both = int(self.query(where=["state=failed", "lr>1e-4"])["matching"])
        self.see(tab, f"of {both}")
        condition.fill("lr>1")
        condition.press("Enter")
        self.see(tab, f"None of {IMPORTED} trials matches the conditions.")
        tab.get_by_role("button", name="Remove the condition lr>1", exact=True).click()
        self.see(tab, f"of {both}")
        tab.get_by_text("Columns (").click()
        tab.get_by_label("dropout").uncheck()
        tab.get_by_role("columnheader", name="dropout").wait_for(state="detached")
        tab.get_by_role("button", name="Default columns").click()
        tab.get_by_role("columnheader", name="dropout").wait_for()

    def test_all_trials_are_saved(self):
        tab = self.open_table("?where=state%3Dcompleted")
        matching = int(self.query(where=["state=completed"])["matching"])
        self.see(tab, f"of {matching}")
        with tab.expect_download() as saved:
            tab.get_by_role("button", name="Save as CSV").click()
        with open(saved.value.path(), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), matching)
        self.assertEqual({row["state"] for row in rows}, {"COMPLETED"})
        with tab.expect_download() as saved:
            tab.get_by_role("button", name="Save as JSON").click()
        with open(saved.value.path()) as file:
            self.assertEqual(len(json.load(file)), matching)

    def test_trials_are_compared(self):
        tab = self.open_table("?where=state%3Dcompleted")
        self.assertTrue(tab.get_by_role("button", name="Compare", exact=True).is_disabled())
        numbers = self.query(where=["state=completed"], page_size=3)["numbers"]
        for number in numbers:
            tab.get_by_label(f"Compare trial {number}", exact=True).check()
        tab.get_by_role("button", name="Compare 3").click()
        self.see(tab, "What differs between 3 trials")
        table = tab.locator("table.compared")
        self.assertIn("optimizer", tab.locator("main").inner_text())
        for number in numbers:
            table.get_by_role("link", name=f"Trial {number}", exact=True).wait_for()
        tab.get_by_role("button", name=f"Leave trial {numbers[0]} out").click()
        self.see(tab, "What differs between 2 trials")
        tab.get_by_role("link", name="Choose others").click()
        self.assertTrue(tab.get_by_label(f"Compare trial {numbers[1]}", exact=True).is_checked())
        self.see(self.open("/studies/big/compare"), "Choose 2 to 20 trials")

    def test_looks(self):
        self.assert_looks("/studies/big/trials", f"Rows 1 to 100 of {IMPORTED}")
        numbers = self.query(where=["state=completed"], page_size=4)["numbers"]
        self.assert_looks(f"/studies/big/compare?trials={','.join(map(str, numbers))}", "What differs between 4 trials")

    def test_a_slow_and_a_failing_server(self):
        tab = self.open("/studies/big")
        self.see(tab, "Results")
        held = []
        tab.route("**/api/StudyService/QueryTrials", lambda route: held.append(route))
        tab.get_by_role("link", name="Trials", exact=True).click()
        self.see(tab, "Reading the trials")
        wait_until(lambda: tab.evaluate("1") and held, "the request")
        for one in held:
            one.fulfill(status=500, content_type="application/json",
                        body='{"code":"INTERNAL","message":"the <b>disk</b> is full"}')
        tab.get_by_role("alert").filter(has_text="the <b>disk</b> is full").first.wait_for()
        tab.unroute("**/api/StudyService/QueryTrials")
        tab.get_by_role("button", name="Try again").first.click()
        self.see(tab, f"Rows 1 to 100 of {IMPORTED}")

    def test_the_keyboard_alone(self):
        tab = self.open_table()
        tab.keyboard.press("Tab")
        self.assertEqual(self.focused(tab), "Skip to the content")
        tab.keyboard.press("Enter")
        self.assertEqual(tab.evaluate("document.activeElement.id"), "content")
        self.tab_to(tab, "val_loss")
        tab.keyboard.press("Enter")
        self.first_is(tab, self.query(sort="value", page_size=1)["numbers"][0])
        self.tab_to(tab, "Compare trial", space=True)
        self.see(tab, "Choose none")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.locator("h2.title").wait_for()

    def focused(self, tab):
        return tab.evaluate("(document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || '').trim()")

    def tab_to(self, tab, name, space=False, most=120):
        for _ in range(most):
            tab.keyboard.press("Tab")
            if name in self.focused(tab):
                self.assertNotEqual(tab.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none", name)
                if space:
                    tab.keyboard.press("Space")
                return
        self.fail(f"the Tab key does not reach {name}")
