"""The command line: python3 -m hpo_dryrun, and `hpo memory dry-run`."""

import argparse
import dataclasses
import difflib
import json
import math
import os
import signal
import sys
import tempfile
import time

from . import ample, gpus, largest, launch, packages, report, several, verdict
from .errors import DryRunError, UsageError
from .sizes import parse_size, show

PROGRAM = "hpo memory dry-run"
READBACKS = 2000
AMPLE_BYTES = 4 << 40
# Of --threads: a tenth of a processor that another process wants, too. With 19 a dry run hardly advances while
# data loaders are busy: 7 s of processor time took more than 120 s.
LOW_PRIORITY = 10
DESCRIPTION = """\
Runs a PyTorch program unchanged on an emulated GPU until it has seen enough
steps, ends it, and reports the GPU memory that it requires. No GPU is needed,
and nothing is computed: losses read 0."""
EXAMPLES = """\
examples:
  hpo memory dry-run --gpu a100-40gb -- python3 train.py --batch 32
  hpo memory dry-run --gpu rtx3090,t4 --json -- python3 train.py
  hpo memory dry-run --gpu a100:12GiB --largest batch=1:512 -- \\
      python3 train.py --batch {batch}
  hpo memory dry-run --gpu h100 --count 2 -- \\
      torchrun --nproc-per-node 2 train.py
  hpo memory dry-run study.yaml --gpu t4 -- python3 train.py {args}

The last one is for the configurations of a study; its options:
  hpo memory dry-run study.yaml --help

exit status:
  0  It fits, or is tight. Of several GPUs: on one of them.
  1  The program cannot be dry-run, or the verdict is unknown.
  2  The command line is wrong.
  3  It does not fit.
"""


class _Parser(argparse.ArgumentParser):
    """Complains in one line, with the option that was probably meant."""

    def error(self, message):
        found = message.partition("unrecognized arguments: ")[2].split(" ")[0]
        near = difflib.get_close_matches(found, self._option_string_actions, 1) if found else []
        raise UsageError(f"{message}{f'; did you mean {near[0]}?' if near else ''} (--help lists the options)")


def _positive(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got '{text}'")
    return value


def _whole(text):
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a whole number, got '{text}'") from error


def _count(text):
    value = _whole(text)
    if not 1 <= value <= gpus.MAX_COUNT:
        raise argparse.ArgumentTypeError(f"expected 1 to {gpus.MAX_COUNT}, got '{text}'")
    return value


def _steps(text):
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got '{text}'")
    return value


def parser():
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLES, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter,
                     usage=f"{PROGRAM} --gpu GPU [OPTIONS] -- COMMAND [ARGUMENTS]")
    add = parser.add_argument
    add("--gpu", "--card", action="append", metavar="GPUS", default=[],
        help="GPU to emulate, such as a100-40gb, or with another size a100:12GiB; several are joined by commas; "
             "all: every GPU that this build of torch has kernels for; list: show them")
    add("--count", type=_count, metavar="N", default=1, help="number of GPUs of the machine [default: 1]")
    add("--steps", type=_steps, metavar="N",
        help="optimizer steps to see [default: until three are alike, at most 30; more where an evaluation follows soon]")
    add("--timeout", type=_positive, metavar="SECONDS", default=300.0, help="of each run [default: 300]")
    add("--largest", metavar="NAME=LOW:HIGH", help="find the largest number for {NAME} in the command that fits")
    add("--allocator", action="append", metavar="SETTINGS",
        help="settings of torch's allocator, as PYTORCH_ALLOC_CONF has them, such as expandable_segments:True; given "
             "again, each is tried [default: those of the environment]")
    add("--stand-in", action="append", metavar="NAME", default=[], choices=sorted(packages.folders()),
        help="where this package is not installed, import its stand-in, which allocates what the package allocates: "
             f"{', '.join(sorted(packages.folders()))}")
    add("--context", metavar="SIZE", help="memory of the CUDA context [default: by GPU and versions]")
    add("--ample", action="store_true",
        help="run once with ample memory, and replay that for each GPU: quicker where the program does not fit, but what "
             "it does where memory is short is not seen")
    add("--threads", type=_steps, metavar="N",
        help="threads that torch computes with in the program, which then has a low priority [default: all]")
    add("--readbacks", type=_steps, metavar="N", default=READBACKS,
        help=f"reads of values that are not known without an optimizer step, after which the program is ended [default: "
             f"{READBACKS}]")
    add("--json", action="store_true", help="write one JSON document")
    add("--show-output", action="store_true", help="show what the program writes")
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _parse(words):
    at = words.index("--") if "--" in words else len(words)
    given = parser().parse_args(words[:at])
    if given.command and given.command[0].endswith((".yaml", ".yml")):
        raise UsageError(f"{given.command[0]}: the configurations of a study are dry-run by the program hpo alone: "
                         f"hpo memory dry-run {given.command[0]}")
    given.command = given.command + words[at + 1:]
    if given.gpu == ["list"]:
        return given
    if not given.gpu:
        raise UsageError("--gpu: expected the name of a GPU, such as a100-40gb, got none (--gpu list shows them)")
    given.allocator = given.allocator or [None]
    if given.largest and len(given.allocator) > 1:
        raise UsageError("--largest: expected one --allocator, got several")
    if given.largest and given.ample:
        raise UsageError("--largest and --ample: expected one of the two, got both")
    if not given.command:
        raise UsageError("expected a command after --, such as -- python3 train.py, got none")
    return given


class _Progress:
    """A line on the terminal while a run goes on."""

    def __init__(self, label):
        self._label = label
        self._start = time.monotonic()
        self._on = sys.stderr.isatty()

    def show(self, records):
        if not self._on:
            return
        used = [record for record in records if record.get("devices")]
        seen = "starting"
        if used:
            reserved = max(device["reserved_bytes"] for record in used for device in record["devices"])
            seen = f"{used[0]['steps']} steps, {show(reserved)} reserved"
        sys.stderr.write(f"\r\033[Kdry run on {self._label}: {seen}, {time.monotonic() - self._start:.0f} s")
        sys.stderr.flush()

    def clear(self):
        if self._on:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _run(request):
    progress = _Progress(request.gpu.label)
    try:
        return launch.run(request, progress.show)
    finally:
        progress.clear()


def _request(given, gpu, command, allocator, events=None):
    return launch.Request(
        command=command, gpu=gpu, count=given.count, allocator=allocator, steps=given.steps, events=events,
        timeout_s=given.timeout, readbacks=given.readbacks, stand_in=tuple(given.stand_in),
        show_output=given.show_output and not given.json,
        context_bytes=None if given.context is None else parse_size(given.context, "--context"))


def _settled(request):
    """The document of a run that is not one of several."""
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
        request = dataclasses.replace(request, events=os.path.join(folder, "events"))
        return several.settle(verdict.assess(_run(request), request.gpu))


def _dry_run(request):
    """The document of one GPU; where the program runs out of memory, also what it needs."""
    found = verdict.assess(_run(request), request.gpu)
    found.update(source="run", needs_bytes=None, allocator=request.allocator)
    if found["verdict"] == verdict.DOES_NOT_FIT:
        try:
            more = _ample_run(request)
        except DryRunError as error:
            found["notes"].append(f"with ample memory: {error}")
            return found
        for name in ("phases", "modules", "steps", "steps_alike", "evaluation", "ended_early", "epoch_steps",
                     "required_bytes", "other_bytes", "peak_allocated_bytes", "peak_reserved_bytes",
                     "fragmentation_bytes", "events"):
            found[name] = more[name]
        found["needs_bytes"] = more["required_bytes"]
        found["seconds"] = round(found["seconds"] + more["seconds"], 1)
        found["spare_bytes"] = found["total_bytes"] - found["required_bytes"]
    return found


def _ample_run(request):
    """The document of a run with more memory than any GPU has."""
    found = verdict.assess(_run(dataclasses.replace(request, memory_bytes=AMPLE_BYTES)), request.gpu)
    found.update(source="run", needs_bytes=None, allocator=request.allocator)
    return found


def _documents(given, chosen):
    def request(gpu, allocator, events):
        return _request(given, gpu, given.command, allocator, events)

    def run(*asked):
        return _dry_run(request(*asked))

    if given.ample:
        return ample.documents(chosen, given.allocator, lambda *asked: _ample_run(request(*asked)), run)
    return several.documents(chosen, given.allocator, run)


def _search(given, gpu, bounds):
    """(document of the largest value's GPU, document of the search)."""
    search = largest.Search(bounds)
    documents = {}
    value = search.next()
    while value is not None:
        found = _settled(_request(given, gpu, bounds.put(value, given.command), given.allocator[0]))
        found.update(source="run", needs_bytes=None, allocator=given.allocator[0])
        if found["verdict"] == verdict.UNKNOWN:
            raise DryRunError(f"{bounds.name}={value}: the verdict is unknown: {'; '.join(found['notes'])}")
        documents[value] = found
        beyond = found["required_bytes"] - found["peak_reserved_bytes"]
        search.add(largest.Try(value, found["verdict"] != verdict.DOES_NOT_FIT, found["total_bytes"] - beyond,
                               found["peak_reserved_bytes"], found["peak_allocated_bytes"], found["retries"]))
        print(f"{gpu.label}: {bounds.name}={value} {report.verdict_line(found)} ({found['seconds']:.0f} s)",
              file=sys.stderr, flush=True)
        value = search.next()
    tries = [{"value": tried.value, "verdict": documents[tried.value]["verdict"],
              "required_bytes": documents[tried.value]["required_bytes"] if tried.fits else None}
             for tried in search.tries]
    found = {"gpu": gpu.label, "name": bounds.name, "low": bounds.low, "high": bounds.high, "value": search.largest,
             "fails": search.smallest_that_fails, "tries": tries}
    return documents[search.largest if search.largest is not None else bounds.low], found


def _answer(given):
    build = launch.torch_of(given.command)
    chosen = gpus.choose(given.gpu, gpus.known(launch.library_folder(), build.capabilities))
    for gpu in chosen:
        if gpu.kernels == 0:
            raise UsageError(f"--gpu: torch of this build has no kernels for {gpu.name} of compute capability "
                             f"{gpu.capability / 10}")
    document = {"command": given.command, "gpus": [], "largest": []}
    if given.largest:
        bounds = largest.parse(given.largest, given.command)
        for gpu in chosen:
            found, search = _search(given, gpu, bounds)
            document["gpus"].append(found)
            document["largest"].append(search)
    else:
        document["gpus"] = _documents(given, chosen)
    for found in document["gpus"]:
        del found["events"]
    return document


def _exit_status(document):
    verdicts = [gpu["verdict"] for gpu in document["gpus"]]
    if any(one in (verdict.FITS, verdict.TIGHT) for one in verdicts):
        return 0
    return 1 if verdict.UNKNOWN in verdicts else 3


def _list():
    rows = [f"{gpu.name:16} {gpu.capability / 10:4}  {show(gpu.total_bytes):>10}  {gpu.product}"
            f"{'' if gpu.kernels != 0 else '  (torch of this build has no kernels for it)'}"
            for gpu in gpus.known(launch.library_folder())]
    print("\n".join(rows))
    return 0


def _use_threads(count):
    """Of this process and those that it starts."""
    os.nice(LOW_PRIORITY)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(count)


def _stop(number, _frame):
    launch.end_descendants()
    sys.stderr.write("\n" if sys.stderr.isatty() else "")
    raise SystemExit(128 + number)


def main(words=None):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        given = _parse(sys.argv[1:] if words is None else words)
        if given.gpu == ["list"]:
            return _list()
        if given.threads:
            _use_threads(given.threads)
        document = _answer(given)
    except DryRunError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return error.exit_status
    try:
        print(json.dumps(document, indent=2) + "\n" if given.json else report.text(document), end="", flush=True)
    except OSError as error:
        print(f"{PROGRAM}: the report cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more as it ends
        return 1
    return _exit_status(document)
