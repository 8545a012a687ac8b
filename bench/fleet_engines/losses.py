"""What a fleet has lost when its study has ended."""

import ledger


def losses(fleet, trials):
    """Of a fleets.Fleets whose study has so many trials."""
    states = [trial["state"] for trial in fleet.trials("--limit", "1000")]
    return {"trials_lost": trials - states.count("COMPLETED"),
            "most_steps_lost": max(ledger.steps_lost(fleet.folder / "ledger")),
            "workers": len(fleet.worker_names())}
