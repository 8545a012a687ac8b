"""The page in a real browser, headless Chromium, driven by Playwright.

A test fails on any error that the page throws or logs, too. Without Playwright or Chromium the tests skip.
"""

import json
import os
import shutil
import sys
import unittest

from harness import SOURCE, wait_until
from test_page_api import JSON, Page

sys.path.insert(0, str(SOURCE / "bench"))
import page_studies

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

AXE = SOURCE / "web/node_modules/axe-core/axe.min.js"
PATIENCE_MS = 20_000
# Two frames: what the page does after a change of the window is done.
SETTLE = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
# What reaches beyond the window, innermost first, but for what scrolls within its place.
WIDEST = """() => [...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll")
    && (one.getBoundingClientRect().right > document.documentElement.clientWidth
        || (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).overflowX === "visible"))).reverse().slice(0, 4)
    .map((one) => `${one.tagName} ${one.getAttribute("class")} ${one.textContent.slice(0, 40)}`)"""
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}


def chromium():
    return os.environ.get("HPO_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Browser(Page):
    """A server with the page, and a browser that opens it."""

    # What the browser itself logs about requests that a test makes fail.
    EXPECTED_ERRORS = ("Failed to load resource", "net::ERR_")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if sync_playwright is None:
            raise unittest.SkipTest("Playwright is not there; scripts/bootstrap --tests fetches it")
        if chromium() is None:
            raise unittest.SkipTest("there is no Chromium; scripts/bootstrap --tests installs it")
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        cls.chromium = cls.playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        cls.addClassCleanup(cls.chromium.close)

    def setUp(self):
        super().setUp()
        self.errors = []
        self.addCleanup(lambda: self.assertEqual(self.errors, []))

    def at(self, path="/"):
        return f"http://{self.host}:{self.port}{path}"

    def open(self, path="/", **options):
        """A tab that shows `path`. `options`: as Playwright's new_context."""
        context = self.chromium.new_context(**{"viewport": DESK, **options})
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE_MS)
        tab = context.new_page()
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", self.note)
        tab.goto(self.at(path))
        return tab

    def note(self, message):
        if message.type == "error" and not any(word in message.text for word in self.EXPECTED_ERRORS):
            self.errors.append(message.text)

    def see(self, tab, text):
        tab.get_by_text(text).first.wait_for()

    def run_study(self, *options, **more):
        self.start_worker("w0", *options, **more)
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")

    def fill(self, name, trials, seed=1):
        """A study of imported trials of all states."""
        page_studies.fill(self.send, name, trials, seed)

    def send(self, method, body, media=None):
        body = body if isinstance(body, bytes) else json.dumps(body)
        status, _, answer = self.ask("POST", f"/api/{method}", body, {"Content-Type": media} if media else JSON)
        self.assertEqual(status, 200, answer[:1000])
        return json.loads(answer)

    def assert_looks(self, path, seen):
        """In both themes, at a desk's and a phone's width: `seen` is there, nothing is too wide, axe-core is content."""
        for scheme in ("light", "dark"):
            tab = self.open(path, color_scheme=scheme)
            for size in (DESK, PHONE):
                with self.subTest(path=path, scheme=scheme, width=size["width"]):
                    tab.set_viewport_size(size)
                    self.see(tab, seen)
                    self.assert_fits(tab, path)
                    self.assert_accessible(tab, path)

    def assert_fits(self, tab, what):
        """The page itself does not scroll sideways."""
        tab.evaluate(SETTLE)
        over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(over, 0, f"{what} is wider than the window by {over} pixels: {tab.evaluate(WIDEST)}")

    def assert_accessible(self, tab, what):
        """axe-core finds nothing serious or critical."""
        if not AXE.exists():
            self.skipTest("axe-core is not there; scripts/bootstrap --tests fetches it")
        tab.evaluate(AXE.read_text())
        tab.evaluate(SETTLE)
        found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        bad = [f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes']][:4]}"
               for one in found if one["impact"] in ("serious", "critical")]
        self.assertEqual(bad, [], what)
