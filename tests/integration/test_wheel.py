"""The wheel of scripts/wheel, made of the build under test: installed without a network, and used."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BIN = pathlib.Path(os.environ["HPO_BIN_DIR"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("hpo", "hpo-server", "hpo-worker", "hpo-command-trainer", "hpo-sampler")
STUDY = """\
import hpo

def train(trial):
    return (trial["x"] - 2) ** 2

best = hpo.minimize(train, {"x": hpo.uniform(-10, 10)}, trials=5, verbose=False)
assert best.value == (best.params["x"] - 2) ** 2
print(hpo.__file__)
"""


def run(*command, **variables):
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          env=environment, timeout=200)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hpo-test-wheel-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.venv = cls.folder / "venv"
        made = run(sys.executable, "-m", "venv", cls.venv)
        if made.returncode != 0:
            raise unittest.SkipTest(f"{sys.executable} -m venv: {made.stdout}{made.stderr}")
        made = run(ROOT / "scripts" / "wheel", "--build", BIN.parent, "--out", cls.folder,
                   PATH=os.environ["PATH"])
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        (cls.wheel,) = cls.folder.glob("*.whl")
        done = run(cls.venv / "bin" / "python", "-m", "pip", "install", "--no-index", "--no-deps", "-q",
                   "--disable-pip-version-check", cls.wheel)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def test_a_study_runs_with_the_programs_of_the_wheel(self):
        spec = importlib.util.find_spec("grpc")
        if spec is None:
            self.skipTest("the Python package grpc is not there (scripts/bootstrap --tests)")
        (self.folder / "study.py").write_text(STUDY)
        done = run(self.venv / "bin" / "python", self.folder / "study.py",
                   PYTHONPATH=pathlib.Path(spec.origin).parents[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(str(self.venv)), done.stdout)

    def test_its_programs_start(self):
        for name in PROGRAMS:
            done = run(self.venv / "bin" / name, "--version")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"^{name} \d+\.\d+\.\d+\n\Z")

    def test_another_package_of_that_name_in_the_way_is_named(self):
        other = self.folder / "other"
        (other / "hpo").mkdir(parents=True)
        (other / "hpo" / "__init__.py").write_text("")
        done = run(self.venv / "bin" / "hpo-server", "--version", PYTHONPATH=other)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^hpo-server: expected the package hpo of hpo-service, .*"
                                      rf"found: {other}/hpo\..*pip install[^\n]*\n\Z")

    def test_it_holds_licences_and_nothing_of_the_system(self):
        with zipfile.ZipFile(self.wheel) as packed:
            names = [pathlib.PurePath(name) for name in packed.namelist()]
            licences = {name.stem: packed.getinfo(str(name)).file_size for name in names
                        if name.parent.name == "licenses"}
        for package in ("hpo", "libgrpc-dev", "libprotobuf-dev", "libabsl-dev", "libssl-dev", "libcpp-httplib-dev"):
            self.assertGreater(licences.get(package, 0), 500, package)
        libraries = {name.name for name in names if name.parent.parts[-2:] == ("lib", "hpo")}
        for system in ("libc.so.6", "libm.so.6", "libresolv.so.2", "libstdc++.so.6", "ld-linux-x86-64.so.2"):
            self.assertNotIn(system, libraries)
        self.assertRegex(self.wheel.name, r"^hpo_service-[0-9.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_a_build_without_programs_is_refused_with_the_command_that_failed(self):
        done = run(ROOT / "scripts" / "wheel", "--build", self.folder / "nothing", "--out", self.folder,
                   PATH=os.environ["PATH"])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^wheel: cmake --install ")


class PackagedTrainer(unittest.TestCase):
    """scripts/packaged_trainer: which torch hpo-trainer gets."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hpo-test-trainer-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bin", "libexec"):
            (self.folder / name).mkdir()
        self.start = self.folder / "bin" / "hpo-trainer"
        shutil.copy(ROOT / "scripts" / "packaged_trainer", self.start)
        self.script(self.folder / "libexec" / "hpo-trainer", 'echo "$LD_LIBRARY_PATH $1"')

    def script(self, path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def torch(self, name):
        library = self.folder / name / "lib" / "libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        library.touch()
        return self.folder / name

    def test_is_that_of_the_python_of_the_wheel(self):
        self.script(self.folder / "python", f"echo {self.torch('installed')}")
        done = run(self.start, "--version", HPO_PYTHON=str(self.folder / "python"))
        self.assertEqual(done.stdout, f"{self.folder}/installed/lib --version\n", done.stderr)

    def test_is_the_named_one_before(self):
        done = run(self.start, "-v", HPO_PYTHON="/nowhere", HPO_TORCH_ROOT=str(self.torch("named")))
        self.assertEqual(done.stdout, f"{self.folder}/named/lib -v\n", done.stderr)

    def test_is_asked_for_where_there_is_none(self):
        done = run(self.start, HPO_PYTHON="/nowhere/python3")
        self.assertEqual(done.returncode, 24)
        self.assertRegex(done.stderr, r"^hpo-trainer: no LibTorch: .*looked in '/nowhere/python3'\)\n\Z")


if __name__ == "__main__":
    unittest.main()
