"""hpo.trainer.current(): a script that knows nothing of trials, started as hpo-worker starts it."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

JOB = {"type": "job", "study": "s", "trial": 3, "attempt": 1, "params": {"x": 2}, "epochs": 1,
       "objective": {"metric": "loss", "direction": "minimize"}, "device": "cpu", "limit_bytes": 0,
       "plan": {"effective_batch": 8, "micro_batch": 8}, "seed": 1, "output_dir": ""}


def run(script, down=(), job=JOB):
    """Its lines up, its exit status and its standard error."""
    ours, theirs = socket.socketpair()
    with ours:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], pass_fds=[theirs.fileno()],
            env={**os.environ, "HPO_TRAINER_FD": str(theirs.fileno())}, stderr=subprocess.PIPE, text=True)
        theirs.close()
        for message in (job, *down):
            ours.sendall(json.dumps(message).encode() + b"\n")
        said = process.communicate(timeout=60)[1]
        lines = ours.makefile("rb").read().splitlines()
    return [json.loads(line) for line in lines], process.returncode, said


def test_an_orderly_end_leaves_the_last_report_as_the_result():
    lines, status, _ = run("""
        import hpo.trainer
        trial = hpo.trainer.current()
        assert trial is hpo.trainer.current() and trial["x"] == 2
        trial.report(1, 0.5)
    """)
    assert status == 0
    assert [line["type"] for line in lines] == ["hello", "measurement", "memory"]
    assert lines[0]["capabilities"] == ["stop", "plan", "memory"]
    assert lines[1]["metrics"] == {"loss": 0.5}
    assert lines[2]["stage"] == "Training End" and lines[2]["peak_bytes"] > 1 << 20


def test_signals_to_every_process_of_a_job_do_not_end_it():
    """What it starts itself ends as ever, by exec and by fork."""
    lines, status, said = run("""
        import multiprocessing, os, signal, subprocess, time
        import hpo.trainer
        trial = hpo.trainer.current()
        os.kill(os.getpid(), signal.SIGTERM)
        forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        forked.start()
        started = subprocess.Popen(["sleep", "60"])
        for child in (forked, started):
            child.terminate()
        forked.join(10)
        assert (forked.exitcode, started.wait(10)) == (-15, -15), (forked.exitcode, started.returncode)
        trial.report(1, 0.5)
    """)
    assert status == 0, said
    assert lines[1]["metrics"] == {"loss": 0.5}


def test_a_signal_right_after_a_fork_ends_the_new_process():
    """It comes before the new process has run anything of its own: a hook that is older than hpo's holds it up."""
    _, status, said = run("""
        import os, signal, time
        os.register_at_fork(after_in_child=lambda: time.sleep(0.5))
        import hpo.trainer
        trial = hpo.trainer.current()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        child = os.fork()
        if child == 0:
            time.sleep(5)
            os._exit(0)
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
        trial.report(1, 0.5)
    """)
    assert status == 0, said


def test_a_script_finds_the_folder_of_its_model(tmp_path):
    _, status, said = run("""
        import os, hpo.trainer
        trial = hpo.trainer.current()
        assert str(trial.output_dir) == os.environ["HPO_OUTPUT_DIR"]
        (trial.output_dir / "model.txt").write_text("weights")
        trial.report(1, 0.5)
    """, job={**JOB, "output_dir": str(tmp_path)})
    assert status == 0, said
    assert (tmp_path / "model.txt").read_text() == "weights"
    _, status, said = run("""
        import hpo.trainer
        assert hpo.trainer.current().output_dir is None
        hpo.trainer.current().report(1, 0.5)
    """)
    assert status == 0, said


@pytest.mark.parametrize("raised, kind, said", [
    ("RuntimeError('[enforce fail] DefaultCPUAllocator: can\\'t allocate memory: you tried')",
     "out_of_memory", "DefaultCPUAllocator"),
    ("hpo.OutOfMemory('one row does not fit')", "out_of_memory", "one row"),
    ("KeyError('label')", "failed", "KeyError: 'label'")])
def test_what_it_raises_is_told_and_still_printed(raised, kind, said):
    lines, status, printed = run(f"""
        import hpo, hpo.trainer
        hpo.trainer.current()
        raise {raised}
    """)
    assert status == 1 and said in printed
    outcome = lines[-1]["outcome"]
    assert outcome["kind"] == kind
    assert said in outcome.get("message", "") + outcome.get("error_message", "")


@pytest.mark.parametrize("reason, outcome", [
    ("pruned", {"kind": "stopped_by_pruner", "step": 4, "metrics": {"loss": 0.5}}), ("drain", None)])
@pytest.mark.parametrize("end", ["raise hpo.Stopped()", "pass"])
def test_a_stop(reason, outcome, end):
    lines, _, printed = run(f"""
        import hpo, hpo.trainer, time
        trial = hpo.trainer.current()
        trial.report(4, 0.5)
        while not trial.should_stop():
            time.sleep(0.01)
        {end}
    """, down=[{"type": "stop", "reason": reason, "checkpoint": True}])
    assert lines[-1]["type"] == "outcome" and lines[-1]["outcome"] == outcome
    assert printed == ""


def test_other_exits_are_left_to_their_status():
    lines, status, _ = run("""
        import hpo.trainer, sys
        hpo.trainer.current().report(1, 0.5)
        sys.exit(3)
    """)
    assert status == 3 and "outcome" not in [line["type"] for line in lines]


def test_run_by_hand_there_is_no_trial():
    code = "import hpo.trainer; print(hpo.trainer.current())"
    mine = {key: value for key, value in os.environ.items() if not key.startswith("HPO_TRAINER")}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=mine) == "None\n"


@pytest.mark.parametrize("call", ["hpo.trainer.main(print)", "hpo.trainer.current()"])
def test_a_descriptor_that_is_no_number_is_named(call):
    done = subprocess.run([sys.executable, "-c", f"import hpo.trainer; {call}"], capture_output=True,
                          text=True, check=False, env={**os.environ, "HPO_TRAINER_FD": "three"})
    assert "HPO_TRAINER_FD: expected a file descriptor, got 'three'" in done.stderr


def test_a_descriptor_that_is_not_open_is_named():
    code = "import hpo.trainer; hpo.trainer.main(print)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "HPO_TRAINER_FD": "57"})
    assert ("file descriptor 57: expected the worker's end of the trainer protocol, got: Bad file "
            "descriptor; hpo-worker starts this program") in done.stderr


@pytest.mark.parametrize("module, missing", [("hpo.torch", "torch"), ("hpo.hf", "transformers")])
def test_what_is_not_installed_is_named(module, missing):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if missing == "transformers" and "needs torch" in done.stderr:
        pytest.skip("torch is not installed: it is asked for first")
    assert f"{module} needs {missing}: pip install {missing}" in done.stderr
