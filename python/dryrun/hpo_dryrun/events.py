"""What a PyTorch program requests of the caching allocator, in order: recorded inside the program,
replayed by hpo-replay (replay.py) for other GPUs and other allocator settings.

Source of the events: torch's own memory history (torch.cuda.memory._record_memory_history). Its
entries have the size as requested, before any rounding, and `free_completed` is the moment at which
a block can be used again, also where another stream used it. The emulator's cudaMalloc calls would
not do: they are what the allocator made of the requests under the settings of this run.
The history is a ring. It is read and cleared at every `drain`, so it stays small, and the number of
allocations that torch counted is compared with the number recorded: a lost entry is reported.

The file is text, one item a line. Numbers are decimal, sizes are in bytes:
    hpo-allocation-events 1
    settings TEXT    PYTORCH_ALLOC_CONF of the run; may be empty
    lost TEXT        only where events are missing: why
    device D         begins the events of GPU D; what follows is in order
    gpu C M T U      its compute capability, 10 x major + minor, multiprocessors, and threads of one;
                     U is the number of `s` lines that are missing
    fraction F       set_per_process_memory_fraction, 1 where it is not set
    pool P shared|private   before its first use; P counts from 0 on each GPU. A pool is one
                     stream's; private ones are those of CUDA graphs and of torch.cuda.MemPool
    a SIZE P [S]     allocation; its number is the count of `a` lines before it on this GPU.
                     S is the number of the `site` that requested it, where frames are recorded
    s B G T          before an `a` line: what is allocated is where B blocks of T threads share each
                     result of a reduction, of G such groups. B depends on the GPU
    w                before an `a` line: what is allocated is cuBLAS's workspace
    f NUMBER         the block of that allocation can be used again
    o SIZE P         a request that ran out of memory in this run
    e                torch.cuda.empty_cache
    r P              the cached segments of a private pool went back to the GPU
    m TEXT           a mark: a phase of the program begins
    site S TEXT      FILE:LINE FUNCTION of the frames, innermost first, joined by " < "
    end N            the number of lines before this one; a file without it is cut off
"""

import array
import bisect
import collections
import ctypes
import functools
import itertools

from . import versions

MAX_ENTRIES = 1 << 19  # of torch's ring, about 160 bytes each
MAX_EVENTS = 20_000_000  # of one GPU, 16 bytes each
MAX_FRAMES = 24
MAX_NUMBERS = 1 << 18  # four for each reduction between two drains
MAX_WORKSPACES = 1 << 12  # between two drains

_FREE, _EMPTY, _RELEASE, _OOM, _MARK = -1, -2, -3, -4, -5
_FREES_SEGMENT = ("segment_free", "segment_unmap")
_TAKES_SEGMENT = ("segment_alloc", "segment_map")
# Settings with which the allocator frees segments to make room before it counts a retry.
_FREE_BEFORE_A_RETRY = ("max_split_size_mb", "garbage_collection_threshold")


class _Device:
    """The events of one GPU."""

    def __init__(self, allocated_before):
        self.allocated_before = allocated_before  # allocations that torch counted before the start
        self.codes = array.array("i")  # the pool of an allocation, or one of the codes above
        self.values = array.array("q")  # the size; the block; the pool; the mark
        self.sites = array.array("i")  # of allocations, where frames are recorded
        self.oom_pools = []
        self.num_allocations = 0
        self.blocks = {}  # number of the allocation by address
        self.pools = {}  # index by (stream, pool id)
        self.sums = {}  # (B, G, T) by the number of the allocation
        self.sums_missing = 0
        self.workspaces = set()  # numbers of allocations
        self.last_size = 0  # of an allocation
        self.retries = 0  # of the allocator
        self.full = False

    def add(self, code, value):
        self.codes.append(code)
        self.values.append(value)
        self.full = len(self.codes) >= MAX_EVENTS

    def allocate(self, address, size, pool):
        self.blocks[address] = self.num_allocations
        self.num_allocations += 1
        self.last_size = size
        self.add(pool, size)

    def live_at_peak(self):
        """{number of the allocation: its bytes} at the moment of the most requested bytes."""
        sizes = [value for code, value in zip(self.codes, self.values) if code >= 0]
        held = most = at = 0
        for place, (code, value) in enumerate(zip(self.codes, self.values)):
            if code >= 0:
                held += value
                if held > most:
                    most, at = held, place
            elif code == _FREE:
                held -= sizes[value]
        live, number = {}, 0
        for code, value in zip(self.codes[:at + 1], self.values[:at + 1]):
            if code >= 0:
                live[number] = value
                number += 1
            elif code == _FREE:
                live.pop(value, None)
        return live


class _PrivateSegments:
    """The segments of private pools by address. torch names the pool of a segment, not that of an
    entry of the history."""

    def __init__(self):
        self._starts = []
        self._segments = []  # (end, pool id)

    def learn(self, segments):
        for segment in segments:
            pool = tuple(segment.get("segment_pool_id", (0, 0)))
            if pool == (0, 0):
                continue
            start = segment["address"]
            at = bisect.bisect_left(self._starts, start)
            if at == len(self._starts) or self._starts[at] != start:
                self._starts.insert(at, start)
                self._segments.insert(at, None)
            self._segments[at] = (start + segment["total_size"], pool)

    def pool_of(self, address):
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._segments[at][0]:
            return (0, 0)
        return self._segments[at][1]


class _Emulator:
    """What the emulator saw of calls on which sizes depend (emulator/streams/gpu_dependence.h)."""

    def __init__(self):
        self._library = None
        try:
            library = ctypes.CDLL("libhpo_emulated_card.so")
            for take in (library.HpoTakeSharedSums, library.HpoTakeWorkspaces):
                take.restype = ctypes.c_size_t
                take.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        except (OSError, AttributeError):
            return
        self._library = library
        self._numbers = (ctypes.c_int * MAX_NUMBERS)()
        self._addresses = (ctypes.c_void_p * MAX_WORKSPACES)()

    def workspaces(self):
        """Addresses of workspaces that were given to cuBLAS first since the last call."""
        if self._library is None:
            return set()
        return set(self._addresses[:self._library.HpoTakeWorkspaces(self._addresses, MAX_WORKSPACES)])

    def shared_sums(self):
        """(B, G, T) of reductions by GPU, in order, since the last call, and how many more there were."""
        found = collections.defaultdict(collections.deque)
        if self._library is None:
            return found, 1
        number = self._library.HpoTakeSharedSums(self._numbers, MAX_NUMBERS)
        kept = min(number, MAX_NUMBERS // 4)
        for at in range(0, 4 * kept, 4):
            device, groups, blocks, threads = self._numbers[at:at + 4]
            found[device].append((blocks, groups, threads))
        return found, number - kept


class Recorder:
    """Records from begin() on. `frames`: also which Python lines requested each allocation."""

    def __init__(self, torch, frames=False):
        self._torch = torch
        self._frames = frames
        self._devices = []
        self._private = _PrivateSegments()
        self._marks = []
        self._sites = {}  # number by text
        self._site_of = {}  # number by id of torch's list of frames, within one drain
        self._settings = ""
        self._lost = []
        self._emulator = _Emulator()
        self._draining = False

    def begin(self):
        self._devices = [_Device(self._num_allocated(d)) for d in range(self._torch.cuda.device_count())]
        # A call that empties the cache is an event, also where it frees nothing now. The segments of a
        # private pool are known once its use ends: later it may be gone.
        for name in ("_cuda_emptyCache", "_accelerator_emptyCache"):
            self._note_calls(self._torch._C, name, self._note_emptied)
        for name in ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool"):
            for owner in (self._torch._C, self._torch.cuda.memory):
                self._note_calls(owner, name, self.drain)
        self._note_calls(self._torch.cuda.CUDAGraph, "capture_end", self.drain)
        self._restart()
        self._emulator.shared_sums()
        self._take_what_is_held(versions.memory_snapshot(self._torch)["segments"])

    def mark(self, name):
        self.drain()
        self._marks.append(" ".join(str(name).split()))
        for device in self._devices:
            device.add(_MARK, len(self._marks) - 1)

    def drain(self):
        """Takes what torch's history holds and clears it."""
        if self._draining or not self._devices:
            return
        self._draining = True
        try:
            snapshot = versions.memory_snapshot(self._torch)
            self._restart()
            self._private.learn(snapshot["segments"])
            self._settings = snapshot.get("allocator_settings", {}).get("PYTORCH_CUDA_ALLOC_CONF", "")
            self._site_of = {}
            sums, sums_missing = self._emulator.shared_sums()
            workspaces = self._emulator.workspaces()
            for number, (device, entries) in enumerate(zip(self._devices, snapshot["device_traces"])):
                if len(entries) >= MAX_ENTRIES:
                    self._lose(f"torch's history of {MAX_ENTRIES} entries was too short")
                if device.full:
                    self._lose(f"there were more than {MAX_EVENTS} events")
                else:
                    self._take(device, entries, sums[number], workspaces, self._frees_by_itself(device, number))
                device.sums_missing += len(sums[number]) + sums_missing
        finally:
            self._draining = False

    def finish(self):
        """Takes the rest, and compares what was recorded with torch's counts."""
        self.drain()
        for number, device in enumerate(self._devices):
            missing = self._num_allocated(number) - device.allocated_before - device.num_allocations
            if missing > 0:
                self._lose(f"{missing} allocations of GPU {number} are not in torch's history")

    def write(self, path):
        self.finish()
        lines = ["hpo-allocation-events 1", f"settings {self._settings}".rstrip()]
        lines.extend(f"lost {reason}" for reason in self._lost)
        for number, device in enumerate(self._devices):
            if device.codes:
                self._append_device(lines, number, device)
        lines.extend(f"site {number} {text}" for text, number in self._sites.items())
        lines.append(f"end {len(lines)}\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return {"lost": list(self._lost), "events": sum(len(device.codes) for device in self._devices)}

    # ---- torch's history ----

    def _restart(self):
        """Clears the history. Every torch since 2.4 does so where recording is turned off."""
        record = self._torch.cuda.memory._record_memory_history
        record(None)
        record("all", context="alloc" if self._frames else None, stacks="python", max_entries=MAX_ENTRIES)

    def _num_allocated(self, device):
        return self._torch._C._cuda_memoryStats(device)["allocation"]["all"]["allocated"]

    def _frees_by_itself(self, device, number):
        """Whether the allocator may have freed segments to make room, since the last call."""
        before = device.retries
        device.retries = self._torch._C._cuda_memoryStats(number)["num_alloc_retries"]
        return device.retries != before or any(name in self._settings for name in _FREE_BEFORE_A_RETRY)

    def _lose(self, reason):
        if reason not in self._lost:
            self._lost.append(reason)

    def _note_calls(self, owner, name, note):
        """Every call of `name`, where torch has it, begins with a drain and ends with `note`."""
        call = getattr(owner, name, None)
        if call is None:
            return

        @functools.wraps(call)
        def noted(*arguments, **options):
            self.drain()
            result = call(*arguments, **options)
            note()
            return result

        setattr(owner, name, noted)

    def _note_emptied(self):
        """The cache was emptied: the segments that this freed are no event of their own."""
        self.drain()
        for device in self._devices:
            if not device.codes or device.codes[-1] != _EMPTY:
                device.add(_EMPTY, 0)

    def _take_what_is_held(self, segments):
        """What was allocated before the start, in the order of addresses."""
        self._private.learn(segments)
        for segment in segments:
            held = [block for block in segment["blocks"] if block["state"].startswith("active")]
            if held:
                self._lose("memory was allocated before the recording began")
            device = self._devices[segment["device"]]
            for block in held:
                pool = self._pool(device, segment["stream"], block["address"])
                device.allocate(block["address"], block["requested_size"], pool)

    # ---- Entries to events ----

    def _take(self, device, entries, sums, workspaces, frees_by_itself):
        emptied = False  # segments went back, and nothing has yet said why
        for entry in entries:
            action = entry["action"]
            if action in _FREES_SEGMENT:
                emptied |= not self._released(device, entry)
                continue
            # The allocator frees segments by itself only where it needs one; else the program did, or torch
            # for it, as after a search for the fastest engine of a convolution.
            needed = frees_by_itself and (action in _TAKES_SEGMENT or action == "oom")
            if emptied and not needed:
                device.add(_EMPTY, 0)
            emptied = False
            if action == "alloc":
                pool = self._pool(device, entry["stream"], entry["addr"])
                # Where results meet, and then a semaphore of 4 bytes for each group.
                if sums and entry["size"] == 4 * sums[0][1] and device.last_size % sums[0][0] == 0:
                    device.sums[device.num_allocations - 1] = sums.popleft()
                if entry["addr"] in workspaces:
                    device.workspaces.add(device.num_allocations)
                device.allocate(entry["addr"], entry["size"], pool)
                if self._frames:
                    device.sites.append(self._site(entry.get("frames", ())))
            elif action == "free_completed":
                block = device.blocks.pop(entry["addr"], None)
                if block is not None:
                    device.add(_FREE, block)
            elif action == "oom":
                device.add(_OOM, entry["size"])
                device.oom_pools.append(self._pool(device, entry["stream"], None))
        if emptied:
            device.add(_EMPTY, 0)

    def _pool(self, device, stream, address):
        pool = (0, 0) if address is None else self._private.pool_of(address)
        return device.pools.setdefault((stream, pool), len(device.pools))

    def _released(self, device, entry):
        """Whether the segment was a private pool's."""
        pool = self._private.pool_of(entry["addr"])
        if pool == (0, 0):
            return False
        index = self._pool(device, entry["stream"], entry["addr"])
        if device.codes[-1] != _RELEASE or device.values[-1] != index:
            device.add(_RELEASE, index)
        return True

    def _site(self, frames):
        number = self._site_of.get(id(frames))
        if number is None:
            text = " < ".join(f"{f['filename']}:{f['line']} {f['name']}" for f in frames[:MAX_FRAMES])
            number = self._sites.setdefault(" ".join(text.split()), len(self._sites))
            self._site_of[id(frames)] = number
        return number

    # ---- The file ----

    def _append_device(self, lines, number, device):
        lines.append(f"device {number}")
        lines.append(f"gpu {self._gpu(number)} {device.sums_missing}")
        lines.append(f"fraction {versions.memory_fraction(self._torch, number)}")
        for (_, pool), index in device.pools.items():
            lines.append(f"pool {index} {'shared' if pool == (0, 0) else 'private'}")
        sites, oom_pools, allocations = iter(device.sites), iter(device.oom_pools), itertools.count()
        for code, value in zip(device.codes, device.values):
            if code >= 0:
                allocation = next(allocations)
                if allocation in device.workspaces:
                    lines.append("w")
                if allocation in device.sums:
                    lines.append("s %d %d %d" % device.sums[allocation])
                lines.append(f"a {value} {code} {next(sites)}" if device.sites else f"a {value} {code}")
            elif code == _FREE:
                lines.append(f"f {value}")
            elif code == _EMPTY:
                lines.append("e")
            elif code == _RELEASE:
                lines.append(f"r {value}")
            elif code == _OOM:
                lines.append(f"o {value} {next(oom_pools)}")
            else:
                lines.append(f"m {self._marks[value]}")

    def _gpu(self, device):
        properties = self._torch.cuda.get_device_properties(device)
        capability = 10 * properties.major + properties.minor
        return f"{capability} {properties.multi_processor_count} {properties.max_threads_per_multi_processor}"


_recorder = None


def start(torch, frames=False):
    """Records from now on, or from the program's first use of CUDA. Call it right after `import torch`."""
    global _recorder
    _recorder = Recorder(torch, frames)
    torch.cuda._lazy_call(_recorder.begin)


def drain():
    """To be called now and then, such as after each optimizer step, so that torch's history stays short."""
    if _recorder is not None:
        _recorder.drain()


def devices():
    """What was recorded of each GPU of the process, in the order of their numbers; empty before the start."""
    return _recorder._devices if _recorder is not None else []


def mark(name):
    """A phase of the program, `name`, begins."""
    if _recorder is not None:
        _recorder.mark(name)


def write(path):
    """Writes the file. Returns {"events": their number, "lost": [why events are missing, ...]}."""
    if _recorder is None:
        raise RuntimeError("events.write: expected a call of events.start before, got none")
    return _recorder.write(path)
