"""The page of a server with TLS and tokens: how a session begins and ends, and what a role may do there."""

import contextlib
import http.client
import ssl
import sys

from browser import Browser
from harness import SOURCE, wait_until
from test_page_api import JSON

sys.path.insert(0, str(SOURCE / "tests/integration/security"))
from secured import SECRET, Secured

TRIALS = 6
FORM = "This server asks for a token"
WRONG = "A" * 47
# Controls that change something, by page; the others only change what is shown.
CHANGING = {
    "/studies/toy": ("Extend …", "Enqueue …", "Edit ranges …"),
    "/studies/toy/trials/0": ("Extend …", "Clone with changes …", "Edit …"),
    "/studies/toy/trials/1": ("Retry",),
    "/fleet": ("Drain all…", "Resume all"),
}
ORDER = """async () => (await fetch("/api/StudyService/OrderStudy", {method: "POST",
    headers: {"Content-Type": "application/json"}, body: '{"name":"toy","order":"STUDY_ORDER_PAUSE"}'})).status"""


class Access(Secured, Browser):
    STUDY = Browser.STUDY.replace("  y: ", "  fake.fault: {choices: [none, diverged]}\n  y: ")

    def setUp(self):
        super().setUp()
        self.serve("--tls")

    def at(self, path="/"):
        return f"https://{self.host}:{self.port}{path}"

    def open(self, path="/", **options):
        return super().open(path, **{"ignore_https_errors": True, **options})

    def connection(self):
        context = ssl.create_default_context(cafile=str(self.access / "tls-cert.pem"))
        context.check_hostname = False
        return http.client.HTTPSConnection(self.host, self.port, timeout=60, context=context)

    def secret(self, role):
        return SECRET.search(self.join(role)).group(1)

    def open_as(self, role, path="/studies/toy"):
        """A tab with a session of the token of that role."""
        tab = self.open(f"{path}?token={self.secret(role)}")
        self.see(tab, f"{role} ({role})")
        return tab

    def run_trials(self):
        """Trial 0 completes, trial 1 diverges."""
        for fault in ("none", "diverged"):
            self.hpo("enqueue", "--study", "toy", f"fake.fault={fault}", "x=0.5", "y=0.25")
        self.start_worker()
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end")

    def test_an_address_with_a_token_begins_a_session(self):
        secret = self.secret("read")
        tab = self.open_as("read")
        self.assertEqual(tab.url, self.at("/studies/toy"))
        tab.get_by_role("heading", name="toy", exact=True).wait_for()
        (cookie,) = tab.context.cookies()
        self.assertEqual(cookie["name"], f"__Host-hpo-{self.port}")
        self.assertTrue(cookie["httpOnly"] and cookie["secure"])
        self.assertEqual(cookie["sameSite"], "Strict")
        self.assertNotIn(secret[:43], cookie["value"])
        self.assertEqual(tab.evaluate("document.cookie"), "")
        tab.reload()
        tab.get_by_role("heading", name="toy", exact=True).wait_for()

    def test_the_form_takes_a_token_and_refuses_a_wrong_one(self):
        tab = self.open("/studies/toy")
        self.see(tab, FORM)
        field, button = tab.get_by_label("Token"), tab.get_by_role("button", name="Log in")
        for wrong, words in ((WRONG, "this server has no such token"), ("two words", "it has blanks"),
                             (self.join("read")[:60], "token: ")):
            with self.subTest(wrong=wrong[:10]):
                field.fill(wrong)
                button.click()
                said = tab.locator("#token-problem")
                said.filter(has_text=words).wait_for()
                self.assertNotIn(wrong, said.inner_text())
                self.assertEqual(tab.context.cookies(), [])
        self.assert_accessible(tab, "the form with a problem")
        field.fill(f" {self.join('read')} ")
        button.click()
        tab.get_by_role("heading", name="toy", exact=True).wait_for()
        self.assertEqual(tab.url, self.at("/studies/toy"))
        # Another tab of the browser has the session, too, until somebody logs out.
        other = tab.context.new_page()
        other.goto(self.at("/"))
        other.get_by_role("link", name="toy", exact=True).wait_for()
        tab.get_by_role("button", name="Log out").click()
        self.see(tab, FORM)
        self.assertEqual(tab.context.cookies(), [])
        for one in (tab, other):
            one.reload()
            self.see(one, FORM)

    def test_a_reader_sees_everything_and_changes_nothing(self):
        self.run_trials()
        tab = self.open_as("read")
        for path, seen in (("/", f"{TRIALS} of {TRIALS} trials"), ("/studies/toy", f"{TRIALS} of {TRIALS} trials"),
                           ("/studies/toy/trials", f"of {TRIALS}"), ("/studies/toy/trials/0", "It ran to its end."),
                           ("/studies/toy/trials/1", "The training diverged."),
                           ("/studies/toy/compare?trials=0,1", "What differs between 2 trials"),
                           ("/studies/toy/analysis", f"All {TRIALS} trials are shown."),
                           ("/studies/toy/memory", "GPU time lost"), ("/fleet", "has gone")):
            with self.subTest(path=path):
                tab.goto(self.at(path))
                self.see(tab, seen)
                self.see(tab, "read (read)")
                self.assertEqual(tab.get_by_text("may not do this").count(), 0, "nothing was tried")
                for name in CHANGING.get(path, ()):
                    button = tab.get_by_role("main").get_by_role("button", name=name, exact=True).first
                    self.assertTrue(button.is_disabled(), name)
                    self.assertIn("Your token has the role read", button.get_attribute("title"), name)
        # The server decides by itself.
        self.assertEqual(tab.evaluate(ORDER), 403)
        self.assert_audited(event="refused", who="read", role="read", method="OrderStudy", result="PERMISSION_DENIED")
        self.assertEqual(self.study()["order"], "RUN")

    def test_a_reader_follows_what_a_writer_does(self):
        reader, writer = self.open_as("read"), self.open_as("write")
        pause = reader.get_by_role("button", name="Pause")
        self.assertTrue(pause.is_disabled())
        writer.get_by_role("button", name="Pause").click()
        self.see(writer, "Paused: running trials go on")
        resume = reader.get_by_role("button", name="Resume")
        resume.wait_for()
        self.assertTrue(resume.is_disabled())
        self.audited(event="call", who="write", method="/hpo.v1.StudyService/OrderStudy", result="OK")

    def test_a_token_that_is_revoked_ends_its_session(self):
        tab = self.open_as("read")
        tab.get_by_role("heading", name="toy", exact=True).wait_for()
        self.hpo("admin", "token", "revoke", "read")
        self.see(tab, FORM)
        self.assertEqual(tab.get_by_role("heading", name="toy", exact=True).count(), 0)
        tab.get_by_label("Token").fill(self.join("write"))
        tab.get_by_role("button", name="Log in").click()
        self.see(tab, "write (write)")

    def test_an_address_with_a_wrong_token_says_so(self):
        tab = self.open(f"/?token={WRONG}")
        self.see(tab, "this server has no such token")
        self.assertEqual(tab.context.cookies(), [])

    def test_looks(self):
        self.assert_looks("/", FORM)

    def test_curl_with_a_header_needs_no_session(self):
        with contextlib.closing(self.connection()) as connection:
            connection.request("POST", "/api/StudyService/GetStudy", '{"name":"toy"}',
                               {**JSON, "Authorization": f"Bearer {self.join('read')}"})
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.headers["Set-Cookie"]), (200, None))
