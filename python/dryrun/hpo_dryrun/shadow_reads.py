"""Values that the program reads back: how many are not known, where, and a guard against endless loops."""

import collections
import functools
import glob
import os
import sys
import sysconfig

DEFAULT_MAX_READS = 10_000
_MAX_PLACES = 10
_MAX_KEPT_PLACES = 10_000


@functools.lru_cache(maxsize=1)
def _packages():
    """Folders of installed packages: those of sys.path that list what is installed in them."""
    folders = [folder for folder in sys.path if glob.glob(os.path.join(glob.escape(folder), "*.dist-info"))]
    return (sysconfig.get_path("stdlib") + os.sep, *(os.path.join(folder, "") for folder in folders))


def place():
    """FILE:LINE of the program's code that is running; that of a package only where there is no other."""
    frame = sys._getframe(1)
    nearest = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("/torch/_tensor_str.py"):
            return None  # a tensor is printed
        if not name.startswith("<") and "/hpo_dryrun/" not in name and "/torch/" not in name:
            nearest = nearest or frame
            if not name.startswith(_packages()):
                return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return f"{nearest.f_code.co_filename}:{nearest.f_lineno}" if nearest else "backward"


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
