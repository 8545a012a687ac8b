// 4-bit NormalFloat: 16 values, the quantiles of a normal distribution, and a scale for each block
// of 64 weights, their largest magnitude. Free of torch.
// Source: Dettmers et al. 2023 (arXiv:2305.14314), section 3 and appendix E; the order of codes in
// a byte as bitsandbytes packs them (functional.py, quantize_4bit): the first in the high half.
// Pure; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "memory/trace/lora.h"

namespace hpo::trainer {

// Ascending. Appendix E of the paper; bitsandbytes has the same in csrc/kernels.cu.
inline constexpr std::array<float, 16> kNf4Values = {-1.0f,
                                                     -0.6961928009986877f,
                                                     -0.5250730514526367f,
                                                     -0.39491748809814453f,
                                                     -0.28444138169288635f,
                                                     -0.18477343022823334f,
                                                     -0.09105003625154495f,
                                                     0.0f,
                                                     0.07958029955625534f,
                                                     0.16093020141124725f,
                                                     0.24611230194568634f,
                                                     0.33791524171829224f,
                                                     0.44070982933044434f,
                                                     0.5626170039176941f,
                                                     0.7229568362236023f,
                                                     1.0f};

// Whole blocks, the last one filled up with zeros.
inline int64_t Nf4Blocks(int64_t elements) {
  return (elements + memory::kNf4Block - 1) / memory::kNf4Block;
}

// codes: 32 bytes a block; scales: one a block. Of two values that are as near the lower one is
// taken; a block of zeros has scale 0.
void QuantizeNf4(std::span<const float> values, std::span<uint8_t> codes, std::span<float> scales);

// The values that the codes stand for: kNf4Values[code] * scale, in float32.
void DequantizeNf4(std::span<const uint8_t> codes, std::span<const float> scales,
                   std::span<float> values);

}  // namespace hpo::trainer
