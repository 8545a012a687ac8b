"""scripts/quickstart builds the programs that it starts. Its build is configured, and not run."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class QuickstartBuildTest(unittest.TestCase):
    def test_what_it_builds_is_in_bin(self):
        script = (SOURCE / "scripts" / "quickstart").read_text()
        build = re.search(r"scripts/build release ((?:.|\\\n)*?)\n", script).group(1).replace("\\\n", " ")
        options, _, targets = build.partition("--target ")
        started = re.search(r"for program in (.*); do", script).group(1).split()
        with_trainer = os.environ["HPO_TRAINER_BUILT"] in ("ON", "1", "TRUE")
        if not with_trainer:
            started.remove("hpo-trainer")
        with tempfile.TemporaryDirectory(prefix="hpo-test-") as folder:
            subprocess.run(["cmake", "--preset", "release", "-B", folder, *shlex.split(options),
                            f"-DHPO_BUILD_TRAINER={'ON' if with_trainer else 'OFF'}"],
                           cwd=SOURCE, check=True, capture_output=True)
            made = subprocess.run(["ninja", "-C", folder, "-t", "query", *targets.split()],
                                  check=True, capture_output=True, text=True).stdout.split()
        for program in started:
            self.assertIn(f"bin/{program}", made)


if __name__ == "__main__":
    unittest.main()
