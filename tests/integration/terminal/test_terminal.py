"""hpo on a terminal and without a server: completion, colours, widths, hpo watch -o json, hpo --db, hpo run --workers,
hpo trial logs, and the commands that hpo advises."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import unittest

from harness import BIN, DEADLINE_S, SOURCE, Deployment, read_terminal, wait_until

HPO = str(BIN / "hpo")
# Sources the script, then completes the line of $1 as readline would.
BASH = r"""
set -u
source /dev/stdin <<< "$("$0" completion bash)"
COMP_LINE=$1 COMP_POINT=${#1}
_hpo "$0"
printf '%s\n' "${COMPREPLY[@]}"
"""
COLOR = "\x1b["


class Terminal(Deployment):
    def run_hpo(self, *words, **environment):
        """What a process of hpo's said, with its status."""
        own = {**os.environ, "HPO_SERVER": self.address or "127.0.0.1:9", **environment}
        return subprocess.run([HPO, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S, env=own,
                              cwd=self.folder, check=False)

    def finish_study(self):
        server = self.start_server()
        worker = self.start_worker()
        self.assertEqual(worker.wait(), 0, worker.output())
        return server

    # -- completion -------------------------------------------------------------------------------

    def complete(self, line):
        done = subprocess.run(["bash", "-c", BASH, HPO, line], capture_output=True, text=True, timeout=DEADLINE_S,
                              cwd=self.folder, env={**os.environ, "HPO_SERVER": self.address or "127.0.0.1:9"}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_bash_completes_commands_options_values_and_files(self):
        (self.folder / "models").mkdir()
        for line, expected in [
                ("hpo trial li", ["list"]),
                ("hpo -o json tri", ["trial"]),
                ("hpo study exten", ["extend"]),
                ("hpo trial list --sta", ["--state"]),
                ("hpo trial list --state comp", ["completed"]),
                ("hpo trial list --outp", ["--output"]),
                ("hpo status --output ", ["table", "json", "yaml"]),
                ("hpo status --output=js", ["json"]),
                ("hpo run --device c", ["cpu", "cuda"]),
                ("hpo run to", ["toy.yaml"]),
                ("hpo run toy.yaml --models mo", ["models"]),
                ("HPO_STUDY=a hpo --db toy.y", ["toy.yaml"]),
                ("hpo completion ", ["bash", "zsh", "fish"]),
                ("hpo study presets memory-", ["memory-safe"]),
                ("hpo trial show ", []),
                ("hpo nonsense", []),
        ]:
            with self.subTest(line):
                self.assertEqual(self.complete(line), expected)

    def test_bash_completes_names_of_studies_and_does_not_wait_for_a_server(self):
        self.assertEqual(self.complete("hpo study show t"), [])
        self.start_server()
        self.hpo("study", "create", "--name", "other", self.folder / "toy.yaml")
        for line, expected in [("hpo study show t", ["toy"]), ("hpo --study ", ["other", "toy"]),
                               ("hpo status --study=o", ["other"]), ("hpo study delete ot", ["other"]),
                               ("hpo study validate t", ["toy.yaml"])]:
            with self.subTest(line):
                self.assertEqual(self.complete(line), expected)

    def test_every_command_of_help_is_completed(self):
        def commands(text):
            below = re.split(r"\n(?:Subcommands|Commands):\n", text)
            return re.findall(r"^  ([a-z-]+)  ", below[1].split("\n\n")[0], re.M) if len(below) > 1 else []

        def walk(path):
            shown = self.run_hpo(*path, "--help").stdout
            listed = [line.split("\t")[0] for line in self.run_hpo("__complete", *path, "").stdout.splitlines()]
            for command in commands(shown):
                self.assertIn(command, listed, path)
                walk([*path, command])
            dashes = [line.split("\t")[0] for line in self.run_hpo("__complete", *path, "--").stdout.splitlines()]
            for option in re.findall(r"^  (?:-[a-z],)?(--[a-z-]+)", shown.split("\nExamples:")[0], re.M):
                self.assertIn(option, dashes, path)

        self.assertIn("trial", commands(self.run_hpo("--help").stdout))
        walk([])

    def test_the_scripts_are_right_by_their_shells(self):
        for shell, *check in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]:
            with self.subTest(shell):
                script = self.hpo("completion", shell)
                if shutil.which(shell) is None:
                    continue
                done = subprocess.run([shell, *check], input=script, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("shell: expected one of bash, zsh, fish, got 'tcsh'", self.hpo("completion", "tcsh", status=2))

    # -- colours and widths -----------------------------------------------------------------------

    def on_terminal(self, *words, columns, **environment):
        """What hpo writes to a terminal."""
        own = {**os.environ, "HPO_SERVER": self.address, "TERM": "xterm", "COLUMNS": str(columns), **environment}
        own = {name: value for name, value in own.items() if value is not None}
        said, status = read_terminal([HPO, *words], env=own)
        self.assertEqual(status, 0, said)
        return said.replace("\r\n", "\n")

    def test_colours_are_for_terminals_that_want_them(self):
        self.finish_study()
        table = ("trial", "list")
        self.assertIn(COLOR + "32mCOMPLETED", self.on_terminal(*table, columns=100, NO_COLOR=None))
        self.assertIn(COLOR, self.on_terminal(*table, columns=100, NO_COLOR=""))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb", "NO_COLOR": None}):
            self.assertNotIn(COLOR, self.on_terminal(*table, columns=100, **environment))
        self.assertNotIn(COLOR, self.on_terminal(*table, "--color", "never", columns=100, NO_COLOR=None))
        self.assertNotIn(COLOR, self.hpo(*table))
        self.assertIn(COLOR, self.hpo(*table, "--color", "always"))
        self.assertNotIn(COLOR, self.hpo(*table, "--color", "always", "-o", "json"))
        self.assertIn("--color", self.hpo(*table, "--color", "sometimes", status=2))
        # Colours take no room.
        plain = self.hpo(*table)
        self.assertEqual(re.sub("\x1b\\[[0-9;]*m", "", self.hpo(*table, "--color", "always")), plain)

    def test_tables_keep_to_the_width(self):
        parameters = "".join(f"  a.rather.long.name.of.parameter.{i}: {{float: [0.0, 1.0]}}\n" for i in range(6))
        (self.folder / "toy.yaml").write_text(self.STUDY + parameters)
        self.finish_study()
        for columns in (40, 80, 120):
            for words in (["trial", "list"], ["trial", "show", "1"], ["study", "list"], ["study", "presets"],
                          ["study", "show", "toy"], ["best", "--n", "3"], ["memory", "fit", "--model", "bert-base-uncased",
                                                                         "--card", "8GiB,12GiB,16GiB,24GiB,40GiB,48GiB,80GiB"]):
                with self.subTest(columns=columns, words=words):
                    said = self.run_hpo(*words, COLUMNS=str(columns)).stdout
                    self.assertTrue(said)
                    tables = [block for block in said.split("\n\n") if re.match(r"[A-Z]+ {2,}[A-Z#]", block.lstrip("\n"))]
                    for line in "\n".join(tables).splitlines():
                        if not line.startswith("in all: "):
                            self.assertLessEqual(len(line), columns, line)
        # Where there is room, it is used: one line a trial.
        self.assertEqual(len(self.run_hpo("trial", "list", COLUMNS="400").stdout.splitlines()), 7)

    # -- programs ---------------------------------------------------------------------------------

    def test_watch_writes_one_json_object_a_line(self):
        self.start_server()
        watch = self.start("watch", HPO, "watch", "--until-finished", "-o", "json", environment={"HPO_SERVER": self.address})
        wait_until(lambda: '"event":"study"' in watch.output(), "the watch's first line")
        self.start_worker()
        self.assertEqual(watch.wait(), 0, watch.output())
        events = [json.loads(line) for line in watch.output().splitlines()]
        self.assertTrue(all(event["study"] == "toy" for event in events))
        self.assertEqual((events[0]["event"], events[-1]["event"]), ("study", "end"))
        self.assertEqual(events[-1]["status"]["state"], "FINISHED")
        ended = [event["trial"] for event in events if event["event"] == "finished"]
        self.assertEqual(sorted(trial["number"] for trial in ended), list(range(6)))
        self.assertEqual({trial["state"] for trial in ended}, {"COMPLETED"})
        again = self.run_hpo("watch", "--until-finished", "-o", "json")
        self.assertEqual(json.loads(again.stdout.splitlines()[-1])["event"], "end")

    def test_a_condition_that_cannot_be_compared_says_what_was_expected(self):
        self.finish_study()
        for where, said in [("x>small", "--where: x: expected a number, got 'small'"),
                            ("macro_f1>=", "--where: macro_f1: expected a number, got ''"),
                            ("state=done", "--where: state: expected one of queued, running, completed"),
                            ("time>5m", "--where: time: expected a number of seconds, got '5m'")]:
            with self.subTest(where):
                self.assertIn(said, self.hpo("trial", "list", "--where", where, status=2))
        self.assertEqual(len(self.trials("--where", "x>=0", "--where", "state=completed")), 6)

    # -- hpo --db ---------------------------------------------------------------------------------

    def state_of_folder(self):
        """Every file beside the database, with its content but for the index of its log, which readers share."""
        return {path.name: None if path.name.endswith("-shm") else hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self.folder.glob("hpo.db*")}

    def read_file(self, *words, status=0, **environment):
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        done = self.run_hpo("--db", "hpo.db", *words, HPO_SERVER="127.0.0.1:9", TMPDIR=str(temporary), **environment)
        self.assertEqual(list(temporary.iterdir()), [], "nothing is left behind")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def check_reads(self, state="finished"):
        before = self.state_of_folder()
        status = json.loads(self.read_file("status", "-o", "json"))
        self.assertIsNone(status["server"])
        self.assertEqual(status["studies"][0]["counts"]["completed"], 6)
        text = self.read_file("status")
        self.assertTrue(text.startswith("database hpo.db, read without a server\n"), text)
        self.assertIn(f"study       toy ({state})", text)
        self.assertNotIn("no worker is connected", text)
        trials = json.loads(self.read_file("trial", "list", "-o", "json"))["trials"]
        self.assertEqual([trial["number"] for trial in trials], list(range(6)))
        self.read_file("trial", "show", "3")
        self.assertIn("best trial of toy", self.read_file("best"))
        self.read_file("study", "list")
        self.read_file("study", "show", "toy")
        self.read_file("export", "tensorboard", "--to", "./runs")
        self.assertEqual(self.state_of_folder(), before)

    def test_a_database_is_read_without_a_server(self):
        server = self.finish_study()
        self.check_reads()  # beside the server that uses it
        self.assertEqual(len(self.trials()), 6)
        self.assertEqual(server.terminate(), 0, server.output())
        self.check_reads()
        os.chmod(self.folder / "hpo.db", 0o400)
        self.check_reads()

    def test_an_interrupted_reader_leaves_no_copy(self):
        self.finish_study()
        temporary = self.folder / "interrupted"
        temporary.mkdir()
        for signum in (signal.SIGINT, signal.SIGKILL):
            reader = self.start("reader", HPO, "--db", "hpo.db", "status", environment={"TMPDIR": str(temporary)}, group=True)
            wait_until(lambda: list(temporary.glob("hpo-snapshot-*")) or not reader.alive(), "the copy")
            if signum == signal.SIGINT:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(reader.pid, signum)  # as a terminal does
            else:
                reader.send(signum)
            reader.wait()
            wait_until(lambda: not list(temporary.glob("hpo-snapshot-*")), "the end of the copy")

    def test_a_database_of_a_killed_server_is_read(self):
        self.finish_study().kill9()
        self.assertTrue((self.folder / "hpo.db-wal").exists())
        self.check_reads()
        (self.folder / "hpo.db-shm").unlink()  # as of a copy of the other two
        self.check_reads()

    def test_what_changes_something_is_refused(self):
        self.finish_study()
        before = self.state_of_folder()
        for words in (["study", "stop", "toy"], ["study", "extend", "toy", "--add", "3"], ["enqueue", "x=0.5", "y=0.5"],
                      ["study", "delete", "toy"], ["trial", "retry", "--failed"], ["study", "create", "toy.yaml"],
                      ["study", "annotate", "toy", "--tag", "a"], ["run", "toy.yaml"], ["watch"],
                      ["import", "optuna", "study.db"], ["trial", "stop", "1"]):
            with self.subTest(words=words):
                said = self.read_file(*words, status=2)
                self.assertIn("--db: expected a command that only reads", said)
                self.assertIn("hpo-server --db hpo.db", said)
        self.assertEqual(self.state_of_folder(), before)
        self.assertFalse((self.folder / "toy.hpo-study").exists())

    def test_other_files_and_other_versions_are_named(self):
        self.assertIn("hpo.db: No such file or directory", self.read_file("status", status=3))
        database = self.folder / "hpo.db"
        for content, said in [(b"", "got an empty file"), (b"not a database\n" * 9, "got a file of another kind")]:
            database.write_bytes(content)
            self.assertIn(said, self.read_file("status", status=4))
            self.assertEqual(database.read_bytes(), content)
        database.unlink()
        migrations = sorted((SOURCE / "server/storage/sqlite/migrations").glob("*.sql"))
        for version, status, said in [(3, 0, f"has schema version 3, and this hpo has {len(migrations)}"),
                                      (999, 4, "has version 999, this hpo-server knows up to")]:
            with self.subTest(version=version):
                connection = sqlite3.connect(database)
                for migration in migrations[:version] if version < 999 else []:
                    connection.executescript(migration.read_text())
                connection.executescript(f"PRAGMA user_version={version}; PRAGMA application_id={0x68706f31}")
                connection.close()
                before = self.state_of_folder()
                done = self.run_hpo("--db", "hpo.db", "status")
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertIn("hpo.db", done.stderr)
                self.assertEqual(self.state_of_folder(), before)

    # -- hpo run ----------------------------------------------------------------------------------

    def test_workers_of_a_run_work_at_the_same_time_and_their_logs_are_found(self):
        # Each trial of a pair waits for the other one.
        program = self.folder / "meet.sh"
        program.write_text("mkdir -p met; touch met/$1; i=0\n"
                           "while [ $(ls met | wc -l) -lt 2 ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done\n"
                           "[ $(ls met | wc -l) -ge 2 ] || exit 3\n"
                           "echo this is $1; echo \"{'macro_f1': $1}\"\n")
        (self.folder / "toy.yaml").write_text(self.STUDY.replace("trials: 6", "trials: 4"))
        run = self.start("run", HPO, "run", "toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                         "--memory-limit", "256MiB", "--workers", "2", "--trainer", "sh meet.sh {x}")
        self.assertEqual(run.wait(), 0, run.output())
        self.assertIn("4 of 4 trials", run.output())
        self.assertIn("--workers 2", run.output().split("\nnext:\n")[1].splitlines()[0])
        database = self.folder / "run/hpo.db"
        trials = json.loads(self.run_hpo("--db", database, "trial", "list", "-o", "json").stdout)["trials"]
        self.assertEqual({trial["state"] for trial in trials}, {"COMPLETED"})
        shown = json.loads(self.run_hpo("--db", database, "trial", "show", "0", "-o", "json").stdout)
        other = json.loads(self.run_hpo("--db", database, "trial", "show", "1", "-o", "json").stdout)
        self.assertNotEqual(shown["attempts"][0]["worker"], other["attempts"][0]["worker"])
        said = self.run_hpo("--db", database, "trial", "logs", "0")
        self.assertIn(f"this is {shown['params']['x']}"[:15], said.stdout, said.stderr)
        # And by a server on the database, as somebody else would look.
        address = self.folder / "looked-at"
        self.start("server", BIN / "hpo-server", "--db", database, "--listen", "127.0.0.1:0", "--address-file", address)
        wait_until(lambda: address.exists() and address.read_text().strip(), "the server's address")
        logs = self.run_hpo("trial", "logs", "0", HPO_SERVER=address.read_text().strip())
        self.assertEqual((logs.returncode, logs.stdout), (0, said.stdout), logs.stderr)
        # On another machine than the workers'.
        (self.folder / "run/worker").rename(self.folder / "elsewhere")
        tail = self.run_hpo("trial", "logs", "0", HPO_SERVER=address.read_text().strip())
        first, rest = tail.stdout.split("\n", 1)
        self.assertEqual(first, "These are the last lines that the server keeps; the whole log is on the machine of "
                                f"worker {shown['attempts'][0]['worker']}, where hpo trial logs shows it:", tail.stderr)
        self.assertEqual(rest, said.stdout)
        told = json.loads(self.run_hpo("--db", database, "trial", "logs", "0", "-o", "json").stdout)
        self.assertEqual((told["path"], told["is_tail"], told["text"]), (None, True, said.stdout))
        missing = self.run_hpo("trial", "logs", "0", "--state-dir", self.folder / "none",
                               HPO_SERVER=address.read_text().strip())
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("found none", missing.stderr)

    def test_workers_need_the_cpu(self):
        worker = self.start("worker", BIN / "hpo-worker", "--gpu", "0", "--workers", "2")
        self.assertEqual(worker.wait(), 78, worker.output())
        self.assertIn("--workers: expected --device cpu too", worker.output())

    # -- advice -----------------------------------------------------------------------------------

    def advised(self, text):
        found = re.search(r"hpo study resume [^;,)\n]+", text)
        self.assertIsNotNone(found, text)
        return found[0]

    def test_advised_commands_name_the_study_and_the_server(self):
        self.start_server()
        self.hpo("study", "create", "--name", "other", self.folder / "toy.yaml")
        server = ("--server", self.address)
        unnamed = self.run_hpo("trial", "list", *server, HPO_SERVER="127.0.0.1:9")
        self.assertIn("one of toy, other; name it: --study NAME", unnamed.stderr)
        self.hpo("study", "pause", "toy")
        text = self.run_hpo("status", *server, HPO_SERVER="127.0.0.1:9").stdout
        self.assertIn(f'hpo-worker --study other --trainer "COMMAND" --gpu 0 --server {self.address}', text)
        path = {"PATH": f"{BIN}:{os.environ['PATH']}", "HPO_SERVER": "127.0.0.1:9"}
        resumed = self.start("resume", "bash", "-c", self.advised(text), environment=path)
        self.assertEqual(resumed.wait(), 0, resumed.output())
        self.hpo("study", "stop", "toy")
        refused = self.run_hpo("enqueue", "x=0.5", "y=0.5", "--study", "toy", *server, HPO_SERVER="127.0.0.1:9")
        resumed = self.start("again", "bash", "-c", self.advised(refused.stderr), environment=path)
        self.assertEqual(resumed.wait(), 0, resumed.output())
        self.assertNotIn("(stopped)", self.hpo("status", "--study", "toy"))


if __name__ == "__main__":
    unittest.main()
