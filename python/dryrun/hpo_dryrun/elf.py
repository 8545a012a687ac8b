"""Shared libraries of Linux on x86-64, read and written without a compiler.

Sources: System V ABI, chapters 4 and 5; AMD64 supplement (relocation types); Linux Standard Base
(symbol versions).
"""

import array
import collections
import mmap
import struct

DYNSYM, VERNEED, VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF  # types of sections
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")

Symbols = collections.namedtuple("Symbols", "wanted defined")
Symbols.__doc__ = """Two dicts of symbols by name, with the version of each ("" for none): what a
library wants of others, and what it offers."""


class NotElf(ValueError):
    """The file is not a 64-bit ELF file for x86-64."""


def _text(data, offset):
    return data[offset:data.find(b"\0", offset)].decode("ascii", "replace")


def _sections(data):
    """Every section header, as (type, offset, size, link, entry size)."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
        raise NotElf("expected a 64-bit ELF file for x86-64")
    start, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for i in range(count):
        fields = SECTION.unpack_from(data, start + i * size)
        yield fields[1], fields[4], fields[5], fields[6], fields[9]


def _needed_versions(data, offset, strings):
    """{number: version} of a section of needed versions."""
    versions = {}
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, offset)
        entry = offset + first
        for _ in range(count):
            _, _, number, name, step = struct.unpack_from("<IHHII", data, entry)
            versions[number] = _text(data, strings + name)
            entry += step
        if following == 0:
            return versions
        offset += following


def _dynamic_symbols(sections):
    """{type of a section: (offset, size, link)}, and (offset, size) of the names of dynamic symbols; None: there are
    no such symbols."""
    by_type = {kind: (offset, size, link) for kind, offset, size, link, _ in sections}
    return by_type, sections[by_type[DYNSYM][2]][1:3] if DYNSYM in by_type else None


def names(path):
    """The bytes of all names that the loader reads in the library at `path`: of symbols, versions and libraries.
    Raises NotElf, OSError, ValueError (an empty file)."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        _, place = _dynamic_symbols(list(_sections(data)))
        return data[place[0]:place[0] + place[1]] if place else b""


def symbols(path):
    """The dynamic symbols of the library at `path`, as Symbols. Raises NotElf, OSError."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        sections = list(_sections(data))
        by_type, place = _dynamic_symbols(sections)
        found = Symbols({}, {})
        if place is None:
            return found
        start, size, _ = by_type[DYNSYM]
        versions = {}
        if VERNEED in by_type:
            offset, _, texts = by_type[VERNEED]
            versions = _needed_versions(data, offset, sections[texts][1])
        # The 24 bytes of a symbol are taken as six numbers; libtorch_cpu.so has 77,000 symbols.
        words = array.array("I", data[start:start + size])
        count = len(words) // 6
        numbers = [0] * count
        if VERSYM in by_type:
            offset = by_type[VERSYM][0]
            numbers = array.array("H", data[offset:offset + 2 * count])
        text = data[place[0]:place[0] + place[1]]
        for name, word, number in zip(words[::6], words[1::6], numbers):
            if word & 0xF0 not in (0x10, 0x20):  # global or weak
                continue
            kind = found.defined if word >> 16 else found.wanted  # by the number of its section
            kind[text[name:text.index(0, name)].decode("ascii", "replace")] = versions.get(number & 0x7FFF, "")
        return found


def _hash(name):
    """The hash of the System V ABI."""
    value = 0
    for byte in name.encode("ascii"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def _align(data, size):
    data.extend(bytes(-len(data) % size))
    return len(data)


PAGE = 0x1000


def stub_library(names, handler, soname):
    """The bytes of a library that defines every function of `names`: each calls `handler`, which it
    takes from another library of the process, with the function's name as a C string, and never
    returns.
    """
    names = sorted(names)
    strings = bytearray(b"\0")

    def add(text):
        place = len(strings)
        strings.extend(text.encode("ascii") + b"\0")
        return place

    own_name, handler_name = add(soname), add(handler)
    places = [add(name) for name in names]
    image = bytearray(64 + 4 * 56)  # the headers, written last
    at_strings = _align(image, 8)
    image += strings
    at_symbols = _align(image, 8)
    image += bytes(SYMBOL.size * (2 + len(names)))  # none, the handler, the functions
    at_hash = _align(image, 8)
    image += _hash_table([handler, *names])
    at_relocations = _align(image, 8)
    image += bytes(24)
    # Each: lea rdi, [rip + its name]; jmp [rip + the pointer to the handler].
    at_code = _align(image, 16)
    pointer = (at_code + 16 * len(names) + PAGE - 1) // PAGE * PAGE
    for i, place in enumerate(places):
        here = at_code + 16 * i
        image += b"\x48\x8d\x3d" + struct.pack("<i", at_strings + place - (here + 7))
        image += b"\xff\x25" + struct.pack("<i", pointer - (here + 13)) + b"\xcc" * 3
    code_end = len(image)
    image += bytes(pointer - len(image))
    image += bytes(16)  # the pointer, and the dynamic section behind it
    at_dynamic = len(image)
    for tag, value in [(14, own_name), (4, at_hash), (5, at_strings), (6, at_symbols),
                       (10, len(strings)), (11, SYMBOL.size), (7, at_relocations), (8, 24), (9, 24),
                       (24, 0), (0, 0)]:
        image += struct.pack("<qQ", tag, value)
    SYMBOL.pack_into(image, at_symbols + SYMBOL.size, handler_name, 0x12, 0, 0, 0, 0)
    for i, place in enumerate(places):
        SYMBOL.pack_into(image, at_symbols + SYMBOL.size * (2 + i), place, 0x12, 0, 1,
                         at_code + 16 * i, 16)
    struct.pack_into("<QQq", image, at_relocations, pointer, (1 << 32) | 6, 0)  # GLOB_DAT
    _write_headers(image, code_end, pointer, at_dynamic)
    return bytes(image)


def _hash_table(names):
    """One bucket for four names; symbol 0 is none, the others are in the order of `names`."""
    num_buckets = max(1, len(names) // 4)
    buckets, chains = [0] * num_buckets, [0] * (len(names) + 1)
    for index, name in enumerate(names, 1):
        bucket = _hash(name) % num_buckets
        chains[index], buckets[bucket] = buckets[bucket], index
    return struct.pack(f"<{2 + num_buckets + len(chains)}I", num_buckets, len(chains), *buckets,
                       *chains)


def _write_headers(image, code_end, data_start, dynamic):
    struct.pack_into("<16sHHIQQQIHHHHHH", image, 0, b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0,
                     64, 56, 4, 0, 0, 0)
    segments = [(1, 5, 0, code_end, PAGE),  # loaded, read and executed
                (1, 6, data_start, len(image) - data_start, PAGE),  # loaded, read and written
                (2, 6, dynamic, len(image) - dynamic, 8),  # the dynamic section
                (0x6474E551, 6, 0, 0, 16)]  # the stack is not executed
    for i, (kind, flags, start, size, alignment) in enumerate(segments):
        struct.pack_into("<IIQQQQQQ", image, 64 + 56 * i, kind, flags, start, start, start, size,
                         size, alignment)
