"""Runs inside the program: follows torch's operations on an emulated GPU and computes small values on the CPU.

Each followed operation gets a kernel at the dispatch key BackendSelect, the last before the backends'
own. So it sees what is really run, in every thread, below autograd, the program's own modes and tensor
subclasses; torch.compile does not notice it. The genuine kernel always runs, with the genuine arguments.
"""

import threading

from . import shadow_assumed, shadow_collectives, shadow_ops, shadow_sized
from .shadow_store import KNOWN, MAX_COPIED, MAX_FLOATS, UNKNOWN, Store

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
        self._cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        self._below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        self._random = torch.Generator("cpu")
        self._random.manual_seed(0)
        self._operations = shadow_ops.Operations(torch)
        self._libraries = {}

    def register(self):
        sizes = shadow_sized.Sized(self._torch, self)
        special = {"copy_": self._copy_kernel, "_local_scalar_dense": self._item_kernel, "equal": self._equal_kernel,
                   "index_put_": self._index_put_kernel, "_index_put_impl_": self._index_put_kernel}
        for operation in self._operations.followed():
            if operation.name in special:
                kernel = special[operation.name](operation)
            elif operation.written:
                kernel = self._writing_kernel(operation)
            elif operation.base in shadow_ops.SIZED or operation.name in shadow_ops.SIZED:
                kernel = sizes.kernel(operation)
            else:
                kernel = self._functional_kernel(operation)
            self._register(operation, kernel)
        for operation in self._operations.foreign():
            is_sized = operation.name in shadow_ops.SIZED
            self._register(operation, (sizes.kernel if is_sized else self._foreign_kernel)(operation))
        for operation in self._operations.collectives():
            self._register(operation, shadow_collectives.kernel(self, operation))
        self.sizes.on_first = self._follow_all

    def _register(self, operation, kernel):
        name = operation.namespace
        if name not in self._libraries:
            self._libraries[name] = self._torch.library.Library(name, "IMPL")
        self._libraries[name].m.impl(operation.name.removeprefix(name + "::"), "BackendSelect", kernel, True)

    def _follow_all(self):
        """Sizes depend on values: all that is computed from such tensors is of interest."""
        for operation in self._operations.others():
            self._register(operation, self._passing_kernel(operation))

    # ---- What all kernels do ----

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
            return operation.call(self._cpu, args[0].double(), *args[1:], **kwargs).to(args[0].dtype)
        return operation.call(self._cpu, *args, **kwargs)

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

    # ---- Kernels ----

    def _functional_kernel(self, operation):
        assume = shadow_assumed.values(operation)
        limits = self.store.limits

        def kernel(keyset, *args, **kwargs):
            result = self.original(operation, keyset, args, kwargs)
            first = result[0] if isinstance(result, (tuple, list)) else result
            if not self.busy.on and first.is_cuda:
                if self.sizes.watching:
                    self.sizes.derive(self.tensors((*args, *kwargs.values())), self.tensors([result]))
                if assume is not None or first.numel() <= limits.get(first.dtype, 0):
                    self.guarded(self._follow, operation, args, kwargs, result, assume)
            return result

        return kernel

    def _follow(self, operation, args, kwargs, result, assume):
        results = result if isinstance(result, (tuple, list)) else (result,)
        state = self.least(args, kwargs)
        if state == UNKNOWN:
            if assume is not None:
                self.attach(results, assume(self._torch, args, kwargs, results), 1)
            return
        if results[0].numel() > self.store.limits.get(results[0].dtype, 0):
            return
        values = self.compute(operation, args, kwargs)
        self.attach(results, values if isinstance(values, (tuple, list)) else (values,), state)

    def attach(self, results, values, state):
        for tensor, value in zip(results, values):
            if value is not None:
                self.store.attach(tensor, value, state)

    def _writing_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self.original(operation, keyset, args, kwargs)
            if not self.busy.on:
                self.follow_writes(operation, args, kwargs)
            return result

        return kernel

    def follow_writes(self, operation, args, kwargs):
        limits = self.store.limits
        written = [tensor for tensor in operation.written_tensors(args, kwargs)
                   if tensor.is_cuda and tensor.numel() <= limits.get(tensor.dtype, 0)]
        if not written:
            return
        lists = operation.base.startswith(("_foreach_", "_fused_"))
        known = operation.overwrites and not lists or any(self.store.has(tensor) for tensor in written)
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

    def _copy_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            to, source = args[:2]
            if self.busy.on or not isinstance(source, self._tensor) or not (to.is_cuda or source.is_cuda):
                return self.original(operation, keyset, args, kwargs)
            self.busy.on = True  # a copy may be made of others
            try:
                result = self.original(operation, keyset, args, kwargs)
            finally:
                self.busy.on = False
            self.guarded(self._read if to.device.type == "cpu" else self._copy, to, source)
            if self.sizes.watching:
                self.sizes.derive(self.tensors([source]), self.tensors([to]))
            return result

        return kernel

    def _copy(self, to, source):
        store = self.store
        if to.numel() > store.limits.get(to.dtype, 0):
            return
        if source.is_cuda:
            state = store.state(source)
            values = store.view(source) if state != UNKNOWN else None
        elif source.is_floating_point():
            few = source.numel() <= MAX_FLOATS and not (to.requires_grad or source.requires_grad)
            state, values = KNOWN if few else UNKNOWN, source
        else:
            state, values = KNOWN if source.numel() <= MAX_COPIED else UNKNOWN, source
        if state == UNKNOWN:
            store.forget(to)
        else:
            store.write(to, values, state)

    def _read(self, to, source):
        state = self.store.state(source)
        if state != UNKNOWN:
            self.store.copy(to, self.store.view(source))
        if state != KNOWN:
            self.reads.note()

    def _item_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self.original(operation, keyset, args, kwargs)
            if self.busy.on or not args[0].is_cuda:
                return result
            found = self.guarded(self._item, operation, args[0])
            return result if found is None else found

        return kernel

    def _item(self, operation, tensor):
        state = self.store.state(tensor)
        if state != KNOWN and not self.busy.sized:
            self.reads.note()
        return None if state == UNKNOWN else operation.call(self._cpu, self.store.view(tensor))

    def _equal_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self.original(operation, keyset, args, kwargs)
            if self.busy.on or not args[0].is_cuda or self.least(args, kwargs) == UNKNOWN:
                return result
            found = self.guarded(self.compute, operation, args, kwargs)
            return result if found is None else found

        return kernel

    def _index_put_kernel(self, operation):
        """An unknown mask that selects where to write selects as many elements as are written."""
        def kernel(keyset, *args, **kwargs):
            values = args[2]
            if self.busy.on or not args[0].is_cuda:
                return self.original(operation, keyset, args, kwargs)
            self.sizes.hint = values.size(0) if values.dim() and values.size(0) != 1 else None
            try:
                result = self.original(operation, keyset, args, kwargs)
            finally:
                self.sizes.hint = None
            self.follow_writes(operation, args, kwargs)
            return result

        return kernel

    def _passing_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self.original(operation, keyset, args, kwargs)
            if self.sizes.watching and not self.busy.on:
                self.sizes.derive(self.tensors((*args, *kwargs.values())), self.tensors([result]))
            return result

        return kernel

    def _foreign_kernel(self, operation):
        """Another package's kernel: what it writes is not known, and its own reading is no news."""
        def kernel(keyset, *args, **kwargs):
            if self.busy.on:
                return self.original(operation, keyset, args, kwargs)
            self.busy.on = True
            try:
                result = self.original(operation, keyset, args, kwargs)
            finally:
                self.busy.on = False
            for tensor in self.tensors(operation.written_tensors(args, kwargs)):
                self.store.forget(tensor)
            if self.sizes.watching:
                self.sizes.derive(self.tensors((*args, *kwargs.values())), self.tensors([result]))
            return result

        return kernel
