"""Writes a study as one HTML file, as `hpo export html STUDY` does, from the API of a server.

usage: export_page.py ADDRESS STUDY OUT    ADDRESS: http://127.0.0.1:8080
Needs dist-export/export.html (npm run build). Which calls are recorded, and how: API.md, "An
exported page".
"""
import datetime
import json
import pathlib
import sys
import urllib.error
import urllib.request

# Trials whose details are in the page: all of a small study, else the best and the newest.
MOST_DETAILS = 200
PAGE = 20_000
# That the memory page offers (src/pages/memory/capacities.ts).
GPUS_GIB = (8, 12, 16, 24, 40, 48, 80, 141)


class Server:
    def __init__(self, address: str):
        self.address = address
        self.calls: list[dict] = []

    def ask(self, method: str, request: dict) -> dict:
        asked = urllib.request.Request(
            f"{self.address}/api/{method}", json.dumps(request).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return json.load(answer)

    def record(self, method: str, request: dict) -> dict:
        """The page says by itself that it lacks what the server could not answer."""
        try:
            answer = self.ask(method, request)
        except urllib.error.HTTPError as error:
            print(f"{method}: {error.read().decode()[:200]}", file=sys.stderr)
            return {}
        self.calls.append({"method": method, "request": request, "answer": answer})
        return answer


def read_trials(server: Server, study: str) -> list[dict]:
    names = [
        {"COLUMN_KIND_PARAMETER": "param:", "COLUMN_KIND_METRIC": "metric:"}.get(column["kind"], "") + column["name"].removeprefix("param:").removeprefix("metric:")
        for column in server.ask("StudyService/QueryTrials", {"study": study, "page_size": 1})["all_columns"]
    ]
    pages: list[dict] = []
    token = ""
    while not pages or token:
        page = server.ask("StudyService/QueryTrials", {"study": study, "columns": names, "page_size": PAGE, "page_token": token})
        pages.append(page)
        token = page.get("next_page_token", "")
    return pages


def record(server: Server, name: str) -> dict:
    study = server.record("StudyService/GetStudy", {"name": name})["study"]
    server.record("StudyService/GetHistory", {"study": name, "points": 10_000})
    for objective in study["objectives"]:
        for method in ("IMPORTANCE_METHOD_PED_ANOVA", "IMPORTANCE_METHOD_FANOVA"):
            server.record("AnalysisService/GetImportance", {"study": name, "metric": objective["metric"], "method": method})
    curves = server.record("AnalysisService/GetCurves", {"study": name, "count": 200})
    for metric in curves.get("metrics", []):
        server.record("AnalysisService/GetCurves", {"study": name, "metric": metric, "count": 200})
    server.record("AnalysisService/GetTimeline", {"study": name, "count": 10_000})
    workers = [int(worker.get("capacity_bytes", 0)) for worker in study.get("workers", [])]
    capacities = sorted({size * 2**30 for size in GPUS_GIB} | {size for size in workers if size > 0})
    server.record("AnalysisService/GetMemoryFrontier", {"study": name, "capacities": capacities})
    server.record("AnalysisService/GetMemoryFit", {"study": name, "capacities": capacities})
    best = server.record("StudyService/ListBestTrials", {"study": name, "count": 20}).get("trials", [])
    trials = read_trials(server, name)
    numbers = [number for page in trials for number in page.get("numbers", [])]
    chosen = {int(trial.get("number", 0)) for trial in best} | set(numbers[-MOST_DETAILS:])
    for number in sorted(chosen):
        server.record("StudyService/GetTrial", {"study": name, "number": number})
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"recorded": now, "calls": server.calls, "trials": trials}


def main() -> None:
    address, study, out = sys.argv[1:4]
    template = (pathlib.Path(__file__).parents[1] / "dist-export" / "export.html").read_text()
    # Nothing in the data can end its element.
    data = json.dumps(record(Server(address), study), separators=(",", ":")).replace("<", "\\u003c")
    before, after = template.split("HPO-DATA")
    pathlib.Path(out).write_text(before + data + after)
    print(f"{out}: {len(before + data + after) / 1e3:.0f} kB, of which {len(data) / 1e3:.0f} kB are data")


if __name__ == "__main__":
    main()
