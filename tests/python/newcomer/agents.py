"""W&B, "Parallelize agents": several programs on one sweep, one folder between them."""
import subprocess
import sys
import tempfile

AGENT = """
import sys
import hpo

with hpo.Study("sweep", {"x": hpo.uniform(-10, 10)}, trials=10, storage=sys.argv[1]) as study:
    while not study.finished:
        trial = study.ask(timeout=1)
        if trial is not None:
            study.tell(trial, trial["x"] ** 2)
"""

with tempfile.TemporaryDirectory() as folder:
    agents = [subprocess.Popen([sys.executable, "-c", AGENT, folder]) for _ in range(2)]
    assert [agent.wait() for agent in agents] == [0, 0]
    import hpo

    with hpo.load(storage=folder) as study:
        assert [one.state for one in study.trials] == ["completed"] * 10
