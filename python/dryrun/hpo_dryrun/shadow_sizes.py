"""Sizes that depend on values which are not known, and whether memory of such a size counts in the peak.

A storage has such a size if an operation made it so, or if it was computed from one and has a dimension
of that length. Storages are watched by weak references. What was alive at the peak is known to the
nearest operation: between two looks at the allocator's peak it counts as alive if it was at either.
"""

from .shadow_reads import place

_MAX_LISTED = 12


class _Peak:
    def __init__(self):
        self.most = 0  # bytes, the largest seen, also of before a program resets its statistics
        self.live = False  # whether a watched storage was alive then
        self.last = 0


class Sizes:
    def __init__(self, torch):
        self._torch = torch
        self._found = {}  # (call, where, bound) -> [count, elements used]
        self._watched = {}  # address of a storage -> (weak reference, length)
        self._was_alive = False
        self._peaks = {}  # device number -> _Peak
        self._out_of_memory = False
        self.on_first = None  # called once, when the first such size is met
        self.noted = 0  # calls of `note`
        self._length = 0  # of the last
        self.hint = None  # number of elements that an unknown mask selects

    def note(self, call, tensors, length, bound):
        """`call` made `tensors`, whose length depends on unknown values; `length` is used in its place."""
        where = place() or "printing a tensor"
        found = self._found.setdefault((call, where, bound), [0, 0])
        found[0] += 1
        found[1] = max(found[1], length)
        if len(self._peaks) == 0:
            self._torch._C._cuda_attach_out_of_memory_observer(self._on_out_of_memory)
            if self.on_first is not None:
                self.on_first()
        for tensor in tensors:
            self._peaks.setdefault(tensor.device.index, _Peak())
        self.look()
        self.noted += 1
        self._length = length
        self.watch(tensors)

    def watch(self, tensors):
        """Tensors with the length that was noted last."""
        for tensor in tensors:
            self._watch(tensor, self._length)

    @property
    def watching(self):
        return bool(self._watched)

    def _watch(self, tensor, length):
        storage = tensor.untyped_storage()
        if tensor.is_cuda and storage.nbytes() and storage._cdata not in self._watched:
            self._watched[storage._cdata] = (storage._weak_ref(), length)
            self._was_alive = True

    def derive(self, inputs, results):
        """`results` were computed from `inputs`, lists of tensors of a GPU."""
        if not self._watched:
            return
        watched = (self._watched.get(tensor.untyped_storage()._cdata) for tensor in inputs)
        lengths = {found[1] for found in watched if found is not None}
        for tensor in results:
            for length in lengths.intersection(tensor.size()):
                if length > 1:
                    self._watch(tensor, length)
        self.look()

    def look(self):
        """Compares the allocator's peaks with those of the last look."""
        was_alive = self._was_alive
        expired, free = self._torch.UntypedStorage._expired, self._torch.UntypedStorage._free_weak_ref
        for key, (weak, _) in list(self._watched.items()):
            if expired(weak) and self._watched.pop(key, None) is not None:
                free(weak)
        self._was_alive = bool(self._watched)
        for device, peak in self._peaks.items():
            now = self._torch._C._cuda_memoryStats(device)["allocated_bytes"]["all"]["peak"]
            if now != peak.last and now >= peak.most:
                live = was_alive or self._was_alive
                peak.live = live or (peak.live and now == peak.most)
                peak.most = now
            peak.last = now

    def _on_out_of_memory(self, *_):
        self.look()
        self._out_of_memory = self._out_of_memory or self._was_alive

    def findings(self):
        self.look()
        rows = sorted(self._found.items(), key=lambda row: -row[1][1])
        return {"unknown_sizes": [{"call": call, "where": where, "count": count, "elements_used": used, "bound": bound}
                                  for (call, where, bound), (count, used) in rows[:_MAX_LISTED]],
                "unknown_size_places": len(rows),
                "live_at_peak": self._out_of_memory or any(peak.live for peak in self._peaks.values())}
