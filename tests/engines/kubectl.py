#!/usr/bin/env python3
"""kubectl without a cluster, for tests of hpo fleet: it keeps Jobs, pods and Secrets in a file, HPO_TEST_CLUSTER, and does
what Kubernetes does with an Indexed Job at each call. No cluster can be had where the tests run (docs/fleet/OWED.md).

`kubectl get -o json` beside the words of hpo fleet; a deleted pod is there for one more look, as one that ends."""

import json
import os
import pathlib
import sys

import yaml

STATE = pathlib.Path(os.environ["HPO_TEST_CLUSTER"])
INSTANCE = "app.kubernetes.io/instance"


def fail(text):
    print(f"Error from server {text}", file=sys.stderr)
    sys.exit(1)


def load():
    return json.loads(STATE.read_text()) if STATE.exists() else {"Job": {}, "Pod": {}, "Secret": {}}


def key(words, kind):
    objects = [word for word in words if not word.startswith("-")]
    return objects[objects.index(kind.lower()) + 1]


def make_pods(state):
    """One for each index below the Job's completions, and none beyond."""
    for name, job in state["Job"].items():
        wanted = 0 if job["spec"].get("suspend") else job["spec"]["completions"]
        own = [pod for pod in state["Pod"] if pod.rsplit("-", 1)[0] == name]
        for pod in own:
            if int(pod.rsplit("-", 1)[1]) >= wanted:
                state["Pod"][pod]["metadata"].setdefault("deletionTimestamp", "2026-11-28T10:00:00Z")
        for index in range(wanted):
            template = job["spec"]["template"]
            state["Pod"].setdefault(f"{name}-{index}", {
                "kind": "Pod", "metadata": {"name": f"{name}-{index}", "labels": template["metadata"]["labels"]},
                "spec": {"nodeName": f"n{index % 2}", **template["spec"]},
                "status": {"phase": "Running", "startTime": "2026-11-28T10:00:00Z"}})


def get(state, words):
    name, value = words[words.index("-l") + 1].split("=")
    found = [thing for kind in ("Job", "Pod") for thing in state[kind].values()
             if thing["metadata"]["labels"].get(name) == value]
    print(json.dumps({"kind": "List", "items": found}))
    state["Pod"] = {pod: thing for pod, thing in state["Pod"].items() if "deletionTimestamp" not in thing["metadata"]}


def delete(state, words):
    kind = words[1].capitalize()
    name = key(words, kind)
    gone = state[kind].pop(name, None)
    if gone is None and "--ignore-not-found" not in words:
        fail(f"(NotFound): {kind} {name} not found")
    for pod in state["Pod"].values() if kind == "Job" else ():
        if pod["metadata"]["labels"][INSTANCE] == name:
            pod["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"


def main(words):
    state = load()
    if words[0] in ("create", "apply"):
        path = pathlib.Path(words[words.index("-f") + 1])
        thing = yaml.safe_load(path.read_text())
        if thing["kind"] == "Secret" and path.stat().st_mode & 0o077:
            fail(f"(Forbidden): everybody can read {path}")
        if words[0] == "create" and thing["metadata"]["name"] in state[thing["kind"]]:
            fail(f"(AlreadyExists): {thing['metadata']['name']} already exists")
        state[thing["kind"]][thing["metadata"]["name"]] = {**thing, "status": {}}
    elif words[0] == "patch":
        name = key(words, "Job")
        if name not in state["Job"]:
            fail(f"(NotFound): jobs.batch {name} not found")
        change = json.loads(words[words.index("-p") + 1])["spec"]
        if change["completions"] != change["parallelism"]:
            fail("(Invalid): spec.completions: field is immutable")
        state["Job"][name]["spec"].update(change)
    elif words[0] == "delete":
        delete(state, words)
    make_pods(state)
    if words[0] == "get":
        get(state, words)
    STATE.write_text(json.dumps(state))


if __name__ == "__main__":
    main(sys.argv[1:])
