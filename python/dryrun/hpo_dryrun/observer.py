"""Runs inside the program: counts its steps, measures its phases, writes the record and ends the program.

Each process of the program that uses a GPU writes a record of its own, HPO_DRY_RUN_RECORD with ".PID" appended.
The record is written again after every step, and several times a second when enough has been seen, so that a process
which ends without warning has left one. Its fields:
    end           null while the program runs; else "enough", "exit" or "readbacks"
    until         the time (time.time) at which the launcher may end the program; null: not yet
    rank, world_size, local_world_size
    never_stepped (whether the program ended with an optimizer that made no step)
    epoch (batches taken and of all, of the data loader in use; null until the end)
    steps, alike, phase, phases, devices, out_of_memory, error, error_type, endless, backwards, gpu_name,
    torch, cuda, overhead, modules, values, events, reads_free_memory,
    stand_in (names of packages whose stand-in was imported)
"""

import atexit
import dataclasses
import functools
import json
import os
import sys
import time

from . import epochs, events, extensions, live_objects, modules, overheads, packages, shadow, steps, torch_build
from .peaks import Peaks
from .watch import Watch

DRAIN_EVERY = 50_000  # allocations
SAVE_EVERY_S = 0.2
_observer = None
_overhead = None


def options():
    return json.loads(os.environ.get("HPO_DRY_RUN_OPTIONS") or "{}")


def _write(record):
    path = f"{os.environ['HPO_DRY_RUN_RECORD']}.{os.getpid()}"
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(path + ".new", path)


def _end(status=0):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(status)


def before_torch(folder):
    """Torch, in `folder`, is about to be imported: sets what a process holds beyond torch's allocator."""
    global _overhead
    try:
        build = torch_build.of_folder(folder)
    except torch_build.TorchMissing as error:
        _write({"error": str(error), "error_type": "TorchMissing", "end": "error"})
        _end(1)
        return
    extensions.install(folder)
    given = options()
    # Workspaces of cuDNN and buffers of NCCL are not named: the emulated libraries ask for theirs.
    found = overheads.overhead(given["capability"], build.cuda, build.version, threads=given.get("threads"))
    if given.get("context_bytes") is not None:
        found = dataclasses.replace(found, context_bytes=given["context_bytes"], source="--context")
    _overhead = found
    os.environ["HPO_EMULATED_CONTEXT"] = f"{found.context_bytes + found.workspace_bytes}B"


def install(torch):
    """Torch has been imported."""
    global _observer
    _observer = Observer(torch, options())


class Observer:
    def __init__(self, torch, given):
        self._torch = torch
        self._given = given
        self._steps = steps.Steps(given.get("steps"))
        self._peaks = None
        self._modules = None
        self._leader = None  # id of the optimizer whose steps are counted
        self._stepped = set()
        self._all_stepped = False
        self._without_optimizer = False  # its parameters are changed by the program's own code
        self._backwards = 0
        self._watch = None
        self._drained_at = 0
        self._saved_at = 0.0
        self._cpu_steps = 0
        self._oom = None
        self._endless = None
        self._error = None
        self._off = False
        self._mem_get_info = torch.cuda.mem_get_info
        self._reads_free_memory = False
        self._wrap_mem_get_info()
        torch.cuda._lazy_call(self._on_first_use)
        events.start(torch)
        optimizer = sys.modules["torch.optim.optimizer"]  # torch.optim does not name it
        optimizer.register_optimizer_step_pre_hook(self._before_step)
        optimizer.register_optimizer_step_post_hook(self._after_step)
        self._wrap_backward()
        self._wrap_excepthook()
        shadow.install(torch)
        shadow.set_guard(self._on_endless, given["readbacks"])
        atexit.register(self._on_exit)
        os.register_at_fork(after_in_child=self._in_child)

    # ---- What happens in the program ----

    def _on_first_use(self):
        """The program begins to use CUDA."""
        torch = self._torch
        if torch.cuda.get_allocator_backend() != "native":
            _write({"error": f"dry runs are of torch's native allocator, got {torch.cuda.get_allocator_backend()}",
                    "error_type": "NotNative", "end": "error"})
            _end(1)
        self._peaks = Peaks(torch)
        self._modules = modules.Modules(torch, self._peaks.num_allocations, self._begins, self._ends,
                                        self._find_owners)
        self._modules.use_devices([torch.cuda.current_device()])
        torch._C._cuda_attach_out_of_memory_observer(self._on_out_of_memory)
        self._watch = Watch(self._look)
        self._save()

    def _in_child(self):
        """A forked child cannot use a GPU that its parent used; else it is a process of its own."""
        self._off = self._peaks is not None

    def _begins(self, _module):
        """The forward pass of a module that is in no other begins."""
        self._on_forward(self._torch.is_grad_enabled())

    def _ends(self, _module):
        if self._steps.is_over(time.time()):
            self._finish("enough")

    def _on_forward(self, with_gradients):
        if self._off or self._peaks is None:
            return
        if self._steps.changes(with_gradients):
            self._steps.boundary(self._peaks.take())
        until = self._steps.until
        self._steps.forward(with_gradients, time.time())
        if self._steps.is_over(time.time()):
            self._finish("enough")
        if self._steps.until != until:
            self._save()

    def _wrap_backward(self):
        autograd = self._torch.autograd
        call = autograd.backward

        def backward(*arguments, **keywords):
            if self._off or self._modules is None:
                return call(*arguments, **keywords)
            if self._steps.changes(True):
                self._on_forward(True)
            self._modules.push(modules.BACKWARD)
            try:
                return call(*arguments, **keywords)
            finally:
                self._modules.pop()
                self._after_backward()

        autograd.backward = backward

    def _after_backward(self):
        """A program without an optimizer of torch's steps where its backward pass ends."""
        self._backwards += 1
        looks = self._without_optimizer or self._backwards & (self._backwards - 1) == 0  # rarely: it costs time
        if self._leader is None and looks and not self._waiting_optimizers():
            self._without_optimizer = True
            self._count_step()

    def _before_step(self, optimizer, _arguments, _keywords):
        if not self._off and self._modules is not None:
            self._find_owners([optimizer])
            self._modules.push(modules.OPTIMIZER)

    def _after_step(self, optimizer, _arguments, _keywords):
        if self._off:
            return
        if self._peaks is None:
            self._after_cpu_step()
            return
        self._modules.clear()
        self._stepped.add(id(optimizer))
        self._leader = id(optimizer) if self._leader is None else self._leader
        if id(optimizer) == self._leader:
            self._find_owners([optimizer])
            self._count_step()

    def _after_cpu_step(self):
        self._cpu_steps += 1
        if self._cpu_steps >= steps.ALIKE_STEPS:
            self._error = ("NoGpu", f"the program has made {self._cpu_steps} optimizer steps and does not use a GPU: "
                                    "its model is on the CPU; move it with .cuda() or the program's option for a device")
            _write({"error": self._error[1], "error_type": "NoGpu", "end": "error"})
            _end(1)

    def _count_step(self):
        shadow.note_step()
        self._modules.use_devices(self._peaks.used_devices())
        self._all_stepped = self._all_stepped or not self._waiting_optimizers()
        was_enough = self._steps.enough
        self._steps.step(self._peaks.take(), time.time(), time.process_time(), self._all_stepped)
        if self._steps.enough and not was_enough:
            progress = epochs.progress()
            if progress is not None:
                self._steps.expect_end_of_epoch(*progress)
        if self._steps.is_over(time.time()):
            self._finish("enough")
        elif not was_enough or time.time() - self._saved_at > SAVE_EVERY_S:
            self._save()

    def _waiting_optimizers(self):
        """Optimizers that have not stepped, and have parameters on a GPU that no other optimizer has stepped."""
        optimizers = [thing for thing in live_objects.of_types(_with_subclasses(self._torch.optim.Optimizer))
                      if "param_groups" in vars(thing)]
        done = {id(p) for o in optimizers if id(o) in self._stepped for p in _parameters(o)}
        return [o for o in optimizers if id(o) not in self._stepped
                and any(p.is_cuda and id(p) not in done for p in _parameters(o))]

    def _never_stepped(self):
        """Whether the program has an optimizer, and none made a step."""
        return self._steps.count == 0 and bool(self._waiting_optimizers())

    def _find_owners(self, optimizers=()):
        self._drain()
        blocks = {number: device.blocks for number, device in enumerate(events.devices())}
        self._modules.find_owners(blocks, optimizers)

    def _drain(self):
        """Torch's history is a ring: it is read before it is full."""
        self._drained_at = self._peaks.num_allocations(self._torch.cuda.current_device())
        events.drain()

    def _look(self):
        """Called in the main thread, a few times a second, also while that initializes CUDA and holds torch's lock,
        for which every function of torch.cuda would wait."""
        if self._off or not self._torch.cuda.is_initialized():
            return
        if self._peaks.num_allocations(self._torch.cuda.current_device()) - self._drained_at > DRAIN_EVERY:
            self._drain()
        if self._steps.is_over(time.time()):
            self._finish("enough")

    def _on_endless(self, sentence):
        """The program reads values that are not known, and makes no step."""
        if not self._off:
            self._endless = sentence
            self._finish("readbacks")

    def _on_out_of_memory(self, device, requested, _total, _free):
        if self._oom is None:
            self._oom = {"device": device, "requested_bytes": requested, "phase": self._steps.where, "count": 0,
                         "step": self._steps.count + 1, "allocated_bytes": self._peaks.allocated(device),
                         "reserved_bytes": self._peaks.reserved(device)}
        self._oom["count"] += 1

    def _wrap_mem_get_info(self):
        """Notes whether the program asks how much memory is free: it may go by that."""
        call = self._mem_get_info

        @functools.wraps(call)
        def mem_get_info(*arguments, **keywords):
            self._reads_free_memory = True
            return call(*arguments, **keywords)

        self._torch.cuda.mem_get_info = self._torch.cuda.memory.mem_get_info = mem_get_info

    def _wrap_excepthook(self):
        call = sys.excepthook

        def hook(kind, error, trace):
            self._error = (kind.__name__, str(error))
            call(kind, error, trace)

        sys.excepthook = hook

    # ---- The record ----

    def _on_exit(self):
        if not self._off and self._peaks is not None:
            self._finish("exit")
        elif not self._off and self._error is None:
            _write({"end": "exit", "error_type": "NoGpu", "steps": self._cpu_steps, "torch": self._torch.__version__,
                    "error": "the program ended without using a GPU"})

    def _finish(self, end):
        """Writes the whole record, and ends the program unless it ends by itself."""
        self._off = True
        record = self._record(end)
        path = self._given.get("events")
        if path:
            record["events"] = {"path": f"{path}.{os.getpid()}", **events.write(f"{path}.{os.getpid()}")}
        else:
            events.drain()
        record["modules"] = self._composition()
        _write(record)
        # Of several ranks, one that ends would leave the others waiting: the launcher ends all.
        if end != "exit" and record["local_world_size"] == 1:
            _end(0)

    def _save(self):
        self._saved_at = time.time()
        _write(self._record(None))

    def _record(self, end):
        torch = self._torch
        devices = self._peaks.used_devices()
        phases = self._steps.peaks(self._peaks.take())
        return {"end": end, "until": self._steps.until, "steps": self._steps.count, "alike": self._steps.alike,
                "never_stepped": end == "exit" and self._never_stepped(), "epoch": epochs.progress() if end else None,
                "enough": self._steps.enough, "phase": self._steps.where, "backwards": self._backwards,
                "endless": self._endless, "out_of_memory": self._oom,
                "error_type": self._error and self._error[0], "error": self._error and self._error[1],
                "rank": int(os.environ.get("RANK", 0)), "world_size": int(os.environ.get("WORLD_SIZE", 1)),
                "local_world_size": int(os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("WORLD_SIZE", 1)),
                "torch": torch.__version__, "cuda": torch.version.cuda, "overhead": dataclasses.asdict(_overhead),
                "devices": [self._device(number, phases) for number in devices],
                "phases": {name: {device: list(peaks) for device, peaks in found.items()}
                           for name, found in phases.items() if found},
                "values": shadow.findings(), "reads_free_memory": self._reads_free_memory, "stand_in": packages.imported()}

    def _device(self, number, phases):
        free, total = self._mem_get_info(number)
        peaks = [found[number] for found in phases.values() if number in found]
        reserved = self._peaks.reserved(number)
        return {"index": number, "name": self._torch.cuda.get_device_name(number), "total_bytes": total,
                "allocated_bytes": max((peak[0] for peak in peaks), default=0),
                "reserved_bytes": max((peak[1] for peak in peaks), default=0),
                "beyond_torch_bytes": total - free - reserved, "retries": self._peaks.retries(number)}

    def _composition(self):
        """{device: rows}: what held the GPU's memory when most was allocated."""
        return {number: self._modules.composition(number, device.live_at_peak(), device.allocated_before)
                for number, device in enumerate(events.devices()) if device.codes}


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _with_subclasses(kind):
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))
