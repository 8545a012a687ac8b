"""Attention with gradients: what is saved for the backward pass, and the tensors of the gradients."""

import dataclasses

import flash_attn_2_cuda
import torch

from . import operators


@dataclasses.dataclass(frozen=True)
class _Call:
    """The arguments that have no gradient. Of sequences one after another: where each begins, and the longest."""

    dropout_p: float
    softmax_scale: object
    causal: bool
    window_size: tuple
    softcap: float
    alibi_slopes: object
    deterministic: bool
    return_probabilities: bool
    begins: tuple = ()
    longest: tuple = ()
    block_table: object = None

    @property
    def common(self):
        return (self.dropout_p, self.softmax_scale, self.causal, *self.window_size, self.softcap, self.alibi_slopes)


def _padded(tensor):
    """The size of a head is a multiple of 8."""
    missing = -tensor.shape[-1] % 8
    return torch.nn.functional.pad(tensor, [0, missing]) if missing else tensor


class _Attention(torch.autograd.Function):
    """Of q, k and v; of q with k and v in one tensor; or of all three in one, in the last dimension but two."""

    @staticmethod
    def forward(ctx, call, with_gradients, *packed):
        if len(packed) == 3:
            tensors = packed
        else:
            tensors = [*packed[:-1], *(part.detach() for part in packed[-1].unbind(dim=-3))]
        q, k, v = map(_padded, tensors)
        if call.softmax_scale is None:
            call = dataclasses.replace(call, softmax_scale=packed[0].shape[-1] ** -0.5)
        probabilities = call.return_probabilities and call.dropout_p > 0
        if call.begins:
            found = operators.varlen_forward(q, k, v, *call.begins, *call.longest, *call.common, probabilities,
                                             call.block_table)
        else:
            found = operators.forward(q, k, v, *call.common, probabilities)
        out, softmax_lse, masked, rng_state = found
        if with_gradients and any(tensor.requires_grad for tensor in packed):
            ctx.save_for_backward(q, k, v, out, softmax_lse, rng_state, *call.begins)
            ctx.call = call
            ctx.num_packed = len(packed)
        out = out[..., :packed[0].shape[-1]]
        return (out, softmax_lse, masked) if call.return_probabilities else out

    @staticmethod
    def backward(ctx, dout, *_):
        q, k, v, out, softmax_lse, rng_state, *begins = ctx.saved_tensors
        call = ctx.call
        size = dout.shape[-1]
        if ctx.num_packed == 3:
            gradients = parts = [torch.empty_like(tensor) for tensor in (q, k, v)]
        else:
            own = [torch.empty_like(q)] if ctx.num_packed == 2 else []
            together = (k if own else q).shape
            shape = (*together[:-2], 3 - len(own), *together[-2:])
            gradients = [*own, torch.empty(shape, dtype=q.dtype, device=q.device)]
            parts = [*own, *gradients[-1].unbind(dim=-3)]
        known = (_padded(dout), q, k, v, out, softmax_lse, *parts)
        if begins:
            operators.varlen_backward(*known, *begins, *call.longest, *call.common, call.deterministic, rng_state)
        else:
            operators.backward(*known, *call.common, call.deterministic, rng_state)
        return (None, None, *(gradient[..., :size] for gradient in gradients))


def _attend(packed, call):
    return _Attention.apply(call, torch.is_grad_enabled(), *packed)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    return _attend((q, k, v), _Call(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                                    deterministic, return_attn_probs))


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                             alibi_slopes=None, deterministic=False, return_attn_probs=False):
    return _attend((q, kv), _Call(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
                                  return_attn_probs))


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                              alibi_slopes=None, deterministic=False, return_attn_probs=False):
    return _attend((qkv,), _Call(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
                                 return_attn_probs))


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    return _attend((q, k, v), _Call(
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
        (cu_seqlens_q, cu_seqlens_k), (max_seqlen_q, max_seqlen_k), block_table))


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                                    softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    return _attend((q, kv), _Call(
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
        (cu_seqlens_q, cu_seqlens_k), (max_seqlen_q, max_seqlen_k)))


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, dropout_p=0.0, softmax_scale=None, causal=False,
                                     window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                                     return_attn_probs=False):
    return _attend((qkv,), _Call(
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
        (cu_seqlens, cu_seqlens), (max_seqlen, max_seqlen)))


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None,
                            causal=False, window_size=(-1, -1), softcap=0.0, rotary_interleaved=True,
                            alibi_slopes=None, num_splits=0, return_softmax_lse=False):
    q, k, v = (tensor.contiguous() if tensor is not None and tensor.stride(-1) != 1 else tensor for tensor in (q, k, v))
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((q.shape[0],), cache_seqlens, dtype=torch.int32, device=k_cache.device)
    out, softmax_lse = flash_attn_2_cuda.fwd_kvcache(
        q, k_cache, v_cache, k, v, cache_seqlens, rotary_cos, rotary_sin, cache_batch_idx, cache_leftpad, block_table,
        alibi_slopes, None, softmax_scale, causal, *window_size, softcap, rotary_interleaved, num_splits)
    return (out, softmax_lse) if return_softmax_lse else out
