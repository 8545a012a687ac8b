#!/usr/bin/env python3
"""scripts/prepare_criteria_data over an invented package dump: no apt, no network."""

import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "prepare_criteria_data"
DUMP = ROOT / "tests" / "golden" / "criteria" / "packages.txt"
SIZES = ["--rows", "90", "--validation-rows", "30", "--criteria", "4"]
# Of the two files made with SIZES and seed 7. Another digest on another Python is a bug.
GOLDEN = {
    "train.jsonl": "e746acc3c62a7a2ee817af2e60762967f9792544f59e5e5d01f78b3893dd7f5d",
    "valid.jsonl": "12473d7f77e5c41d964db5502e884c4149ceacc7158596682c9fb3c000d936b2",
}


class PrepareCriteriaData(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"

    def run_script(self, *arguments, source=DUMP, env=None):
        command = [sys.executable, str(SCRIPT), "--out", str(self.out), *arguments]
        if source is not None:
            command += ["--source", str(source)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    def make(self, *arguments, source=DUMP):
        done = self.run_script(*arguments, source=source)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: [json.loads(line) for line in
                       (self.out / name).read_text(encoding="utf-8").splitlines()]
                for name in GOLDEN}

    def assert_fails(self, done, expected):
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(expected, done.stderr)
        self.assertEqual(list(self.out.glob("*")) if self.out.is_dir() else [], [])

    def test_equal_input_gives_equal_bytes(self):
        self.make(*SIZES)
        digests = {name: hashlib.sha256((self.out / name).read_bytes()).hexdigest()
                   for name in GOLDEN}
        self.assertEqual(digests, GOLDEN)

    def test_order_of_the_dump_does_not_matter(self):
        stanzas = DUMP.read_text(encoding="utf-8").strip().split("\n\n")
        turned = self.folder / "turned"
        turned.write_text("\n\n".join(reversed(stanzas)) + "\n", encoding="utf-8")
        self.make(*SIZES, source=turned)
        self.assertEqual(hashlib.sha256((self.out / "train.jsonl").read_bytes()).hexdigest(),
                         GOLDEN["train.jsonl"])

    def test_another_seed_gives_other_rows(self):
        first = self.make(*SIZES)["train.jsonl"]
        second = self.make(*SIZES, "--seed", "8")["train.jsonl"]
        self.assertEqual(len(first), len(second))
        self.assertNotEqual(first, second)

    def test_counts_are_as_asked_and_balanced_for_every_criterion(self):
        files = self.make(*SIZES)
        for name, expected in (("train.jsonl", 90), ("valid.jsonl", 30)):
            labels = collections.defaultdict(collections.Counter)
            for row in files[name]:
                self.assertEqual(set(row), {"text", "pair", "label"})
                labels[row["pair"]][row["label"]] += 1
            self.assertEqual(sum(sum(count.values()) for count in labels.values()), expected)
            self.assertEqual(len(labels), 4)
            for criterion, count in labels.items():
                with self.subTest(file=name, criterion=criterion):
                    self.assertLessEqual(abs(count["yes"] - count["no"]), 1)

    def test_no_source_package_is_in_both_files(self):
        # The dump numbers its sources, and the number stays in the text.
        files = self.make(*SIZES)
        sources = {name: {re.search(r"number (\d+)", row["text"]).group(1) for row in rows}
                   for name, rows in files.items()}
        self.assertEqual(sources["train.jsonl"] & sources["valid.jsonl"], set())

    def test_texts_do_not_hold_package_names(self):
        names = set(re.findall(r"^Package: (\S+)", DUMP.read_text(encoding="utf-8"), re.MULTILINE))
        for rows in self.make(*SIZES).values():
            for row in rows:
                self.assertEqual(names & set(row["text"].split()), set())

    def test_labels_follow_the_tags(self):
        words = {"is used from the command line": {"command line"},
                 "is a game": {"puzzle game"},
                 "is a shared library that other programs load": {"library of"},
                 "has a graphical user interface": {"window to", "puzzle game"}}
        for rows in self.make(*SIZES).values():
            for row in rows:
                meets = any(word in row["text"] for word in words[row["pair"]])
                self.assertEqual(row["label"], "yes" if meets else "no", row)

    def test_braces_in_tags_are_written_out(self):
        rows = self.make("--rows", "60", "--validation-rows", "20", "--criteria", "5")
        audio = [row for row in rows["train.jsonl"] if row["pair"] == "works with sound or music"]
        self.assertTrue(any(row["label"] == "yes" for row in audio))

    def test_sections_stand_in_where_there_are_no_tags(self):
        untagged = self.folder / "untagged"
        untagged.write_text(re.sub(r"\nTag: [^\n]*(\n [^\n]*)*", "",
                                   DUMP.read_text(encoding="utf-8")), encoding="utf-8")
        rows = self.make("--rows", "60", "--validation-rows", "20", "--criteria", "3",
                         source=untagged)["train.jsonl"]
        games = [row for row in rows if row["pair"] == "is a game"]
        self.assertEqual(len(games), 20)
        for row in games:
            self.assertEqual(row["label"] == "yes", "puzzle game" in row["text"])

    def test_says_what_it_made(self):
        done = self.run_script(*SIZES)
        self.assertIn("train.jsonl: 90 rows, 45 yes, 45 no, macro-F1 of the majority 0.33",
                      done.stdout)
        self.assertIn("is a game", done.stdout)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), sorted(GOLDEN))

    def test_bad_input_is_one_line_and_leaves_nothing(self):
        empty = self.folder / "empty"
        empty.write_text("\n\n", encoding="utf-8")
        self.assert_fails(self.run_script(*SIZES, source=empty), "expected package descriptions")
        self.assert_fails(self.run_script(*SIZES, source=self.folder / "missing"), "missing")
        self.assert_fails(self.run_script("--rows", "9000"), "expected 13 criteria")
        no_apt = {**os.environ, "PATH": str(self.folder)}
        self.assert_fails(self.run_script(*SIZES, source=None, env=no_apt), "apt-cache")

    def test_unwritable_folder_is_named(self):
        self.out.write_text("a file, not a folder", encoding="utf-8")
        done = self.run_script(*SIZES)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(f"{self.out}: cannot write", done.stderr)

    def test_failing_apt_is_quoted(self):
        fake = self.folder / "apt-cache"
        fake.write_text("#!/bin/sh\necho 'E: no lists' >&2\nexit 100\n", encoding="utf-8")
        fake.chmod(0o755)
        env = {**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin"}
        self.assert_fails(self.run_script(*SIZES, source=None, env=env), "E: no lists")

    def test_reads_apt_where_no_dump_is_given(self):
        fake = self.folder / "apt-cache"
        fake.write_text(f"#!/bin/sh\n[ \"$1\" = dumpavail ] && cat '{DUMP}'\n", encoding="utf-8")
        fake.chmod(0o755)
        env = {**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin"}
        done = self.run_script(*SIZES, source=None, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(hashlib.sha256((self.out / "valid.jsonl").read_bytes()).hexdigest(),
                         GOLDEN["valid.jsonl"])


if __name__ == "__main__":
    unittest.main()
