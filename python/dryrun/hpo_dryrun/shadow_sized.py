"""Operations whose result's size depends on values: on the emulated GPU they would always find nothing.

The genuine operation runs first, for what it allocates meanwhile. Its result is replaced by one of the
size that the values ask for. Where they are not known, the size is an upper bound: every element of a
mask is true, every value is unique. Two have none, and their size is noted as a guess: repeat_interleave
takes each element once, bincount finds no value beyond its `minlength`.
"""

from .shadow_store import ASSUMED, KNOWN, MAX_DERIVED, UNKNOWN

class Sized:
    def __init__(self, torch, follower):
        self._torch = torch
        self._follower = follower

    def kernel(self, operation):
        follower = self._follower

        def kernel(keyset, *args, **kwargs):
            if follower.busy.on or not args[0].is_cuda:
                return follower.original(operation, keyset, args, kwargs)
            state = follower.store.state(args[0]) if len(args) < 2 else follower.least(args, kwargs)
            outer = follower.busy.sized
            follower.busy.on = "::" in operation.base  # another package's kernels write what nobody follows
            follower.busy.sized = True
            try:
                result = follower.original(operation, keyset, args, kwargs)
            finally:
                follower.busy.on, follower.busy.sized = False, outer
            found = None
            if state != UNKNOWN:
                found = follower.guarded(self._computed, operation, args, kwargs)
            if found is None:
                state = UNKNOWN
                found = follower.guarded(self._chosen, operation, args, kwargs)
            shapes, values, bound = found
            return self._replace(operation, args, kwargs, result, shapes, values, state, bound)

        return kernel

    def _computed(self, operation, args, kwargs):
        values = self._follower.compute(operation, args, kwargs)
        values = values if isinstance(values, tuple) else (values,)
        return [value.size() for value in values], values, "assumed values"

    def _replace(self, operation, args, kwargs, result, shapes, values, state, bound):
        """The operation's result with the sizes `shapes`."""
        follower = self._follower
        single = not isinstance(result, tuple)
        tensors = [result] if single else list(result)
        del result
        for i, shape in enumerate(shapes):
            if shape is not None and tensors[i].size() != shape:
                dtype, device = tensors[i].dtype, tensors[i].device
                tensors[i] = None
                tensors[i] = self._empty(operation, shape, dtype, device)
        follower.guarded(follower.attach, tensors, values, max(state, ASSUMED))
        if state != KNOWN and not follower.busy.sized:
            sized = [tensor for tensor, shape in zip(tensors, shapes) if shape is not None and tensor.dim()]
            follower.sizes.note(operation.base, sized, sized[0].size(0), bound)
        elif state == KNOWN:
            follower.derive(args, tensors)
        return tensors[0] if single else tuple(tensors)

    def _empty(self, operation, shape, dtype, device):
        if operation.base == "nonzero":  # the genuine one writes a row for each dimension
            return self._torch.empty(shape[::-1], dtype=dtype, device=device).t()
        return self._torch.empty(shape, dtype=dtype, device=device)

    # ---- Where the values are not known: sizes, values or None, and how the size was chosen ----

    def _chosen(self, operation, args, kwargs):
        return getattr(self, "_choose_" + operation.base.rpartition("::")[2].lstrip("_"))(args, kwargs)

    def _choose_nms(self, args, kwargs):
        length = args[0].size(0)
        return [(length,)], [self._torch.arange(length, device="cpu")], "upper bound"

    def _choose_nonzero(self, args, kwargs):
        tensor = args[0]
        hint = self._follower.sizes.hint
        exact = hint is not None and hint <= tensor.numel()
        length = hint if exact else tensor.numel()
        values = None
        if length * tensor.dim() <= MAX_DERIVED:
            ones = self._torch.ones(tensor.size(), dtype=self._torch.bool, device="cpu")
            values = ones.nonzero()[:length].contiguous()
        return [(length, tensor.dim())], [values], "size of what is written" if exact else "upper bound"

    def _choose_masked_select(self, args, kwargs):
        shape = self._torch.broadcast_shapes(args[0].size(), args[1].size())
        return [(shape.numel(),)], [None], "upper bound"

    def _choose_unique(self, args, kwargs):
        inverse = args[2] if len(args) > 2 else kwargs.get("return_inverse", False)
        shapes, values, bound = self._unique_of(args[0].numel(), (args[0].numel(),), args[0].size(), inverse, False)
        return shapes[:2], values[:2], bound

    def _choose_unique2(self, args, kwargs):
        inverse = args[2] if len(args) > 2 else kwargs.get("return_inverse", False)
        counts = args[3] if len(args) > 3 else kwargs.get("return_counts", False)
        return self._unique_of(args[0].numel(), (args[0].numel(),), args[0].size(), inverse, counts)

    def _unique_of(self, length, shape, inverse_shape, inverse, counts):
        torch = self._torch
        indices = torch.arange(length, device="cpu").reshape(inverse_shape) if inverse else None
        ones = torch.ones(length, dtype=torch.int64, device="cpu") if counts else None
        return ([shape, inverse_shape if inverse else None, (length,) if counts else None], [None, indices, ones],
                "upper bound")

    def _choose_unique_dim(self, args, kwargs):
        tensor, dim = args[:2]
        inverse = args[3] if len(args) > 3 else kwargs.get("return_inverse", False)
        counts = args[4] if len(args) > 4 else kwargs.get("return_counts", False)
        return self._unique_of(tensor.size(dim), tensor.size(), (tensor.size(dim),), inverse, counts)

    def _choose_unique_consecutive(self, args, kwargs):
        tensor = args[0]
        inverse = args[1] if len(args) > 1 else kwargs.get("return_inverse", False)
        counts = args[2] if len(args) > 2 else kwargs.get("return_counts", False)
        dim = args[3] if len(args) > 3 else kwargs.get("dim")
        if dim is None:
            return self._unique_of(tensor.numel(), (tensor.numel(),), tensor.size(), inverse, counts)
        return self._unique_of(tensor.size(dim), tensor.size(), (tensor.size(dim),), inverse, counts)

    def _choose_unique_dim_consecutive(self, args, kwargs):
        return self._choose_unique_consecutive((args[0], *args[2:4], args[1]), kwargs)

    def _choose_bincount(self, args, kwargs):
        length = max(1, args[2] if len(args) > 2 else kwargs.get("minlength", 0))
        return [(length,)], [None], "guess"

    def _choose_repeat_interleave(self, args, kwargs):
        length = kwargs.get("output_size")
        length = args[0].numel() if length is None else length
        return [(length,)], [self._torch.arange(length, device="cpu").clamp(max=args[0].numel() - 1)], "guess"
