"""Values that the program reads back: how many are not known, where, and a guard against endless loops."""

import collections
import os
import sys

DEFAULT_MAX_READS = 10_000
_MAX_PLACES = 10
_MAX_KEPT_PLACES = 10_000


def _folders():
    """Those of the program: its main script's and the working folder."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = {os.getcwd(), os.path.dirname(os.path.abspath(main)) if main else os.getcwd()}
    return tuple(folder.rstrip("/") + "/" for folder in folders)


def place():
    """FILE:LINE of the program's code that is running; that of a package only where there is no other."""
    frame = sys._getframe(1)
    folders = _folders()
    nearest = outside = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("/torch/_tensor_str.py"):
            return None  # a tensor is printed
        if not name.startswith("<") and "/hpo_dryrun/" not in name and "/torch/" not in name:
            nearest = nearest or frame
            if "-packages/" not in name and "/lib/python3" not in name:
                outside = outside or frame
                if os.path.abspath(name).startswith(folders):
                    return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    found = outside or nearest
    return f"{found.f_code.co_filename}:{found.f_lineno}" if found else "backward"


class Reads:
    def __init__(self):
        self.count = 0
        self._places = collections.Counter()
        self._since_step = 0
        self.max_reads = DEFAULT_MAX_READS
        self.on_endless = None  # called once, with a message

    def note(self):
        """A value that is not known has been read back."""
        where = place()
        if where is None:
            return
        self.count += 1
        if where in self._places or len(self._places) < _MAX_KEPT_PLACES:
            self._places[where] += 1
        self._since_step += 1
        if self._since_step == self.max_reads and self.on_endless is not None:
            self.on_endless(f"the program has read {self.max_reads} values of the GPU that are not known without an "
                            f"optimizer step, the last at {where}: it may wait for a value that only a GPU computes")

    def note_step(self):
        self._since_step = 0

    def findings(self):
        return {"reads_of_unknown_values": self.count,
                "places": [{"where": where, "count": count}
                           for where, count in self._places.most_common(_MAX_PLACES)]}
