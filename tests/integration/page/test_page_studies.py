"""Studies on the page: the list, one study at a glance, its orders; with workers, and while the server is gone."""

import json

from browser import Browser
from harness import wait_until

TRIALS = 6


class Studies(Browser):
    def open_study(self, path="/studies/toy", **options):
        tab = self.open(path, **options)
        tab.get_by_role("heading", name="toy", exact=True).wait_for()
        return tab

    def test_a_server_without_studies_says_what_to_do(self):
        server = self.start_server("--http", "127.0.0.1:0", study=None)
        self.find_page(server)
        self.see(self.open(), "There is no study yet.")

    def test_a_study_is_followed_while_it_runs(self):
        self.serve()
        tab = self.open()
        tab.get_by_role("link", name="toy", exact=True).click()
        self.see(tab, "No trial has a value yet.")
        tab.get_by_role("heading", name="What it waits for").wait_for()
        self.run_study()
        self.see(tab, f"{TRIALS} of {TRIALS} trials")
        tab.get_by_role("img", name="Values of macro_f1 by trial").wait_for()
        best = self.study()["best_trial"]
        self.see(tab, f"trial {best}")
        # The list shows the same, and the browser's Back leads to it.
        tab.go_back()
        self.see(tab, f"{TRIALS} of {TRIALS} trials")

    def test_orders(self):
        self.serve()
        tab = self.open_study()
        tab.get_by_role("button", name="Pause").click()
        self.see(tab, "Paused: running trials go on")
        wait_until(lambda: self.study()["order"] == "PAUSE", "the pause")
        tab.get_by_role("button", name="Resume").click()
        wait_until(lambda: self.study()["order"] == "RUN", "the study to go on")
        tab.get_by_role("button", name="Extend").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("Trials to add").fill("many")
        dialog.get_by_role("button", name="Extend").click()
        self.assertIn("expected a whole number", dialog.get_by_role("alert").inner_text())
        dialog.get_by_label("Trials to add").fill("4")
        dialog.get_by_role("button", name="Extend").click()
        self.see(tab, "The budget is now 0 of 10 trials.")
        tab.get_by_role("button", name="Stop").click()
        tab.get_by_role("button", name="Let running trials finish").click()
        wait_until(lambda: self.study()["order"] == "STOP", "the stop")

    def test_a_configuration_is_enqueued(self):
        self.serve()
        tab = self.open_study()
        tab.get_by_role("button", name="Enqueue").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("x", exact=True).fill("fast")
        dialog.get_by_role("button", name="Enqueue").click()
        self.assertIn("expected a number", dialog.get_by_role("alert").inner_text())
        dialog.get_by_label("x", exact=True).fill("0.25")
        dialog.get_by_role("button", name="Enqueue").click()
        dialog.get_by_role("link", name="Show trial 0").wait_for()
        self.assertEqual(self.trial(0)["params"]["x"], 0.25)
        tab.keyboard.press("Escape")
        dialog.wait_for(state="detached")

    def test_ranges_are_edited_after_a_preview(self):
        self.serve()
        self.hpo("enqueue", "--study", "toy", "y=0.9")
        tab = self.open_study()
        tab.get_by_role("button", name="Edit ranges").click()
        dialog = tab.get_by_role("dialog")
        apply = dialog.get_by_role("button", name="Apply")
        self.assertTrue(apply.is_disabled())
        dialog.get_by_label("y: highest").fill("0.5")
        dialog.get_by_role("button", name="Show what changes").click()
        self.assertIn("1 queued trial would be cancelled", dialog.get_by_role("status").inner_text())
        apply.click()
        self.see(tab, "The ranges were changed.")
        self.assertEqual(self.trial(0)["state"], "CANCELLED")

    def second(self):
        file = self.folder / "second.yaml"
        file.write_text(self.STUDY.replace("name: toy", "name: second").replace("trials: 6", "trials: 9"))
        return file

    def test_two_studies_are_compared(self):
        self.serve()
        self.hpo("study", "create", self.second())
        tab = self.open()
        tab.get_by_label("Compare second").check()
        tab.get_by_label("Compare toy").check()
        tab.get_by_role("button", name="Compare two").click()
        self.see(tab, "0 of 9 trials")
        self.see(tab, "0 of 6 trials")

    def test_a_server_that_is_gone_and_back(self):
        server = self.serve()
        tab = self.open_study()
        port = self.port
        server.kill9()
        self.see(tab, "The server does not answer.")
        self.see(tab, "toy")
        self.restart(port)
        tab.get_by_text("The server does not answer. What you see").wait_for(state="detached")
        self.run_study()
        self.see(tab, f"{TRIALS} of {TRIALS} trials")

    def restart(self, port):
        server = self.start_server("--http", f"127.0.0.1:{port}")
        wait_until(lambda: "page at" in server.output(), "the server to be back")

    def look_away(self, tab, away):
        """As where another tab of the browser is in front: this one follows nothing then."""
        tab.evaluate("""(away) => {
            Object.defineProperty(document, "hidden", {configurable: true, get: () => away});
            document.dispatchEvent(new Event("visibilitychange"));
        }""", away)

    def test_a_tab_that_was_away_too_long_reads_everything_again(self):
        server = self.serve()
        tab = self.open_study("/studies/toy/trials")
        self.see(tab, "This study has no trials yet.")
        self.look_away(tab, True)
        # A server that starts again does not know the changes from before any more.
        self.hpo("enqueue", "--study", "toy", "x=0.5")
        port = self.port
        server.terminate()
        self.restart(port)
        self.hpo("enqueue", "--study", "toy", "x=0.25")
        self.look_away(tab, False)
        self.see(tab, "Rows 1 to 2 of 2")
        self.assertEqual(tab.get_by_text("The server does not answer.").count(), 0)
        # And it follows the study again.
        self.hpo("enqueue", "--study", "toy", "x=0.75")
        self.see(tab, "Rows 1 to 3 of 3")

    def test_a_study_that_is_deleted_and_restored(self):
        self.serve()
        self.hpo("enqueue", "--study", "toy", "x=0.5")
        archive = self.folder / "toy.hpo-study"
        tab, listed = self.open_study(), self.open()
        listed.get_by_role("link", name="toy", exact=True).wait_for()
        self.hpo("study", "delete", "toy", "--archive", archive)
        self.see(tab, "There is no study of this name")
        self.see(listed, "There is no study yet.")
        self.hpo("study", "restore", archive)
        listed.get_by_role("link", name="toy", exact=True).click()
        self.see(listed, "1 trial queued")

    def test_the_first_button_is_what_one_wants(self):
        self.serve()
        tab = self.open_study()
        first = tab.get_by_role("main").locator(".heading button").first
        self.assertEqual(first.inner_text(), "Pause")
        self.run_study()
        self.see(tab, f"{TRIALS} of {TRIALS} trials")
        tab.get_by_role("button", name="Pause").wait_for(state="detached")
        self.assertEqual(first.inner_text(), "Extend …")
        self.assertEqual(tab.get_by_role("button", name="Resume").count(), 0)
        first.click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("Trials to add").fill("2")
        dialog.get_by_role("button", name="Extend").click()
        self.see(tab, f"The budget is now {TRIALS} of {TRIALS + 2} trials.")
        tab.get_by_role("button", name="Stop").click()
        tab.get_by_role("button", name="Let running trials finish").click()
        tab.get_by_role("button", name="Resume").click()
        self.see(tab, "The study goes on.")
        self.assertEqual(first.inner_text(), "Pause")

    def test_themes_widths_and_axe(self):
        self.serve()
        self.run_study()
        self.hpo("study", "create", self.second())
        for path in ("/", "/studies/toy", "/compare?study=toy&study=second"):
            self.assert_looks(path, f"{TRIALS} of {TRIALS} trials")

    def test_the_theme_can_be_chosen(self):
        self.serve()
        tab = self.open(color_scheme="light")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(ground)
        tab.get_by_role("button", name="Dark colours").click()
        self.assertNotEqual(tab.evaluate(ground), light)
        tab.reload()
        tab.get_by_role("button", name="Light colours").wait_for()
        self.assertNotEqual(tab.evaluate(ground), light)

    def test_an_address_that_is_nothing(self):
        self.serve()
        self.see(self.open("/no/such/page"), "There is no such page")
        self.see(self.open("/studies/none"), "There is no study of this name")

    def test_names_and_notes_are_text(self):
        hostile = "<img src=x onerror=\"document.title='hacked'\"> \u202egpj.exe " + "long " * 400
        self.serve()
        self.hpo("study", "annotate", "toy", "--note", hostile, "--tag", "<b>bold</b>", "--set",
                 f"owner={json.dumps('<script>1</script>')}")
        for path in ("/", "/studies/toy"):
            tab = self.open(path)
            self.see(tab, "<b>bold</b>")
            self.assertEqual(tab.title(), "hpo")
            self.assert_fits(tab, path)


