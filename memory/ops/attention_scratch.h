// What the backward of torch's efficient attention kernel takes in addition to the gradients.
// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h
// (Params::workspace_size) and kernels/cutlassB.h (which kernels there are), attention_backward.cu
// (how work is split). Held against torch itself on emulated cards: tests/worker/trainer.
#pragma once

#include <cstdint>

namespace hpo::memory {

struct EfficientAttention {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t tokens = 0;  // of a row; of the longest, where rows are packed
  int64_t head_size = 0;
  int64_t element_size = 4;
  bool dropout = false;
  int64_t capability = 80;  // of the card: 10 x major + minor
};

// Bytes in which blocks of threads meet.
int64_t EfficientBackwardBytes(const EfficientAttention& attention);

}  // namespace hpo::memory
