"""The four operators of flash-attn, under its names: torch.compile does not look into them."""

from typing import Optional, Tuple

import flash_attn_2_cuda
import torch

_Results = Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
_MISSING = Optional[torch.Tensor]


def _contiguous(*tensors):
    return [tensor.contiguous() if tensor.stride(-1) != 1 else tensor for tensor in tensors]


def _operator(name, **options):
    return torch.library.custom_op(f"flash_attn::{name}", device_types="cuda", **options)


@_operator("_flash_attn_forward", mutates_args=())
def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, softmax_scale: float, causal: bool,
            window_size_left: int, window_size_right: int, softcap: float, alibi_slopes: _MISSING,
            return_softmax: bool) -> _Results:
    """Result, softmax_lse, probabilities, rng_state."""
    q, k, v = _contiguous(q, k, v)
    return tuple(flash_attn_2_cuda.fwd(q, k, v, None, alibi_slopes, dropout_p, softmax_scale, causal, window_size_left,
                                       window_size_right, softcap, return_softmax, None))


@_operator("_flash_attn_varlen_forward", mutates_args=())
def varlen_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
                   cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, dropout_p: float,
                   softmax_scale: float, causal: bool, window_size_left: int, window_size_right: int, softcap: float,
                   alibi_slopes: _MISSING, return_softmax: bool, block_table: _MISSING) -> _Results:
    q, k, v = _contiguous(q, k, v)
    return tuple(flash_attn_2_cuda.varlen_fwd(
        q, k, v, None, cu_seqlens_q, cu_seqlens_k, None, None, block_table, alibi_slopes, max_seqlen_q, max_seqlen_k,
        dropout_p, softmax_scale, False, causal, window_size_left, window_size_right, softcap, return_softmax, None))


@_operator("_flash_attn_backward", mutates_args=("dq", "dk", "dv"))
def backward(dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
             softmax_lse: torch.Tensor, dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor, dropout_p: float,
             softmax_scale: float, causal: bool, window_size_left: int, window_size_right: int, softcap: float,
             alibi_slopes: _MISSING, deterministic: bool, rng_state: _MISSING) -> torch.Tensor:
    """softmax_d."""
    dout, q, k, v, out = _contiguous(dout, q, k, v, out)
    return flash_attn_2_cuda.bwd(dout, q, k, v, out, softmax_lse, dq, dk, dv, alibi_slopes, dropout_p, softmax_scale,
                                 causal, window_size_left, window_size_right, softcap, deterministic, None,
                                 rng_state)[3]


@_operator("_flash_attn_varlen_backward", mutates_args=("dq", "dk", "dv"))
def varlen_backward(dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
                    softmax_lse: torch.Tensor, dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor,
                    cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int,
                    dropout_p: float, softmax_scale: float, causal: bool, window_size_left: int,
                    window_size_right: int, softcap: float, alibi_slopes: _MISSING, deterministic: bool,
                    rng_state: _MISSING) -> torch.Tensor:
    dout, q, k, v, out = _contiguous(dout, q, k, v, out)
    return flash_attn_2_cuda.varlen_bwd(
        dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k, alibi_slopes, max_seqlen_q,
        max_seqlen_k, dropout_p, softmax_scale, False, causal, window_size_left, window_size_right, softcap,
        deterministic, None, rng_state)[3]


# What they return has the same shapes where nothing runs: for torch.compile.

@forward.register_fake
def _(q, k, v, dropout_p, softmax_scale, causal, window_size_left, window_size_right, softcap, alibi_slopes,
      return_softmax):
    batch, rows, heads = q.shape[:3]
    return (torch.empty_like(q), q.new_empty((batch, heads, rows), dtype=torch.float32),
            _probabilities(q, batch, heads, rows, k.shape[1], return_softmax), q.new_empty((2,), dtype=torch.int64))


@varlen_forward.register_fake
def _(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal,
      window_size_left, window_size_right, softcap, alibi_slopes, return_softmax, block_table):
    rows, heads = q.shape[:2]
    batch = cu_seqlens_q.numel() - 1
    return (torch.empty_like(q), q.new_empty((heads, rows), dtype=torch.float32),
            _probabilities(q, batch, heads, max_seqlen_q, max_seqlen_k, return_softmax),
            q.new_empty((2,), dtype=torch.int64))


@backward.register_fake
def _(dout, q, *rest):
    batch, rows, heads = q.shape[:3]
    return q.new_empty((batch, heads, _rounded(rows)), dtype=torch.float32)


@varlen_backward.register_fake
def _(dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, *rest):
    rows, heads = q.shape[:2]
    return q.new_empty((heads, rows + 128 * (cu_seqlens_q.numel() - 1)), dtype=torch.float32)


def _rounded(rows):
    return (rows + 127) // 128 * 128


def _probabilities(q, batch, heads, rows, keys, wanted):
    return q.new_empty((batch, heads, _rounded(rows), _rounded(keys)) if wanted else (0,))
