"""The units of deploy/systemd, by systemd's own check, the options that deploy/ gives to our programs, and its study."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from fleets import BIN, Fleets, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"


class Systemd(unittest.TestCase):
    @unittest.skipIf(shutil.which("systemd-analyze") is None, "no systemd-analyze")
    def test_systemd_takes_the_units(self):
        for unit in sorted((DEPLOY / "systemd").glob("*.service")):
            with self.subTest(unit.name), tempfile.TemporaryDirectory() as folder:
                text = unit.read_text()
                self.assertEqual(self.said(folder, unit.name, text), "")
                self.assertIn("Resta", self.said(folder, unit.name, text.replace("Restart=", "Restat=")))

    def said(self, folder, name, text):
        """With the programs of this build in place of /opt/hpo/bin, so that systemd finds them."""
        path = pathlib.Path(folder, name)
        path.write_text(text.replace("/opt/hpo/bin", str(BIN)))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, timeout=60,
                              check=False)
        return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if name in line)

    def test_our_programs_have_the_options(self):
        for path in [*DEPLOY.glob("systemd/*.service"), DEPLOY / "compose.yaml", DEPLOY / "kubernetes/server.yaml"]:
            for program in ("hpo-server", "hpo-worker"):
                known = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60,
                                       check=False).stdout
                for command in re.findall(rf"{program}\b(?:,? (?:\s*)--.*|,? [^\n]*--[^\n]*)", path.read_text()):
                    for option in re.findall(r"--[a-z-]+", command):
                        with self.subTest(f"{path.name}: {program} {option}"):
                            self.assertRegex(known, rf"(?m)^\s+(?:-\w,\s*)?{option}\b")


class Study(Fleets):
    def test_the_study_that_is_shipped_runs_in_the_image(self):
        """With the program at its place in this tree, from which the image has it."""
        source, place = re.search(r"^COPY (\S+\.py) (\S+)$", (DEPLOY / "Containerfile").read_text(), re.M).groups()
        text = (DEPLOY / "kubernetes/study.yaml").read_text()
        self.assertIn(place, text)
        (self.folder / "toy.yaml").write_text(text.replace(place, str(ROOT / source)).replace("trials: 20", "trials: 2"))
        self.start_server()
        self.start("worker", BIN / "hpo-worker", *self.WORKER, "--server", self.address, "--state-dir", self.folder / "w")
        wait_until(lambda: self.json("study", "show", "spirals")["state"] == "FINISHED", "the study's end", 60)


del Fleets

if __name__ == "__main__":
    unittest.main()
