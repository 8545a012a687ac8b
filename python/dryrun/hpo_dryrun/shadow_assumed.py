"""Values that are assumed where only a GPU could compute them.

Each is valid where the program uses it. Indices go round, so that experts of a mixture get equally
many tokens; they start at 0.38 of the range and not at its ends, where vocabularies keep their special
tokens, so that generation goes on to its longest length. Numbers are finite; of two tensors, each
element is less, greater or equal as it is asked, and unequal nowhere, so that a search goes on and
a loss improves. A check of all elements passes and a check of any elements fails. A mask's sum is that of
a mask which is true everywhere.
"""

_START = 0.381966  # of the range: no simple fraction, so that no beam begins with its first tokens


def _indices(torch, result, length, dim, count):
    """`count` different indices below `length` along `dim` of each row of `result`."""
    if length == 0 or result.numel() == 0:
        return torch.zeros(result.size(), dtype=torch.int64, device="cpu")
    flat = (torch.arange(result.numel(), device="cpu") + int(length * _START)) % length
    if result.dim() == 0:
        return flat.reshape(())
    moved = list(result.size())
    del moved[dim % result.dim()]
    return flat.reshape(*moved, count).movedim(-1, dim)


def _argmax(torch, args, kwargs, results):
    result = results[-1]
    length = args[0].numel() // max(result.numel(), 1)
    flat = _indices(torch, result.flatten(), length, 0, max(result.numel(), 1))
    return [None] * (len(results) - 1) + [flat.reshape(result.size())]


def _topk(torch, args, kwargs, results):
    dim = args[2] if len(args) > 2 else kwargs.get("dim", -1)
    return [None, _rows(torch, args[0], results[1], dim)]


def _multinomial(torch, args, kwargs, results):
    return [_rows(torch, args[0], results[0], -1)]


def _rows(torch, source, result, dim):
    if source.dim() == 0:
        return torch.zeros(result.size(), dtype=torch.int64, device="cpu")
    return _indices(torch, result, source.size(dim), dim, result.size(dim))


def _sort(torch, args, kwargs, results):
    """As if it were sorted already."""
    index = results[1]
    dim = kwargs.get("dim", next((arg for arg in args[1:] if isinstance(arg, int) and not isinstance(arg, bool)), -1))
    if index.dim() == 0:
        return [None, torch.zeros((), dtype=torch.int64, device="cpu")]
    order = torch.arange(index.size(dim), device="cpu")
    shape = [1] * index.dim()
    shape[dim] = -1
    return [None, order.reshape(shape).expand(index.size()).contiguous()]


def _all_true(torch, args, kwargs, results):
    return [torch.ones(results[0].size(), dtype=results[0].dtype, device="cpu")]


def _all_false(torch, args, kwargs, results):
    return [torch.zeros(results[0].size(), dtype=results[0].dtype, device="cpu")]


def _compare(torch, args, kwargs, results):
    between_tensors = all(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args[:2])
    return _all_true(torch, args, kwargs, results) if between_tensors else [None]


def _unequal(torch, args, kwargs, results):
    between_tensors = all(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args[:2])
    return _all_false(torch, args, kwargs, results) if between_tensors else [None]


def _sum(torch, args, kwargs, results):
    if args[0].dtype != torch.bool:
        return [None]
    count = args[0].numel() // max(results[0].numel(), 1)
    return [torch.full(results[0].size(), count, dtype=results[0].dtype, device="cpu")]


# (torch, arguments, keywords, tensors that the operation made) -> CPU tensors, None where not known
_OF_ALL_OVERLOADS = {"all": _all_true, "any": _all_false, "isnan": _all_false, "isinf": _all_false, "argmax": _argmax,
                     "argmin": _argmax, "kthvalue": _argmax, "mode": _argmax, "topk": _topk,
                     "multinomial": _multinomial, "sort": _sort, "sum": _sum}
_OF_ONE_OVERLOAD = {"max.dim": _argmax, "min.dim": _argmax, "median.dim": _argmax, "nanmedian.dim": _argmax,
                    "eq.Tensor": _compare, "ge.Tensor": _compare, "gt.Tensor": _compare, "le.Tensor": _compare,
                    "lt.Tensor": _compare, "ne.Tensor": _unequal}


def values(operation):
    """The function that assumes values of what the operation makes of unknown ones; None: they stay unknown."""
    return _OF_ONE_OVERLOAD.get(operation.name) or _OF_ALL_OVERLOADS.get(operation.base)
