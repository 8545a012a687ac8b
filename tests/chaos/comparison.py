"""What a server says of a study, by RPC, compared field by field with what it says after a restart."""

import time

# A lease that nobody renews becomes SUSPECT by time alone, and everybody is quiet between the two looks.
SUSPECT, LEASED = "ATTEMPT_STATE_SUSPECT", "ATTEMPT_STATE_LEASED"
# Fields of a study that a restart changes on purpose.
VOLATILE = ("workers", "waiting_for", "wall_clock_used")
SETTLING_S = 5.0
LOOK_S = 0.2


def image(channel, study):
    whole = channel.study(study)
    for name in VOLATILE:
        whole.pop(name, None)
    trials = channel.trials(study)
    for attempt in (attempt for trial in trials for attempt in trial["attempts"]):
        attempt["state"] = LEASED if attempt["state"] == SUSPECT else attempt["state"]
    return {"study": whole, **{f"trial {trial['number']}": trial for trial in trials}}


def settled_image(channel, study):
    """An image that a call which was under way changes no more."""
    last = image(channel, study)
    end = time.monotonic() + SETTLING_S
    while time.monotonic() < end:
        time.sleep(LOOK_S)
        now = image(channel, study)
        if now == last:
            break
        last = now
    return last


def differences(before, after):
    """Names and both values of what differs, field by field."""
    found = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{key}.{text}" for text in differences(one, other)]
        else:
            found.append(f"{key}: {one} became {other}")
    return found
