"""Texts that want to be markup, to be endless, or to turn the line around; they are shown, and the layout holds."""

import json

from browser import DESK, PHONE, Browser, chromium

import imported_trials

MARKUP = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
TURNED = "\u202egpj.exe\u202c"
LONG = "unbroken" * 1250  # 10 kB
HOSTILE = f"{MARKUP} {TURNED} \u0007\u001b[31m {LONG}"
PLACES = ("", "/trials", "/trials/0", "/trials/1", "/compare?trials=0,1,2", "/analysis", "/memory")
STUDY = """\
name: "a<b>&'\\"%2F..\u202ex"
objective: {metric: "<i>loss</i>", direction: minimize}
trainer: {task: custom, command: "true"}
budget: {trials: 10}
memory: {policy: "off"}
sampler: {type: random, seed: 3}
pruner: {type: none}
parameters:
  "<u>rate</u>": {float: [0.0, 1.0]}
  kind: {choices: ["<b>one</b>", "two\u202e"]}
"""


class Hostile(Browser):
    STUDY = imported_trials.STUDY.format(trials=20)

    def setUp(self):
        super().setUp()
        self.serve()

    def fill(self, study):
        """Trials whose every text is hostile."""
        for line in imported_trials.lines(study, 4):
            wire = json.loads(line)
            for number, one in enumerate(wire["trials"]):
                one["origin"] = f"{HOSTILE[:4000]}{number}"
                if number == 0:
                    one["outcome"] = {"failed": {"failure_class": "FAILURE_CLASS_DIVERGED", "message": HOSTILE}}
                if number == 1:
                    one["outcome"] = {"out_of_memory": {
                        "kind": "OOM_KIND_CONFIGURATION", "requested_bytes": 1, "peak_bytes": 1, "limit_bytes": 2,
                        "needed_bytes": 3, "phase": "backward", "step": 1, "error_message": HOSTILE,
                        "error_traceback": HOSTILE}}
            status, _, body = self.ask("POST", "/api/StudyService/ImportTrials", json.dumps(wire) + "\n",
                                       {"Content-Type": "application/x-ndjson"})
            self.assertEqual(status, 200, body)

    def test_texts_of_trials_are_texts(self):
        self.fill("toy")
        short = HOSTILE[:2000].replace("\x07", "").replace("\x1b", "")
        self.hpo("study", "annotate", "toy", "--note", short, "--tag", MARKUP[:60])
        self.hpo("trial", "annotate", "0", "--study", "toy", "--note", short, "--tag", MARKUP[:60])
        for place in PLACES:
            for size in (DESK, PHONE):
                with self.subTest(place=place, width=size["width"]):
                    tab = self.open(f"/studies/toy{place}", viewport=size)
                    tab.get_by_role("heading", name="toy", exact=True).wait_for()
                    tab.wait_for_load_state("networkidle")
                    self.assertEqual(tab.title(), "hpo")
                    self.assertEqual(tab.locator("main img, main script").count(), 0)
                    self.assert_fits(tab, place)

    def test_a_failure_s_message_is_shown_whole(self):
        self.fill("toy")
        tab = self.open("/studies/toy/trials/0")
        tab.get_by_text(MARKUP).first.wait_for()

    def test_names_of_workers_are_texts(self):
        self.start_worker(MARKUP[:60].replace("/", ""), environment={"HPO_FAKE_PACE_MS": "300"})
        tab = self.open("/fleet")
        tab.get_by_text("<img src=x").first.wait_for()
        self.assertEqual(tab.title(), "hpo")
        self.assert_fits(tab, "the fleet")

    def test_names_of_studies_and_parameters_are_texts(self):
        file = self.folder / "hostile.yaml"
        file.write_text(STUDY)
        made = self.call("CreateStudy", {"yaml": STUDY, "origin": "hostile.yaml"})
        if made[0] != 200:  # names that are refused are said in one line
            self.assertEqual(made[1]["code"], "INVALID_ARGUMENT")
            self.assertNotIn("\n", made[1]["message"])
            return
        tab = self.open("/")
        tab.get_by_text("a<b>&'").first.click()
        tab.get_by_role("heading").first.wait_for()
        self.assertEqual(tab.title(), "hpo")
        self.assert_fits(tab, "the study")


class OtherSites(Browser):
    """What a page of another site, or a name that somebody else turned to this machine, can do: nothing."""

    def test_another_site_s_page_changes_nothing_and_reads_nothing(self):
        self.serve()
        context = self.chromium.new_context()
        self.addCleanup(context.close)
        tab = context.new_page()
        tab.route("http://evil.example/", lambda route: route.fulfill(
            content_type="text/html", body="<!doctype html><title>evil</title>"))
        tab.goto("http://evil.example/")
        for options in ('{method: "POST", body: \'{"name":"toy"}\'}',
                        '{method: "POST", mode: "no-cors", body: \'{"study":"toy"}\'}'):
            said = tab.evaluate(f"fetch('{self.at('/api/StudyService/OrderStudy')}', {options})"
                                ".then((answer) => answer.text(), () => 'refused')")
            self.assertIn(said, ("refused", ""))
        frame = tab.evaluate(f"""new Promise((resolve) => {{
            const frame = document.createElement("iframe");
            frame.src = "{self.at('/')}";
            frame.onload = () => {{ try {{ resolve(frame.contentDocument === null); }} catch {{ resolve(true); }} }};
            document.body.append(frame);
        }})""")
        self.assertTrue(frame)
        self.assertEqual(self.study()["order"], "RUN")

    def test_a_name_that_leads_here_is_refused(self):
        """DNS rebinding: the browser believes that evil.example is this machine."""
        self.serve()
        browser = self.playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"])
        self.addCleanup(browser.close)
        tab = browser.new_page()
        answer = tab.goto(f"http://evil.example:{self.port}/")
        self.assertGreaterEqual(answer.status, 400)
        self.assertNotIn("toy", tab.content())
        said = tab.evaluate("fetch('/api/StudyService/ListStudies', {method: 'POST', body: '{}', headers: "
                            "{'Content-Type': 'application/json'}}).then((answer) => answer.status)")
        self.assertGreaterEqual(said, 400)
