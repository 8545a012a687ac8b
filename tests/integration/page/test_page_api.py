"""The API over HTTP as curl and a browser use it, and what strangers and other sites get: one line, and nothing else."""

import contextlib
import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "security"))
from harness import BIN, DEADLINE_S, Deployment, wait_until
from secured import SECRET, Secured

PAGE = re.compile(r"page at (https?)://([\w.\-]+):(\d+)/")
FOUR_MIB = 4 << 20
JSON = {"Content-Type": "application/json"}


class Page(Deployment):
    """A server with the page, and requests to it."""

    def serve(self, *options):
        server = self.start_server("--http", "127.0.0.1:0", *options)
        self.find_page(server)
        return server

    def find_page(self, server):
        found = wait_until(lambda: PAGE.search(server.output()), "the page's address")
        self.host, self.port = found.group(2), int(found.group(3))

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request."""
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def call(self, method, request, headers=None, service="StudyService"):
        """(status, JSON) of a call of the API."""
        status, _, body = self.ask("POST", f"/api/{service}/{method}", json.dumps(request), {**JSON, **(headers or {})})
        return status, json.loads(body)

    def raw(self, data, seconds=DEADLINE_S):
        """What the server answers to these bytes until it closes."""
        with socket.create_connection((self.host, self.port), timeout=seconds) as connection:
            connection.sendall(data)
            whole = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    whole += piece
            return whole

    def events(self, path, headers=None):
        """A stream of events, as (event, id, data)."""
        connection = self.connection()
        self.addCleanup(connection.close)
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200, answer.read(500) if answer.status != 200 else "")
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")

        def read():
            fields = {}
            for line in iter(answer.readline, b""):
                text = line.decode().rstrip("\n")
                if not text:
                    yield fields["event"], fields["id"], json.loads(fields["data"])
                    fields = {}
                    continue
                name, value = text.split(": ", 1)
                fields[name] = value
        return read()


class Calls(Page):
    def setUp(self):
        super().setUp()
        self.serve()

    def test_every_call_answers_with_json_of_its_message(self):
        status, said = self.call("GetStudy", {"name": "toy"})
        self.assertEqual((status, said["study"]["name"]), (200, "toy"))
        status, said = self.call("EnqueueTrial", {"study": "toy", "params": {"x": {"double_value": 0.25}},
                                                  "requestId": "one"})
        self.assertEqual(status, 200, said)
        self.assertEqual(said["trial"]["params"]["x"], {"double_value": 0.25})
        self.assertEqual(self.call("ListWorkers", {}, service="FleetService"), (200, {}))
        status, said = self.call("ListTokens", {}, service="AdminService")
        self.assertEqual((status, said["code"]), (400, "FAILED_PRECONDITION"))
        self.assertIn(f":{self.port}/", self.call("GetServer", {}, service="AdminService")[1]["page"])

    def test_errors_have_grpc_s_names_and_one_line(self):
        for method, request, status, code, words in (
                ("GetStudy", {"name": "none"}, 404, "NOT_FOUND", "expected one of toy"),
                ("GetStudy", {"nmae": "toy"}, 400, "INVALID_ARGUMENT", "nmae: Cannot find field"),
                ("GetStudio", {}, 501, "UNIMPLEMENTED", "GetStudy"),
                ("ListTrials", {"study": "toy", "page_size": -1}, 400, "INVALID_ARGUMENT", "page_size")):
            got, said = self.call(method, request)
            self.assertEqual((got, said["code"]), (status, code), said)
            self.assertIn(words, said["message"])
            self.assertNotIn("\n", said["message"])
        status, _, body = self.ask("POST", "/api/StudyService/GetStudy", '{"name":', JSON)
        self.assertEqual((status, json.loads(body)["code"]), (400, "INVALID_ARGUMENT"))
        deep = '{"space":' * 200 + "1" + "}" * 200
        self.assertEqual(self.ask("POST", "/api/StudyService/GetStudy", deep, JSON)[0], 400)

    def test_streams_are_lines_of_json(self):
        status, headers, body = self.ask("POST", "/api/StudyService/ArchiveStudy", '{"name":"toy"}', JSON)
        lines = [json.loads(line) for line in body.splitlines()]
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"))
        self.assertIn("sha256", lines[-1]["end"])
        status, _, body = self.ask("POST", "/api/StudyService/RestoreStudy",
                                   "\n".join([json.dumps({"name": "again", **lines[0]})]), JSON)
        self.assertEqual(status, 200, body)
        self.assertEqual(json.loads(body)["study"]["name"], "again")
        status, said = self.call("ArchiveStudy", {"name": "none"})
        self.assertEqual((status, said["code"]), (404, "NOT_FOUND"))

    def test_a_connection_serves_many_calls(self):
        with contextlib.closing(self.connection()) as connection:
            for _ in range(50):
                connection.request("POST", "/api/StudyService/GetStudy", '{"name":"toy"}', JSON)
                self.assertEqual(connection.getresponse().read()[:9], b'{"study":')

    def test_long_answers_are_gzip_where_that_is_accepted(self):
        status, headers, body = self.ask("POST", "/api/StudyService/GetStudy", "{}", {**JSON, "Accept-Encoding": "gzip"})
        plain = self.ask("POST", "/api/StudyService/GetStudy", "{}", JSON)
        self.assertNotIn("Content-Encoding", plain[1])
        if len(plain[2]) >= 1024:
            self.assertEqual(headers["Content-Encoding"], "gzip")
            self.assertLess(len(body), len(plain[2]))

    def test_files_of_the_page(self):
        status, headers, body = self.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(self.ask("GET", "/studies/a%20b/trials/17?x=1")[2], body, "paths belong to the page")
        again = self.ask("GET", "/", headers={"If-None-Match": headers["ETag"]})
        self.assertEqual((again[0], again[2]), (304, b""))
        script = re.search(rb'src="(/assets/[^"]+)"', body).group(1).decode()
        status, headers, body = self.ask("GET", script)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/javascript; charset=utf-8"))
        self.assertIn("immutable", headers["Cache-Control"])
        packed = self.ask("GET", script, headers={"Accept-Encoding": "br, gzip"})
        self.assertEqual(packed[1].get("Content-Encoding"), "gzip")
        status, headers, body = self.ask("HEAD", script)
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 0)
        self.assertEqual(self.ask("GET", "/assets/none-0.js")[0], 404)
        self.assertEqual(self.ask("PUT", "/", "x")[0], 405)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_changes_are_told_within_a_second_and_again_after_a_reconnect(self):
        stream = self.events("/api/events?study=toy")
        event, _, study = next(stream)
        self.assertEqual((event, study["name"]), ("snapshot", "toy"))
        asked = time.monotonic()
        self.call("EnqueueTrial", {"study": "toy", "params": {"x": {"double_value": 0.5}}, "request_id": "two"})
        event, sequence, change = next(stream)
        self.assertLess(time.monotonic() - asked, 1.0)
        self.assertEqual((event, change["kind"], change["sequence"]), ("change", "queued", sequence))
        again = self.events("/api/events?study=toy&after=999", {"Last-Event-ID": str(int(sequence) - 1)})
        self.assertEqual([next(again)[0], next(again)[:2]], ["snapshot", ("change", sequence)])
        too_new = self.events("/api/events?study=toy&after=999999")
        self.assertEqual([next(too_new)[0], next(too_new)[0]], ["snapshot", "reset"])
        status, _, body = self.ask("GET", f"/api/events?study=toy&poll=1&after={int(sequence) - 1}")
        polled = json.loads(body)
        self.assertEqual((status, polled["after"]), (200, sequence))
        self.assertEqual([one["event"] for one in polled["events"]], ["snapshot", "change"])
        status, _, body = self.ask("GET", "/api/events?study=none")
        self.assertEqual((status, json.loads(body)["code"]), (404, "NOT_FOUND"))
        self.assertEqual(self.ask("GET", "/api/events?study=toy&after=x")[0], 400)

    def test_streams_have_a_limit_and_polling_goes_on(self):
        streams = [self.events("/api/events?study=toy") for _ in range(64)]
        status, _, body = self.ask("GET", "/api/events?study=toy")
        self.assertEqual((status, json.loads(body)["code"]), (429, "RESOURCE_EXHAUSTED"))
        self.assertIn("poll=1", json.loads(body)["message"])
        self.assertEqual(self.ask("GET", "/api/events?study=toy&poll=1")[0], 200)
        self.assertEqual(self.call("GetStudy", {"name": "toy"})[0], 200)
        self.assertEqual(len(streams), 64)


class Tables(Page):
    """What the page shows of trials that have run."""

    def setUp(self):
        super().setUp()
        self.serve()
        self.start_worker()
        wait_until(lambda: self.call("GetStudy", {"name": "toy"})[1]["study"]["state"] == "STUDY_STATE_FINISHED",
                   "six trials")

    def test_pages_history_and_hours(self):
        status, page = self.call("QueryTrials", {"study": "toy", "sort": "-value", "page_size": 4, "where": ["x>=0"]})
        self.assertEqual((status, page["total"], page["matching"]), (200, "6", "6"), page)
        columns = {column["name"]: column for column in page["columns"]}
        values = columns["value"]["numbers"]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(len(page["numbers"]), 4)
        self.assertIn("param:x", columns)
        more = self.call("QueryTrials", {"study": "toy", "sort": "-value", "page_size": 4, "where": ["x>=0"],
                                         "page_token": page["next_page_token"]})[1]
        self.assertEqual(sorted(page["numbers"] + more["numbers"]), list(range(6)))
        last = self.call("QueryTrials", {"study": "toy", "sort": "-value", "page_size": 2, "from_end": True})[1]
        self.assertEqual(last["numbers"], more["numbers"])
        more_columns = self.call("QueryTrials", {"study": "toy", "columns": ["worker", "attempts", "metric:macro_f1"]})[1]
        self.assertEqual(more_columns["columns"][0]["texts"], ["w0"])
        status, said = self.call("QueryTrials", {"study": "toy", "where": ["x>small"]})
        self.assertEqual((status, said["message"]), (400, "where: x: expected a number, got 'small'"))
        history = self.call("GetHistory", {"study": "toy"})[1]
        self.assertEqual((history["numbers"], history["states"]), (list(range(6)), "CCCCCC"))
        self.assertAlmostEqual(history["best_values"][-1], values[0])
        study = self.call("GetStudy", {"name": "toy"})[1]["study"]
        self.assertGreater(float(study["time_by_use"]["useful"].rstrip("s")), 0.0)

    def test_a_trial_that_ends_meanwhile_is_on_the_next_page(self):
        before = self.call("QueryTrials", {"study": "toy"})[1]
        self.call("EnqueueTrial", {"study": "toy", "params": {"x": {"double_value": 0.5}}, "request_id": "more"})
        after = self.call("QueryTrials", {"study": "toy", "where": ["x=0.5"]})[1]
        self.assertEqual(after["numbers"], [6])
        self.assertGreater(int(after["sequence"]), int(before["sequence"]))


class OtherSites(Page):
    def setUp(self):
        super().setUp()
        self.serve()

    def refused(self, headers, words, path="/api/StudyService/GetStudy", method="POST"):
        status, _, body = self.ask(method, path, "{}" if method == "POST" else None, {**JSON, **headers})
        said = json.loads(body)
        self.assertEqual((status, said["code"]), (403, "PERMISSION_DENIED"), said)
        self.assertIn(words, said["message"])
        self.assertNotIn("\n", said["message"])

    def test_a_name_that_leads_here_is_refused(self):
        for path in ("/", "/api/session", "/api/events", "/api/health"):
            self.refused({"Host": f"evil.example:{self.port}"}, "Host: expected localhost", path, "GET")
        self.refused({"Host": "127.0.0.1.evil.example"}, "--advertise 127.0.0.1.evil.example")
        self.assertEqual(self.ask("GET", "/", headers={"Host": "a b"})[0], 400)
        for host in (f"localhost:{self.port}", "localhost:9999", "[::1]:80", "10.1.2.3"):
            self.assertEqual(self.ask("GET", "/api/session", headers={"Host": host})[0], 200, host)

    def test_another_site_s_requests_are_refused(self):
        self.refused({"Origin": "http://evil.example"}, "Origin: expected the page's own")
        self.refused({"Origin": "null"}, "Origin: expected the page's own")
        self.refused({"Origin": f"https://127.0.0.1:{self.port}"}, "Origin")
        self.refused({"Origin": f"http://127.0.0.1:{self.port + 1}"}, "Origin")
        self.refused({"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site")
        self.refused({"Sec-Fetch-Site": "same-site"}, "Sec-Fetch-Site", "/api/events", "GET")
        self.refused({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
                     "Sec-Fetch-Site", "/", "GET")
        own = {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(self.call("GetStudy", {"name": "toy"}, own)[0], 200)
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        self.assertEqual(self.ask("GET", "/studies/toy", headers=link)[0], 200)

    def test_forms_cannot_call(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"):
            status, _, body = self.ask("POST", "/api/StudyService/GetStudy", "{}", {"Content-Type": kind})
            self.assertEqual((status, json.loads(body)["code"]), (415, "INVALID_ARGUMENT"), kind)

    def test_paths_lead_nowhere_else(self):
        index = self.ask("GET", "/")[2]
        for path in ("/../../etc/passwd", "/assets/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                     "/assets/..%2f..%2fetc/passwd", "/assets\\..\\..\\etc\\passwd", "/%00", "/a%0d%0aSet-Cookie:x",
                     "/%", "/%zz"):
            status, headers, body = self.ask("GET", path)
            self.assertEqual(status, 400, path)
            self.assertNotIn(b"root:", body)
            self.assertNotIn("Set-Cookie", headers)
        self.assertEqual(self.ask("GET", "/etc/passwd")[2], index)
        # A token's redirect stays here.
        status, headers, _ = self.ask("GET", "//evil.example/x?token=abc")
        self.assertEqual((status, headers["Location"]), (303, "/evil.example/x"))


class Strangers(Page):
    def setUp(self):
        super().setUp()
        self.serve()

    def test_what_is_too_long_is_refused_with_one_line(self):
        status, _, body = self.ask("POST", "/api/StudyService/GetStudy", b"x" * (FOUR_MIB + 1), JSON)
        self.assertEqual((status, json.loads(body)["code"]), (413, "RESOURCE_EXHAUSTED"))
        said = self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 20000 + b"\r\n\r\n")
        self.assertTrue(said.startswith(b"HTTP/1.1 431 "), said[:100])
        said = self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n")
        self.assertTrue(said.startswith(b"HTTP/1.1 431 "), said[:100])
        chunk = b"%x\r\n%s\r\n" % (1 << 20, b"y" * (1 << 20))
        said = self.raw(b"POST /api/StudyService/GetStudy HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                        b"Content-Type: application/json\r\n\r\n" + chunk * 5)
        self.assertTrue(said.startswith(b"HTTP/1.1 413 "), said[:100])

    def test_what_is_no_http_is_refused(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\r\n\r\n", b"\0" * 100):
            said = self.raw(data + b"\r\n\r\n")
            self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 400 "), (data, said[:100]))
        two = (b"POST /api/StudyService/GetStudy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
               b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n0\r\n\r\n")
        self.assertTrue(self.raw(two).startswith(b"HTTP/1.1 4"), "a body of two lengths")
        self.assertEqual(self.call("GetStudy", {"name": "toy"})[0], 200)

    def test_slow_clients_hold_nobody_up(self):
        slow = []
        for _ in range(200):
            connection = socket.create_connection((self.host, self.port), timeout=DEADLINE_S)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            slow.append(connection)
        self.addCleanup(lambda: [connection.close() for connection in slow])
        asked = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.call("GetStudy", {"name": "toy"})[0], 200)
        self.assertLess(time.monotonic() - asked, 10.0)

    def test_more_connections_than_there_is_room_for_push_out_the_idle(self):
        idle = [socket.create_connection((self.host, self.port), timeout=DEADLINE_S) for _ in range(600)]
        self.addCleanup(lambda: [connection.close() for connection in idle])
        self.assertEqual(self.call("GetStudy", {"name": "toy"})[0], 200)
        self.assertEqual(idle[0].recv(1), b"", "the oldest one is closed")

    def test_a_server_that_ends_ends_its_streams(self):
        streams = [self.events("/api/events?study=toy") for _ in range(4)]
        for stream in streams:
            next(stream)
        ended = threading.Event()
        threading.Thread(target=lambda: (list(streams[0]), ended.set()), daemon=True).start()
        self.processes[0].terminate()
        self.assertTrue(ended.wait(DEADLINE_S))


class WithTokens(Secured, Page):
    """Served by TLS: who has no token sees the page's files and nothing else."""

    def setUp(self):
        super().setUp()
        self.serve("--tls")

    def connection(self):
        context = ssl.create_default_context(cafile=str(self.access / "tls-cert.pem"))
        context.check_hostname = False
        return http.client.HTTPSConnection(self.host, self.port, timeout=DEADLINE_S, context=context)

    def bearer(self, role):
        return {"Authorization": f"Bearer {self.join(role)}"}

    def test_a_token_is_needed(self):
        self.assertEqual(self.ask("GET", "/")[0], 200)
        self.assertEqual(self.ask("GET", "/api/health")[0], 200)
        for path in ("/api/session", "/api/events"):
            status, headers, body = self.ask("GET", path)
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"), path)
            self.assertEqual(json.loads(body)["code"], "UNAUTHENTICATED")
        for token in ("", "x", "a" * 43, self.join("read")[:-20], "hpo1.x.y@h:1"):
            status, said = self.call("GetStudy", {"name": "toy"}, {"Authorization": f"Bearer {token}"})
            self.assertEqual((status, said["code"]), (401, "UNAUTHENTICATED"), token)
            self.assertNotIn(token if len(token) > 20 else "\n", said["message"])

    def test_roles_are_those_of_grpc(self):
        status, said = self.call("GetStudy", {"name": "toy"}, self.bearer("read"))
        self.assertEqual((status, said["study"]["name"]), (200, "toy"))
        status, said = self.call("OrderStudy", {"name": "toy", "order": "STUDY_ORDER_PAUSE"}, self.bearer("read"))
        self.assertEqual((status, said["code"]), (403, "PERMISSION_DENIED"))
        self.assertIn("needs write", said["message"])
        self.assert_audited(event="refused", who="read", role="read", method="OrderStudy", result="PERMISSION_DENIED")
        self.assertEqual(self.ask("GET", "/api/events?study=toy", headers=self.bearer("work"))[0], 403)
        status, said = self.call("OrderStudy", {"name": "toy", "order": "STUDY_ORDER_PAUSE"}, self.bearer("write"))
        self.assertEqual(status, 200, said)
        self.audited(event="call", who="write", method="/hpo.v1.StudyService/OrderStudy", result="OK")
        status, said = self.call("ListTokens", {}, self.bearer("write"), service="AdminService")
        self.assertEqual((status, said["code"]), (403, "PERMISSION_DENIED"))

    def test_a_token_becomes_a_cookie(self):
        secret = SECRET.search(self.join("write")).group(1)
        status, headers, _ = self.ask("GET", f"/studies/toy?token={secret}")
        self.assertEqual((status, headers["Location"]), (303, "/studies/toy"))
        status, again, _ = self.ask("GET", f"/studies/toy/trials?where=x%3C0.5&token={secret}&sort=-value&where=a%3D%26b%20c")
        self.assertEqual((status, again["Location"]), (303, "/studies/toy/trials?where=x%3C0.5&sort=-value&where=a%3D%26b%20c"))
        cookie, _, attributes = headers["Set-Cookie"].partition(";")
        self.assertTrue(cookie.startswith(f"__Host-hpo-{self.port}="))
        self.assertNotIn(secret[:43], cookie)
        for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
            self.assertIn(word, attributes)
        status, _, body = self.ask("GET", "/api/session", headers={"Cookie": f"other=1; {cookie}"})
        self.assertEqual((status, json.loads(body)["role"]), (200, "write"))
        for forged in (cookie[:-1] + ("A" if cookie[-1] != "A" else "B"), cookie.split("=")[0] + "=1.4.99999999999.x"):
            self.assertEqual(self.ask("GET", "/api/session", headers={"Cookie": forged})[0], 401)
        status, headers, body = self.ask("GET", "/?token=wrong")
        self.assertEqual((status, headers["Set-Cookie"]), (401, None))
        self.hpo("admin", "token", "revoke", "write")
        status, _, body = self.ask("GET", "/api/session", headers={"Cookie": cookie})
        self.assertEqual(status, 401)
        self.assertIn("revoked", json.loads(body)["message"])

    def test_a_revoked_token_s_stream_ends(self):
        self.new_token("viewer", "read")
        join = self.new_token("viewer2", "read")
        stream = self.events("/api/events?study=toy", {"Authorization": f"Bearer {join}"})
        self.assertEqual(next(stream)[0], "snapshot")
        ended = threading.Event()

        def read():
            with contextlib.suppress(http.client.HTTPException, ConnectionError, ssl.SSLError):
                for _ in stream:
                    pass
            ended.set()  # not where reading times out
        threading.Thread(target=read, daemon=True).start()
        self.hpo("admin", "token", "revoke", "viewer2")
        self.assertTrue(ended.wait(10.0), "the stream of a revoked token goes on")
        self.assertEqual(self.ask("GET", "/api/events?study=toy", headers={"Authorization": f"Bearer {join}"})[0], 401)

    def test_a_client_of_grpc_cannot_name_another_caller(self):
        """The metadata by which the page's calls name their caller is worth nothing from outside."""
        status, said = self.call("GetStudy", {"name": "toy"}, {**self.bearer("read"), "hpo-peer": "local"})
        self.assertEqual(status, 200)
        status, said = self.call("OrderStudy", {"name": "toy", "order": "STUDY_ORDER_PAUSE"},
                                 {**self.bearer("read"), "hpo-peer": "unix-abstract:hpo-page-1-1"})
        self.assertEqual((status, said["code"]), (403, "PERMISSION_DENIED"))

    def test_plaintext_is_refused(self):
        with contextlib.suppress(ConnectionResetError):
            self.assertNotIn(b"200 OK", self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))


class Addresses(Page):
    def test_other_machines_need_tls(self):
        done = subprocess.run([BIN / "hpo-server", "--db", self.folder / "x.db", "--listen", "127.0.0.1:0", "--http",
                               "0.0.0.0:0"], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("add --tls", done.stderr)
        done = subprocess.run([BIN / "hpo-server", "--http", "unix:/tmp/x"], capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertIn("--http: expected a host and port", done.stderr)

