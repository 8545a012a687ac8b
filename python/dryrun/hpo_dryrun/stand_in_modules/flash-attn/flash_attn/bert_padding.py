"""Rows of a batch without its padding, and back."""

import torch


class IndexFirstAxis(torch.autograd.Function):
    """Rows of `tensor` by their numbers, which differ."""

    @staticmethod
    def forward(ctx, tensor, indices):
        ctx.save_for_backward(indices)
        ctx.num_rows = tensor.shape[0]
        rows = tensor.flatten(1)
        return rows.gather(0, _for_each_column(indices, rows)).unflatten(1, tensor.shape[1:])

    @staticmethod
    def backward(ctx, gradient):
        (indices,) = ctx.saved_tensors
        rows = gradient.flatten(1)
        found = rows.new_zeros((ctx.num_rows, rows.shape[1]))
        found.scatter_(0, _for_each_column(indices, rows), rows)
        return found.reshape(ctx.num_rows, *gradient.shape[1:]), None


class IndexPutFirstAxis(torch.autograd.Function):
    """The other way: the rows between are zero."""

    @staticmethod
    def forward(ctx, values, indices, num_rows):
        ctx.save_for_backward(indices)
        found = values.new_zeros((num_rows, *values.shape[1:]))
        found[indices] = values
        return found

    @staticmethod
    def backward(ctx, gradient):
        (indices,) = ctx.saved_tensors
        return gradient[indices], None, None


index_first_axis = IndexFirstAxis.apply
index_put_first_axis = IndexPutFirstAxis.apply


def _for_each_column(indices, rows):
    return indices[:, None].expand(-1, rows.shape[1])


def unpad_input(hidden_states, attention_mask, unused_mask=None):
    """Rows that the mask keeps; their numbers; where each sequence begins; the longest; rows of each that are used."""
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(dim=-1, dtype=torch.int32)
    used = attention_mask.sum(dim=-1, dtype=torch.int32)
    indices = kept.flatten().nonzero().flatten()
    longest = lengths.max().item()
    begins = torch.nn.functional.pad(lengths.cumsum(dim=0, dtype=torch.int32), (1, 0))
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, begins, longest, used


def pad_input(hidden_states, indices, batch, seqlen):
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))
