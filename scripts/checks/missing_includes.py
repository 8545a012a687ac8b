"""Names that a source takes from a header which it does not reach: where several sources are compiled as one, the
compiler does not see it."""

import collections
import functools
import itertools
import re

from . import includes, namespaces, tree

# A declaration at the start of a line, where namespaces have theirs: a type with its body, a function, a constant.
TYPE = re.compile(r"^(?:class|struct|enum class) (?:[A-Z_]{4,}(?:\([^)]*\))? )?([A-Z]\w+)[^;{]*\{", re.MULTILINE)
FUNCTION = re.compile(r"^[a-zA-Z][\w:<>,*& ]*[\s*&>]([A-Z]\w+)\(", re.MULTILINE)
CONSTANT = re.compile(r"^(?:inline )?constexpr [\w:<>, ]+ (k[A-Z]\w*)\b", re.MULTILINE)
FORWARD = re.compile(r"^\s*(?:class|struct|enum class|friend class) (\w+);", re.MULTILINE)
# What a source may declare for itself: constants and enumerators, parameters of templates, members, types, functions.
OWN = re.compile(r"\b(?:typename|class|struct|using) (?:\w+::)?(\w+)|\b(k[A-Z]\w*)(?: =|\[|,|\s*\})|"
                 r"^\s*[a-zA-Z][\w:<>,*& ]*[\s*&>](?:\w+::)*([A-Z]\w+)\([^;]*$", re.MULTILINE)
USED = re.compile(r"(?<![\w:.>])(?:(\w+)::)?([A-Z]\w+|k[A-Z]\w*)\b")


@functools.cache
def homes():
    """The headers that declare a name, by namespace and name."""
    found = collections.defaultdict(set)
    for header in tree.sources(*tree.PRODUCT):
        if header.endswith(".h"):
            for name in itertools.chain(*(kind.findall(tree.code(header)) for kind in (TYPE, FUNCTION, CONSTANT))):
                found[namespaces.of(header), name].add(header)
    return found


@functools.cache
def reached(name):
    """A file with all that it includes, however far."""
    seen, ahead = set(), [name]
    while ahead:
        at = ahead.pop()
        if at not in seen:
            seen.add(at)
            ahead += [header for _, header in tree.includes(at)]
    return frozenset(seen)


@functools.cache
def names_of(name):
    """All that a file declares, members and forward declarations too."""
    declared = includes.declared(name) if name.endswith(".h") else set(itertools.chain(*OWN.findall(tree.code(name))))
    return declared | set(FORWARD.findall(tree.code(name)))


def home_of(qualifier, name, own):
    """The headers of the namespace in which a name of a source is looked up."""
    if qualifier:
        return homes().get((f"hpo::{qualifier}" if qualifier != "hpo" else "hpo", name), set())
    return homes().get((own, name)) or homes().get(("hpo", name), set())


def findings():
    lines = []
    for source in tree.sources(*tree.PRODUCT):
        own, its = namespaces.of(source), reached(source)
        known = frozenset().union(*(names_of(header) for header in its))
        used = set(USED.findall(re.sub(r"^#.*", "", tree.code(source), flags=re.MULTILINE)))
        for qualifier, name in sorted(used):
            headers = home_of(qualifier, name, own)
            if headers and (qualifier or name not in known) and not headers & its:
                lines.append(f"include: {source} takes {name} from {min(headers)}, which it does not include")
    return lines
