"""The CMake targets as the CMakeLists.txt files declare them: sources and linked libraries."""

import functools
import re

from . import tree

CALL = re.compile(r"^\s*(hpo_library|hpo_program|hpo_test|add_library|add_executable)\((\w[\w-]*)([^()]*)\)",
                  re.MULTILINE)
LINKS = re.compile(r"^\s*target_link_libraries\((\w[\w-]*)([^()]*)\)", re.MULTILINE)
SECTIONS = ("SOURCES", "LINK", "STATISTICAL", "LABEL")


def sections(arguments):
    """What stands after each keyword of a call; what comes first is for "SOURCES"."""
    found, current = {name: [] for name in SECTIONS}, "SOURCES"
    for word in arguments.split():
        if word in SECTIONS:
            current = word
        else:
            found[current].append(word)
    return found


@functools.cache
def targets():
    """By name: {"folder", "sources": files relative to the root, "links": names, "is_program"}."""
    found = {}
    for name in tree.files():
        if not name.endswith("CMakeLists.txt"):
            continue
        folder, text = tree.folder(name), re.sub(r"#[^\n]*", "", tree.text(name))
        for call, target, arguments in CALL.findall(text):
            parts = sections(arguments)
            sources = [word.replace("${CMAKE_SOURCE_DIR}/", "") if word.startswith("$") else f"{folder}/{word}"
                       for word in parts["SOURCES"] if word.endswith(".cc")]
            entry = found.setdefault(target, {"folder": folder, "sources": [], "links": [],
                                              "is_program": call == "hpo_program"})
            entry["sources"] += sources
            entry["links"] += parts["LINK"]
        for target, arguments in LINKS.findall(text):
            if target in found:
                found[target]["links"] += arguments.split()
    return found


def sources_in_no_target(names):
    """Of these files those that no target compiles."""
    compiled = {source for entry in targets().values() for source in entry["sources"]}
    return sorted(set(names) - compiled)


@functools.cache
def gives(target):
    """The targets whose headers `target` may include: itself and those that it links. A name of several libraries,
    which has no sources, stands for them; a program may include what its libraries do."""
    found, waiting = {target}, [target]
    while waiting:
        entry = targets().get(waiting.pop(), {"links": ()})
        for link in entry["links"]:
            if link in targets() and link not in found:
                found.add(link)
                if not targets()[link]["sources"] or targets()[target]["is_program"]:
                    waiting.append(link)
    return frozenset(found)
