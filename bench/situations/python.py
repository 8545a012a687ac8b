"""Situations of bench/waits in which a Python function is searched: hpo.minimize and hpo.Study."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from .watch import EITHER, REFUSAL, WAITS, Situation

# A search whose function is the situation's. It prints nothing but the end.
SEARCH = """
import ctypes, os, pathlib, signal, sys, threading, time
import hpo
FOLDER = pathlib.Path(sys.argv[1])
SPACE = {"lr": hpo.log(1e-5, 1e-2), "wd": hpo.uniform(0, .1)}

%s

if __name__ == "__main__":
    print("the search begins", flush=True)  # watch.BEGINS
    best = hpo.minimize(f, SPACE, **OPTIONS)
    print("best:", best.value, best.params)
"""


def search(text, *more):
    """Of the definition of f and OPTIONS."""
    return lambda world: world.python(SEARCH % text, *more)


def simple(body, **options):
    """Of the body of f."""
    lines = "\n".join("    " + line for line in body.splitlines())
    given = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return search(f"def f(trial):\n{lines}\nOPTIONS = dict({given})")


def _second(world, text):
    """A search in a folder in which another one has run."""
    world.run(search(QUICK)(world))
    return search(text)(world)


def cut_off(world, capability):
    """Root obeys the permissions of files without these."""
    return ["setpriv", f"--bounding-set=-{capability}"] if os.geteuid() == 0 else []


# --- memory and spaces ------------------------------------------------------------------------------------

MEMORY = [
    Situation("one_oom_in_reals", simple(
        "if trial.number == 2: raise hpo.OutOfMemory\nreturn trial['lr']", trials=6, memory="1GiB"),
        says=("best:",)),
    Situation("oom_in_the_first_trial", simple(
        "if trial.number == 0: raise hpo.OutOfMemory\nreturn trial['lr']", trials=6, memory="1GiB"),
        says=("best:",)),
    Situation("one_oom_of_parallel_trials", simple(
        "time.sleep(0.2)\nif trial.number == 2: raise hpo.OutOfMemory\nreturn trial['lr']",
        trials=12, memory="1GiB", parallel=3), says=("best:",)),
    Situation("every_trial_out_of_memory", simple("raise hpo.OutOfMemory", trials=6, memory="1GiB"),
              REFUSAL, ("Error: .*memory|Blocked: .*memory",)),
    Situation("every_trial_over_the_limit", simple(
        "held = bytearray(300 << 20)\ntime.sleep(1)\nreturn float(len(held))", trials=4, memory="128MiB"),
        REFUSAL, ("memory",)),
    Situation("one_parameter_explains_the_oom", search("""
def f(trial):
    if trial["batch"] > 32: raise hpo.OutOfMemory
    return trial["lr"]
SPACE["batch"] = [16, 32, 64, 128]
OPTIONS = dict(trials=12, memory="1GiB")"""), says=("best:",)),
    Situation("no_choice_fits", search("""
def f(trial):
    raise hpo.OutOfMemory
SPACE = {"batch": [64, 128]}
OPTIONS = dict(trials=12, memory="1GiB")"""), REFUSAL, ("memory",)),
    Situation("finite_space", search("""
def f(trial): return float(trial["a"] - trial["b"])
SPACE = {"a": hpo.int(20, 21), "b": hpo.int(2, 3)}
OPTIONS = dict(trials=10)"""), says=("best:",)),
    Situation("grid_exhausted", search("""
def f(trial): return float(trial["a"] - trial["b"])
SPACE = {"a": hpo.int(20, 21), "b": hpo.int(2, 3)}
OPTIONS = dict(trials=10, sampler={"type": "grid"})"""), says=("best:",)),
    Situation("one_configuration", search("""
def f(trial): return 1.0
SPACE = {"a": ["only"]}
OPTIONS = dict(trials=5)"""), says=("best:",)),
    Situation("no_trial_meets_the_constraint", search("""
def f(trial): return {"value": trial["lr"], "latency": 5.0}
OPTIONS = dict(trials=5, constraints=[{"metric": "latency", "at_most": 1}])"""), EITHER, ("constraint|feasible|latency",)),
    Situation("another_space_of_the_same_name", lambda world: _second(world, """
def f(trial): return 1.0
SPACE = {"other": hpo.uniform(0, 1)}
OPTIONS = dict(trials=5, storage=FOLDER)"""), REFUSAL, ("study",)),
]

# --- processes and what they load -------------------------------------------------------------------------

PROCESSES = [
    Situation("parent_used_openmp", search("""
from sklearn.ensemble import HistGradientBoostingRegressor
import numpy as np
X, Y = np.random.rand(3000, 8), np.random.rand(3000)
def fit(rate): return float(HistGradientBoostingRegressor(learning_rate=rate, max_iter=20).fit(X, Y).score(X, Y))
def f(trial): return fit(trial["lr"] * 10)
OPTIONS = dict(trials=4)
if __name__ == "__main__": fit(0.1)"""), says=("best:",)),
    Situation("parent_used_numpy", search("""
import numpy as np
def f(trial):
    a = np.random.rand(400, 400)
    return float(trial["lr"] + 0 * (a @ a).sum())
a = np.random.rand(400, 400); a @ a
OPTIONS = dict(trials=4, parallel=2)"""), says=("best:",)),
    Situation("parent_has_threads", search("""
def f(trial): return trial["lr"]
OPTIONS = dict(trials=4, parallel=2)
if __name__ == "__main__": threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"""),
              says=("best:",)),
    Situation("parent_holds_a_lock", search("""
import logging
def f(trial):
    logging.warning("trial %d", trial.number)
    return trial["lr"]
def hold():
    with logging.getLogger().handlers[0].lock: time.sleep(8)
OPTIONS = dict(trials=3)
if __name__ == "__main__":
    logging.basicConfig()
    threading.Thread(target=hold, daemon=True).start()
    time.sleep(0.2)"""), says=("best:",)),
    Situation("object_that_cannot_be_pickled", search("""
LOCK = threading.Lock()
def f(trial):
    with LOCK: return trial["lr"]
OPTIONS = dict(trials=3)
if __name__ == "__main__": threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"""),
              REFUSAL, ("LOCK", "isolate=False")),
    Situation("parent_ignores_the_end_of_children", search("""
def f(trial): return trial["lr"]
OPTIONS = dict(trials=4)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)"""), says=("best:",)),
    Situation("search_in_a_thread", search("""
def f(trial): return trial["lr"]
OPTIONS = dict(trials=4)
if __name__ == "__main__":
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool:
        print([one.value for one in pool.map(lambda name: hpo.minimize(f, SPACE, name=name, **OPTIONS), "ab")])"""),
              says=("best:",)),
    Situation("few_descriptors", lambda world: ["sh", "-c", 'ulimit -n 40; exec "$0" "$@"', *search("""
def f(trial): return trial["lr"]
OPTIONS = dict(trials=16, parallel=8)""")(world)], EITHER, ("best:|open files|descriptor",)),
    Situation("standard_error_is_closed", lambda world: ["sh", "-c", 'exec "$0" "$@" 2>&-', *search("""
def f(trial): return trial["lr"]
OPTIONS = dict(trials=4)""")(world)], says=("best:",)),
    Situation("search_within_a_trial", search("""
def inner(trial): return trial["wd"]
def f(trial): return hpo.minimize(inner, {"wd": hpo.uniform(0, .1)}, trials=3, verbose=False).value
OPTIONS = dict(trials=3)"""), says=("best:",)),
    Situation("module_without_a_main_guard", lambda world: _without_guard(world), REFUSAL, ("__main__",)),
]


def _without_guard(world):
    """A fresh interpreter imports a module that begins the search again."""
    world.write("searched.py", """
import os, threading, time
import hpo
depth = int(os.environ.get("DEPTH", "0"))
os.environ["DEPTH"] = str(depth + 1)
if depth > 2: raise SystemExit("again and again")
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def f(trial): return trial["x"]
print("best:", hpo.minimize(f, {"x": hpo.uniform(0, 1)}, trials=3).value)
""")
    return world.python("import sys, os\nsys.path.insert(0, os.path.dirname(sys.argv[1]))\nimport searched\n")


def imports(module):
    """f comes from a module that does something where a fresh interpreter imports it."""
    def begin(world):
        world.write("slow.py", "import os, sys, time\nif os.environ.get('FRESH'):\n    " + module
                    + "\ndef f(trial):\n    return trial['lr']\n")
        return world.python(SEARCH % """
sys.path.insert(0, str(FOLDER.parent))
from slow import f
OPTIONS = dict(trials=3)
if __name__ == "__main__":
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    os.environ["FRESH"] = "1" """)
    return begin


IMPORTS = [
    Situation("import_of_twelve_seconds", imports("time.sleep(12)"), says=("best:",)),
    Situation("import_of_forty_seconds", imports("time.sleep(40)"), says=("best:",)),
    Situation("import_that_fails", imports("import no_such_module"), REFUSAL, ("no_such_module",)),
    Situation("import_that_never_ends", imports("time.sleep(1000)"), WAITS, ("slow.py",)),
    Situation("import_that_kills_its_process", imports("os.kill(os.getpid(), 9)"), REFUSAL, ("ended|killed|SIGKILL",)),
]

# --- trials -----------------------------------------------------------------------------------------------

TRIALS = [
    Situation("hung_trial_with_a_time_limit", simple(
        "if trial.number == 1:\n    while True: time.sleep(1)\nreturn trial['lr']", trials=4,
        budget={"trial_wall_clock": "3s"}), says=("best:", "time limit")),
    Situation("hung_outside_python_with_a_time_limit", simple(
        "if trial.number == 1: ctypes.PyDLL(None).sleep(1000)\nreturn trial['lr']", trials=4,
        budget={"trial_wall_clock": "3s"}), says=("best:", "time limit")),
    Situation("every_trial_hangs", simple("while True: time.sleep(1)", trials=3,
                                          budget={"trial_wall_clock": "3s"}), REFUSAL, ("time limit",)),
    Situation("hung_trial_without_a_limit", simple("while True: time.sleep(1)", trials=3), WAITS, ("trial 0 runs",)),
    Situation("trial_of_forty_seconds", simple("time.sleep(40)\nreturn trial['lr']", trials=1), says=("best:",)),
    Situation("long_trial_in_this_process", simple("time.sleep(40)\nreturn trial['lr']", trials=1, isolate=False),
              says=("best:",)),
    Situation("trial_that_stops_itself", simple("os.kill(os.getpid(), signal.SIGSTOP)", trials=2), WAITS,
              ("trial 0",)),
    Situation("trial_ignores_should_stop", simple(
        "for step in range(1000):\n    trial.report(step, trial['lr'] + step)\n    time.sleep(0.2)\nreturn 1.0",
        trials=3, budget={"trial_wall_clock": "4s"}), EITHER, ("time limit|pruned",)),
    Situation("trial_kills_itself", simple("os.kill(os.getpid(), signal.SIGKILL)", trials=20), REFUSAL, ("SIGKILL",)),
    Situation("trial_crashes", simple("ctypes.string_at(0)", trials=20), REFUSAL, ("SIGSEGV",)),
    Situation("trial_kills_its_slot", simple("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)", trials=20),
              REFUSAL, ("killed|has ended",)),
    Situation("sys_exit", simple("sys.exit('no CUDA device found')", trials=20), REFUSAL, ("no CUDA device found",)),
    Situation("returns_none", simple("pass", trials=20), REFUSAL, ("None",)),
    Situation("raises", simple("raise ValueError('no such column')", trials=20), REFUSAL, ("no such column",)),
    Situation("raises_what_cannot_be_shown", simple(
        "class Odd(Exception):\n    def __str__(self): raise ValueError('odd')\nraise Odd()", trials=20), REFUSAL,
        ("Odd",)),
    Situation("leaves_a_child_that_holds_the_pipe", simple(
        "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\nreturn trial['lr']", trials=3),
        says=("best:",)),
    Situation("closes_its_descriptors", simple("os.closerange(3, 1000)\nreturn trial['lr']", trials=3,
                                               budget={"failures_in_a_row": 2}), REFUSAL, ("ended|closed|killed",)),
    Situation("uses_a_pool", simple(
        "import multiprocessing\nwith multiprocessing.Pool(2) as pool: return sum(pool.map(abs, [1.0, 2.0]))", trials=3),
        says=("best:",)),
    Situation("writes_without_end", simple(
        "for _ in range(200): sys.stderr.write('.' * 100000)\nreturn trial['lr']", trials=3), says=("best:",)),
    Situation("hung_trial_when_the_time_is_up", simple("while True: time.sleep(1)", trials=5,
                                                       budget={"wall_clock": "5s"}), WAITS, ("trial 0 runs",)),
    Situation("target_reached_beside_a_long_trial", simple(
        "if trial.number == 0: time.sleep(1000)\nreturn 0.0", trials=8, parallel=2, target=0.5), WAITS, ("target",)),
    Situation("leaves_a_thread_that_runs", simple(
        "threading.Thread(target=time.sleep, args=(1000,)).start()\nreturn trial['lr']", trials=3), says=("best:",)),
]

# --- who has the trials -----------------------------------------------------------------------------------

HOLDER = SEARCH % """
def f(trial):
    (FOLDER / "held").touch()
    time.sleep(1000)
OPTIONS = dict(trials=1, storage=FOLDER)"""
QUICK = "def f(trial): return trial['lr']\nOPTIONS = dict(trials=1, storage=FOLDER)"


def held(world):
    holder = world.start(world.python(HOLDER, name="holder.py"))
    wait_for(lambda: (world.storage / "held").exists(), "the holder's trial")
    return holder


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def all_held(world):
    held(world)
    return search(QUICK)(world)


def holder_stopped(world):
    holder = held(world)
    os.kill(holder.process.pid, signal.SIGSTOP)
    return search(QUICK)(world)


def holder_killed(world):
    held(world).process.kill()
    return search(QUICK)(world)


def finished_before(world):
    world.run(search(QUICK)(world))
    return search(QUICK)(world)


ASKS = """
import sys, time, hpo
with hpo.Study("mine", {"x": hpo.uniform(0, 1)}, trials=2, storage=sys.argv[1]) as study:
    begin = time.monotonic()
    held = [study.ask(timeout=5) for _ in range(2)]
    assert study.ask() is None and not study.finished, "the third ask"
    assert time.monotonic() - begin < 8, "ask waited"
    for trial in held: study.tell(trial, trial["x"])
    assert study.ask() is None and study.finished, "the last ask"
"""
POOL = """
import sys, hpo
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
def f(x): return (x - 0.3) ** 2
if __name__ == "__main__":
    with hpo.Study("pool", {"x": hpo.uniform(0, 1)}, trials=12, storage=sys.argv[1]) as study, \\
            ProcessPoolExecutor(3) as pool:
        running = {}
        while running or not study.finished:
            while len(running) < 3 and (trial := study.ask()) is not None:
                running[pool.submit(f, trial["x"])] = trial
            done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
            for future in done: study.tell(running.pop(future), future.result())
        assert len(study.trials) == 12, len(study.trials)
"""
FOREVER = "def f(trial):\n    time.sleep(0.3)\n    return trial['lr']\nOPTIONS = dict(trials=300)"
FOREVER_IN_FOLDER = FOREVER.replace("trials=300", "trials=300, storage=FOLDER")


def after(count, action):
    """While the search runs: does something once so many trials have ended."""
    def during(world, running):
        if not running.wait_for(rf"trial +{count - 1} +completed"):
            raise RuntimeError(f"trial {count - 1} did not end")
        action(world, running)
    return during


def from_elsewhere(text):
    """Something that another process does with the folder's study."""
    def action(world, _):
        done = world.run(world.python("import sys, hpo\nwith hpo.Study('study', storage=sys.argv[1]) as study:\n    "
                                      + text, name="elsewhere.py"))
        if done.process.returncode != 0:
            raise RuntimeError(done.output)
    return action


def cli(*words):
    def action(world, _):
        done = world.cli(*words)
        if done.process.returncode != 0:
            raise RuntimeError(done.output)
    return action


OTHERS = [
    Situation("another_process_has_all_trials", all_held, WAITS, ("running: trial #0 on",)),
    Situation("holder_is_stopped", holder_stopped, WAITS, ("lease|silent|heartbeat|heard",)),
    Situation("holder_was_killed", holder_killed, says=("best:",)),
    Situation("finished_before", finished_before, says=("best:",)),
    Situation("ask_when_all_is_handed_out", lambda world: world.python(ASKS)),
    Situation("process_pool", lambda world: world.python(POOL)),
    Situation("stopped_from_elsewhere", search(FOREVER_IN_FOLDER), EITHER, ("stop",),
              during=after(2, from_elsewhere("study.stop()"))),
    Situation("paused_from_elsewhere", search(FOREVER_IN_FOLDER), WAITS, ("pause",),
              during=after(2, cli("study", "pause"))),
    Situation("interrupted", search(FOREVER), REFUSAL, ("KeyboardInterrupt",),
              during=after(2, lambda _, running: os.kill(running.process.pid, signal.SIGINT))),
]


# --- the server and its folder ----------------------------------------------------------------------------

def kill_server(again_after=None):
    def action(world, _):
        [pid] = world.processes("bin/hpo-server", "--db") or [0]
        os.kill(pid, signal.SIGKILL)
        if again_after is not None:
            time.sleep(again_after)
            world.server("--listen", world.listened)
    return action


def at_a_server(world):
    _, world.listened = world.server("--listen", "127.0.0.1:0")
    text = FOREVER.replace("trials=300", f"trials=20, server={world.listened!r}")
    return search(text)(world)


def stop_folder_server(world, _):
    [pid] = world.processes("bin/hpo-server", "--db")
    os.kill(pid, signal.SIGSTOP)


def a_file(world):
    world.storage.write_text("")
    return search(FOREVER_IN_FOLDER)(world)


def unwritable(world):
    world.run(search(QUICK)(world))
    for path in (*world.storage.rglob("*"), world.storage):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return cut_off(world, "dac_override") + search(FOREVER_IN_FOLDER)(world)


def unwritable_parent(world):
    closed = world.folder / "closed"
    closed.mkdir(mode=0o555)
    world.storage = closed / "storage"
    return cut_off(world, "dac_override") + search(FOREVER_IN_FOLDER)(world)


def garbage(world):
    world.storage.mkdir()
    (world.storage / "hpo.db").write_bytes(bytes(range(256)) * 64)
    return search(FOREVER_IN_FOLDER)(world)


def socket_is_a_folder(world):
    (world.storage / "server.sock").mkdir(parents=True)
    return search(FOREVER_IN_FOLDER.replace("300", "3"))(world)


def on_a_small_disk(world):
    world.storage = world.small_disk("8m") / "storage"
    return search(FOREVER_IN_FOLDER.replace("300", "60"))(world)


def fill(world, _=None):
    with open(world.folder / "small" / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def fill_for_a_while(world, _):
    fill(world)
    time.sleep(15)
    (world.folder / "small" / "filler").unlink()


def full_from_the_start(world):
    command = on_a_small_disk(world)
    fill(world)
    return command


def no_programs(world):
    world.environment |= {"HPO_BIN_DIR": str(world.folder), "PATH": "/usr/bin:/bin"}
    return search(FOREVER_IN_FOLDER)(world)


def program_that_does_not_run(world):
    program = world.write("bin/hpo-server", "#!/bin/sh\necho no such library >&2\nexit 127\n")
    program.chmod(0o755)
    world.environment["HPO_BIN_DIR"] = str(program.parent)
    return search(FOREVER_IN_FOLDER)(world)


def program_that_says_nothing(world):
    program = world.write("bin/hpo-server", "#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    world.environment["HPO_BIN_DIR"] = str(program.parent)
    return search(FOREVER_IN_FOLDER)(world)


def behind_a_proxy(world):
    """A variable that many companies set must not lead to this machine's own server."""
    words = at_a_server(world)
    world.environment |= {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "grpc_proxy")}
    return words


def lock_of_another(world):
    """A process that is no hpo-server holds the folder's lock."""
    world.storage.mkdir()
    holder = world.start(["flock", world.storage / "server.lock", "sleep", "1000"])
    wait_for(lambda: world.processes("sleep", "1000") or holder.process.poll() is not None, "the lock")
    return search(FOREVER_IN_FOLDER)(world)


def newer_database(world):
    world.run(search(QUICK)(world))
    sqlite3.connect(world.storage / "hpo.db").execute("PRAGMA user_version = 9999").connection.close()
    return search(FOREVER_IN_FOLDER)(world)


def remove_storage(world, _):
    shutil.rmtree(world.storage)


def another_service(world):
    """Something listens at the server's address that is no hpo-server."""
    ready = world.start([sys.executable, world.write("service.py", """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
held = []
while True: held.append(listener.accept())
""")])
    wait_for(lambda: ready.lines, "the service's port")
    return search(FOREVER.replace("trials=300", f"trials=300, server='127.0.0.1:{ready.output}'"))(world)


def can_mount():
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


SERVERS = [
    Situation("nobody_listens", search(FOREVER.replace("trials=300", "trials=300, server='127.0.0.1:9'")), REFUSAL,
              ("127.0.0.1:9",)),
    Situation("no_such_host", search(FOREVER.replace("trials=300", "trials=300, server='no-such-host.invalid:9'")),
              REFUSAL, ("no-such-host",)),
    Situation("another_service_listens", another_service, REFUSAL, ("127.0.0.1:",)),
    Situation("server_killed", at_a_server, EITHER, ("has not answered|does not answer",),
              during=after(2, kill_server()), limit_s=120),
    Situation("server_killed_and_started_again", at_a_server, says=("best:",), during=after(2, kill_server(20))),
    Situation("folder_server_killed", search(FOREVER_IN_FOLDER.replace("300", "12")), says=("best:",),
              during=after(2, kill_server())),
    Situation("folder_server_stopped", search(FOREVER_IN_FOLDER.replace("300", "12")), WAITS,
              ("has not answered|does not answer",), during=after(2, stop_folder_server)),
    Situation("storage_is_a_file", a_file, REFUSAL, ("storage",)),
    Situation("storage_is_not_writable", unwritable, REFUSAL, ("storage",)),
    Situation("storage_cannot_be_made", unwritable_parent, REFUSAL, ("closed",)),
    Situation("database_is_garbage", garbage, REFUSAL, ("not a database|no database|hpo.db",)),
    Situation("database_is_newer", newer_database, REFUSAL, ("newer|schema|version",)),
    Situation("proxy_in_the_environment", behind_a_proxy, says=("best:",)),
    Situation("lock_is_held_by_another_program", lock_of_another, REFUSAL, ("server.lock",)),
    Situation("storage_is_removed", search(FOREVER_IN_FOLDER.replace("300", "40")), EITHER, ("storage|hpo.db",),
              during=after(2, remove_storage)),
    Situation("socket_is_a_folder", socket_is_a_folder, EITHER, ("best:|server.sock",)),
    Situation("no_server_program", no_programs, REFUSAL, ("hpo-server was not found",)),
    Situation("server_program_does_not_run", program_that_does_not_run, REFUSAL, ("no such library",)),
    Situation("server_program_says_nothing", program_that_says_nothing, REFUSAL, ("listen",)),
] + ([
    Situation("disk_full", on_a_small_disk, WAITS, (r"\bfull\b|no space",), during=after(2, fill)),
    Situation("disk_full_for_a_while", on_a_small_disk, says=("best:",), during=after(2, fill_for_a_while)),
    Situation("disk_full_at_the_start", full_from_the_start, EITHER, (r"\bfull\b|no space",)),
] if can_mount() else [])

SITUATIONS = [*MEMORY, *PROCESSES, *IMPORTS, *TRIALS, *OTHERS, *SERVERS]
