"""The namespace of each library: what it declares stands there, so that two libraries may use one name."""

import re

from . import tree

# By the longest folder that fits; what is in none of them is in `hpo` itself.
NAMESPACES = {"": "hpo", "memory": "hpo::memory", "sampler": "hpo::sampler", "server": "hpo::server",
              "worker/agent": "hpo::agent", "worker/command": "hpo::command", "worker/text": "hpo::text",
              "worker/trainer": "hpo::trainer", "cli": "hpo::cli", "emulator": "hpo::emulator"}
# A block, and whether it declares types alone or specialises a template, which its own namespace must do.
OPENED = re.compile(r"^namespace (hpo[\w:]*) \{((?:\s*(?:class|struct|enum class) \w+;)+\s*\}|\s*template <>)?",
                    re.MULTILINE)


def of(name):
    """The namespace of a source; tests have that of what they test."""
    below = name.removeprefix("tests/")
    return NAMESPACES[max((folder for folder in NAMESPACES if not folder or below.startswith(folder + "/")), key=len)]


def findings():
    """Sources that open another namespace than theirs, but to declare a type or to specialise a template."""
    lines = []
    for name in tree.sources(*tree.PRODUCT, "emulator", "tests"):
        own = of(name)
        for opened, allowed in OPENED.findall(tree.code(name)):
            if opened != own and not opened.startswith(own + "::") and not allowed:
                lines.append(f"namespace: {name} opens {opened}, expected {own}")
    return lines
