"""Hostile strings on the page are text that stays in its place, and other sites get nothing from the server."""

import json
import urllib.parse

from browser import DESK, PHONE, Browser, chromium
from harness import wait_until

HACK = "document.title='hacked'"
TEXTS = {
    "markup": f"<img src=x onerror=\"{HACK}\"><script>{HACK}</script>&amp;{{{{1+1}}}}'\"",
    "long": "w" * 10_240,
    "right to left": "\u202egpj.exe \u2067\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202e",
    "control characters": "a\u0000\u0001b\u001b[31mred\u0007\u007f\u0085c\ttab\r\nline\u2028\ufeff\U0001f600",
}
# Stands for a text in every field. The server accepts few of these texts in names, but it may have them from elsewhere.
WORDS = ("hostilestudy", "hostileparam", "hostilechoice", "hostilemetric", "hostileworker", "hostilemessage",
         "hostilelog", "hostilenote", "hostiletag", "hostilekey", "hostileowner", "hostilereason", "hostileorigin")
STUDY = """\
name: hostilestudy
objective: {metric: hostilemetric, direction: maximize}
trainer: {task: custom, epochs: 1}
budget: {trials: 100000}
memory: {policy: "off"}
sampler: {type: random, seed: 3}
pruner: {type: none}
parameters:
  hostileparam: {float: [0.0, 1.0]}
  x: {choices: [hostilechoice, b]}
"""
PAGES = {
    "/": "hostilestudy", "/studies/hostilestudy": "Results", "/studies/hostilestudy/trials": "Rows 1 to",
    "/studies/hostilestudy/trials/0": "Outcome", "/studies/hostilestudy/trials/1": "Outcome",
    "/studies/hostilestudy/trials/2": "Outcome", "/studies/hostilestudy/compare?trials=0,1,2": "What differs",
    "/studies/hostilestudy/analysis?charts=parallel.importance.contour.slice.rank.edf.curves.timeline": "Timeline by worker",
    "/studies/hostilestudy/memory": "GPU time lost", "/fleet": "Workers alive"}


class Hostile(Browser):
    STUDY = STUDY

    def make(self):
        self.serve()
        failed = {"failed": {"failure_class": "FAILURE_CLASS_INTERNAL", "message": "hostilemessage"}}
        oom = {"out_of_memory": {"kind": "OOM_KIND_CONFIGURATION", "phase": "hostilereason",
                                 "error_message": "hostilemessage", "error_traceback": "hostilemessage"}}
        values = {"hostileparam": {"double_value": 0.5}, "x": {"string_value": "hostilechoice"}}
        self.send("StudyService/ImportTrials", json.dumps({"study": "hostilestudy", "trials": [
            {"origin": f"hostileorigin#{i}", "params": values, "outcome": outcome} for i, outcome in enumerate((failed, oom))]}).encode(),
            "application/x-ndjson")
        words = ("--note", "hostilenote", "--tag", "hostiletag", "--set", "hostilekey=hostilenote")
        self.hpo("study", "annotate", "hostilestudy", *words, "--set", "owner=hostileowner")
        self.start_worker("hostileworker", environment={"HPO_FAKE_METRIC": "hostilemetric", "HPO_FAKE_SAY": "hostilelog",
                                                       "HPO_FAKE_PACE_MS": "100"})
        wait_until(lambda: self.json("study", "show", "hostilestudy")["counts"]["completed"] > 2, "trials that completed")
        for number in (0, 1, 2):
            self.hpo("trial", "annotate", number, "--study", "hostilestudy", *words)

    def open_with(self, text):
        """A tab whose server has `text` wherever it has one of WORDS."""
        tab = self.open("/api/health")
        tab.route("**/api/**", lambda route: self.rewrite(route, text))
        return tab

    def rewrite(self, route, text):
        request = route.request
        if "/api/events" in request.url and "poll=1" not in request.url:
            return route.abort()
        written = json.dumps(text)[1:-1]
        forms = (written, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f"))
        body = request.post_data
        for form in forms:
            body = body and body.replace(form, "hostileany")
        # The page cannot tell the words apart any more: what it asks of one is of the first that fits the place.
        for place, word in (('"study":"', "hostilestudy"), ('"name":"', "hostilestudy"), ('"metric":"', "hostilemetric"),
                            ("param:", "hostileparam"), ("metric:", "hostilemetric"), ('"x":"', "hostileparam"), ('"y":"', "hostileparam")):
            body = body and body.replace(f"{place}hostileany", f"{place}{word}")
        url = request.url.replace(urllib.parse.quote(text, safe=""), "hostilestudy").replace(urllib.parse.quote_plus(text), "hostilestudy")
        answer = route.fetch(url=url, post_data=body)
        said = answer.text()
        for word in WORDS:
            said = said.replace(word, written)
        return route.fulfill(response=answer, body=said)

    def assert_text(self, tab, what):
        self.assertEqual(tab.title(), "hpo", what)
        self.assertEqual(tab.locator("img, body script, main style").count(), 0, what)

    def test_in_every_field(self):
        self.make()
        for kind, text in TEXTS.items():
            tab = self.open_with(text)
            for path, seen in PAGES.items():
                with self.subTest(text=kind, path=path):
                    tab.set_viewport_size(DESK)
                    tab.goto(self.at(path))
                    if seen == "hostilestudy":
                        tab.get_by_role("rowheader").first.wait_for()
                    else:
                        self.see(tab, seen)
                    self.assert_text(tab, path)
                    for size in (DESK, PHONE):
                        tab.set_viewport_size(size)
                        self.assert_fits(tab, path)
                    self.assertIn(text.split("\u0000")[0][:20].strip("\u202e "), tab.locator("body").inner_text(), path)
                    if kind == "long":
                        self.assert_accessible(tab, path)
            tab.unroute_all(behavior="ignoreErrors")
            tab.close()

    def test_in_what_people_type(self):
        self.make()
        tab = self.open("/studies/hostilestudy/trials/0")
        for text in TEXTS.values():
            tab.get_by_role("button", name="Edit …").click()
            dialog = tab.get_by_role("dialog")
            dialog.get_by_label("New tag").fill(text)
            dialog.get_by_role("button", name="Add").click()
            dialog.get_by_label("Note", exact=True).fill(text)
            dialog.get_by_role("button", name="Save the note").click()
            # The server refuses what is too long, in words.
            tab.locator(".notice").first.wait_for()
            self.assert_text(tab, text[:40])
            self.assert_fits(tab, text[:40])
            tab.keyboard.press("Escape")
            dialog.wait_for(state="detached")
        tab.goto(self.at(f"/studies/hostilestudy/trials?where={urllib.parse.quote(TEXTS['markup'])}"))
        tab.get_by_role("alert").first.wait_for()
        self.assert_text(tab, "a condition in the address")
        for kind, said in (("markup", "There is no study of this name"), ("long", "expected at most 200 bytes"),
                           ("right to left", "There is no study of this name")):
            with self.subTest(text=kind):
                tab.goto(self.at(f"/studies/{urllib.parse.quote(TEXTS[kind], safe='')}"))
                self.see(tab, said)
                self.assert_text(tab, "a study in the address")
                self.assert_fits(tab, "a study in the address")

    def test_an_exported_page(self):
        self.make()
        self.hpo("study", "annotate", "hostilestudy", "--note", TEXTS["markup"], "--tag", TEXTS["right to left"])
        file = self.folder / "hostile.html"
        self.hpo("export", "html", "hostilestudy", "--to", file)
        context = self.chromium.new_context(offline=True, viewport=PHONE)
        self.addCleanup(context.close)
        tab = context.new_page()
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        for place in ("", "/trials", "/trials/2", "/analysis", "/memory"):
            tab.goto("about:blank")
            tab.goto(f"file://{file}#/studies/hostilestudy{place}")
            self.see(tab, TEXTS["right to left"].split()[1])
            self.assert_text_of_file(tab, place)
            self.assert_fits(tab, place)
            self.assert_accessible(tab, place)

    def assert_text_of_file(self, tab, what):
        self.assertEqual(tab.title(), "hpo", what)
        self.assertEqual(tab.locator("img, main script, main style").count(), 0, what)


class OtherSites(Browser):
    """What a page of another site can do in the browser of somebody who may use the server."""

    def test_another_site_changes_and_reads_nothing(self):
        self.serve()
        context = self.chromium.new_context()
        self.addCleanup(context.close)
        tab = context.new_page()
        tab.route("http://other.test/**", lambda route: route.fulfill(content_type="text/html", body="<h1>other</h1>"))
        tab.goto("http://other.test/")
        order = json.dumps({"name": "toy", "order": "STUDY_ORDER_STOP"})
        said = tab.evaluate("""async ([address, order]) => {
            const said = [];
            const ask = async (what, options) => {
              try { const answer = await fetch(address + what, options); said.push([answer.type, answer.status, await answer.text()]); }
              catch (error) { said.push(["refused", 0, ""]); }
            };
            await ask("/api/StudyService/OrderStudy", {method: "POST", mode: "no-cors", body: order});
            await ask("/api/StudyService/OrderStudy", {method: "POST", body: order, headers: {"Content-Type": "application/json"}});
            await ask("/api/StudyService/GetStudy", {method: "POST", body: order});
            await ask("/api/session", {credentials: "include"});
            await ask("/api/events?study=toy", {});
            return said;
        }""", [self.at("").rstrip("/"), order])
        for kind, _, text in said:
            self.assertIn((kind, text), (("refused", ""), ("opaque", "")), said)
        self.assertEqual(self.study()["order"], "RUN")
        # Nor by a form, nor in a frame.
        tab.evaluate("""(address) => { document.body.innerHTML = `<form method=post enctype=text/plain action="${address}/api/StudyService/OrderStudy">
            <input name='{"name":"toy","order":"STUDY_ORDER_STOP","x":"' value='"}'></form><iframe src="${address}/"></iframe>`; }""",
                     self.at("").rstrip("/"))
        frame = wait_until(lambda: tab.evaluate("1") and [one for one in tab.frames if one != tab.main_frame], "the frame")[0]
        self.assertNotIn("Studies", frame.locator("body").inner_text())
        tab.evaluate("document.forms[0].submit()")
        tab.wait_for_url(self.at("/api/**"))
        self.assertEqual(self.study()["order"], "RUN")

    def test_a_name_that_was_bound_to_this_machine(self):
        self.serve()
        browser = self.playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--host-resolver-rules=MAP rebound.test 127.0.0.1"])
        self.addCleanup(browser.close)
        tab = browser.new_page()
        for path in ("/", "/api/session", "/api/events?study=toy"):
            answer = tab.goto(f"http://rebound.test:{self.port}{path}")
            self.assertEqual(answer.status, 403, path)
            self.assertIn("Host", answer.text())
