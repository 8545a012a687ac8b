"""Of bench/waits: who shares a storage folder, and how soon a search that was killed goes on."""

import os
import sys
import time

from .watch import World

TRIALS = 24
HEAD = """
import sys, threading, time, hpo
def work(study, told):
    while not study.finished:
        trial = study.ask(timeout=1)
        if trial is not None:
            time.sleep(0.05)
            told.append(study.tell(trial, trial["x"]))
def opened(): return hpo.Study("shared", {"x": hpo.uniform(0, 1)}, trials=int(sys.argv[2]), storage=sys.argv[1])
"""
ONE = HEAD + """
with opened() as study:
    told = []
    work(study, told)
print("told", told.count("completed"))
"""
THREADS = HEAD + """
begin, told = threading.Barrier(4), []
with opened() as study:
    def ask():
        begin.wait()
        work(study, told)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("told", told.count("completed"))
"""
# As a notebook: cells run in a process with threads of its own, which looks while threads of it work.
NOTEBOOK = HEAD + """
for _ in range(3): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
names = {"hpo": hpo, "opened": opened, "work": work, "threading": threading, "told": []}
for cell in ("study = opened()",
             "workers = [threading.Thread(target=work, args=(study, told)) for _ in range(2)]",
             "[worker.start() for worker in workers]",
             "while not study.finished: study.trials; study.waiting_for",
             "[worker.join() for worker in workers]",
             "with opened() as again: again.best.value",
             "study.close()"):
    exec(compile(cell, "<cell>", "exec"), names)
print("told", names["told"].count("completed"))
"""
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--net"]
CASES = {"two processes": [(ONE, []), (ONE, [])],
         "two containers": [(ONE, CONTAINER), (ONE, CONTAINER)],
         "a notebook with threads and a process": [(NOTEBOOK, []), (ONE, [])],
         "four threads that ask": [(THREADS, [])]}


def works(name, members, build):
    """All end with status 0, and together have told each trial once."""
    world = World(build)
    try:
        trials = TRIALS * len(members)
        searches = [world.start(before + world.python(text, trials, name=f"member{index}.py"))
                    for index, (text, before) in enumerate(members)]
        statuses = [search.wait(120) for search in searches]
        told = [int(search.output.rpartition("told ")[2] or 0) for search, status in zip(searches, statuses)
                if status == 0]
        right = all(status == 0 for status in statuses) and sum(told) == trials and min(told) > 0
        print(f"shared folder, {name}: {'works' if right else 'WRONG'}, statuses {statuses}, told {told} of {trials}",
              file=sys.stderr, flush=True)
        for search, status in zip(searches, statuses):
            if status != 0:
                print(search.output[-1500:], file=sys.stderr)
        return right
    finally:
        world.close()


def working(build):
    """How many of the cases work, and how many there are."""
    together = [member for members in CASES.values() for member in members]
    cases = {**CASES, "all of them": together}
    return sum(works(name, members, build) for name, members in cases.items()), len(cases)


SEARCH = """
import pathlib, sys, time
import hpo
FOLDER = pathlib.Path(sys.argv[1])
def f(trial):
    (FOLDER.parent / f"started-{trial.number}-{time.time()}").touch()
    time.sleep(float(sys.argv[2]))
    return trial["x"]
hpo.minimize(f, {"x": hpo.uniform(0, 1)}, trials=9, parallel=3, storage=FOLDER)
"""


def resume_seconds(build):
    world = World(build)
    try:
        killed = world.start(world.python(SEARCH, 1000))
        deadline = time.monotonic() + 60
        while len(list(world.folder.glob("started-*"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(killed.process.pid, 9)
        killed.wait(10)
        begin = time.time()
        again = world.start(world.python(SEARCH, 0))
        if again.wait(300) != 0:
            raise RuntimeError(f"the second call failed:\n{again.output}")
        starts = [float(path.name.split("-")[2]) for path in world.folder.glob("started-*")]
        return min(start for start in starts if start > begin) - begin
    finally:
        world.close()
