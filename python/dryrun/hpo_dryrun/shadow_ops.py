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
    repeat_interleave.Tensor
""".split())

# What they write does not depend on what was there before. All with an argument `out` are alike.
OVERWRITING = frozenset("""
    zero_ fill_ random_ uniform_ normal_ log_normal_ exponential_ geometric_ cauchy_ bernoulli_
""".split())

# They change what a tensor is, not the values of its storage; or their values stay as they are where
# gradients are finite, as they are taken to be.
NOT_WRITING = frozenset("""
    set_ resize_ resize_as_ record_stream _amp_foreach_non_finite_check_and_unscale_ resize_as_sparse_ sparse_resize_
    sparse_resize_and_clear_ _coalesced_ copy_sparse_to_sparse_ _sparse_resize_ _resize_output_
""".split())

# They are followed one by one (shadow_kernels.py).
SPECIAL = frozenset("copy_ _local_scalar_dense equal".split())


class Operation:
    """One overload of an aten operation."""

    def __init__(self, torch, schema):
        self.base = schema.name[len("aten::"):]
        self.name = f"{self.base}.{schema.overload_name}" if schema.overload_name else self.base
        self.handle = torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
        self.call = self.handle.redispatch_boxed
        arguments = schema.arguments
        # Positions of arguments that are tensors: Python passes numbers there too.
        self.tensors = tuple(i for i, argument in enumerate(arguments) if not argument.kwarg_only
                             and str(argument.type) in ("Tensor", "Optional[Tensor]"))
        self.written = tuple((i, argument.name) for i, argument in enumerate(arguments)
                             if argument.alias_info is not None and argument.alias_info.is_write)
        self.overwrites = self.base in OVERWRITING or any(argument.kwarg_only for argument in arguments
                                                          if argument.name in dict(map(reversed, self.written)))
        self.random = any(argument.name == "generator" for argument in arguments)

    def written_tensors(self, args, kwargs):
        """The arguments that the operation writes to, lists of them taken apart."""
        for i, name in self.written:
            value = kwargs.get(name) if name in kwargs else args[i] if i < len(args) else None
            if isinstance(value, (list, tuple)):
                yield from value
            elif value is not None:
                yield value


def _is_view(schema):
    return any(value.alias_info is not None for value in schema.returns)


def _is_followed(schema):
    base = schema.name[len("aten::"):]
    if base in NOT_WRITING or base.startswith("sparse_"):
        return False
    writes = any(value.alias_info is not None and value.alias_info.is_write for value in schema.arguments)
    return writes or base in FUNCTIONAL or base in SPECIAL or base in SIZED \
        or f"{base}.{schema.overload_name}" in SIZED


def operations(torch, followed=True):
    """The operations that are followed; or, with followed=False, all others that make new tensors."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if not name.startswith("aten::") or name not in names or _is_followed(schema) != followed:
            continue
        if not followed and (_is_view(schema) or not any("Tensor" in str(value.type) for value in schema.returns)):
            continue
        if has_kernel(name, "CompositeImplicitAutograd") or has_kernel(name, "BackendSelect"):
            continue
        if any("Dimname" in str(value.type) or "Storage" in str(value.type) for value in schema.arguments):
            continue
        tags = torch._C._get_operation_overload(schema.name, schema.overload_name)[2] if _renames(schema) else ()
        if torch.Tag.inplace_view not in tags:
            yield Operation(torch, schema)


def _renames(schema):
    """In-place operations without a functional meaning: transpose_ and others may change the layout alone."""
    return schema.name.endswith("_")
