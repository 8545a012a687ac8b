"""Looks at the program now and then, also while it makes no step and no forward pass."""

import ctypes
import sys
import threading

EVERY_S = 0.2
_TRANSPARENT = ("backward", "execute_and_observe")  # they call the program's or torch's code


class Watch:
    """Calls `look` in the main thread, between two of its instructions, where it may end the program."""

    def __init__(self, look):
        self._look = look
        self._pending = threading.Event()
        self._call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._in_main_thread)
        threading.Thread(target=self._run, name="hpo-dry-run", daemon=True).start()

    def _run(self):
        pause = threading.Event()
        while not pause.wait(EVERY_S):
            if not self._pending.is_set():
                self._pending.set()
                ctypes.pythonapi.Py_AddPendingCall(self._call, None)

    def _in_main_thread(self, _argument):
        self._pending.clear()
        if not _is_inside():
            self._look()
        return 0


def _is_inside():
    """Whether the main thread is in a function of this package, which is not to be interrupted."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__package__") == __package__ and frame.f_code.co_name not in _TRANSPARENT:
            return True
        frame = frame.f_back
    return False
