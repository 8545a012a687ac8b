"""Nothing waits in silence or for ever: processes that share a folder, that die, that hang, that cannot be forked."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import hpo
from hpo import _outcomes, _pickled, _progress, _runner, _slot

SPACE = {"x": hpo.uniform(0, 1)}


def python(program, **options):
    return subprocess.Popen([sys.executable, "-c", program], text=True, **options)


def wait_until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


SEARCH = """
import hpo, pathlib, sys, time
folder, trials = pathlib.Path(sys.argv[1]), int(sys.argv[2])
def train(trial):
    (folder / f"{trial.number}-{time.time()}").touch()
    time.sleep(float(sys.argv[3]))
    return trial["x"]
hpo.minimize(train, {"x": hpo.uniform(0, 1)}, trials=trials, parallel=3, storage=folder / "storage")
"""


def test_a_search_that_was_killed_goes_on_at_once(tmp_path):
    def started():
        return list(tmp_path.glob("*-*"))

    command = [sys.executable, "-c", SEARCH, str(tmp_path), "5"]
    killed = subprocess.Popen([*command, "60"], stderr=subprocess.DEVNULL)
    wait_until(lambda: len(started()) == 3)
    killed.kill()
    killed.wait()
    begin = time.time()
    subprocess.run([*command, "0"], check=True, timeout=60, stderr=subprocess.DEVNULL)
    again = [float(path.name.split("-")[1]) for path in started()]
    assert min(at for at in again if at > begin) - begin < 10  # leases would hold them for minutes
    with hpo.Study("study", storage=tmp_path / "storage") as study:
        assert [one.state for one in study.trials] == ["completed"] * 5
    assert list((tmp_path / "storage" / "sessions").iterdir()) == []


SHARED = """
import hpo, sys
with hpo.Study("shared", {"x": hpo.uniform(0, 1)}, trials=12, storage=sys.argv[1]) as study:
    told = 0
    while not study.finished:
        trial = study.ask(timeout=1)
        if trial is not None:
            told += study.tell(trial, trial["x"]) == "completed"
print(told)
"""


def told_by(processes):
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    return [int(output) for output in outputs]


def test_processes_share_a_folder(tmp_path):
    command = [sys.executable, "-c", SHARED, str(tmp_path)]
    told = told_by([subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)])
    assert sum(told) == 12
    with hpo.Study("shared", storage=tmp_path) as study:
        assert len(study.trials) == 12


def test_a_folder_of_a_long_path(tmp_path):
    folder = tmp_path / ("a" * 60) / ("b" * 60)
    command = [sys.executable, "-c", SHARED, str(folder)]
    assert sum(told_by([subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)])) == 12


def test_containers_share_a_folder(tmp_path):
    """Both are process 1 of their namespace, and neither has the other's loopback address."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this process may not make namespaces")
    command = [*unshare, sys.executable, "-c", SHARED, str(tmp_path)]
    assert sum(told_by([subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)])) == 12


def test_the_end_of_the_process_that_started_the_server_ends_nobody_else(tmp_path):
    first = python(f"""
import hpo
study = hpo.Study("shared", {{"x": hpo.uniform(0, 1)}}, storage={str(tmp_path)!r})
print("open", flush=True)
input()
""", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout.readline() == "open\n"
    with hpo.Study("shared", SPACE, storage=tmp_path) as study:
        trial = study.ask()
        first.kill()
        first.communicate()
        assert study.tell(trial, 1.0) == "completed"
        assert study.tell(study.ask(timeout=10), 2.0) == "completed"


def test_what_a_dead_process_had_asked_for_goes_to_others(tmp_path):
    with hpo.Study("shared", SPACE, trials=1, storage=tmp_path) as study:
        dead = python(f"""
import hpo, os, signal
study = hpo.Study("shared", storage={str(tmp_path)!r})
study.ask()
os.kill(os.getpid(), signal.SIGKILL)
""")
        dead.wait()
        trial = study.ask(timeout=30)
        assert trial is not None
        study.tell(trial, 1.0)


def test_a_folder_that_another_machine_uses_is_refused(tmp_path, monkeypatch):
    with hpo.Study("shared", SPACE, storage=tmp_path):
        held = tmp_path / "server.lock"
        held.write_text('{"host": "far", "boot_id": "another"}')
        with pytest.raises(hpo.HpoError, match="is in use on another machine, far: open it there"):
            hpo.Study("shared", SPACE, storage=tmp_path)


def test_threads_ask_at_once():
    with hpo.Study("mine", SPACE, trials=8) as study:
        begin, told = threading.Barrier(4), []

        def work():
            begin.wait()
            while (trial := study.ask(timeout=10)) is not None:
                told.append(study.tell(trial, trial["x"]))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told == ["completed"] * 8 and study.finished


def test_ask_does_not_wait_for_the_callers_own_trials():
    with hpo.Study("mine", SPACE, trials=2) as study:
        trials = [study.ask(), study.ask()]
        begin = time.monotonic()
        assert study.ask() is None and not study.finished
        assert study.ask(timeout=0.2) is None
        assert time.monotonic() - begin < 5
        for trial in trials:
            study.tell(trial, 1.0)
        assert study.ask() is None and study.finished


def test_a_trial_that_hangs_is_ended_by_its_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(_runner, "_LEAST_GRACE_S", 0.5)
    with pytest.raises(hpo.HpoError, match="no trial completed"):
        hpo.minimize(lambda trial: time.sleep(600), SPACE, trials=1, budget={"trial_wall_clock": "1s"},
                     storage=tmp_path, verbose=False)
    with hpo.Study("study", storage=tmp_path) as study:
        assert [one.state for one in study.trials] == ["pruned"]


def test_a_process_that_does_not_start_is_named_and_ended(monkeypatch, capfd):
    monkeypatch.setattr(_runner, "SLOW_START_S", 0.2)
    monkeypatch.setattr(_runner, "START_S", 0.5)
    start = _runner._Start(3, 17, lambda text: print(text, file=sys.stderr))
    wait_until(start.is_overdue)
    assert capfd.readouterr().err.startswith("trial 3 has not started: its process 17 has not reached the function")


def test_after_openmp_ran_in_this_process():
    pytest.importorskip("sklearn")
    done = subprocess.run([sys.executable, "-c", """
import hpo, numpy
from sklearn.ensemble import HistGradientBoostingClassifier
x = numpy.random.default_rng(1).random((300, 4))
y = x[:, 0] > 0.5
HistGradientBoostingClassifier(max_iter=3).fit(x, y)  # OpenMP's threads do not survive a fork
def train(trial):
    return 1 - HistGradientBoostingClassifier(max_iter=trial["n"]).fit(x, y).score(x, y)
print(hpo.minimize(train, {"n": hpo.int(1, 4)}, trials=4, parallel=2, verbose=False).state)
"""], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.stdout == "completed\n", done.stderr


def test_a_list_of_threads_that_ends_early_is_read_again(monkeypatch):
    """As the kernel's does at a thread that is just ending: measured 3 times in 6,000."""
    done = threading.Event()
    lasting = threading.Thread(target=done.wait)
    lasting.start()
    whole = os.listdir
    lists = iter([[thread for thread in whole("/proc/self/task") if thread != str(lasting.native_id)]])
    monkeypatch.setattr(os, "listdir", lambda folder: next(lists, None) or whole(folder))
    assert str(lasting.native_id) in _slot._threads()
    done.set()


def test_threads_that_the_function_starts_when_it_is_loaded(tmp_path):
    """They are in the fresh interpreter, and no fork of that has them: each trial gets an interpreter."""
    (tmp_path / "pool.py").write_text("""
import queue, threading
asked, answers = queue.Queue(), queue.Queue()
def work():
    while True:
        answers.put(asked.get() + 1)
threading.Thread(target=work, daemon=True).start()
""")
    program = """
import hpo, pool
def train(trial):
    pool.asked.put(trial["n"])
    return float(pool.answers.get(timeout=30))
print(hpo.minimize(train, {"n": hpo.int(1, 9)}, trials=3, verbose=False).state)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
                          cwd=tmp_path)
    assert done.stdout == "completed\n", done.stderr


def test_what_cannot_be_pickled_is_named():
    lock = threading.Lock()
    keeper = types.SimpleNamespace(file=lock)
    for function, said in ((lambda trial: lock and 1.0, r"'lock', a _thread\.lock, which the function uses, cannot"),
                           (lambda trial: keeper and 1.0, r"'file', a _thread\.lock, which 'keeper' of the function")):
        with pytest.raises(hpo.InvalidInput, match=said):
            _pickled.dumps(function, "this process has 2 threads")


@pytest.mark.parametrize("function, said", [
    (lambda trial: sys.exit("no driver"), "sys.exit: no driver"),
    (lambda trial: sys.exit(3), r"sys.exit\(3\) before the function had returned a result"),
    (lambda trial: os.write(2, b"usage\nerror: lr\n") and sys.exit(2), "the last that it wrote: error: lr"),
    (lambda trial: os.abort(), "the trial's process was killed by SIGABRT"),
    (lambda trial: os._exit(4), "the trial's process ended with status 4")])
def test_how_a_process_ended_is_kept_and_not_tried_again(tmp_path, function, said):
    with pytest.raises(hpo.StudyFailed, match=said):
        hpo.minimize(function, SPACE, trials=1, budget={"failures_in_a_row": 1}, storage=tmp_path, verbose=False)
    with hpo.Study("study", storage=tmp_path) as study:
        assert [(one.state, re.search(said, one.why) is not None) for one in study.trials] == [("failed", True)]


@pytest.mark.parametrize("message, said", [
    ("", ""), ("plain", "plain"), ("first\nlast", "last"),
    ('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    raise E\nE: first\nsecond\n  third', "E: first"),
    ('Traceback (most recent call last):\n  File "a.py", line 1\nA: x\n\nDuring handling\n\nTraceback (most recent '
     'call last):\n  File "a.py", line 2, in g\n    raise B\nB', "B")])
def test_the_line_that_says_most(message, said):
    assert _outcomes.headline(message) == said


class Shown:
    def __init__(self):
        self.lines, self.statuses = [], []

    def status(self, text, ended):
        self.statuses.append(text)

    def line(self, text):
        self.lines.append(text)

    def close(self):
        pass


def test_what_is_waited_for_is_shown_after_a_while(monkeypatch):
    with hpo.Study("mine", SPACE, direction="maximize", trials=4) as study:
        state = study.state()
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    shown = Shown()
    progress = _progress.Progress(state, shown, lambda: ("trial 0 runs (11 s)", True))
    progress.started(0)
    progress.tick()
    assert shown.statuses == [] and shown.lines == []
    now[0] += 11
    progress.tick()
    assert shown.statuses == ["0 of 4 trials ended, 1 running; trial 0 runs (11 s)"]
    progress.ended(0, "completed", 0.5, "a line")
    progress.started(1)
    progress.ended(1, "completed", 0.4, "a line")
    progress.ended(2, "failed", None, "trial 2 failed")
    assert shown.statuses[-1] == "3 of 4 trials ended, 0 running, best 0.5 (trial 0), about 4 s left"
    assert shown.lines == ["trial 2 failed"]


def test_a_log_has_a_line_for_each_trial_and_each_wait(monkeypatch, capsys):
    with hpo.Study("mine", SPACE, trials=4) as study:
        state = study.state()
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    progress = _progress.Progress(state, _progress._Lines(), lambda: ("the server starts (5 s)", False))
    silent = []
    for _ in range(600):
        now[0] += 0.1
        progress.tick()
        if capsys.readouterr().err:
            silent.append(now[0])
    assert max(b - a for a, b in zip([100.0, *silent], silent)) < 15
    assert 3 <= len(silent) <= 6


def test_a_notebook_shows_one_output(monkeypatch):
    updates = []

    class Handle:
        def update(self, data, raw):
            updates.append(data["text/plain"])

    shell = types.ModuleType("IPython")
    shell.get_ipython = type("ZMQInteractiveShell", (), {})
    display = types.ModuleType("IPython.display")
    display.display = lambda data, raw, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    hpo.minimize(lambda trial: trial["x"], SPACE, trials=3, isolate=False)
    assert updates[-1].startswith("3 of 3 trials ended, 0 running, best ")


def test_an_interrupt_of_a_joined_search_leaves_the_others(tmp_path):
    with hpo.Study("study", SPACE, trials=100, storage=tmp_path / "storage") as study:
        other = subprocess.Popen([sys.executable, "-c", SEARCH, str(tmp_path), "100", "60"], stderr=subprocess.DEVNULL)
        wait_until(lambda: len(list(pathlib.Path(tmp_path).glob("*-*"))) == 3)
        other.send_signal(signal.SIGINT)
        other.wait(30)
        assert study.state().counts.queued == 3
        assert study.tell(study.ask(), 1.0) == "completed"


def test_a_function_that_ignores_that_it_is_to_stop_is_ended_by_its_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(_runner, "_LEAST_GRACE_S", 0.5)

    def train(trial):
        for step in range(10**6):
            trial.report(step, 1.0)
            time.sleep(0.05)

    with pytest.raises(hpo.HpoError, match="the last that was pruned was trial 0: .*time limit"):
        hpo.minimize(train, SPACE, trials=1, budget={"trial_wall_clock": "1s"}, storage=tmp_path, verbose=False)


def test_a_search_that_somebody_stopped_says_so(tmp_path):
    def train(trial):
        if trial.number == 1:
            with hpo.Study("study", storage=tmp_path) as study:
                study.stop()
        return trial["x"]

    with pytest.warns(hpo.EndedEarly, match="was stopped before its budget was used"):
        hpo.minimize(train, SPACE, trials=20, storage=tmp_path, verbose=False)


def test_where_no_configuration_fits_the_search_ends():
    def train(trial):
        raise hpo.OutOfMemory("too large", needed_bytes=2 << 30)

    with pytest.raises(hpo.HpoError, match="fits|too large"):
        hpo.minimize(train, {"n": hpo.int(1, 3)}, trials=6, memory="1GiB", verbose=False)


def test_one_error_of_memory_that_no_parameter_explains_rules_nothing_out():
    def train(trial):
        if trial.number == 2:
            raise hpo.OutOfMemory("by chance")
        return trial["lr"]

    space = {"lr": hpo.log(1e-5, 1e-2), "wd": hpo.uniform(0, 0.1)}
    best = hpo.minimize(train, space, trials=6, memory="1GiB", verbose=False)
    assert best.state == "completed"


def test_an_exception_whose_text_cannot_be_had(tmp_path):
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no text")

    def train(trial):
        raise Odd()

    with pytest.raises(hpo.StudyFailed, match="Odd"):
        hpo.minimize(train, SPACE, trials=1, budget={"failures_in_a_row": 1}, storage=tmp_path, verbose=False)


def searched(tmp_path, module, program):
    (tmp_path / "searched.py").write_text(module)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
                          cwd=tmp_path)


MODULE = """
import hpo
def train(trial):
    return trial["x"]
"""


def test_a_module_that_begins_a_search_where_it_is_imported_is_named(tmp_path):
    done = searched(tmp_path, MODULE + 'hpo.minimize(train, {"x": hpo.uniform(0, 1)}, trials=2)\n',
                    "import threading, time; threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
                    "import searched")
    assert done.returncode == 1
    assert 'put the call under if __name__ == "__main__":' in done.stderr


def test_an_import_that_ends_its_process(tmp_path):
    done = searched(tmp_path, MODULE + "import os\nif 'search' not in os.environ: os.kill(os.getpid(), 9)\n",
                    "import os; os.environ['search'] = 'here'\nimport hpo, searched, threading, time\n"
                    "del os.environ['search']\nthreading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
                    'hpo.minimize(searched.train, {"x": hpo.uniform(0, 1)}, trials=2)')
    assert "its process was killed by SIGKILL while it loaded the function" in done.stderr


def test_a_parent_that_ignores_the_end_of_its_children(tmp_path):
    program = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nimport hpo, searched\n{}" \
        'print(hpo.minimize(searched.train, {{"x": hpo.uniform(0, 1)}}, trials=3, verbose=False).state)'
    for before in ("", "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"):
        done = searched(tmp_path, MODULE, program.format(before))
        assert done.stdout == "completed\n", done.stderr


def test_what_trials_started_ends_with_a_search_that_is_killed(tmp_path):
    program = f"""
import hpo, pathlib, subprocess, time
def train(trial):
    child = subprocess.Popen(["sleep", "600"])
    pathlib.Path({str(tmp_path)!r}, "child").write_text(str(child.pid))
    time.sleep(600)
hpo.minimize(train, {{"x": hpo.uniform(0, 1)}}, trials=2, verbose=False)
"""
    search = python(program)
    file = tmp_path / "child"
    wait_until(lambda: file.exists() and file.read_text())
    search.kill()
    search.wait()
    wait_until(lambda: not pathlib.Path("/proc", file.read_text()).exists())


def test_a_closed_standard_error_does_not_end_a_search(tmp_path):
    (tmp_path / "searched.py").write_text(MODULE)
    program = 'import searched, hpo; print(hpo.minimize(searched.train, {"x": hpo.uniform(0, 1)}, trials=2).state)'
    done = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, program], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, timeout=120, check=False)
    assert done.stdout == "completed\n"


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(hpo.HpoError, match=f"the storage folder {file}/folder cannot be used: Not a directory"):
        hpo.Study("mine", SPACE, storage=file / "folder")


def test_a_proxy_of_the_environment_is_not_for_this_machine(tmp_path):
    done = subprocess.run([sys.executable, "-c", SHARED, str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "http_proxy": "http://127.0.0.1:9"})
    assert done.stdout == "12\n", done.stderr
