"""The values of small tensors of an emulated GPU, kept on the CPU.

A shadow belongs to a storage, not to a tensor: views and writes through views need nothing more. It has
the storage's layout, so that a tensor's size, stride and offset find the same elements in both. Each
element is known (what a GPU would hold), assumed (a valid value chosen by us in the place of one that
only a GPU could compute) or unknown. A storage without a shadow is unknown.
"""

UNKNOWN, ASSUMED, KNOWN = 0, 1, 2

MAX_COPIED = 64 << 10  # integers or booleans of one copy from the host
MAX_DERIVED = 1 << 20  # of one result
MAX_FLOATS = 4 << 10  # floating point numbers of either
_PURGE_AT_LEAST = 512  # shadows


class Shadow:
    __slots__ = ("base", "nbytes", "state", "states", "weak")

    def __init__(self, weak, nbytes, base, state):
        self.weak = weak  # reference to the GPU's storage
        self.nbytes = nbytes
        self.base = base  # one-dimensional CPU tensor of the storage's elements; None: stays unknown
        self.state = state  # of all elements, unless `states`
        self.states = None  # one-dimensional CPU tensor of uint8


class Store:
    """Shadows by storage. Each of its calls runs with Python's lock held and may come from any thread."""

    def __init__(self, torch):
        self._torch = torch
        self._shadows = {}
        self._purge_at = _PURGE_AT_LEAST
        self.capturing = 0  # CUDA graphs that are being captured: their kernels run again, unseen
        floats = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        integers = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        self.limits = {**dict.fromkeys(floats, MAX_FLOATS), **dict.fromkeys(integers, MAX_DERIVED)}
        cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        strided = torch.ops.aten.as_strided.default._handle.redispatch_boxed
        copy = torch.ops.aten.copy_.default._handle.redispatch_boxed
        fill = torch.ops.aten.fill_.Scalar._handle.redispatch_boxed
        self._as_strided = lambda base, *layout: strided(cpu, base, *layout)
        self.copy = lambda to, source: copy(cpu, to, source)
        self._fill = lambda tensor, value: fill(cpu, tensor, value)

    def _find(self, tensor):
        storage = tensor.untyped_storage()
        shadow = self._shadows.get(storage._cdata)
        if shadow is None:
            return None
        if shadow.nbytes != storage.nbytes():  # resized
            self._drop(storage._cdata)
            return None
        return shadow

    def has(self, tensor):
        return tensor.untyped_storage()._cdata in self._shadows

    def state(self, tensor):
        """The least of the states of the tensor's elements."""
        shadow = self._find(tensor)
        if shadow is None:
            return UNKNOWN if tensor.numel() else KNOWN
        if shadow.states is None:
            return shadow.state
        same = shadow.base.itemsize == tensor.itemsize
        states = self._region(shadow.states, tensor) if same else shadow.states
        return int(states.min()) if states.numel() else KNOWN

    def view(self, tensor):
        """The values of a tensor that has a shadow or no elements; writes to the view change the shadow."""
        shadow = self._find(tensor)
        if shadow is None:
            return self._torch.empty(tensor.size(), dtype=tensor.dtype, device="cpu")
        base = shadow.base
        if base.dtype != tensor.dtype:
            base = base.view(tensor.dtype)
        return self._region(base, tensor)

    def _region(self, base, tensor):
        return self._as_strided(base, tensor.size(), tensor.stride(), tensor.storage_offset())

    def prepare(self, tensor):
        """Makes sure that the tensor has a shadow to write to. False: it cannot have one."""
        shadow = self._find(tensor)
        if self.capturing or shadow is not None:
            return not self.capturing and shadow.base is not None
        storage = tensor.untyped_storage()
        count = storage.nbytes() // tensor.itemsize
        if count > self.limits.get(tensor.dtype, 0) or count * tensor.itemsize != storage.nbytes():
            return False
        self._add(storage, self._torch.zeros(count, dtype=tensor.dtype, device="cpu"), UNKNOWN)
        return True

    def mark(self, tensor, state):
        """The elements of a tensor that has a shadow have been written. What a CUDA graph writes stays unknown."""
        shadow = self._find(tensor)
        if self.capturing:
            self._add(tensor.untyped_storage(), None, UNKNOWN)
            return
        if shadow is None or shadow.base is None or (shadow.states is None and shadow.state == state):
            return
        if tensor.is_contiguous() and tensor.numel() * tensor.itemsize == shadow.nbytes:
            shadow.state, shadow.states = state, None
        elif tensor.itemsize != shadow.base.itemsize:
            shadow.state, shadow.states = UNKNOWN, None
        else:
            self._mark_part(shadow, tensor, state)
        if shadow.states is None and shadow.state == UNKNOWN:
            self._drop(tensor.untyped_storage()._cdata)

    def _mark_part(self, shadow, tensor, state):
        if shadow.states is None:
            shadow.states = self._torch.full((shadow.base.numel(),), shadow.state, device="cpu",
                                             dtype=self._torch.uint8)
        self._fill(self._region(shadow.states, tensor), state)
        least, most = shadow.states.aminmax()
        if least == most:
            shadow.state, shadow.states = int(least), None

    def forget(self, tensor):
        """The tensor's elements have been written with what is not known."""
        self.mark(tensor, UNKNOWN)

    def write(self, tensor, values, state):
        """Copies `values`, a CPU tensor, to the tensor's shadow."""
        if self.prepare(tensor):
            self.copy(self.view(tensor), values)
            self.mark(tensor, state)
        else:
            self.forget(tensor)

    def attach(self, tensor, values, state):
        """`values`, a CPU tensor that nothing else holds, are those of a new tensor."""
        storage = tensor.untyped_storage()
        same = (values.dtype == tensor.dtype and tensor.is_contiguous() and values.is_contiguous()
                and storage.nbytes() == tensor.numel() * tensor.itemsize == values.untyped_storage().nbytes())
        if not same or self.capturing:
            self.write(tensor, values, state)
        elif tensor.numel() <= self.limits.get(tensor.dtype, 0):
            self._add(storage, self._as_strided(values, (values.numel(),), (1,), 0), state)

    def _add(self, storage, base, state):
        if len(self._shadows) >= self._purge_at:
            self._purge()
        self._drop(storage._cdata)
        # While the weak reference is held, no other storage gets this address.
        self._shadows[storage._cdata] = Shadow(storage._weak_ref(), storage.nbytes(), base, state)

    def _drop(self, key):
        shadow = self._shadows.pop(key, None)
        if shadow is not None:
            self._torch.UntypedStorage._free_weak_ref(shadow.weak)

    def _purge(self):
        """Drops the shadows of storages that are gone."""
        expired = self._torch.UntypedStorage._expired
        for key, shadow in list(self._shadows.items()):
            if expired(shadow.weak):
                self._drop(key)
        self._purge_at = max(_PURGE_AT_LEAST, 2 * len(self._shadows))
