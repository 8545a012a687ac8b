"""Runs inside the program: follows torch's operations on an emulated GPU and computes small values on the CPU.

Each followed operation gets a kernel at the dispatch key BackendSelect, the last before the backends'
own. So it sees what is really run, in every thread, below autograd, the program's own modes and tensor
subclasses; torch.compile does not notice it. The genuine kernel always runs, with the genuine arguments.
"""

from . import shadow_assumed, shadow_collectives, shadow_ops, shadow_sized
from .shadow_store import ASSUMED, KNOWN, MAX_COPIED, MAX_FLOATS, UNKNOWN


class Kernels:
    """Makes the kernels. `follower` computes values and keeps them."""

    def __init__(self, torch, follower):
        self._torch = torch
        self._follower = follower
        self._store, self._sizes, self._busy = follower.store, follower.sizes, follower.busy
        self._operations = shadow_ops.Operations(torch)
        self._libraries = {}

    def register(self):
        sizes = shadow_sized.Sized(self._torch, self._follower)
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
        self._register_foreign(sizes)
        for operation in self._operations.collectives():
            self._register(operation, shadow_collectives.kernel(self._follower, operation))
        self._sizes.on_first = self._follow_all
        self._watch_graphs()
        load = self._torch.ops.load_library

        def load_library(path):
            load(path)
            self._register_foreign(sizes)

        self._torch.ops.load_library = load_library

    def _register_foreign(self, sizes):
        for operation in self._operations.foreign():
            is_sized = operation.name in shadow_ops.SIZED
            self._register(operation, (sizes.kernel if is_sized else self._foreign_kernel)(operation))

    def _watch_graphs(self):
        """What a CUDA graph writes changes with each replay, unseen."""
        graph = self._torch.cuda.CUDAGraph
        begin, end = graph.capture_begin, graph.capture_end

        def capture_begin(*args, **kwargs):
            begin(*args, **kwargs)
            self._store.capturing += 1

        def capture_end(*args, **kwargs):
            self._store.capturing -= 1
            end(*args, **kwargs)

        graph.capture_begin, graph.capture_end = capture_begin, capture_end

    def _register(self, operation, kernel):
        name = operation.namespace
        if name not in self._libraries:
            self._libraries[name] = self._torch.library.Library(name, "IMPL")
        self._libraries[name].m.impl(operation.name.removeprefix(name + "::"), "BackendSelect", kernel, True)

    def _follow_all(self):
        """Sizes depend on values: all that is computed from such tensors is of interest."""
        for operation in self._operations.others():
            self._register(operation, self._passing_kernel(operation))

    def _functional_kernel(self, operation):
        assume = shadow_assumed.values(operation)
        limits = self._store.limits

        def kernel(keyset, *args, **kwargs):
            noted = self._sizes.noted
            result = self._follower.original(operation, keyset, args, kwargs)
            first = result[0] if isinstance(result, (tuple, list)) else result
            if not self._busy.on and first.is_cuda:
                if self._sizes.noted != noted:  # index, by a mask
                    self._sizes.watch(self._follower.tensors([result]))
                else:
                    self._follower.derive((*args, *kwargs.values()), result)
                if assume is not None or first.numel() <= limits.get(first.dtype, 0):
                    self._follower.guarded(self._follow, operation, args, kwargs, result, assume)
            return result

        return kernel

    def _follow(self, operation, args, kwargs, result, assume):
        results = result if isinstance(result, (tuple, list)) else (result,)
        state = self._follower.least(args, kwargs)
        if state == UNKNOWN:
            if assume is not None:
                self._follower.attach(results, assume(self._torch, args, kwargs, results), ASSUMED)
            return
        if results[0].numel() > self._store.limits.get(results[0].dtype, 0):
            return
        values = self._follower.compute(operation, args, kwargs)
        self._follower.attach(results, values if isinstance(values, (tuple, list)) else (values,), state)

    def _writing_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self._follower.original(operation, keyset, args, kwargs)
            if not self._busy.on:
                self._follower.follow_writes(operation, args, kwargs)
            return result

        return kernel

    def _copy_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            to, source = args[:2]
            if self._busy.on or not isinstance(source, self._torch.Tensor) or not (to.is_cuda or source.is_cuda):
                return self._follower.original(operation, keyset, args, kwargs)
            self._busy.on = True  # a copy may be made of others
            try:
                result = self._follower.original(operation, keyset, args, kwargs)
            finally:
                self._busy.on = False
            self._follower.guarded(self._read if to.device.type == "cpu" else self._copy, to, source)
            self._follower.derive([source], to)
            return result

        return kernel

    def _copy(self, to, source):
        store = self._store
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
        state = self._store.state(source)
        if state != UNKNOWN:
            self._store.copy(to, self._store.view(source))
        if state != KNOWN:
            self._follower.reads.note()

    def _item_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self._follower.original(operation, keyset, args, kwargs)
            if self._busy.on or not args[0].is_cuda:
                return result
            found = self._follower.guarded(self._item, operation, args[0])
            return result if found is None else found

        return kernel

    def _item(self, operation, tensor):
        state = self._store.state(tensor)
        if state != KNOWN and not self._busy.sized:
            self._follower.reads.note()
        return None if state == UNKNOWN else operation.call(self._follower.cpu, self._store.view(tensor))

    def _equal_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self._follower.original(operation, keyset, args, kwargs)
            if self._busy.on or not args[0].is_cuda or self._follower.least(args, kwargs) == UNKNOWN:
                return result
            found = self._follower.guarded(self._follower.compute, operation, args, kwargs)
            return result if found is None else found

        return kernel

    def _index_put_kernel(self, operation):
        """An unknown mask that selects where to write selects as many elements as are written."""
        def kernel(keyset, *args, **kwargs):
            values = args[2]
            if self._busy.on or not args[0].is_cuda:
                return self._follower.original(operation, keyset, args, kwargs)
            self._sizes.hint = values.size(0) if values.dim() and values.size(0) != 1 else None
            try:
                result = self._follower.original(operation, keyset, args, kwargs)
            finally:
                self._sizes.hint = None
            self._follower.follow_writes(operation, args, kwargs)
            return result

        return kernel

    def _passing_kernel(self, operation):
        def kernel(keyset, *args, **kwargs):
            result = self._follower.original(operation, keyset, args, kwargs)
            if self._sizes.watching and not self._busy.on:
                self._follower.derive((*args, *kwargs.values()), result)
            return result

        return kernel

    def _foreign_kernel(self, operation):
        """Another package's kernel: what it writes is not known, and its own reading is no news."""
        def kernel(keyset, *args, **kwargs):
            if self._busy.on:
                return self._follower.original(operation, keyset, args, kwargs)
            self._busy.on = True
            try:
                result = self._follower.original(operation, keyset, args, kwargs)
            finally:
                self._busy.on = False
            for tensor in self._follower.tensors(operation.written_tensors(args, kwargs)):
                self._store.forget(tensor)
            if self._sizes.watching:
                self._follower.derive((*args, *kwargs.values()), result)
            return result

        return kernel
