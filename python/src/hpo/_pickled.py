"""A function as bytes for a fresh interpreter, and whether this process can be forked instead."""

import importlib
import inspect
import io
import linecache
import os
import pickle
import re
from types import CodeType, FunctionType, MethodType
from typing import Any, Callable, Iterator

from .errors import HpoError, InvalidInput

# A pool of threads that these have started does not survive a fork: the child waits for it for ever.
_POOLS = re.compile(r"/lib(gomp|iomp5|omp|openblas\w*|scipy_openblas\w*|mkl_\w+|blis\w*|torch\w*|c10|"
                    r"tbb|cudart|cuda)[-.\w]*\.so")


def num_threads() -> int:
    """Of this process. The kernel's number: its list of threads ends early where one of them is just ending."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Threads:"))


def why_not_fork() -> str:
    """What may hang in a fork of this process; empty: nothing that is known."""
    if (threads := num_threads()) > 1:
        return f"this process has {threads} threads"
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found = _POOLS.search(file.read())
    return f"this process has loaded {found[0][1:]}" if found else ""


def _cloud_dumps(cloudpickle: Any) -> "Callable[[Any], bytes]":
    """cloudpickle's, but code keeps the name of its file, for the frames of a traceback."""

    base: Any = cloudpickle.Pickler

    class Pickler(base):
        def reducer_override(self, obj: Any) -> Any:
            if not isinstance(obj, CodeType):
                return base.reducer_override(self, obj)
            constructor, arguments = self.dispatch_table[CodeType](obj)
            return constructor, tuple(obj.co_filename if one == "<dynamic-code>" else one for one in arguments)

    def dumps_one(thing: Any) -> bytes:
        with io.BytesIO() as file:
            Pickler(file).dump(thing)
            return file.getvalue()

    return dumps_one


def dumps(train: Any, why: str, where: str = "each trial runs in a fresh interpreter",
          otherwise: str = ", or pass isolate=False to run the trials in this process") -> bytes:
    """`why`: the function is sent to another interpreter; `where` and `otherwise`: for the error's text too."""
    try:
        dumps_one = _cloud_dumps(importlib.import_module("cloudpickle"))
    except ImportError:
        dumps_one = None
    try:
        return (dumps_one or pickle.dumps)(train)
    except Exception as error:
        if dumps_one is None:
            raise HpoError(f"{where}, since {why}; to send the function there hpo needs cloudpickle: "
                           "pip install cloudpickle") from error
        culprit = next(_unpicklable(train, "the function", dumps_one, set()), "the function")
        raise InvalidInput(
            f"{culprit} cannot be pickled ({type(error).__name__}: {error}). {where[0].upper()}{where[1:]}, since "
            f"{why}: make the object inside the function{otherwise}") from None


def lines_of_cells() -> "dict[str, list[str]]":
    """The source of code that is in no file, such as a notebook's cells, by the name of its file."""
    return {name: list(entry[2]) for name, entry in linecache.cache.items()
            if len(entry) == 4 and not os.path.exists(name)}


def _parts(thing: Any) -> "Iterator[tuple[str, Any]]":
    """What is pickled with a thing, by name."""
    if isinstance(thing, MethodType):
        yield "self", thing.__self__
        thing = thing.__func__
    if isinstance(thing, FunctionType):
        used = inspect.getclosurevars(thing)
        yield from {**used.globals, **used.nonlocals}.items()
        yield from enumerate_named("default", thing.__defaults__ or ())
    elif isinstance(thing, dict):
        yield from ((f"[{key!r}]", one) for key, one in thing.items())  # pyright: ignore
    elif isinstance(thing, (list, tuple, set)):
        yield from enumerate_named("item", thing)  # pyright: ignore
    else:
        yield from getattr(thing, "__dict__", {}).items()
        if hasattr(thing, "func"):  # functools.partial
            yield from (("func", thing.func), ("args", thing.args), ("keywords", thing.keywords))


def enumerate_named(name: str, things: Any) -> "Iterator[tuple[str, Any]]":
    return ((f"{name} {index}", one) for index, one in enumerate(things))


def _unpicklable(thing: Any, path: str, dumps_one: "Callable[[Any], bytes]", seen: "set[int]") -> "Iterator[str]":
    """The innermost objects that cannot be pickled: "'lock' (a _thread.lock), which the function uses"."""
    if id(thing) in seen or len(seen) > 1000:
        return
    seen.add(id(thing))
    try:
        parts = list(_parts(thing))
    except Exception:  # an object of the user's that does not like to be looked at
        parts = []
    for name, part in parts:
        try:
            dumps_one(part)
        except Exception:
            yield from _unpicklable(part, f"{name!r} of {path}", dumps_one, seen)
            kind = f"{type(part).__module__}.{type(part).__qualname__}".replace("builtins.", "")
            yield f"{name!r}, a {kind}, which {path} uses,"
