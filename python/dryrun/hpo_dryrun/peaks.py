"""Peaks of torch's caching allocator by phase, without the program's noticing."""


class Peaks:
    """Resets torch's peaks at each take(). What the program itself reads stays what it would be without.

    torch.cuda.max_memory_allocated() and all its like read torch._C._cuda_memoryStats, which this wraps, and what
    resets peaks or counts. Of torch.accelerator only the resets are wrapped: what it reads is since the last take().
    """

    def __init__(self, torch):
        core = torch._C
        self._read = core._cuda_memoryStats
        self._reset = core._cuda_resetPeakMemoryStats
        self._hidden = {}  # by device: the statistics with the largest peaks since the program's own reset
        self._before_reset = {}  # by device: peaks since the last take() that the program has reset
        self._counted = {}  # by device: allocations before the program's own reset of counts
        self.num_devices = torch.cuda.device_count()
        core._cuda_memoryStats = self._stats
        core._cuda_resetPeakMemoryStats = self._program_resets
        self._reset_counts = core._cuda_resetAccumulatedMemoryStats
        core._cuda_resetAccumulatedMemoryStats = self._program_resets_counts
        if hasattr(core, "_accelerator_resetPeakStats"):  # since torch 2.9
            core._accelerator_resetPeakStats = self._program_resets
            core._accelerator_resetAccumulatedStats = self._program_resets_counts

    def num_allocations(self, device):
        """Number of allocations on `device` since the program began."""
        return self._counted.get(device, 0) + self._read(device)["allocation"]["all"]["allocated"]

    def used_devices(self):
        """Those on which the program has allocated memory, or tried to."""
        return [device for device in range(self.num_devices)
                if self.num_allocations(device) or self._read(device)["num_ooms"]]

    def allocated(self, device):
        return self._read(device)["allocated_bytes"]["all"]["current"]

    def reserved(self, device):
        return self._read(device)["reserved_bytes"]["all"]["current"]

    def retries(self, device):
        return self._read(device)["num_alloc_retries"]

    def take(self):
        """{device: (allocated, reserved)}: peaks since the last call, of the devices that were used."""
        taken = {}
        for device in self.used_devices():
            taken[device] = self._peaks(device)
            self._hidden[device] = self._stats(device)
            self._before_reset.pop(device, None)
            self._reset(device)
        return taken

    def _peaks(self, device):
        found = self._read(device)
        now = tuple(found[name]["all"]["peak"] for name in ("allocated_bytes", "reserved_bytes"))
        return tuple(map(max, now, self._before_reset.get(device, now)))

    def _stats(self, device):
        return _with_larger_peaks(self._read(device), self._hidden.get(device))

    def _program_resets(self, device):
        self._before_reset[device] = self._peaks(device)
        self._hidden.pop(device, None)
        self._reset(device)

    def _program_resets_counts(self, device):
        self._counted[device] = self.num_allocations(device)
        self._reset_counts(device)


def _with_larger_peaks(found, other):
    if other is not None:
        for metric, pools in found.items():
            if isinstance(pools, dict):
                for pool, values in pools.items():
                    if isinstance(values, dict) and "peak" in values:
                        values["peak"] = max(values["peak"], other[metric][pool]["peak"])
    return found
