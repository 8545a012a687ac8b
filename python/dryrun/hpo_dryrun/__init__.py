"""Dry runs of PyTorch programs on emulated GPUs."""
