"""The tables of emulator/calls: what a row becomes, and which rows are wrong."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

EMULATOR = pathlib.Path(__file__).resolve().parents[2] / "emulator"
sys.path.insert(0, str(EMULATOR))
import host_calls  # noqa: E402
from collect_calls import stand_ins  # noqa: E402


def read(text):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "some.txt")
        path.write_text(text)
        return host_calls.read(path)


def body(text, call="someCall"):
    """Parameters and statements of the only row."""
    lines = read(text)[0].definition(call).splitlines()
    return re.search(r"\((?!\()(.*)\) \{", lines[0].partition(call)[2])[1], lines[2:-2]


def result(name, value):
    return f"if (const int failed = SetResult({name}, {value})) return failed;"


class Rows(unittest.TestCase):
    def test_each_effect(self):
        for text, parameters, statements in [
            ("some.* nothing", "", []),
            ("someCall (int* info) computes; *info = 0", "int* info", [result("info", "0")]),
            ("someCall (void** plan) new plan", "void** plan", ["*plan = new char;"]),
            ("someCall (void* plan) delete plan", "void* plan",
             ["delete static_cast<char*>(plan);"]),
            ("someCall (float* sum) zero sum", "float* sum", ["ZeroOnHost(sum);"]),
            ("someCall (., int n, ., size_t* size) *size = 4 * n",
             "void*, int n, void*, size_t* size", [result("size", "4 * int64_t{n}")]),
            ("someCall (size_t* device, size_t* host)\n    *device = 1;\n    *host = 0  # none",
             "size_t* device, size_t* host", [result("device", "1"), result("host", "0")]),
        ]:
            with self.subTest(text):
                self.assertEqual(body(text), (parameters, [f"  {line}" for line in statements]))

    def test_a_call_is_counted_and_can_fail(self):
        for effect, begin in (("nothing", "Silent"), ("computes", "Compute")):
            self.assertIn(f'if (const int fault = hpoEmulated{begin}("someCall"); fault != 0) return '
                          "fault;", read(f"someCall {effect}")[0].definition("someCall"))

    def test_the_first_row_counts_and_names_fit_as_a_whole(self):
        rows = read("# a comment\n\nsomeGet (int* mode) *mode = 0\nsome(Get|Set).* nothing\n")
        self.assertEqual([host_calls.row_of(rows, call) for call in
                          ("someGet", "someGetMore", "someSet", "some", "awesomeGet")],
                         [rows[0], rows[1], rows[1], None, None])

    def test_a_wrong_row_is_named(self):
        for text, complaint in [
            ("someCall", "expected NAMES (PARAMETERS) EFFECT"),
            ("someCall returns 4", "expected nothing, computes, new, delete, zero or *RESULT = "
                                   "VALUE, got 'returns 4'"),
            ("some( nothing", "missing ), unterminated subpattern at position 4"),
            ("someCall (int) nothing", "expected '.' or TYPE NAME as a parameter, got 'int'"),
            ("someCall (int n, int* size) *size = 4", "the parameter 'n' is not used: write '.'"),
        ]:
            with self.subTest(text), self.assertRaises(SystemExit) as ended:
                read(f"# first\n{text}\n")
            self.assertRegex(str(ended.exception), rf"some\.txt:2: {re.escape(complaint)}$")


class Tables(unittest.TestCase):
    def test_all_of_them_can_be_read(self):
        tables = sorted((EMULATOR / "calls").glob("*.txt"))
        self.assertIn(host_calls.table_of("libcublas.so.13"), tables)
        for path in tables:
            self.assertTrue(host_calls.read(path), path)

    def test_a_library_without_a_table_has_no_rows(self):
        self.assertEqual(host_calls.read(host_calls.table_of("libnone.so.1")), [])

    def test_a_library_of_which_no_call_is_wanted_is_written_all_the_same(self):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([EMULATOR / "make_libraries.py", scratch, EMULATOR / "nvml.cc", "--cuda", "12", "13"],
                           check=True)
            for major in (12, 13):
                for library in stand_ins.SONAMES:
                    soname = stand_ins.soname(library, major)
                    if soname is not None:
                        self.assertTrue(pathlib.Path(scratch, f"{soname}.cc").exists(), soname)


if __name__ == "__main__":
    unittest.main()
