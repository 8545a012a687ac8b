"""What bench/waits holds for silent, endless and wrong."""

import pathlib
import sys
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from situations import watch  # noqa: E402
from situations.watch import EITHER, REFUSAL, RESULT, WAITS, Search, Situation, judged  # noqa: E402


def shell(script):
    return lambda world: ["sh", "-c", script]


class Judged(unittest.TestCase):
    def wrong(self, script, ends=RESULT, says=(), **options):
        with mock.patch.object(watch, "OBSERVED_S", 1.0):
            return judged(Situation("one", shell(script), ends, says, **options), pathlib.Path("/nowhere")).wrong

    def test_a_search_that_ends_as_expected_is_right(self):
        self.assertEqual(self.wrong("echo done"), [])
        self.assertEqual(self.wrong("echo No such file; exit 3", REFUSAL, ("no such file",)), [])
        self.assertEqual(self.wrong("exit 3", EITHER), [])
        self.assertEqual(self.wrong("sleep 60", WAITS), [])

    def test_what_is_wrong_is_named(self):
        for given, said in [((RESULT, "exit 3"), ["ended with status 3, expected 0"]),
                            ((REFUSAL, "exit 0"), ["ended with status 0, expected one of its own"]),
                            ((WAITS, "exit 0"), ["ended with status 0, though what it waits for can change"]),
                            ((RESULT, "kill -9 $$"), ["ended with status -9, expected 0"]),
                            ((EITHER, "kill -9 $$"), ["was killed by signal 9"])]:
            with self.subTest(given):
                self.assertEqual(self.wrong(given[1], given[0]), said)
        self.assertEqual(self.wrong("echo other", says=("reason",)), ["does not say 'reason'"])
        self.assertEqual(self.wrong("sleep 60", limit_s=1.0), ["goes on for ever (observed 1 s)"])

    def test_silence_is_the_longest_time_between_lines(self):
        with mock.patch.object(watch, "SILENT_S", 0.5):
            self.assertRegex(self.wrong("echo one; sleep 1.5; echo two")[0], r"silent for \d+ s after 'one'")

    def test_silence_begins_with_the_search(self):
        search = Search(["sh", "-c", f"echo first; echo '{watch.BEGINS}'; echo second; echo third"], "/", {})
        self.assertEqual(search.wait(30), 0)
        search.end()
        search.begin = 0.0
        search.lines = [(20.0 + after, text) for after, (_, text) in zip((0, 20, 21, 24), search.lines)]
        self.assertEqual(search.longest_silence(45.0), (3.0, "second"))
        self.assertEqual(search.longest_silence(50.0), (6.0, "third"))
        del search.lines[1]
        self.assertEqual(search.longest_silence(45.0), (21.0, "first"))


if __name__ == "__main__":
    unittest.main()
