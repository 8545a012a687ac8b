"""A loop of one's own with ProcessPoolExecutor: trials go to the pool, and are told as they end."""
import concurrent.futures

import hpo


def train(trial):
    trial.report(1, 1.0)
    return (trial["x"] - 0.3) ** 2


if __name__ == "__main__":
    with hpo.Study("pool", {"x": hpo.uniform(0, 1)}, trials=12) as study, \
            concurrent.futures.ProcessPoolExecutor(3) as pool:
        running = {}
        while running or not study.finished:
            while len(running) < 3 and (trial := study.ask(timeout=0 if running else 1)) is not None:
                running[pool.submit(train, trial)] = trial
            for future in concurrent.futures.wait(running, 1, concurrent.futures.FIRST_COMPLETED).done:
                study.tell(running.pop(future), future.exception() or future.result())
        assert [one.state for one in study.trials] == ["completed"] * 12
        assert all(len(one.reports) == 1 for one in study.trials)
