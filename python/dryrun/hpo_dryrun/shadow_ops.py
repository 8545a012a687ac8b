"""Which of torch's operations compute values that a program may depend on.

Every operation that writes to an argument is followed, so that no shadow goes stale. Of the others, which
make new tensors, only those are followed with which programs compute masks, indices, lengths and counts:
what is not here makes unknown values. Views need nothing (shadow_store.py). Composite operations are
followed through those that they are made of.
"""

FUNCTIONAL = frozenset("""
    abs add bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp
    clamp_max clamp_min div eq exp floor floor_divide fmod frac gcd ge gt isin isinf isnan isposinf isneginf lcm le log
    log2 logical_and logical_not logical_or logical_xor lt maximum minimum mul nan_to_num ne neg pow reciprocal
    remainder round rsub sign sgn signbit sqrt square sub trunc where xlogy
    __lshift__ __rshift__ __and__ __or__ __xor__
    all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumsum kthvalue max mean median min
    mode multinomial nanmedian prod sort std sum topk var
    bucketize cat _cat diag_embed flip gather histc index index_add index_copy index_fill index_put index_select
    isclose masked_fill masked_scatter renorm repeat roll rot90 scatter scatter_add scatter_reduce searchsorted stack
    _stack take tril triu bernoulli normal poisson embedding one_hot diff
""".split())

# Their result's size depends on values. Where those are unknown, shadow_sized.py chooses one.
SIZED = frozenset("""
    nonzero masked_select _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive bincount
    repeat_interleave.Tensor torchvision::nms
""".split())

# What they write does not depend on what was there before. All with an argument `out` are alike.
OVERWRITING = frozenset("""
    zero_ fill_ random_ uniform_ normal_ log_normal_ exponential_ geometric_ cauchy_ bernoulli_
""".split())

# They make tensors of no others: those on a GPU are written by their variant with an argument `out`.
FACTORIES = frozenset("arange eye full linspace logspace ones randint randint_like randperm range zeros".split())

# They change what a tensor is, not the values of its storage; or their values stay as they are where
# gradients are finite, as they are taken to be.
NOT_WRITING = frozenset("""
    set_ resize_ resize_as_ record_stream _amp_foreach_non_finite_check_and_unscale_ resize_as_sparse_ sparse_resize_
    sparse_resize_and_clear_ _coalesced_ copy_sparse_to_sparse_ _sparse_resize_ _resize_output_
""".split())

# Others call them with a number as a tensor of the GPU, for which torch cannot call a kernel of Python's.
NOT_TO_FOLLOW = frozenset("pow.Tensor_Tensor_out isin.Tensor_Tensor_out eq.Tensor_out ne.Tensor_out".split())

OWN_NAMESPACES = ("aten::", "c10d", "_c10d", "prim", "symm_mem::", "fsdp::", "quantiz", "inductor::", "profiler::",
                  "_inductor_test::", "mkl", "onednn::", "xnnpack::", "sparse::", "rngprims::")

# They are followed one by one (shadow_kernels.py).
SPECIAL = frozenset("copy_ _local_scalar_dense equal".split())


class Operation:
    """One overload of an operation."""

    def __init__(self, torch, schema):
        self.base = schema.name.removeprefix("aten::")  # with its namespace where that is another
        self.name = _name(schema, self.base)
        self.namespace = schema.name.partition("::")[0]
        self.handle = torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
        self.call = self.handle.redispatch_boxed
        arguments = list(schema.arguments)
        # Positions of arguments that are tensors: Python passes numbers there too.
        self.tensors = tuple(i for i, argument in enumerate(arguments) if not argument.kwarg_only
                             and str(argument.type) in ("Tensor", "Optional[Tensor]"))
        written = [(i, argument) for i, argument in enumerate(arguments) if schema.is_mutable
                   and argument.alias_info is not None and argument.alias_info.is_write]
        self.written = tuple((i, argument.name) for i, argument in written)
        self.overwrites = self.base in OVERWRITING or any(argument.kwarg_only for _, argument in written)
        self.random = any(argument.name == "generator" for argument in arguments)

    def written_tensors(self, args, kwargs):
        """The arguments that the operation writes to, lists of them taken apart."""
        for i, name in self.written:
            value = kwargs.get(name) if name in kwargs else args[i] if i < len(args) else None
            if isinstance(value, (list, tuple)):
                yield from value
            elif value is not None:
                yield value


def _name(schema, base):
    return f"{base}.{schema.overload_name}" if schema.overload_name else base


def _is_followed(schema):
    base = schema.name.removeprefix("aten::")
    if base in NOT_WRITING or _name(schema, base) in NOT_TO_FOLLOW or base.startswith("sparse_"):
        return False
    if base in FUNCTIONAL or base in SPECIAL or base in SIZED or _name(schema, base) in SIZED:
        return True
    return schema.is_mutable and ("out" not in schema.overload_name or base in FACTORIES)


def _makes_tensors(schema):
    return not schema.is_mutable and all(value.alias_info is None for value in schema.returns) \
        and any("Tensor" in str(value.type) for value in schema.returns)


class Operations:
    """Torch's operations by what is done with them."""

    def __init__(self, torch):
        self._torch = torch
        self._seen = set()

    def _schemas(self, is_wanted):
        """Those that no one has asked for, with kernels of their own, whose kernel at BackendSelect is free."""
        has_kernel = self._torch._C._dispatch_has_kernel_for_dispatch_key
        names = set(self._torch._C._dispatch_get_all_op_names()) - self._seen
        for schema in self._torch._C._jit_get_all_schemas():
            name = _name(schema, schema.name)
            if name not in names or "name" in schema.overload_name.lower() or not is_wanted(schema):
                continue
            self._seen.add(name)
            if not has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "BackendSelect"):
                yield name, schema

    def followed(self):
        for name, schema in self._schemas(lambda schema: schema.name.startswith("aten::") and _is_followed(schema)):
            # In-place operations such as transpose_ change the layout of their argument alone.
            tags = self._torch._C._get_operation_overload(schema.name, schema.overload_name)[2] \
                if name.endswith("_") else ()
            if self._torch.Tag.inplace_view not in tags:
                yield Operation(self._torch, schema)

    def others(self):
        """All others of torch's own that make new tensors."""
        for _, schema in self._schemas(lambda schema: schema.name.startswith("aten::") and _makes_tensors(schema)):
            yield Operation(self._torch, schema)

    def foreign(self):
        """Those of other packages, whose kernels write what nobody follows."""
        has_kernel = self._torch._C._dispatch_has_kernel_for_dispatch_key
        for name, schema in self._schemas(lambda schema: not schema.name.startswith(OWN_NAMESPACES)):
            if has_kernel(name, "CUDA"):
                yield Operation(self._torch, schema)

    def collectives(self):
        for _, schema in self._schemas(lambda schema: schema.name.startswith("c10d::")):
            yield Operation(self._torch, schema)
