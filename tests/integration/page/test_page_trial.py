"""One trial on the page: what it shows of a trial, and what can be done with it."""

import re

from browser import Browser
from harness import wait_until


class Trial(Browser):
    """Trials that a worker ran with the fake trainer."""

    STUDY = Browser.STUDY.replace("  y: ", "  fake.fault: {choices: [none, diverged]}\n  y: ")

    def open_trial(self, number, **options):
        tab = self.open(f"/studies/toy/trials/{number}", **options)
        tab.get_by_role("heading", name=f"Trial {number}", exact=True).wait_for()
        return tab

    def enqueue(self, fault, x=0.5):
        self.hpo("enqueue", "--study", "toy", f"fake.fault={fault}", f"x={x}", "y=0.25")

    def run_both(self):
        self.serve()
        self.enqueue("none")
        self.enqueue("diverged")
        self.hpo("study", "annotate", "toy", "--note", "two of them are told what to do")
        self.run_study(environment={"HPO_FAKE_SAY": "epoch 1\nepoch 2", "HPO_FAKE_MEASUREMENTS": "5"})

    def test_a_trial_that_completed(self):
        self.run_both()
        tab = self.open_trial(0)
        for text in ("It ran to its end.", "epoch 2", "hpo enqueue --study toy", "w0", "5 values"):
            self.see(tab, text)
        tab.get_by_role("img", name="Values of macro_f1 by step").wait_for()
        for card in ("Parameters", "Attempts", "Memory by stage", "End of the log"):
            tab.get_by_role("region", name=card).wait_for()
        tab.get_by_role("link", name="Trial 1 →").click()
        tab.get_by_role("heading", name="Trial 1", exact=True).wait_for()
        self.see(self.open("/studies/toy/trials/99"), "99")

    def test_notes_a_clone_and_a_retry(self):
        self.run_both()
        tab = self.open_trial(1)
        self.see(tab, "The training diverged.")
        tab.get_by_role("button", name="Edit …").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_label("New tag").fill("odd")
        dialog.get_by_role("button", name="Add").click()
        dialog.get_by_role("button", name="Remove the tag odd").wait_for()
        dialog.get_by_label("Name").fill("reviewed")
        dialog.get_by_label("Value (JSON, or a text)").fill("true")
        dialog.get_by_role("button", name="Set").click()
        dialog.get_by_role("button", name="Remove", exact=True).wait_for()
        dialog.get_by_label("Note", exact=True).fill("the rate is too high")
        dialog.get_by_role("button", name="Save the note").click()
        dialog.wait_for(state="detached")
        self.see(tab, "the rate is too high")
        trial = self.trial(1)
        self.assertEqual((trial["note"], trial["tags"]), ("the rate is too high", ["odd"]))
        tab.get_by_role("button", name="Clone with changes …").click()
        dialog.get_by_label("x", exact=True).fill("0.75")
        dialog.get_by_role("button", name="Enqueue").click()
        link = dialog.get_by_role("link", name="Show trial")
        link.wait_for()
        clone = int(link.inner_text().split()[-1])
        self.assertEqual((self.trial(clone)["params"]["x"], self.trial(clone)["params"]["y"]), (0.75, 0.25))
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Retry").click()
        tab.get_by_role("link", name=f"Show trial {clone + 1}").click()
        tab.get_by_role("heading", name=f"Trial {clone + 1}", exact=True).wait_for()
        tab.get_by_role("button", name="Cancel …").click()
        dialog.get_by_label("Reason").fill("not worth it")
        dialog.get_by_role("button", name="Cancel the trial").click()
        self.see(tab, "not worth it")
        self.assertEqual(self.trial(clone + 1)["state"], "CANCELLED")

    def test_a_trial_that_runs_is_preempted_and_stopped(self):
        self.serve()
        self.enqueue("none")
        self.start_worker(environment={"HPO_FAKE_PACE_MS": "200", "HPO_FAKE_MEASUREMENTS": "500"})
        wait_until(lambda: self.trial(0).get("last_measurement"), "a measurement")
        tab = self.open_trial(0)
        self.see(tab, "It runs on w0.")
        # Measurements arrive without a reload.
        line = tab.get_by_text(re.compile(r"^\d+ values"))
        before = int(line.inner_text().split()[0])
        wait_until(lambda: int(line.inner_text().split()[0]) > before + 4, "more measurements on the page")
        tab.get_by_role("button", name="Preempt").click()
        wait_until(lambda: len(self.trial(0)["attempts"]) > 1, "the next attempt")
        tab.get_by_role("region", name="Attempts").get_by_role("cell", name="released", exact=True).wait_for()
        tab.get_by_role("main").get_by_role("button", name="Stop …").last.click()
        tab.get_by_role("dialog").get_by_label("Reason").fill("enough is known")
        tab.get_by_role("dialog").get_by_role("button", name="Stop the trial").click()
        self.see(tab, "It was cancelled: enough is known")

    def test_a_server_that_is_gone_and_back(self):
        server = self.serve()
        self.enqueue("none")
        tab = self.open_trial(0)
        self.see(tab, "It waits for a worker.")
        server.kill9()
        self.see(tab, "The server does not answer.")
        self.see(tab, "It waits for a worker.")
        tab.get_by_role("button", name="Cancel …").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel the trial").click()
        tab.locator(".notice.error").first.wait_for()
        again = self.start_server("--http", f"127.0.0.1:{self.port}")
        wait_until(lambda: "page at" in again.output(), "the server to be back")
        tab.get_by_text("The server does not answer. What you see").wait_for(state="detached")
        self.run_study()
        self.see(tab, "It ran to its end.")

    def test_looks(self):
        self.run_both()
        self.assert_looks("/studies/toy/trials/0", "It ran to its end.")
        self.assert_looks("/studies/toy/trials/1", "The training diverged.")

    def test_a_role_that_may_not_write(self):
        self.run_both()
        tab = self.open("/")
        tab.route("**/api/session", lambda route: route.fulfill(
            content_type="application/json", body='{"name":"ann","role":"read","tls":true,"version":"1"}'))
        tab.goto(self.at("/studies/toy/trials/1"))
        retry = tab.get_by_role("button", name="Retry")
        retry.wait_for()
        self.assertTrue(retry.is_disabled())
        self.assertIn("may not", retry.get_attribute("title"))
        self.assertTrue(tab.get_by_role("button", name="Extend").is_disabled())
