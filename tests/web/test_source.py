"""The page's source: types from the protocol, strict TypeScript, unit tests, and the built page in the repository."""

import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
TOOLS = WEB / "node_modules/.bin"
DEADLINE_S = 240
MAX_GZIP_BYTES = 120_000


def why_no_node():
    node = shutil.which("node")
    if node is None:
        return "there is no Node.js; scripts/bootstrap --tests uses version 20 or newer"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < 20:
        return f"Node.js {version} is too old: expected 20 or newer"
    if not (TOOLS / "vite").exists():
        return "web/node_modules is not there; scripts/bootstrap --tests fetches it"
    return ""


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Source(unittest.TestCase):
    def run_tool(self, *command):
        ended = subprocess.run([str(word) for word in command], cwd=WEB, capture_output=True, text=True,
                               timeout=DEADLINE_S, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout[-6000:] + ended.stderr[-6000:])

    def need_node(self):
        if why := why_no_node():
            self.skipTest(why)

    def test_types_are_those_of_the_protocol(self):
        try:
            import google.protobuf  # noqa: F401
        except ImportError:
            self.skipTest("Python's protobuf is not there; scripts/bootstrap --tests fetches it")
        self.run_tool(sys.executable, WEB / "messages.py", "--check")

    def test_types_are_right(self):
        self.need_node()
        self.run_tool(TOOLS / "tsc", "--noEmit")

    def test_units(self):
        self.need_node()
        self.run_tool(TOOLS / "vitest", "run")

    def test_what_is_in_the_repository_is_what_the_source_builds(self):
        self.need_node()
        for built in sorted(WEB.glob("dist*")):
            with self.subTest(built.name), tempfile.TemporaryDirectory() as folder:
                config = [] if built.name == "dist" else ["--config", f"vite.{built.name.removeprefix('dist-')}.config.ts"]
                self.run_tool(TOOLS / "vite", "build", *config, "--outDir", folder, "--emptyOutDir")
                fresh, kept = files(pathlib.Path(folder)), files(built)
                self.assertEqual(sorted(fresh), sorted(kept), "run: cd web && npm run build")
                for name, content in fresh.items():
                    self.assertTrue(content == kept[name], f"{built.name}/{name} differs; run: cd web && npm run build")

    def test_all_that_a_browser_loads_is_small(self):
        size = sum(len(gzip.compress(content, 9)) for content in files(WEB / "dist").values())
        self.assertLessEqual(size, MAX_GZIP_BYTES)


if __name__ == "__main__":
    unittest.main()
