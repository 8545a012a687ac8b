"""The walls between the parts of the tree: what breaks one, what is known to, and the figures."""

import collections
import re

from . import class_sizes, include_graph, includes, missing_includes, namespaces, protocol_fields, tests_of_sources, tree

MAX_FOLDER_FILES = 30
# Findings that the tree has had since before the check; a line goes when its finding does, none comes.
KNOWN = "scripts/checks/known.txt"
COUNT = re.compile(r"\d+(?= (?:files|lines))")


def files_by_folder():
    """Files of each folder of the product, whatever they are."""
    counts = collections.Counter(tree.folder(name) for name in tree.files())
    return {folder: count for folder, count in counts.items() if folder.split("/")[0] in tree.PRODUCT}


def wide_folders():
    return [f"folder: {folder} has {count} files (limit {MAX_FOLDER_FILES})"
            for folder, count in sorted(files_by_folder().items()) if count > MAX_FOLDER_FILES]


def all_findings():
    return [*include_graph.findings(), *includes.undeclared(), *includes.unused(), *missing_includes.findings(),
            *tests_of_sources.tests_in_no_target(), *tests_of_sources.untested(), *class_sizes.findings(),
            *namespaces.findings(), *wide_folders(), *protocol_fields.unread()]


def key(line):
    return COUNT.sub("N", line, count=1)


def count(line):
    found = COUNT.search(line)
    return int(found.group()) if found else 0


def findings():
    """What is not known, or has grown since; and what is known and is no more."""
    known = {key(line): line for line in tree.text(KNOWN).splitlines() if line and not line.startswith("#")}
    found = {key(line): line for line in all_findings()}
    new = [line for name, line in found.items() if name not in known or count(line) > count(known[name])]
    gone = [f"{KNOWN}: mended, take the line out: {line}" for name, line in known.items() if name not in found]
    return new + gone


def product_lines():
    return sum(tree.text(name).count("\n") for name in tree.sources(*tree.PRODUCT))


def figures():
    """The figures with their goals, as bench/ prints them."""
    files = files_by_folder().values()
    rows = (("folder_cycles", len(include_graph.cycles()), 0),
            ("lines_in_cycles", include_graph.lines_in_cycles(), 0),
            ("includes_outside_declared_dependencies", len(includes.undeclared()), 0),
            ("unused_project_includes", len(includes.unused()), 0),
            ("missing_project_includes", len(missing_includes.findings()), 0),
            ("files_in_the_widest_folder", max(files), MAX_FOLDER_FILES),
            ("folders_with_more_than_30_files", len(wide_folders()), 0),
            ("lines_of_the_largest_class", max(class_sizes.sizes().values()), class_sizes.MAX_CLASS_LINES),
            ("product_lines", product_lines(), 96_500),
            ("long_sources_without_a_named_test", len(tests_of_sources.untested()), 0),
            ("tests_in_no_target", len(tests_of_sources.tests_in_no_target()), 0),
            ("response_fields_without_a_reader", len(protocol_fields.unread()), 0))
    return [{"name": name, "value": value, "unit": "lines" if "lines" in name else "count", "goal": goal,
             "met": value <= goal} for name, value, goal in rows]
