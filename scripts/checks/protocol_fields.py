"""Every field of a response is read by somebody: a worker, the command line or the Python package."""

import collections
import re

from . import tree

MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(?:repeated |optional )?(map<[^>]*>|[\w.]+) (\w+) = \d+\s*(?:\[[^\]]*\])?;", re.MULTILINE)
RPC = re.compile(r"rpc \w+\([^)]*\)\s*returns\s*\((?:stream )?([\w.]+)\)")
# What no program of the tree names, with who reads it.
READ_ELSEWHERE = {
    "Budget.regret_auto": "becomes the study's RegretBound",
    "Budget.regret_gap": "becomes the study's RegretBound",
    "Domain.float_domain": "becomes a Domain",
    "GetCurvesResponse.curves": "the page (web/)",
    "GetHistoryResponse.best_numbers": "the page (web/)",
    "GetHistoryResponse.best_values": "the page (web/)",
    "GetHistoryResponse.series": "the page (web/)",
    "GetImportanceResponse.resamples": "the page (web/)",
    "GetMemoryFrontierResponse.x_values": "the page (web/)",
    "GetMemoryFrontierResponse.y": "the page (web/)",
    "GetMemoryFrontierResponse.y_values": "the page (web/)",
    "GetTimelineResponse.left_off": "the page (web/)",
    "GetTimelineResponse.worker_indexes": "the page (web/)",
    "MemoryFitModel.literal_fits": "the page (web/)",
    "MemoryFitModel.planned_fits": "the page (web/)",
    "MemoryFitModel.smallest_planned_bytes": "the page (web/)",
    "OutOfMemory.oom_config": "clients in other languages; the command line makes it from the parameters",
    "Parameter.modelled": "becomes Parameter::modelled, which importance reads",
    "QueryTrialsResponse.all_columns": "the page (web/)",
    "QueryTrialsResponse.matching": "the page (web/)",
    "QueryTrialsResponse.previous_page_token": "the page (web/)",
    "Study.time_by_use": "the page (web/)",
    "TableColumn.indexes": "the page (web/)",
    "Trial.outside_budget": "becomes Trial::budgeted",
    "Trial.prune_reason": "clients in other languages; the command line makes it from the outcome",
    "Worker.idle_because": "the page (web/)",
    "Worker.trial_started": "the page (web/)",
}
# How a list of fields names a member by another name: visit({"lease_token"}, lease.token);
VISITED = re.compile(r'visit\(\{"(\w+)"[^}]*\},\s*[\w.\->]*?(\w+)\)')


def messages():
    """The fields of each message of hpo.v1, as {message: [(field, type)]}; and what the calls return."""
    fields, returned = {}, set()
    for name in tree.files():
        if re.fullmatch(r"proto/hpo/v1/\w+\.proto", name):
            text = re.sub(r"//[^\n]*", "", tree.text(name))
            for message, body in MESSAGE.findall(text):
                fields[message] = [(field, kind) for kind, field in FIELD.findall(body)]
            returned.update(RPC.findall(text))
    return fields, returned


def response_fields():
    """(message, field) of all messages that a call returns, and those inside them."""
    fields, waiting = messages()
    seen = set()
    while waiting:
        message = waiting.pop()
        if message in seen or message not in fields:
            continue
        seen.add(message)
        waiting.update(word for _, kind in fields[message] for word in re.findall(r"\w+", kind))
        yield from ((message, field) for field, _ in fields[message])


def readers():
    """The words of what reads responses. Lists of fields and conversions read everything and do not count, but for
    the lists from which the command line prints."""
    words = set()
    waiting, lists = list(tree.sources("cli")), set()
    while waiting:
        for _, included in tree.includes(waiting.pop()):
            if included.endswith("_fields.h") and included not in lists:
                lists.add(included)
                waiting.append(included)
                words.update(re.findall(r'visit\(\{"(\w+)"', tree.text(included)))
    for name in tree.files():
        of_a_reader = name.startswith(("worker/", "cli/", "python/src/")) and name.endswith((".h", ".cc", ".py"))
        if of_a_reader and not re.search(r"_fields\.h$|/convert_\w+\.(h|cc)$|_json\.(h|cc)$", name):
            words.update(re.findall(r"\w+", tree.code(name) if name.endswith((".h", ".cc")) else tree.text(name)))
    return words


def unread():
    members = collections.defaultdict(set)
    for name in tree.sources(*tree.PRODUCT):
        if name.endswith("_fields.h"):
            for field, member in VISITED.findall(tree.text(name)):
                members[field].add(member)
    words = readers()
    return [f"protocol: nobody reads {message}.{field}" for message, field in sorted(response_fields())
            if f"{message}.{field}" not in READ_ELSEWHERE and not ({field, field.removesuffix("_bytes")} | members[field]) & words]
