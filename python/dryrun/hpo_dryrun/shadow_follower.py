"""Computes on the CPU what torch's operations on an emulated GPU make of values that are kept."""

import threading

from .shadow_store import KNOWN, UNKNOWN, Store

_NUMBERS = frozenset((int, float, bool, complex))


class _Busy(threading.local):
    """What this thread does."""

    on = False  # it computes values: the operations that it does so with are not followed
    sized = False  # it runs the genuine kernel of an operation that reads its result's size


class Follower:
    def __init__(self, torch, reads, sizes):
        self._torch = torch
        self._tensor = torch.Tensor
        self.reads = reads
        self.sizes = sizes
        self.store = Store(torch)
        self.busy = _Busy()
        self.errors = 0
        self.last_error = None
        self._numbers = {}  # (value, type, dtype) -> CPU tensor
        self.cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        self._below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        self._random = torch.Generator("cpu")
        self._random.manual_seed(0)

    def original(self, operation, keyset, args, kwargs):
        for i in operation.tensors:
            if i < len(args) and type(args[i]) in _NUMBERS:
                args = [self._number(value, args) if j in operation.tensors and type(value) in _NUMBERS else value
                        for j, value in enumerate(args)]
                break
        return operation.call(keyset & self._below, *args, **kwargs)

    def _number(self, value, args):
        """A tensor of the type with which torch's rules of type promotion treat a Python number."""
        torch = self._torch
        dtypes = [arg.dtype for arg in args if isinstance(arg, self._tensor)]
        if isinstance(value, bool):
            fits, other = True, torch.bool
        elif isinstance(value, int):
            fits, other = any(dtype != torch.bool for dtype in dtypes), torch.int64
        elif isinstance(value, float):
            fits = any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes)
            other = torch.get_default_dtype()
        else:
            fits = any(dtype.is_complex for dtype in dtypes)
            other = torch.complex128 if torch.get_default_dtype() == torch.float64 else torch.complex64
        dtype = dtypes[0] if fits and dtypes else other
        key = (value, type(value), dtype)
        if key not in self._numbers:
            if len(self._numbers) > 1000:
                self._numbers.clear()
            # Of a tensor without values (FakeTensorMode) too: a true tensor, which is kept.
            with torch._C._DisableTorchDispatch(), torch._C._PreserveDispatchKeyGuard():
                torch._C._set_meta_in_tls_dispatch_include(False)
                self._numbers[key] = torch.full((), value, dtype=dtype, device="cpu")
        return self._numbers[key]

    def tensors(self, values):
        """The tensors of a GPU among arguments."""
        for value in values:
            if isinstance(value, self._tensor):
                if value.is_cuda:
                    yield value
            elif isinstance(value, (list, tuple)):
                yield from self.tensors(value)

    def least(self, args, kwargs):
        """The least of the states of all tensors among the arguments."""
        state = KNOWN
        for tensor in self.tensors((*args, *kwargs.values())):
            state = min(state, self.store.state(tensor))
            if state == UNKNOWN:
                break
        return state

    def compute(self, operation, args, kwargs):
        """What the operation makes on the CPU of the values of its arguments."""
        kwargs = {name: self._on_cpu(value) for name, value in kwargs.items()}
        if operation.random:
            kwargs["generator"] = self._random
        args = [self._on_cpu(value) for value in args]
        for i in operation.tensors:
            if i < len(args) and type(args[i]) in _NUMBERS:
                args[i] = self._number(args[i], args)
        if operation.base == "histc" and not args[0].is_floating_point():  # the CPU's kernel takes no integers
            return operation.call(self.cpu, args[0].double(), *args[1:], **kwargs).to(args[0].dtype)
        return operation.call(self.cpu, *args, **kwargs)

    def _on_cpu(self, value):
        if isinstance(value, self._tensor):
            return self.store.view(value) if value.is_cuda else value
        if isinstance(value, (list, tuple)):
            return [self._on_cpu(part) for part in value]
        return value

    def guarded(self, action, *arguments):
        """An action that follows the program; its failure leaves values unknown and the program as it is."""
        self.busy.on = True
        try:
            return action(*arguments)
        except Exception as error:  # an assumed index out of range, a type that the CPU's kernel does not take
            self.errors += 1
            self.last_error = f"{type(error).__name__}: {error}"
            return None
        finally:
            self.busy.on = False

    def derive(self, inputs, result):
        """`result` was computed from `inputs`."""
        if self.sizes.watching:
            self.sizes.derive(self.tensors(inputs), self.tensors([result]))

    def attach(self, results, values, state):
        for tensor, value in zip(results, values):
            if value is not None:
                self.store.attach(tensor, value, state)

    def follow_writes(self, operation, args, kwargs):
        limits = self.store.limits
        written = [tensor for tensor in operation.written_tensors(args, kwargs)
                   if tensor.is_cuda and tensor.numel() <= limits.get(tensor.dtype, 0)]
        if not written:
            return
        lists = operation.base.startswith(("_foreach_", "_fused_"))
        known = (operation.overwrites and not lists or self.store.capturing
                 or any(self.store.has(tensor) for tensor in written))
        if known and (lists or self.guarded(self._write, operation, args, kwargs, written) is None):
            for tensor in written:
                self.store.forget(tensor)

    def _write(self, operation, args, kwargs, written):
        """True if the values have been computed."""
        if operation.overwrites:
            positions, names = zip(*operation.written)
            state = self.least([arg for i, arg in enumerate(args) if i not in positions],
                               {name: value for name, value in kwargs.items() if name not in names})
        else:
            state = self.least(args, kwargs)
        if state == UNKNOWN or not all([self.store.prepare(tensor) for tensor in written]):
            return None
        self.compute(operation, args, kwargs)
        for tensor in written:
            self.store.mark(tensor, state)
        return True
