#!/usr/bin/env python3
"""Writes web/src/api/messages.ts: the types of proto/hpo/v1 as the page's API sends them in JSON.

    web/messages.py            writes the file
    web/messages.py --check    exits with 1 where the file is not what it would write

It needs protoc and Python's protobuf. The JSON is described in web/API.md: a field that has its
default value is left out, so every field is optional here.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "web/src/api/messages.ts"
FILES = ("admin", "analysis", "fleet", "study", "trial")
WELL_KNOWN = {".google.protobuf.Timestamp": "string", ".google.protobuf.Duration": "string",
              ".google.protobuf.NullValue": "null"}
FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {FIELD.TYPE_DOUBLE: "Double", FIELD.TYPE_FLOAT: "Double", FIELD.TYPE_INT64: "Int64",
           FIELD.TYPE_UINT64: "Int64", FIELD.TYPE_INT32: "number", FIELD.TYPE_UINT32: "number",
           FIELD.TYPE_BOOL: "boolean", FIELD.TYPE_STRING: "string", FIELD.TYPE_BYTES: "string"}
HEAD = """\
// Written by web/messages.py from proto/hpo/v1. Do not edit.
// A field with its default value is left out of the JSON.

// 64-bit integers are strings in answers; requests may have numbers.
export type Int64 = string | number;
export type Double = number | "NaN" | "Infinity" | "-Infinity";
"""


def descriptors():
    with tempfile.NamedTemporaryFile(suffix=".pb") as file:
        subprocess.run(["protoc", f"--proto_path={ROOT / 'proto'}", "--include_imports",
                        f"--descriptor_set_out={file.name}", *[f"hpo/v1/{name}.proto" for name in FILES]],
                       check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(file.name).read_bytes())
    return [file for file in found.file if file.package == "hpo.v1"]


def short(name):
    """`.hpo.v1.RetryTrialsResponse.Skipped` as `RetryTrialsResponse_Skipped`."""
    return name.removeprefix(".hpo.v1.").replace(".", "_")


def type_of(field, entries):
    if field.type in SCALARS:
        word = SCALARS[field.type]
    elif field.type_name in entries:
        value = type_of(entries[field.type_name].field[1], entries)
        return f"Record<string, {value}>"
    else:
        word = WELL_KNOWN.get(field.type_name, short(field.type_name))
    repeated = field.label == FIELD.LABEL_REPEATED
    return f"{word}[]" if repeated else word


def messages(file):
    """All messages of a file with their full names, those within others too, and its maps' entries."""
    found, entries, queue = [], {}, [(f".{file.package}", message) for message in file.message_type]
    while queue:
        outer, message = queue.pop(0)
        name = f"{outer}.{message.name}"
        queue = [(name, inner) for inner in message.nested_type] + queue
        if message.options.map_entry:
            entries[name] = message
        else:
            found.append((name, message))
    return found, entries


def render():
    lines = [HEAD]
    methods = []
    for file in descriptors():
        for enum in file.enum_type:
            values = [f'"{value.name}"' for value in enum.value]
            lines.append(f"export type {enum.name} =\n  | " + "\n  | ".join(values) + ";\n")
        found, entries = messages(file)
        for name, message in found:
            fields = "".join(f"  {field.name}?: {type_of(field, entries)};\n" for field in message.field)
            lines.append(f"export interface {short(name)} {{\n{fields}}}\n")
        for service in file.service:
            methods += [(f"{service.name}/{method.name}", short(method.input_type), short(method.output_type))
                        for method in service.method
                        if not method.client_streaming and not method.server_streaming]
    lines.append("// Request and answer of each call.\nexport interface Methods {\n" +
                 "".join(f'  "{name}": [{request}, {answer}];\n' for name, request, answer in methods) + "}\n")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the file differs")
    options = parser.parse_args()
    text = render()
    if options.check:
        if TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"{TARGET.relative_to(ROOT)} is not what proto/hpo/v1 gives; run web/messages.py")
        return
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
