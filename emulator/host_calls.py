"""The tables of calls in calls/ (its README.md says what a row is), as C++ functions."""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "calls"
ROW = re.compile(r"(?P<names>\S+)(?:\s+\((?P<parameters>[^)]*)\))?\s+(?P<effect>\S.*)")
PARAMETER = re.compile(r"(?P<type>(?:const )?\w+\s*\**)\s*\b(?P<name>[a-z]\w*)")
EFFECTS = [(re.compile(r"new (?P<name>\w+)"), "*{name} = new char;"),
           (re.compile(r"delete (?P<name>\w+)"), "delete static_cast<char*>({name});"),
           (re.compile(r"zero (?P<name>\w+)"), "ZeroOnHost({name});"),
           (re.compile(r"\*(?P<name>\w+) = (?P<value>.+)"),
            "if (const int failed = SetResult({name}, {value})) return failed;")]


def table_of(library):
    """The table of a library such as libcublas.so.13, whatever its version."""
    return FOLDER / f"{library.partition('.')[0].removeprefix('lib')}.txt"


class Row:
    """One kind of call. ValueError where the text is none."""

    def __init__(self, text):
        found = ROW.fullmatch(text)
        if found is None:
            raise ValueError("expected NAMES (PARAMETERS) EFFECT")
        self.names = re.compile(found["names"])
        self.parameters = []
        types = {}
        for parameter in filter(None, re.split(r",\s*", found["parameters"] or "")):
            if parameter == ".":
                self.parameters.append("void*")
                continue
            named = PARAMETER.fullmatch(parameter)
            if named is None:
                raise ValueError(f"expected '.' or TYPE NAME as a parameter, got '{parameter}'")
            self.parameters.append(parameter)
            types[named["name"]] = named["type"].strip()
        for name in types:
            if not re.search(rf"\b{name}\b", found["effect"]):
                raise ValueError(f"the parameter '{name}' is not used: write '.'")
        # Sizes of 32 bits are multiplied in 64.
        numbers = [name for name, kind in types.items() if not kind.endswith("*")]
        parts = re.split(r";\s*", found["effect"])
        self.begin = "hpoEmulatedCompute" if "computes" in parts else "hpoEmulatedSilent"
        self.statements = [self._statement(part, numbers) for part in parts
                           if part not in ("nothing", "computes")]

    @staticmethod
    def _statement(effect, numbers):
        for pattern, statement in EFFECTS:
            found = pattern.fullmatch(effect)
            if found is None:
                continue
            parts = found.groupdict()
            for name in numbers if "value" in parts else ():
                parts["value"] = re.sub(rf"\b{name}\b", f"int64_t{{{name}}}", parts["value"])
            return statement.format(**parts)
        raise ValueError("expected nothing, computes, new, delete, zero or *RESULT = VALUE, "
                         f"got '{effect}'")

    def definition(self, call):
        """Weak: what a source of the library defines takes its place."""
        return "\n".join([
            f"__attribute__((weak)) int {call}({', '.join(self.parameters)}) {{",
            f'  if (const int fault = {self.begin}("{call}"); fault != 0) return fault;',
            *(f"  {statement}" for statement in self.statements), "  return 0;", "}"])


def read(path):
    """The rows of a table; none where there is no table. Ends the program where a row is wrong."""
    texts = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else (), 1):
        line = line.partition("#")[0].rstrip()
        if line.startswith(" ") and texts:
            texts[-1] = (texts[-1][0], f"{texts[-1][1]} {line.strip()}")
        elif line:
            texts.append((number, line))
    rows = []
    for number, text in texts:
        try:
            rows.append(Row(text))
        except (ValueError, re.error) as error:
            sys.exit(f"{path}:{number}: {error}")
    return rows


def row_of(rows, call):
    """The first row that the call is in, or None."""
    return next((row for row in rows if row.names.fullmatch(call)), None)
