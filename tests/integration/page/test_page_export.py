"""hpo export html: a study as one file, opened from disk without a server and without a network."""

import re
import time

from browser import Browser
from harness import wait_until

TRIALS = 6


class Export(Browser):
    def run_study(self):
        self.serve()
        self.start_worker()
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")

    def open_file(self, path, place=""):
        context = self.chromium.new_context(offline=True)
        self.addCleanup(context.close)
        tab = context.new_page()
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", self.note)
        tab.goto(f"file://{path}{place}")
        return tab

    def test_the_file_shows_the_study_without_a_server(self):
        self.run_study()
        said = self.hpo("export", "html", "toy", "--to", self.folder / "toy.html")
        self.assertIn("open it in a browser", said)
        best = self.study()["best_trial"]
        year = time.strftime("%Y")
        self.processes[0].terminate()
        tab = self.open_file(self.folder / "toy.html")
        tab.get_by_text(f"{TRIALS} of {TRIALS} trials").first.wait_for()
        self.see(tab, "as of ")
        self.assertIn(year, tab.get_by_text("as of ").inner_text())
        tab.get_by_role("link", name=f"trial {best}", exact=True).click()
        tab.get_by_role("heading", name=f"Trial {best}", exact=True).wait_for()
        tab.get_by_role("link", name="Trials", exact=True).click()
        tab.get_by_text(f"of {TRIALS}").first.wait_for()
        # Nothing can be changed.
        extend = tab.get_by_role("button", name="Extend")
        self.assertTrue(extend.is_disabled())
        self.assertIn("This page is a file", extend.get_attribute("title"))

    def test_a_study_that_goes_on_is_shown_as_it_was(self):
        self.serve()
        self.fill("big", 200)
        self.hpo("export", "html", "big", "--to", self.folder / "big.html")
        self.processes[0].terminate()
        for place, seen in (("", "200 of"), ("/trials", "Rows 1 to 100 of 200"), ("/trials/199", "Outcome"),
                            ("/analysis", "All 200 trials are shown."), ("/memory", "GPU time lost")):
            with self.subTest(place=place):
                tab = self.open_file(self.folder / "big.html", f"#/studies/big{place}")
                self.see(tab, seen)
                self.assertEqual(tab.get_by_text("What it waits for").count(), 0, "nobody waits in a file")
                self.assertEqual(tab.get_by_text("The server does not answer").count(), 0)
                self.assert_fits(tab, place)
                self.assert_accessible(tab, place)

    def test_texts_do_not_end_the_data(self):
        self.run_study()
        hostile = "</script><script>document.title='hacked'</script><!--"
        self.hpo("study", "annotate", "toy", "--note", hostile)
        self.hpo("export", "html", "--study", "toy", "--to", self.folder / "toy.html")
        text = (self.folder / "toy.html").read_text()
        self.assertEqual(len(re.findall("</script>", text)), 2)
        tab = self.open_file(self.folder / "toy.html")
        tab.get_by_text(hostile).first.wait_for()
        self.assertEqual(tab.title(), "hpo")

    def test_what_is_wrong_is_said(self):
        self.serve()
        self.assertIn("none", self.hpo("export", "html", "none", status=3))
        said = self.hpo("export", "html", "toy", "--to", self.folder / "no/such/toy.html", status=3)
        self.assertIn("no/such", said)
