"""Stands in for flash-attn 2 in a dry run: its functions allocate what they allocate, and compute nothing.

Own code by the published interface, github.com/Dao-AILab/flash-attention at version 2.8.4. Layers, modules, losses and
Triton kernels are not here."""

from .flash_attn_interface import (  # noqa: F401
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

__version__ = "2.8.4"
