"""Fleets as jobs of Ray: what `hpo fleet` runs for its engine ray. Each command prints JSON on one line.

    python3 -m hpo.ray.jobs submit NAME FOLDER GPUS     the folder holds fleet.py, and join where there is a secret
    python3 -m hpo.ray.jobs list [NAME]
    python3 -m hpo.ray.jobs end NAME                    how its last job has ended
    python3 -m hpo.ray.jobs scale NAME WORKERS          0 ends the fleet
    python3 -m hpo.ray.jobs stop NAME SECONDS           waits no longer for the beginning of the end

All goes through the HTTP address of Ray's dashboard (RAY_API_SERVER_ADDRESS or RAY_ADDRESS), so Ray here need not be of
the cluster's version. The secret is a file of the job's working directory: Ray shows env_vars of runtime environments
to everybody who sees the dashboard.
"""

import json
import os
import re
import sys
import time
import urllib.request
from typing import Any, Callable, Sequence

from . import check_answers, first_line
from ..errors import HpoError, imported

_PREFIX = "hpo-"
_LIVE = ("PENDING", "RUNNING")
# Ray's states of an actor that has not ended.
_STATES = {"DEPENDENCIES_UNREADY": "waiting", "PENDING_CREATION": "waiting", "RESTARTING": "waiting", "ALIVE": "running"}
_MOST_ACTORS = 10_000
_SCALES_S = 120.0
_STARTS_S = 60.0
_SHOWN = ("CPU", "GPU")


class Cluster:
    """A cluster of Ray, by the HTTP address of its dashboard."""

    def __init__(self) -> None:
        imported("ray", "hpo fleet ray")
        submission = imported("ray.job_submission", "hpo fleet ray")
        dashboard = imported("ray.dashboard.utils", "hpo fleet ray")
        address = os.environ.get("RAY_API_SERVER_ADDRESS") or os.environ.get("RAY_ADDRESS", "")
        check_answers(address.split("://", 1)[-1].rstrip("/") if address.startswith("http://") else address)
        try:
            self._address = str(dashboard.get_address_for_submission_client(None))
            self._jobs: Any = submission.JobSubmissionClient(self._address)
        except Exception as error:  # Ray raises whatever its HTTP client does
            raise HpoError(f"no cluster of Ray at {address or 'this machine'}: expected one with its dashboard, such as "
                           "RAY_API_SERVER_ADDRESS=http://HEAD:8265, or `ray start --head` on this machine "
                           f"({first_line(error)})") from None

    def submit(self, name: str, folder: str, gpus: int) -> "dict[str, Any]":
        identity = f"{_PREFIX}{name}-{time.time_ns() // 1_000_000}"
        # Ray lists a job a moment after it has taken it; until then a second fleet of the name could be submitted.
        self._submit(entrypoint="python3 fleet.py", submission_id=identity, metadata={"hpo_fleet": name},
                     runtime_env={"working_dir": folder})
        _wait_until(lambda: any(job.submission_id == identity for job in self._jobs.list_jobs()))
        most = max((node["resources_total"].get("GPU", 0) for node in self._list("nodes", detail=True)), default=0)
        notes = [] if gpus <= most else [
            f"no node of the cluster has {gpus} {'GPU' if gpus == 1 else 'GPUs'}: the largest has {most:g}, and the workers wait until a larger one "
            "joins; change --gpus-per-worker, or add nodes"]
        return {"id": identity, "notes": notes}

    def list(self, name: str = "") -> "list[dict[str, Any]]":
        """The workers that have not ended; a job that has none yet counts as one that waits."""
        nodes = {node["node_id"]: node["node_ip"] for node in self._list("nodes")}
        begun = self._begin_times()
        found = [self._worker(actor, nodes, begun) for actor in self._actors(name) if actor["name"].startswith("worker-")]
        fleets = {worker["fleet"] for worker in found}
        for job in self._live_jobs(name):
            fleet = job.metadata["hpo_fleet"]
            if fleet not in fleets:
                found.append({"fleet": fleet, "id": job.submission_id, "state": "waiting", "node": "",
                              "reason": "its job has no workers yet", "running_for_s": None, "restarts": None})
        return sorted(found, key=lambda worker: (worker["fleet"], _number(worker["id"])))

    def end(self, name: str) -> "dict[str, Any]":
        """The last job of the fleet, if there was one: its id, its status and the last line of its log."""
        jobs = [job for job in self._jobs.list_jobs() if job.metadata and job.metadata.get("hpo_fleet") == name]
        if not jobs:
            return {}
        last: Any = max(jobs, key=lambda job: job.start_time or 0)
        lines = [line for line in self._jobs.get_job_logs(last.submission_id).splitlines() if line.strip()]
        return {"id": last.submission_id, "status": getattr(last.status, "value", str(last.status)),
                "said": lines[-1] if lines else " ".join((last.message or "").split())}

    def scale(self, name: str, workers: int, longest_s: float = _SCALES_S) -> "dict[str, Any]":
        """By a job of the cluster's own Python, as a connection of actors needs the cluster's version of Ray."""
        code = f"import hpo.ray; hpo.ray.resize({name!r}, {workers})"
        identity = self._submit(entrypoint=f'python3 -c "{code}"')
        _wait_until(lambda: str(self._jobs.get_job_status(identity)) not in _LIVE, longest_s)
        status = str(self._jobs.get_job_status(identity))
        if status != "SUCCEEDED" and not (status in _LIVE and longest_s < _SCALES_S):
            lines = [line for line in self._jobs.get_job_logs(identity).splitlines() if line.strip()] or ["no reason given"]
            raise HpoError(f"the cluster could not change the size of fleet {name}: {lines[-1]}")
        return {"workers": workers}

    def stop(self, name: str, longest_s: float) -> "dict[str, Any]":
        """Returns when the end has begun, or after `longest_s` seconds, after which it begins on its own. Ray's own stop of a job kills it after three seconds, so workers are ended
        first, and save their trials."""
        if not self._can_scale(name):
            for job in self._live_jobs(name):
                self._jobs.stop_job(job.submission_id)
            return {}
        try:
            self.scale(name, 0, min(longest_s, _SCALES_S))
        except HpoError:
            if self._can_scale(name):  # else the fleet has ended meanwhile
                raise
        return {}

    def _can_scale(self, name: str) -> bool:
        """Whether the actor that keeps the fleet's size is there."""
        return any(actor["name"] == "size" and actor["state"] == "ALIVE" for actor in self._actors(name))

    def _submit(self, **job: Any) -> str:
        """The job's id. A cluster that has just started has no agent yet that takes jobs."""
        end = time.monotonic() + _STARTS_S
        while True:
            try:
                return str(self._jobs.submit_job(**job))
            except RuntimeError as error:
                if "No available agent" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(1.0)

    def _live_jobs(self, name: str) -> "list[Any]":
        live: "list[Any]" = [job for job in self._jobs.list_jobs() if str(job.status) in _LIVE]
        own = [job for job in live if job.metadata and job.metadata.get("hpo_fleet")]
        return [job for job in own if name in ("", job.metadata["hpo_fleet"])]

    def _actors(self, name: str) -> "list[dict[str, Any]]":
        actors = self._list("actors", detail=True, filters=[("state", "!=", "DEAD")])
        own = [actor for actor in actors if actor["name"] and (actor["ray_namespace"] or "").startswith(_PREFIX)]
        return [actor for actor in own if name in ("", actor["ray_namespace"][len(_PREFIX):])]

    def _begin_times(self) -> "dict[str, float]":
        """When each actor began, in seconds since 1970. Ray tells it to its dashboard alone; without it, none is known."""
        try:
            with urllib.request.urlopen(f"{self._address}/logical/actors", timeout=10) as answer:
                actors: "dict[str, dict[str, Any]]" = json.load(answer)["data"]["actors"]
            return {identity: actor["startTime"] / 1000 for identity, actor in actors.items() if actor.get("startTime")}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _worker(self, actor: "dict[str, Any]", nodes: "dict[str, str]", begun: "dict[str, float]") -> "dict[str, Any]":
        state = _STATES.get(actor["state"], "ended")
        resources: "dict[str, float]" = actor["required_resources"] or {}
        needed = ", ".join(f"{resources[what]:g} {what}" for what in _SHOWN if what in resources)
        fleet = actor["ray_namespace"][len(_PREFIX):]
        began = begun.get(actor["actor_id"])
        # The id is the name that the worker has at the server.
        return {"fleet": fleet, "id": f"ray-{fleet}-{_number(actor['name'])[0]}", "state": state,
                "node": nodes.get(actor["node_id"] or "", "") if state == "running" else "",
                "reason": f"waits for {needed}" if state == "waiting" and needed else "",
                "running_for_s": max(0.0, time.time() - began) if state == "running" and began else None,
                "restarts": int(actor["num_restarts"])}

    def _list(self, what: str, **options: Any) -> "list[dict[str, Any]]":
        state = imported("ray.util.state", "hpo fleet ray")
        rows: "list[Any]" = getattr(state, f"list_{what}")(address=self._address, limit=_MOST_ACTORS, **options)
        return [dict(row.__dict__) for row in rows]


def _wait_until(condition: "Callable[[], bool]", longest_s: float = _SCALES_S) -> None:
    """Returns after `longest_s` seconds in any case."""
    end = time.monotonic() + longest_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


def _number(identity: str) -> "tuple[int, str]":
    digits = re.search(r"\d+$", identity)
    return (int(digits.group()) if digits else 0, identity)


def main(words: Sequence[str]) -> int:
    command, *given = words
    try:
        cluster = Cluster()
        if command == "submit":
            result: Any = cluster.submit(given[0], given[1], int(given[2]))
        elif command == "scale":
            result = cluster.scale(given[0], int(given[1]))
        elif command == "stop":
            result = cluster.stop(given[0], float(given[1]))
        else:
            result = {"list": cluster.list, "end": cluster.end}[command](*given)
    except HpoError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        print(f"Ray failed: {first_line(error)}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
