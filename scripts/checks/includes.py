"""Each include is of a target that is linked, and something of it is used."""

import collections
import functools
import re

from . import cmake_targets, tree

# What a header declares at namespace level or in a class, by the ways in which C++ writes it.
DECLARATIONS = (
    r"\b(?:class|struct|union|enum(?: class| struct)?|concept)\s+(?:[A-Z_]{4,}(?:\([^)]*\))?\s+)?(\w+)",
    r"\busing\s+(\w+)\s*=",
    r"#define\s+(\w+)",
    r"\b(\w+)\s*\(",
    r"\b(k[A-Z]\w*)\b",
    r"^\s+[\w:<>,*& ]+[\s&*](\w+)\s*(?:=[^;]*|\{[^;]*\})?;",
    r"\b(?:constexpr|const|inline|extern|static)\b[^;(){}=]*\b(\w+)\s*(?:\[[^\]]*\])?\s*[={;]",
)
DEFINITION = re.compile(r"^(?:[\w:<>,&*]+ )+[&*]?(\w+)\([^;]*$", re.MULTILINE)
# Words of the language, and what headers call but do not declare.
NO_NAMES = frozenset("if for while switch return sizeof decltype static_assert alignof defined noexcept override "
                     "template typename public private protected const operator move ok hpo".split())


@functools.cache
def declared(header):
    """The names by which somebody may use a header; forward declarations are none."""
    code = re.sub(r"\b(?:class|struct|enum(?: class)?)\s+\w+\s*(?::\s*\w+\s*)?;", "", tree.code(header))
    names = set()
    for pattern in DECLARATIONS:
        names.update(re.findall(pattern, code, re.MULTILINE))
    return frozenset(names - NO_NAMES)


@functools.cache
def defined(name):
    """The functions that a file defines itself: to name one is no use of another's."""
    return frozenset(DEFINITION.findall(tree.code(name)))


@functools.cache
def words(name):
    """The words of a file; those in small letters, which may be its own variables, where something is asked for
    them or they are called."""
    code = re.sub(r"#include[^\n]*", "", tree.code(name))
    large = re.findall(r"\b(?:[A-Z]\w*|k[A-Z]\w*)", code)
    return frozenset(large + re.findall(r"(?:\.|->|::)\s*(\w+)", code) + re.findall(r"\b([a-z]\w*)\(", code))


def is_silent(header):
    """Whether a header works without being named: it specializes templates or overloads what templates call."""
    return re.search(r"\btemplate\s*<>|\b(?:VisitFields|ToProto|FromProto|operator)\b", tree.code(header)) is not None


def unused():
    """Includes of the tree's headers of which nothing is named."""
    lines = []
    for name in tree.sources(*tree.PRODUCT):
        for _, header in tree.includes(name):
            own = header.removesuffix(".h") == name.removesuffix(".cc")
            names = declared(header) - defined(name)
            # A header without names of its own passes on what it includes.
            if own or not declared(header) or is_silent(header) or names & words(name):
                continue
            lines.append(f"include: {name} uses nothing of {header}")
    return lines


@functools.cache
def homes():
    """The targets that a file of the product may belong to, by file."""
    compiled = collections.defaultdict(set)
    for target, entry in cmake_targets.targets().items():
        for source in entry["sources"]:
            compiled[source].add(target)
    by_folder = collections.defaultdict(set)
    for source, its in compiled.items():
        by_folder[tree.folder(source)] |= its
    found = {}
    for name in tree.sources(*tree.PRODUCT):
        source = name.removesuffix(".h") + ".cc" if name.endswith(".h") else name
        folder = tree.folder(name)
        while source not in compiled and folder and not by_folder[folder]:
            folder = tree.folder(folder)
        found[name] = compiled[source] if source in compiled else by_folder[folder]
    return found


def undeclared():
    """Includes of headers of a target that the including file's target does not link itself."""
    lines = []
    for name in tree.sources(*tree.PRODUCT):
        given = {target for home in homes()[name] for target in cmake_targets.gives(home)}
        for _, header in tree.includes(name):
            its = homes().get(header, set())
            if given and its and not given & its:
                lines.append(f"target: {name} includes {header} of {min(its)}, "
                             f"which {min(homes()[name])} does not link")
    return lines
