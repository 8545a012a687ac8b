"""The emulated card (emulator), as LibTorch's own CUDA code meets it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["HPO_BIN_DIR"]).parent
SCRIPT = ROOT / "scripts" / "with_emulated_card"
PROBE = BUILD / "tests" / "card_probe"
MIB = 1 << 20


def command(card, *words, **options):
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(word) for word in (SCRIPT, "--build", BUILD, *given, card, *words)]


def run(card, *words, env=None, **options):
    done = subprocess.run(command(card, *words, **options), capture_output=True, text=True,
                          check=False, timeout=60, env={**os.environ, **(env or {})})
    done.complaint = done.stderr.partition("\n")[2]
    return done


class Cards(unittest.TestCase):
    def test_torch_sees_each_card_of_the_table(self):
        done = run("t4+rtx3060+l4+a100+h100+h200", PROBE, "cards")
        self.assertEqual((done.returncode, done.complaint), (0, ""))
        lines = done.stdout.splitlines()
        expected = [
            ("Tesla T4", "7.5", 40, 1024, 65536, 65536, 4194304, 15828320256),
            ("NVIDIA GeForce RTX 3060", "8.6", 28, 1536, 102400, 101376, 2359296, 12629508096),
            ("NVIDIA L4", "8.9", 58, 1536, 102400, 101376, 50331648, 23580639232),
            ("NVIDIA A100-PCIE-40GB", "8.0", 108, 2048, 167936, 166912, 41943040, 42298834944),
            ("NVIDIA H100 80GB HBM3", "9.0", 132, 2048, 233472, 232448, 52428800, 85028896768),
            ("NVIDIA H200", "9.0", 132, 2048, 233472, 232448, 62914560, 150109880320),
        ]
        for i, (name, capability, sms, threads, shared, block, cache, total) in enumerate(expected):
            self.assertEqual(
                lines[2 * i], f"card {i}: {name} (emulated); {capability}; {sms} x {threads} "
                f"threads; shared {shared} {block}; L2 {cache}; total {total} {total}; "
                f"free {total - 300 * MIB}")

    def test_attention_by_precision_and_mask(self):
        """float, bfloat16, half; each without a mask and with one. Torch decides on cuDNN's by the GPU
        that it asks first."""
        cases = [("t4", "efficient efficient math math efficient efficient"),
                 ("a100", "efficient efficient flash efficient flash efficient"),
                 ("h100", "efficient efficient cudnn cudnn cudnn cudnn")]
        for gpu, kernels in cases:
            with self.subTest(gpu):
                self.assertIn(f"attention 0: {kernels}\n", run(gpu, PROBE, "cards").stdout)

    def test_visible_devices_choose_and_order(self):
        for shown, names in [("1", ["H200"]), ("1,0", ["H200", "T4"]), ("", []), ("0,7,1", ["T4"]),
                             ("GPU-68706f66-0000-f465-0000-000000000001", ["H200"])]:
            with self.subTest(shown):
                done = run("t4+h200", PROBE, "cards", env={"CUDA_VISIBLE_DEVICES": shown})
                found = re.findall(r"card \d+: .*?(\w+) \(emulated\)", done.stdout)
                self.assertEqual(found, names)

    def test_another_total(self):
        done = run("a100", PROBE, "cards", memory="85094170624B", context="0B")
        self.assertIn("total 85094170624 85094170624; free 85094170624\n", done.stdout)


@unittest.skipUnless((BUILD / "bin" / "hpo-trainer").exists(), "built without LibTorch")
class Profile(unittest.TestCase):
    def test_workspaces_are_those_that_are_assumed_of_cards_not_measured(self):
        """kCudaWorkspace and kLargestCudaWorkspace of memory/need/device_defaults.h."""
        for card, workspace in (("t4", 19136512), ("a100", 19136512), ("h100", 69206016)):
            with self.subTest(card):
                done = run(card, BUILD / "bin" / "hpo-trainer", "--profile-device", "--device",
                           "cuda:0", "--log-level", "off")
                self.assertEqual(json.loads(done.stdout)["workspace_bytes"], workspace)


class Memory(unittest.TestCase):
    def test_a_full_card_is_torchs_own_error(self):
        for settings, page in [("", 64), ("expandable_segments:True", 20)]:
            with self.subTest(settings):
                done = run("t4", PROBE, "fill", 0, env={"PYTORCH_ALLOC_CONF": settings})
                self.assertEqual((done.returncode, done.complaint), (0, ""))
                held = int(re.search(r"out of memory after (\d+) MiB", done.stdout)[1])
                # What is free, in torch's segments and then in tensors of 64 MiB.
                free = 15828320256 // MIB - 300
                self.assertEqual(held, free // page * page // 64 * 64)
                self.assertIn("CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total "
                              "capacity of 14.74 GiB of which", done.stdout)
                self.assertIn("reserved 0\n", done.stdout)

    def test_processes_see_each_others_memory_until_they_end(self):
        with tempfile.TemporaryDirectory() as folder:
            state = os.path.join(folder, "state")
            with subprocess.Popen(command("t4", PROBE, "hold", 1000, state=state), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as holder:
                self.assertEqual(holder.stdout.readline(), "holding\n")
                beside = run("t4", PROBE, "cards", state=state)
                shown = run("t4", "nvidia-smi", "--query-gpu=memory.used,memory.free",
                            "--format=csv,noheader,nounits", state=state)
                holder.communicate("")
            after = run("t4", PROBE, "cards", state=state)
        total = 15828320256
        self.assertIn(f"free {total - 1600 * MIB}\n", beside.stdout)  # 1000 MiB, two contexts
        self.assertEqual(shown.stdout, f"1300, {total // MIB - 1300}\n")
        self.assertIn(f"free {total - 300 * MIB}\n", after.stdout)

    def test_memory_of_a_killed_process_is_free(self):
        with tempfile.TemporaryDirectory() as folder:
            state = os.path.join(folder, "state")
            holder = BUILD / "emulator" / "emulated_card"
            env = {**os.environ, "HPO_EMULATED_STATE": state, "HPO_EMULATED_CARD": "t4"}
            with subprocess.Popen([holder, "--hold", "5GiB"], env=env, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                self.assertEqual(child.stdout.readline(), f"holding {5 << 30} bytes\n")
                beside = run("t4", PROBE, "cards", state=state)
                child.send_signal(signal.SIGKILL)
                child.wait()
                # Not waited for by the kernel's table alone: it was a zombie until now.
                after = run("t4", PROBE, "cards", state=state)
        self.assertIn(f"free {15828320256 - 600 * MIB - (5 << 30)}\n", beside.stdout)
        self.assertIn(f"free {15828320256 - 300 * MIB}\n", after.stdout)

    def test_nvidia_smi_agrees(self):
        done = run("a100+t4", "nvidia-smi", "--query-gpu=index,name,memory.total,memory.used,"
                   "memory.free", "--format=csv,noheader,nounits", others="1GiB")
        self.assertEqual(done.stdout,
                         "0, NVIDIA A100-PCIE-40GB (emulated), 40960, 1024, 39315\n"
                         "1, Tesla T4 (emulated), 15360, 1024, 14071\n")

    def test_others_hold_the_card(self):
        done = run("t4", PROBE, "cards", others="3x2GiB")
        self.assertIn(f"free {15828320256 - 300 * MIB - (6 << 30)}\n", done.stdout)
        full = run("t4", PROBE, "steps", 1, others="15000MiB")
        self.assertEqual((full.returncode, full.stdout),
                         (3, "error: CUDA error: out of memory\n"))  # no room for a context


class Faults(unittest.TestCase):
    def test_by_call_count_and_code(self):
        """What torch makes of a call that fails; None where it goes on."""
        cases = [
            ("cudaMalloc:2:2", None),  # torch gives its cache back and tries again
            ("cudaMalloc:2:2:always", "CUDA out of memory. Tried to allocate"),
            ("cublasCreate_v2:1:3", "CUBLAS_STATUS_ALLOC_FAILED"),
            ("cublasSgemm_v2:2:13", "CUBLAS_STATUS_EXECUTION_FAILED"),
            ("cudaLaunchKernel:9:700", "emulated: an address that is nobody's"),
            ("cudaDeviceSynchronize:1:214:sticky", "emulated: memory that ECC cannot repair"),
            ("cudaLaunchKernel:9:710:sticky", "emulated: an assertion on the device"),
        ]
        for fault, expected in cases:
            with self.subTest(fault):
                done = run("l4", PROBE, "steps", 2, faults=fault)
                self.assertEqual(done.complaint, "")
                if expected is None:
                    self.assertEqual((done.returncode, done.stdout), (0, "step 1\nstep 2\n"))
                else:
                    self.assertEqual(done.returncode, 3)
                    self.assertIn(expected, done.stdout)

    def test_an_unknown_call_ends_the_program_with_its_name(self):
        done = run("l4", PROBE, "unknown")
        self.assertEqual(done.complaint, "emulated card: cublasIsamax_v2 is not emulated\n")
        self.assertEqual(done.returncode, 128 + signal.SIGABRT)

    def test_the_log_names_calls_and_kernels(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            run("l4", PROBE, "steps", 1, log=log, faults="cudaMalloc:3:2")
            text = log.read_text()
        self.assertRegex(text, r"(?m)^\d+ cudaMalloc 2097152$")
        self.assertRegex(text, r"(?m)^\d+ launch \S*FillFunctor\S* grid 64,1,1 block 128,1,1")
        self.assertRegex(text, r"(?m)^\d+ cublasSgemm_v2$")
        self.assertRegex(text, r"(?m)^\d+ fault cudaMalloc 3 code 2$")


class Script(unittest.TestCase):
    def test_bad_input_is_one_line(self):
        nearest = "a100-40gb, a6000, a10"
        cases = [
            ("a1000", {}, f"no GPU 'a1000'; nearest: {nearest}; emulated_card --list lists all"),
            ("v100", {}, "v100-16gb has compute capability 7.0; torch's build has kernels for 7.5 "
                         "8.0 8.6 9.0 10.0 12.0 only"),
            ("a100:12", {}, "GPU 'a100:12': expected NAME:SIZE with the size's unit, as "
                            "a100-40gb:12GiB"),
            ("t4", {"faults": "cudaMaloc:1:2"}, "faults: no emulated call 'cudaMaloc'"),
            ("t4", {"faults": "cublasIsamax_v2:1:2"}, "faults: no emulated call 'cublasIsamax_v2'"),
            ("t4", {"faults": "cudaMalloc:0:2"},
             "faults: expected CALL:N:CODE, CALL:N:CODE:sticky or CALL:N:CODE:always, got "
             "'cudaMalloc:0:2'"),
            ("t4", {"memory": "12"},
             "memory: expected a size with its unit, as 300MiB or 12GiB, got '12'"),
            ("t4", {"others": "x"},
             "others: expected a size as 4GiB, or that of each of several as 3x512MiB, got 'x'"),
            ("t4", {"cards": "9"}, "cards: expected a number from 0 to 8, got '9'"),
            ("t4", {"addresses": "up"}, "addresses: expected rising, reuse or shuffled, got 'up'"),
            ("t4", {"memry": "2GiB"},
             "no option '--memry'; did you mean --memory? (--help lists them)"),
        ]
        for card, options, complaint in cases:
            with self.subTest(complaint):
                done = run(card, "true", **options)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (2, "", f"with_emulated_card: {complaint}\n"))

    def test_the_environment_alone_is_checked_too(self):
        """In the program itself, where the script was not used."""
        env = {**os.environ, "HPO_EMULATED_CARD": "a1000"}
        done = subprocess.run([BUILD / "emulator" / "emulated_card"], env=env, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Aemulated card: no GPU 'a1000'; nearest: .*\n\Z")

    def test_the_table_is_listed_as_json(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("name = mine\ncapability = 8.6\nmultiprocessors = 2\nmemory = 1GiB\n")
            file.flush()
            env = {**os.environ, "HPO_EMULATED_GPUS": file.name, "HPO_EMULATED_CARD": "unknown"}
            done = subprocess.run([BUILD / "emulator" / "emulated_card", "--list"], env=env,
                                  text=True, capture_output=True, check=True)
        listed = {gpu["name"]: gpu for gpu in json.loads(done.stdout)}
        self.assertEqual(listed["mine"], {
            "name": "mine", "product": "mine", "aliases": [], "capability": 86, "kernels": 86,
            "multiprocessors": 2, "threads": 3072, "total_bytes": 1 << 30, "nvml_mib": 1024})
        self.assertEqual(listed["a100-80gb"]["product"], "NVIDIA A100-SXM4-80GB")
        self.assertIn("a100", listed["a100-40gb"]["aliases"])
        self.assertEqual(listed["v100-16gb"]["kernels"], 0)

    def test_status_and_output_are_the_programs(self):
        for script, status in [("exit 7", 7), ("kill -TERM $$", 143), ("echo seen", 0)]:
            done = run("t4", "bash", "-c", script)
            self.assertEqual(done.returncode, status)
        self.assertEqual(done.stdout, "seen\n")
        self.assertEqual(done.stderr, "with_emulated_card: Tesla T4 (emulated), capability 7.5, "
                                      "15828320256 bytes; kernels compute nothing\n")

    def test_a_program_without_torch_is_not_disturbed(self):
        plain = subprocess.run([BUILD / "bin" / "hpo", "--help"], capture_output=True, text=True,
                               check=False)
        done = run("t4", "hpo", "--help")
        self.assertEqual((done.returncode, done.stdout, done.complaint),
                         (plain.returncode, plain.stdout, plain.stderr))


if __name__ == "__main__":
    unittest.main()
