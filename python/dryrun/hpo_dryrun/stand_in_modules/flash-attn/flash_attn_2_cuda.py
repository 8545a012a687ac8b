"""Stands in for the library of flash-attn 2: allocates what it allocates, and computes nothing.

Functions have the arguments of that library, by place. Shapes and types are those of its published interface,
github.com/Dao-AILab/flash-attention at version 2.8.4, csrc/flash_attn/flash_api.cpp:

forward   the result; softmax_lse, float32, of each row and head; rng_state, two int64; the probabilities where they
          are asked for with dropout; and where one block of work for each row does not fill the GPU, results and
          softmax_lse of several splits in float32, until the call ends
backward  softmax_d and dq_accum, float32, with the length rounded to 128 and the head's size to 32, or to 64 beyond
          128, until the call ends; dk and dv of all heads where several heads share a key and a value
"""

import math

import torch

_ROWS = 128
_MOST_SPLITS = 128
_ENOUGH = 0.85  # of the best use of the GPU


def _rounded(value, multiple):
    return -(-value // multiple) * multiple


def _rounded_head(size):
    return _rounded(size, 32 if size <= 128 else 64)


def _float32(like, *shape):
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def _multiprocessors(tensor):
    return torch.cuda.get_device_properties(tensor.device).multi_processor_count


def _check(q, k, v):
    if torch.cuda.get_device_capability(q.device)[0] < 8:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if k.dtype != q.dtype or v.dtype != q.dtype:
        raise RuntimeError("query, key and value must have the same dtype")
    if q.shape[-1] > 256 or q.shape[-1] % 8:
        raise RuntimeError(f"head_size must be at most 256 and a multiple of 8, got {q.shape[-1]}")
    if q.shape[-2] % k.shape[-2]:
        raise RuntimeError("Number of heads in key/value must divide number of heads in query")


def _num_splits(blocks, places, key_blocks):
    """Into how many parts the keys are split: the fewest with which the GPU is used almost as well as it can be."""
    if blocks >= 0.8 * places:
        return 1
    useful = [count for count in range(1, min(_MOST_SPLITS, places, key_blocks) + 1)
              if count == 1 or math.ceil(key_blocks / count) != math.ceil(key_blocks / (count - 1))]
    use = {count: blocks * count / places / math.ceil(blocks * count / places) for count in useful}
    return next(count for count in useful if use[count] >= _ENOUGH * max(use.values()))


def _splits(q, batch, heads, rows, keys, dropout, asked=0):
    """What the splits take while the call runs."""
    if dropout:
        return ()
    size = q.shape[-1]
    key_rows = 256 if size <= 64 else 128 if size <= 128 else 64
    count = asked if asked >= 1 else _num_splits(batch * heads * math.ceil(rows / 64), 2 * _multiprocessors(q),
                                                 math.ceil(keys / key_rows))
    if count <= 1:
        return ()
    return (_float32(q, count, batch, heads, rows),
            _float32(q, count, batch, heads, rows, _rounded_head(size)))


def _probabilities(q, batch, heads, rows, keys, wanted):
    shape = (batch, heads, _rounded(rows, _ROWS), _rounded(keys, _ROWS)) if wanted else (0,)
    return torch.empty(shape, dtype=q.dtype, device=q.device)


def _rng_state(q):
    return torch.empty(2, dtype=torch.int64, device=q.device)


def _shares_heads(q, k, rows, left, right, dropout, alibi):
    """Whether heads that share a key become rows: of a single query."""
    return rows == 1 and q.shape[-2] > k.shape[-2] and left < 0 and right < 0 and not dropout and alibi is None


def fwd(q, k, v, out, alibi_slopes, dropout_p, softmax_scale, causal, window_left, window_right, softcap,
        return_softmax, generator=None):
    """[batch, rows, heads, head size] -> result, softmax_lse, probabilities, rng_state."""
    _check(q, k, v)
    batch, rows, heads, size = q.shape
    keys, key_heads = k.shape[1:3]
    window_left, window_right = (-1 if window >= keys else window for window in (window_left, window_right))
    right = 0 if causal and not (rows == 1 and alibi_slopes is None) else window_right
    shared = _shares_heads(q, k, rows, window_left, right, dropout_p, alibi_slopes)
    if shared:
        rows, heads = heads // key_heads, key_heads
        q = q.reshape(batch, key_heads, rows, size).transpose(1, 2)
    result = torch.empty_like(q) if out is None else out
    lse = _float32(q, batch, heads, rows)
    probabilities = _probabilities(q, batch, heads, rows, keys, return_softmax)
    held = _splits(q, batch, heads, rows, keys, dropout_p)
    rng_state = _rng_state(q)
    del held
    if shared and out is None:
        result = result.transpose(1, 2).reshape(batch, 1, heads * rows, size)
    return [result, lse.reshape(batch, heads * rows, 1) if shared else lse, probabilities, rng_state]


def varlen_fwd(q, k, v, out, cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k, block_table, alibi_slopes, max_seqlen_q,
               max_seqlen_k, dropout_p, softmax_scale, zero_tensors, causal, window_left, window_right, softcap,
               return_softmax, generator=None, num_splits=0):
    """The same for sequences one after another, [rows of all, heads, head size]."""
    _check(q, k, v)
    batch = cu_seqlens_q.numel() - 1
    heads, size = q.shape[1:]
    key_heads = k.shape[-2]
    right = 0 if causal and not (max_seqlen_q == 1 and alibi_slopes is None) else window_right
    shared = _shares_heads(q, k, max_seqlen_q, window_left, right, dropout_p, alibi_slopes)
    if shared:
        groups, heads = heads // key_heads, key_heads
        q = q.reshape(batch, key_heads, groups, size).transpose(1, 2).reshape(batch * groups, key_heads, size)
        max_seqlen_q = groups
    result = torch.empty_like(q) if out is None else out
    lse = _float32(q, heads, q.shape[0])
    probabilities = _probabilities(q, batch, heads, max_seqlen_q, max_seqlen_k, return_softmax)
    held = _splits(q, batch, heads, max_seqlen_q, max_seqlen_k, dropout_p, num_splits) if shared else ()
    rng_state = _rng_state(q)
    del held
    if shared:
        lse = lse.reshape(heads * max_seqlen_q, batch)
        if out is None:
            result = result.reshape(batch, max_seqlen_q, key_heads, size).transpose(1, 2).reshape(batch, -1, size)
    return [result, lse, probabilities, rng_state]


def fwd_kvcache(q, k_cache, v_cache, k, v, cache_seqlens, rotary_cos, rotary_sin, cache_batch_idx, leftpad_k,
                block_table, alibi_slopes, out, softmax_scale, causal, window_left, window_right, softcap,
                rotary_interleaved, num_splits):
    """One step of generation with a cache -> result, softmax_lse."""
    pad = -q.shape[-1] % 8
    original = q.shape[-1]
    if pad:
        q, k_cache, v_cache = (torch.nn.functional.pad(tensor, [0, pad]) for tensor in (q, k_cache, v_cache))
    _check(q, k_cache, v_cache)
    batch, rows, heads, size = q.shape
    key_heads = k_cache.shape[2]
    keys = k_cache.shape[1] if block_table is None else block_table.shape[1] * k_cache.shape[1]
    right = 0 if causal and not (rows == 1 and alibi_slopes is None) else window_right
    shared = _shares_heads(q, k_cache, rows, window_left, right, 0, alibi_slopes) and not pad
    if shared:
        rows, heads = heads // key_heads, key_heads
        q = q.reshape(batch, key_heads, rows, size).transpose(1, 2)
    result = torch.empty_like(q) if out is None or pad else out
    lse = _float32(q, batch, heads, rows)
    padded = [torch.nn.functional.pad(tensor, [0, pad]) for tensor in (k, v) if pad and tensor is not None]
    held = _splits(q, batch, heads, rows, keys, 0, num_splits)
    del held, padded
    if pad:
        result = result[..., :original]
    if shared:
        result = result.transpose(1, 2).reshape(batch, 1, heads * rows, size)
        lse = lse.reshape(batch, heads * rows, 1)
    return [result, lse]


def _accumulators(q, batch, heads, rows, deterministic):
    """dq_accum, of `rows`, a tuple."""
    shape = (*rows, heads, _rounded_head(q.shape[-1]))
    if not deterministic:
        return _float32(q, *shape)
    splits = -(-_multiprocessors(q) // (batch * heads))
    return torch.zeros((splits, *shape), dtype=torch.float32, device=q.device)


def _gradients(q, k, v, dq, dk, dv):
    return (torch.empty_like(tensor) if given is None else given for tensor, given in ((q, dq), (k, dk), (v, dv)))


def _sum_over_groups(q, k, gradients):
    """Where heads share a key and a value: their gradients for each head, then the sums."""
    heads, key_heads = q.shape[-2], k.shape[-2]
    if heads == key_heads:
        return
    *rows, size = k.shape[:-2] + k.shape[-1:]
    of_heads = [torch.empty((*rows, heads, size), dtype=q.dtype, device=q.device) for _ in gradients]
    for gradient, of_head in zip(gradients, of_heads):
        torch.sum(of_head.reshape(*rows, key_heads, heads // key_heads, size), dim=-2, out=gradient)


def bwd(dout, q, k, v, out, softmax_lse, dq, dk, dv, alibi_slopes, dropout_p, softmax_scale, causal, window_left,
        window_right, softcap, deterministic, generator=None, rng_state=None):
    """-> dq, dk, dv, softmax_d"""
    _check(q, k, v)
    batch, rows, heads, _ = q.shape
    rows = _rounded(rows, _ROWS)
    dq, dk, dv = _gradients(q, k, v, dq, dk, dv)
    softmax_d = _float32(q, batch, heads, rows)
    accumulator = _accumulators(q, batch, heads, (batch, rows), deterministic)
    _sum_over_groups(q, k, (dk, dv))
    del accumulator
    return [dq, dk, dv, softmax_d]


def varlen_bwd(dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k, alibi_slopes, max_seqlen_q,
               max_seqlen_k, dropout_p, softmax_scale, zero_tensors, causal, window_left, window_right, softcap,
               deterministic, generator=None, rng_state=None):
    """The same for sequences one after another."""
    _check(q, k, v)
    batch = cu_seqlens_q.numel() - 1
    rows = q.shape[0] + _ROWS * batch
    heads = q.shape[1]
    dq, dk, dv = _gradients(q, k, v, dq, dk, dv)
    softmax_d = _float32(q, heads, rows)
    accumulator = _accumulators(q, batch, heads, (rows,), deterministic)
    _sum_over_groups(q, k, (dk, dv))
    del accumulator
    return [dq, dk, dv, softmax_d]
