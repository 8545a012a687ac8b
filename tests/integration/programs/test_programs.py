"""Programs as people have them: what they start, their arguments, what they print and how they end."""

import importlib.util
import json
import os
import pathlib
import pty
import re
import signal
import sys
import unittest

from harness import BIN, SOURCE, Deployment, wait_until

HYDRA = importlib.util.find_spec("hydra")

# A launcher: its worker has a session of its own, and no part of its environment; a daemon has lost its parent.
STRAYS = """\
import os, pathlib, subprocess, sys, time
mode, pids = sys.argv[1], pathlib.Path("pids")
earlier = [int(pid) for pid in pids.read_text().split()] if pids.exists() else []
def lives(pid):
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
alive = sum(map(lives, earlier))
note = ["sh", "-c", "echo $$ >> pids; exec sleep 300"]
subprocess.Popen(note, start_new_session=True)
subprocess.Popen(note, start_new_session=True, env={"PATH": os.environ["PATH"]})
subprocess.run(["sh", "-c", "setsid sh -c 'echo $$ >> pids; exec sleep 300' &"])
while len(pids.read_text().split() if pids.exists() else []) < len(earlier) + 3:
    time.sleep(0.02)
with open("alive", "a") as file:
    print(alive, file=file)
print({"loss": 1.0, "step": 1}, flush=True)
if mode == "fails":
    raise ValueError("bad")
if mode == "runs out":
    raise MemoryError("DefaultCPUAllocator: can't allocate memory")
if mode == "crashes":
    os.kill(os.getpid(), 11)
if mode == "waits":
    time.sleep(400)
"""
STUDY = """\
name: toy
objective: {metric: loss, direction: minimize}
trainer: {command: %s}
budget: {trials: %d, failures_in_a_row: 0%s}
sampler: {type: grid}
pruner: {type: none}
parameters:
"""
MODES = ["completes", "fails", "runs out", "crashes", "waits"]


def lives(pid):
    """Zombies that nobody here can reap count as gone."""
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def write_study(folder, command, parameters, trials=4, budget=""):
    """Of a command, words or a text, with its parameters' lines."""
    (folder / "toy.yaml").write_text(STUDY % (json.dumps(command), trials, budget) +
                                     "".join(f"  {line}\n" for line in parameters))


class Programs(Deployment):
    def run_command(self, *words, path=None):
        """hpo run of the study toy."""
        environment = {"PATH": f"{path}:{os.environ['PATH']}"} if path else None
        return self.start("run", BIN / "hpo", "run", "./toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                          "--memory-limit", "1GiB", *words, environment=environment)

    def run_study(self, *words, path=None):
        """The trials of a run to its end."""
        run = self.run_command(*words, path=path)
        self.assertEqual(run.wait(), 0, run.output())
        return self.trials_of_run()

    def trials_of_run(self):
        self.start("after", BIN / "hpo-server", "--db", self.folder / "run/hpo.db", "--listen", "127.0.0.1:0",
                   "--address-file", self.folder / "address")
        wait_until(lambda: (self.folder / "address").exists(), "the server's address")
        self.address = (self.folder / "address").read_text().strip()
        return self.trials()


class Strays(Programs):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(STRAYS)

    def started(self):
        pids = self.folder / "pids"
        return [int(pid) for pid in pids.read_text().split()] if pids.exists() else []

    def alive(self):
        return [pid for pid in self.started() if lives(pid)]

    def test_nothing_that_a_program_started_outlives_its_trial(self):
        write_study(self.folder, ["python3", "train.py", "{mode}"], [f"mode: {{choices: {MODES}}}"], trials=5,
                    budget=", trial_wall_clock: 8s")
        run = self.run_command()
        self.assertEqual(run.wait(), 0, run.output())
        self.assertEqual(self.alive(), [])
        trials = self.trials_of_run()
        self.assertEqual({trial["params"]["mode"]: trial["state"] for trial in trials},
                         {"completes": "COMPLETED", "fails": "FAILED", "runs out": "PRUNED", "crashes": "FAILED",
                          "waits": "PRUNED"})
        # As each program began. One that is out of memory is tried again.
        alive = (self.folder / "alive").read_text().split()
        self.assertGreaterEqual(len(alive), len(MODES))
        self.assertEqual(set(alive), {"0"})

    def interrupt(self, end):
        """Of a trial that waits."""
        write_study(self.folder, ["python3", "train.py", "{mode}"], ["mode: {choices: [waits]}"], trials=1)
        run = self.run_command()
        wait_until(lambda: len(self.alive()) == 3, "the program's children")
        end(run)
        return run

    def test_ctrl_c_leaves_nothing(self):
        run = self.interrupt(lambda run: run.send(signal.SIGINT))
        self.assertEqual(run.wait(), 130, run.output())
        self.assertEqual(self.alive(), [])

    def test_a_second_ctrl_c_leaves_nothing(self):
        (self.folder / "train.py").write_text(STRAYS.replace("import os", "import signal, os").replace(
            "mode, pids", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nmode, pids"))

        def end(run):
            run.send(signal.SIGINT)
            wait_until(lambda: "stopping the trainer" in (self.folder / "run/worker.log").read_text(), "the first signal")
            run.send(signal.SIGINT)

        run = self.interrupt(end)

        def ended():  # signals within a second count once
            run.send(signal.SIGINT)
            return not run.alive()

        wait_until(ended, "its end")
        self.assertEqual(self.alive(), [])

    def test_a_killed_worker_leaves_nothing(self):
        write_study(self.folder, ["python3", "train.py", "{mode}"], ["mode: {choices: [waits]}"], trials=1)
        self.start_server()
        worker = self.start_worker(trainer="python3 train.py {mode}")
        wait_until(lambda: len(self.alive()) == 3, "the program's children")
        worker.kill9()
        wait_until(lambda: self.alive() == [], "the children's end")


class Arguments(Programs):
    FLAGS = """\
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("--amp", action="store_true")
p.add_argument("--sched", default="cosine")
p.add_argument("--max_depth", type=int, default=None)
o = p.parse_args()
print(json.dumps({"loss": 0.1 if o.amp else 0.2, "linear": int(o.sched == "linear"), "depth": o.max_depth or -1}))
"""

    def check_flags(self, command):
        (self.folder / "train.py").write_text(self.FLAGS)
        write_study(self.folder, command, ["amp: {choices: [true, false]}", "sched: {choices: [cosine, linear]}",
                                           "max_depth: {choices: [null, 5]}"], trials=8)
        trials = self.run_study()
        self.assertEqual([trial["state"] for trial in trials], ["COMPLETED"] * 8)
        for trial in trials:
            params, metrics = trial["params"], trial["outcome"]["metrics"]
            self.assertEqual(metrics["loss"], 0.1 if params["amp"] else 0.2)
            self.assertEqual(metrics["linear"], params["sched"] == "linear")
            self.assertEqual(metrics["depth"], params["max_depth"] or -1)

    def test_all_arguments_know_flags_and_null(self):
        self.check_flags(["python3", "train.py", "{args}"])

    def test_a_flag_has_a_place_of_its_own(self):
        self.check_flags("python3 train.py {args} {flag:amp}")

    def test_readmes_line_for_programs_works_as_printed(self):
        line = re.search(r'--trainer "([^"]+)"', (SOURCE / "README.md").read_text())[1]
        self.assertIn("{train.lr}", line)
        (self.folder / "train.py").write_text("import sys\nprint({'loss': float(sys.argv[sys.argv.index('--lr') + 1])})\n")
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "python").symlink_to(sys.executable)
        write_study(self.folder, [], ["train.lr: {choices: [0.25, 0.5]}"], trials=2)
        study = self.folder / "toy.yaml"
        study.write_text(study.read_text().replace("trainer: {command: []}\n", ""))
        trials = self.run_study("--trainer", line, path=bin_folder)
        self.assertEqual({trial["outcome"]["metrics"]["loss"] for trial in trials}, {0.25, 0.5})

    def test_a_command_of_several_lines_with_quotes(self):
        (self.folder / "my train.py").write_text(
            "import sys\nprint({'loss': len(sys.argv[1]), 'same': sys.argv[1] == sys.argv[2] == sys.argv[3]})\n")
        command = """\
# it's a comment
export FIRST={text}
python3 "my train.py" "$FIRST" '{text}' \\
  "{text}" | sed "s/True/1/"
"""
        write_study(self.folder, command, ["text: {choices: [\"it's $HOME\", \"a \\\"b\\\" \\\\c\"]}"], trials=2)
        trials = self.run_study()
        self.assertEqual([trial["state"] for trial in trials], ["COMPLETED"] * 2, trials)
        for trial in trials:
            self.assertEqual(trial["outcome"]["metrics"], {"loss": len(trial["params"]["text"]), "same": 1})

    @unittest.skipIf(HYDRA, "the manual's recipe runs with Hydra itself")
    def test_overrides_without_hydra(self):
        """A stand-in, where Hydra is not there."""
        (self.folder / "train.py").write_text(
            "import sys\ngiven = dict(word.split('=', 1) for word in sys.argv[1:])\n"
            "print({'loss': float(given['optimizer.lr']), 'amp': int(given['amp'] == 'true')})\n")
        write_study(self.folder, ["python3", "train.py", "{overrides}", "hydra.run.dir={output_dir}"],
                    ["optimizer.lr: {choices: [0.25, 0.5]}", "amp: {choices: [true, false]}"])
        for trial in self.run_study():
            self.assertEqual(trial["outcome"]["metrics"],
                             {"loss": trial["params"]["optimizer.lr"], "amp": trial["params"]["amp"]})


class Output(Programs):
    PROGRAM = r"""
import sys
for done in range(0, 101, 10):
    sys.stderr.write(f"\r{done:3d}%|{'#' * (done // 10):10}|")
sys.stderr.write("\n")
print("\033[32mgreen\033[0m \033]0;title\007\033[2J\033]52;c;eA==\033\\\u009b31mend")
print({"loss": 1.0})
if sys.argv[1] == "fails":
    raise ValueError("bad value\nwith a second line")
"""

    def test_progress_bars_colours_and_tracebacks_are_readable(self):
        (self.folder / "train.py").write_text(self.PROGRAM)
        write_study(self.folder, "python3 train.py {mode}", ["mode: {choices: [completes, fails]}"], trials=2)
        run = self.run_command()
        self.assertEqual(run.wait(), 0, run.output())
        self.assertRegex(run.output(), r"trial \d FAILED \(INTERNAL\): ValueError: bad value")
        self.assertNotRegex(run.output(), r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|\\n|\?")
        for trial in self.trials_of_run():
            log = self.hpo("trial", "logs", trial["number"], "--study", "toy", "--state-dir", self.folder / "run/worker")
            lines = log.splitlines()
            self.assertEqual(lines[0], "100%|##########|")
            self.assertEqual(lines[1], "green ?31mend")
            if trial["params"]["mode"] == "fails":
                shown = self.hpo("trial", "show", trial["number"], "--study", "toy")
                for text in (log, shown):
                    self.assertRegex(text, r"Traceback \(most recent call last\):\n +File .*, line 9")
                    self.assertRegex(text, r"\n *ValueError: bad value\n *with a second line")
        listed = self.hpo("trial", "list", "--study", "toy")
        self.assertIn("ValueError: bad value", listed)

    def test_colours_reach_a_terminal_and_nothing_else_does(self):
        (self.folder / "train.py").write_text(self.PROGRAM)
        write_study(self.folder, "python3 train.py {mode}", ["mode: {choices: [completes]}"], trials=1)
        self.run_study()
        for no_color in ("", "1"):
            master, slave = pty.openpty()
            shown = self.start(f"logs{no_color}", "sh", "-c", f"exec {BIN / 'hpo'} trial logs 0 --study toy "
                                     f"--state-dir {self.folder / 'run/worker'} > {os.ttyname(slave)}",
                                     environment={"HPO_SERVER": self.address, "NO_COLOR": no_color})
            self.assertEqual(shown.wait(), 0, shown.output())
            text = os.read(master, 65536).decode()
            os.close(slave)
            os.close(master)
            green = "green " if no_color else "\x1b[32mgreen\x1b[0m "
            self.assertIn(green + "?31mend", text)
            self.assertNotRegex(text.replace("\r\n", "\n"), r"\x1b[^\[]|\x1b\[[0-9;]*[^0-9;m]|[\x00-\x08\x0b-\x1a\x7f-\x9f]")


if __name__ == "__main__":
    unittest.main()
