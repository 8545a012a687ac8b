"""scripts/checks finds what it is for: each test breaks one wall of a small tree."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# A tree without findings: a library on another, a class, a call with a reader, a test in a target.
SOUND = {
    "common/CMakeLists.txt": "hpo_library(hpo_common SOURCES base/text.cc)\n",
    "common/base/text.h": "#pragma once\nint Length(const char* text);\n",
    "common/base/text.cc": '#include "common/base/text.h"\nint Length(const char*) { return 1; }\n',
    "worker/CMakeLists.txt": "hpo_library(hpo_worker SOURCES loop.cc LINK hpo_common)\n",
    "worker/loop.h": "#pragma once\nclass Loop {\n public:\n  int Run();\n};\n",
    "worker/loop.cc": '#include "worker/loop.h"\n#include "common/base/text.h"\n'
                      'int Loop::Run() {\n  return Length("a") + answer.wait_seconds();\n}\n',
    "proto/hpo/v1/worker.proto": "service Worker {\n  rpc Ask(Question) returns (Answer);\n}\n"
                                 "message Question {\n  int64 id = 1;\n}\n"
                                 "message Answer {\n  int64 wait_seconds = 1;\n}\n",
    "tests/worker/CMakeLists.txt": "hpo_test(test_worker LABEL unit SOURCES loop_test.cc LINK hpo_worker)\n",
    "tests/worker/loop_test.cc": '#include "worker/loop.h"\n',
}


class WallsTest(unittest.TestCase):
    def findings(self, changes=None, known=""):
        """The lines that the checks print on the sound tree with these files."""
        with tempfile.TemporaryDirectory(prefix="hpo-test-") as folder:
            root = pathlib.Path(folder)
            shutil.copytree(SOURCE / "scripts" / "checks", root / "scripts" / "checks",
                            ignore=shutil.ignore_patterns("__pycache__"))
            files = SOUND | (changes or {}) | {"scripts/checks/known.txt": known}
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            subprocess.run(["git", "init", "-q", folder], check=True)
            code = "import json; from checks import walls; print(json.dumps([walls.findings(), walls.figures()]))"
            done = subprocess.run([sys.executable, "-c", code], cwd=root / "scripts", check=True,
                                  capture_output=True, text=True)
        lines, figures = json.loads(done.stdout)
        self.values = {figure["name"]: figure["value"] for figure in figures}
        return lines

    def test_a_sound_tree_has_none(self):
        self.assertEqual(self.findings(), [])
        self.assertEqual(self.values["folder_cycles"], 0)
        self.assertEqual(self.values["product_lines"], 14)

    def test_a_name_of_a_header_that_is_not_included(self):
        files = {"common/base/text.h": "#pragma once\nnamespace hpo {\nint Length(const char* text);\n}\n",
                 "worker/agent/size.cc": "namespace hpo::agent {\nint Size() { return Length(nullptr); }\n}\n"}
        self.assertIn("include: worker/agent/size.cc takes Length from common/base/text.h, which it does not include",
                      self.findings(files))
        files["worker/agent/size.cc"] = '#include "common/base/text.h"\n' + files["worker/agent/size.cc"]
        self.assertNotIn("does not include", "".join(self.findings(files)))

    def test_another_library_s_namespace(self):
        header = "#pragma once\nnamespace hpo::cli {\nclass Table;\n}  // namespace hpo::cli\n"
        self.assertEqual(self.findings({"worker/agent/table.h": header}), [])
        self.assertEqual(self.findings({"worker/agent/table.h": header.replace("Table;", "Table {};")}),
                         ["namespace: worker/agent/table.h opens hpo::cli, expected hpo::agent"])

    def test_folders_that_include_from_each_other(self):
        lines = self.findings({
            "worker/parts/part.h": "#pragma once\n#include \"worker/loop.h\"\ninline int Part(Loop loop) { return 1; }\n",
            "worker/loop.cc": SOUND["worker/loop.cc"] + '#include "worker/parts/part.h"\nint x = Part({});\n'})
        self.assertEqual(lines, ["cycle: worker includes from worker/parts", "cycle: worker/parts includes from worker"])
        self.assertEqual(self.values["folder_cycles"], 1)

    def test_branches_that_include_from_each_other(self):
        """No folder reaches itself, but worker/a with what is below it and worker/b do."""
        lines = self.findings({
            "worker/a/low/one.h": "#pragma once\nstruct One {};\n",
            "worker/b/two.h": '#pragma once\n#include "worker/a/low/one.h"\nstruct Two {\n  One one;\n};\n',
            "worker/a/top/three.h": '#pragma once\n#include "worker/b/two.h"\nstruct Three {\n  Two two;\n};\n'})
        self.assertEqual(lines, ["cycle: worker/a, worker/b include from each other, with what is below them"])

    def test_a_header_of_a_target_that_is_not_linked(self):
        lines = self.findings({"worker/CMakeLists.txt": "hpo_library(hpo_worker SOURCES loop.cc LINK absl::status)\n"})
        self.assertEqual(lines, ["target: worker/loop.cc includes common/base/text.h of hpo_common, "
                                 "which hpo_worker does not link"])

    def test_a_header_of_which_nothing_is_used(self):
        changed = SOUND["worker/loop.cc"].replace('Length("a")', "1")
        self.assertEqual(self.findings({"worker/loop.cc": changed}),
                         ["include: worker/loop.cc uses nothing of common/base/text.h"])

    def test_a_function_of_its_own_with_the_name_of_another_is_no_use(self):
        changed = SOUND["worker/loop.cc"].replace("int Loop", "int Length(int text) {\n  return text;\n}\nint Loop")
        self.assertEqual(self.findings({"worker/loop.cc": changed}),
                         ["include: worker/loop.cc uses nothing of common/base/text.h"])

    def test_a_word_in_a_comment_or_a_string_is_no_use(self):
        changed = SOUND["worker/loop.cc"].replace('Length("a")', '1 + Size("Length(1)")  // not Length(1)\n')
        self.assertEqual(self.findings({"worker/loop.cc": changed}),
                         ["include: worker/loop.cc uses nothing of common/base/text.h"])

    def test_a_test_in_no_target(self):
        self.assertEqual(self.findings({"tests/worker/lost_test.cc": ""}),
                         ["target: tests/worker/lost_test.cc is in no target"])

    def test_a_long_source_without_a_test_of_its_name(self):
        long = {"worker/turn.h": "#pragma once\nint Turn();\n",
                "worker/turn.cc": '#include "worker/turn.h"\n' + "\n" * 100,
                "worker/CMakeLists.txt": "hpo_library(hpo_worker SOURCES loop.cc turn.cc LINK hpo_common)\n"}
        self.assertEqual(self.findings(long), ["test: worker/turn.cc has 100 lines or more and no test of its name"])
        named = long | {"worker/turn.cc": "// Tested by tests/worker/loop_test.cc.\n" + long["worker/turn.cc"]}
        self.assertEqual(self.findings(named), [])
        lost = long | {"worker/turn.cc": "// Tested by tests/worker/lost_test.cc.\n" + long["worker/turn.cc"]}
        self.assertEqual(self.findings(lost),
                         ["test: worker/turn.cc names tests/worker/lost_test.cc, which is not there"])

    def test_a_class_is_as_long_as_all_its_parts(self):
        body = "int Loop::Run() {\n" + "  Turn();\n" * 240 + '  return Length("a") + answer.wait_seconds();\n}\n'
        changed = SOUND["worker/loop.cc"].partition("int Loop")[0] + body
        self.assertEqual(self.findings({"worker/loop.cc": changed}), [])
        self.assertEqual(self.values["lines_of_the_largest_class"], 247)
        nested = SOUND["worker/loop.h"].replace("  int Run();\n", "  int Run();\n  struct Part {\n    int a;\n  };\n" + "\n")
        self.assertEqual(self.findings({"worker/loop.cc": changed, "worker/loop.h": nested}),
                         ["class: Loop of worker/loop.h has 251 lines with all its parts (limit 250)"])

    def test_a_folder_of_many_files(self):
        many = {f"common/base/part_{i}.h": f"#pragma once\nint Part{i}();\n" for i in range(29)}
        self.assertEqual(self.findings(many), ["folder: common/base has 31 files (limit 30)"])

    def test_a_field_that_nobody_reads(self):
        proto = SOUND["proto/hpo/v1/worker.proto"].replace("  int64 wait_seconds = 1;\n",
                                                           "  int64 wait_seconds = 1;\n  Hint hint = 2;\n")
        proto += "message Hint {\n  repeated string words_of_advice = 1;\n}\n"
        self.assertEqual(self.findings({"proto/hpo/v1/worker.proto": proto}),
                         ["protocol: nobody reads Answer.hint", "protocol: nobody reads Hint.words_of_advice"])
        listed = {"common/base/hint_fields.h": 'visit({"words_of_advice"}, hint.advice);\nvisit({"hint"}, answer.tip);\n',
                  "python/src/hpo/hint.py": "print(answer.hint.advice)\n"}
        self.assertEqual(self.findings({"proto/hpo/v1/worker.proto": proto} | listed), [])

    def test_what_is_known_may_only_shrink(self):
        many = {f"common/base/part_{i}.h": f"#pragma once\nint Part{i}();\n" for i in range(32)}
        as_known = "# known\nfolder: common/base has {} files (limit 30)\n"
        self.assertEqual(self.findings(many, as_known.format(34)), [])
        self.assertEqual(self.findings(many, as_known.format(35)), [])
        self.assertEqual(self.findings(many, as_known.format(33)), ["folder: common/base has 34 files (limit 30)"])
        self.assertEqual(self.findings({}, as_known.format(33)),
                         ["scripts/checks/known.txt: mended, take the line out: "
                          "folder: common/base has 33 files (limit 30)"])


if __name__ == "__main__":
    unittest.main()
