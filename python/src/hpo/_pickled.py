"""A function as bytes for a fresh interpreter, and whether this process can be forked instead."""

import importlib
import inspect
import os
import pickle
import re
from types import FunctionType, MethodType
from typing import Any, Callable, Iterator

from .errors import HpoError, InvalidInput

# A pool of threads that these have started does not survive a fork: the child waits for it for ever.
_POOLS = re.compile(r"/lib(gomp|iomp5|omp|openblas\w*|scipy_openblas\w*|mkl_\w+|blis\w*|torch\w*|c10|"
                    r"tbb|cudart|cuda)[-.\w]*\.so")


def num_threads() -> int:
    """Of this process."""
    return len(os.listdir("/proc/self/task"))


def why_not_fork() -> str:
    """What may hang in a fork of this process; empty: nothing that is known."""
    if (threads := num_threads()) > 1:
        return f"this process has {threads} threads"
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found = _POOLS.search(file.read())
    return f"this process has loaded {found[0][1:]}" if found else ""


def _pickler() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def dumps(train: "Callable[..., Any]", why: str) -> bytes:
    """`why`: the function is sent to another interpreter, for the error's text."""
    pickler = _pickler()
    try:
        data: bytes = pickler.dumps(train)
        return data
    except Exception as error:
        if pickler is pickle:
            raise HpoError(f"each trial runs in a fresh interpreter, since {why}; to send the function there "
                           "hpo needs cloudpickle: pip install cloudpickle") from error
        culprit = next(_unpicklable(train, "the function", pickler.dumps, set()), "the function")
        raise InvalidInput(
            f"{culprit} cannot be pickled ({type(error).__name__}: {error}). Each trial runs in a fresh "
            f"interpreter, since {why}: make the object inside the function, or pass isolate=False to run the "
            "trials in this process") from None


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
