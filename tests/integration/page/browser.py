"""The page in a real browser, headless Chromium, driven by Playwright.

A test fails on any error that the page throws or logs, too. Without Playwright or Chromium the tests skip.
"""

import os
import pathlib
import shutil
import unittest

from test_page_api import Page

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

AXE = pathlib.Path(__file__).resolve().parents[3] / "web/node_modules/axe-core/axe.min.js"
PATIENCE_MS = 60_000
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

    def assert_fits(self, tab, what):
        """The page itself does not scroll sideways."""
        over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(over, 0, f"{what} is wider than the window by {over} pixels")

    def assert_accessible(self, tab, what):
        """axe-core finds nothing serious or critical."""
        if not AXE.exists():
            self.skipTest("axe-core is not there; scripts/bootstrap --tests fetches it")
        tab.evaluate(AXE.read_text())
        found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        bad = [f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes']][:4]}"
               for one in found if one["impact"] in ("serious", "critical")]
        self.assertEqual(bad, [], what)
