"""Nothing of NVIDIA's is copied for the emulated card, and no package but the wheel hpo-dryrun holds it."""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["HPO_BIN_DIR"]).parent
CHECK = ROOT / "scripts" / "check_archive"
EMULATOR = BUILD / "emulator"
OWN_FILES = [path for path in sorted((ROOT / "emulator").rglob("*"))
             if path.is_file() and path.suffix != ".pyc"]


def check(path, *options):
    return subprocess.run([CHECK, *options, path], capture_output=True, text=True, check=False)


def long_lines(path):
    """Lines of some substance, whatever their spacing and comment signs."""
    for line in path.read_text(errors="replace").splitlines():
        plain = re.sub(r"[\s*/]+", " ", line).strip()
        if len(plain) >= 30:
            yield plain


class Packaging(unittest.TestCase):
    def test_the_builds_libraries_hold_none_of_it(self):
        for folder in (BUILD / "lib", BUILD / "bin"):
            done = check(folder)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_an_archive_that_was_made_holds_none_of_it(self):
        for archive in sorted((ROOT / "dist").glob("hpo-*.tar.gz")):
            done = check(archive)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_check_finds_a_stand_in_however_it_is_called(self):
        with tempfile.TemporaryDirectory() as scratch:
            stage = pathlib.Path(scratch, "hpo-1")
            for name in ("lib/libcublas.so.13", "lib/innocent.so", "bin/hpo"):
                (stage / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(EMULATOR / "libcublas.so.13", stage / name)
            with tarfile.open(pathlib.Path(scratch, "a.tar.gz"), "w:gz") as packed:
                packed.add(stage, "hpo-1")
            done = check(pathlib.Path(scratch, "a.tar.gz"))
        self.assertEqual(done.returncode, 1)
        for name in ("lib/libcublas.so.13", "lib/innocent.so", "bin/hpo"):
            self.assertIn(f"hpo-1/{name}: is of the emulated card\n", done.stdout)
            self.assertIn(f"hpo-1/{name}: libcublas.so.13 is NVIDIA's name\n", done.stdout)

    def test_the_wheel_hpo_dryrun_may_hold_stand_ins_and_nothing_else_of_such_names(self):
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copy(EMULATOR / "libcublas.so.13", scratch)
            self.assertEqual(check(scratch, "--emulated").returncode, 0)
            shutil.copy(EMULATOR / "libhpo_emulated_card.so", pathlib.Path(scratch, "libcudart.so.13"))
            done = check(scratch, "--emulated")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "check_archive: libcudart.so.13: libcudart.so.13 is NVIDIA's name\n"))

    def test_nothing_installs_it_and_packages_are_made_without_it(self):
        for path in [*ROOT.glob("*/**/CMakeLists.txt"), ROOT / "CMakeLists.txt"]:
            if BUILD not in path.parents and (ROOT / "build") not in path.parents:
                self.assertNotRegex(path.read_text(), r"(?m)^\s*install\(")
        installed = (ROOT / "cmake" / "HpoInstall.cmake").read_text()
        self.assertNotRegex(installed, "fake|emulated")
        package = (ROOT / "scripts" / "package").read_text()
        self.assertIn("-DHPO_BUILD_TESTS=OFF", package)
        self.assertIn('scripts/check_archive "$stage"', package)
        self.assertNotIn("emulator", package)


class Licence(unittest.TestCase):
    def test_no_line_of_nvidias_headers_is_here(self):
        headers = pathlib.Path(os.environ["HPO_CUDA_INCLUDE_DIR"])
        theirs = {}
        for name in ("cuda.h", "cuda_runtime_api.h", "driver_types.h", "cuda_device_runtime_api.h",
                     "crt/host_runtime.h", "library_types.h", "vector_types.h"):
            if (headers / name).exists():
                theirs.update((line, name) for line in long_lines(headers / name))
        self.assertGreater(len(theirs), 5000)
        for path in OWN_FILES:
            for line in long_lines(path):
                self.assertFalse(line in theirs, f"{path.name} has a line of {theirs.get(line)}: {line}")

    def test_no_notice_of_theirs_is_here_and_no_binary(self):
        for path in OWN_FILES:
            text = path.read_text()  # fails on what is not text
            self.assertNotRegex(text, r"(?i)copyright.*nvidia|nvidia corporation")
            self.assertNotRegex(text, r"(?i)\b(cuobjdump|nvdisasm|nv_fatbin)\b")


if __name__ == "__main__":
    unittest.main()
