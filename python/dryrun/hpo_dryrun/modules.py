"""Which module of the program holds what at the peak.

Every allocation gets the module whose forward was running when it was made: hooks read torch's count of
allocations when a module's forward begins and ends. Parameters, gradients and optimizer state are found
by their addresses, at the steps of the optimizers.
"""

import array
import re
import threading
import weakref

MAX_STAMPS = 2_000_000
OUTSIDE = "(outside modules)"
BACKWARD = "(backward pass)"
OPTIMIZER = "(optimizer step)"
KINDS = ("weights", "gradients", "optimizer", "activations")
_WRAPPERS = re.compile(r"(^|\.)(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)")


class Modules:
    """`counts(device)`: number of allocations so far. `begins`, `ends`: called with a root module when its
    forward begins and ends; `new_root`: before the first of it."""

    def __init__(self, torch, counts, begins, ends, new_root):
        self._torch = torch
        self._counts = counts
        self._begins = begins
        self._ends = ends
        self._new_root = new_root
        self._names = weakref.WeakKeyDictionary()
        self._roots = weakref.WeakSet()
        self._stack = []
        self._thread = threading.main_thread().ident
        self._stamps = {}  # by device: (numbers of allocations, index of the name from there on)
        self._labels = {OUTSIDE: 0}
        self._owners = {}  # by device: {number of an allocation: (kind, name)}
        register = torch.nn.modules.module
        register.register_module_forward_pre_hook(self._enter)
        register.register_module_forward_hook(self._leave)

    def use_devices(self, devices):
        for device in devices:
            self._stamps.setdefault(device, (array.array("q"), array.array("l")))
            self._owners.setdefault(device, {})

    # ---- What runs ----

    def _is_followed(self):
        """Not while torch.compile runs the hook for its own sake. Of other threads, those of a backward pass
        count, which compute checkpointed parts again: the main thread waits for them."""
        return not self._torch.compiler.is_compiling() and (
            threading.get_ident() == self._thread or BACKWARD in self._stack)

    def _enter(self, module, _inputs):
        if not self._is_followed():
            return
        if not self._stack:
            if module not in self._names:
                self._name(module)
            self._begins(module)
        self.push(self._names.get(module) or type(module).__name__)

    def _leave(self, module, _inputs, _output):
        if not self._is_followed():
            return
        self.pop()
        if not self._stack:
            self._ends(module)

    def push(self, name):
        self._stack.append(name)
        self._stamp(name)

    def pop(self):
        if self._stack:
            self._stack.pop()
        self._stamp(self._stack[-1] if self._stack else OUTSIDE)

    def clear(self):
        """Nothing runs now: after a forward that raised an error."""
        self._stack.clear()
        self._stamp(OUTSIDE)

    def _name(self, root):
        self._roots.add(root)
        for name, module in root.named_modules():
            self._names[module] = _readable(name) or type(root).__name__
        self._new_root()

    def _stamp(self, name):
        label = self._labels.setdefault(name, len(self._labels))
        for device, (numbers, labels) in self._stamps.items():
            count = self._counts(device)
            if numbers and numbers[-1] == count:
                labels[-1] = label
            elif len(numbers) < MAX_STAMPS:
                numbers.append(count)
                labels.append(label)

    # ---- Who owns what ----

    def find_owners(self, blocks, optimizers):
        """`blocks`: {device: {address: number of the allocation}} of what is allocated now."""
        names = {}
        for root in self._roots:
            for name, parameter in root.named_parameters():
                names.setdefault(id(parameter), _readable(name).rpartition(".")[0] or type(root).__name__)
                self._own(blocks, "weights", names[id(parameter)], parameter)
            for name, buffer in root.named_buffers():
                self._own(blocks, "weights", _readable(name).rpartition(".")[0] or type(root).__name__, buffer)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    name = names.get(id(parameter), OUTSIDE)
                    self._own(blocks, "weights", name, parameter)
                    self._own(blocks, "gradients", name, parameter.grad)
                    state = optimizer.state.get(parameter)
                    for value in state.values() if isinstance(state, dict) else ():
                        self._own(blocks, "optimizer", name, value)

    def _own(self, blocks, kind, name, tensor):
        if not isinstance(tensor, self._torch.Tensor) or not tensor.is_cuda:
            return
        device = tensor.device.index
        try:
            number = blocks.get(device, {}).get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # a subclass of tensor without a storage
            return
        if number is not None:
            self._owners.setdefault(device, {}).setdefault(number, (kind, name))

    def _running_at(self, device, first):
        """A function: the name of what ran at an allocation's number. Numbers are asked for in rising order."""
        names = list(self._labels)
        numbers, labels = self._stamps.get(device, ((), ()))
        at = 0

        def running(number):
            nonlocal at
            while at < len(numbers) and numbers[at] <= number + first:
                at += 1
            return names[labels[at - 1]] if at else OUTSIDE

        return running

    def composition(self, device, live, first):
        """Rows of what the allocations `live`, {number: bytes}, belong to, largest first. `first`: number of
        allocations that torch had counted before number 0."""
        rows = {}
        owners = self._owners.get(device, {})
        running = self._running_at(device, first)
        for number in sorted(live):
            kind, name = owners.get(number) or ("activations", running(number))
            row = rows.setdefault(collapse(name), dict.fromkeys(KINDS, 0))
            row[kind] += live[number]
        found = [{"module": name, **{f"{kind}_bytes": row[kind] for kind in KINDS}, "total_bytes": sum(row.values())}
                 for name, row in rows.items()]
        return sorted(found, key=lambda row: -row["total_bytes"])


def _readable(name):
    return _WRAPPERS.sub("", name).lstrip(".")


def collapse(name):
    """The layers of a stack are one row: "encoder.layer.3.output" becomes "encoder.layer.*.output"."""
    return re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", name)
