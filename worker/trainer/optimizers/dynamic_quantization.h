// Values in 8 bits by dynamic block-wise quantisation: blocks of 256 values with a float32 scale
// each, their largest magnitude; a value is the nearest of 256 numbers, which are dense near zero
// (seven decimal exponents), times the scale.
// Source: Dettmers et al. 2022 (arXiv:2110.02861), section 2 and appendix; the numbers are those of
// bitsandbytes' create_dynamic_map. Golden data: scripts/reference/optimizers.py.
#pragma once

#include <array>
#include <cstdint>

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

constexpr int64_t kNumCodes = 256;

// Ascending. Signed: -0.99297 to 1; else 0 to 1.
std::array<float, kNumCodes> DynamicMap(bool is_signed);

// One map on a device.
struct DynamicCode {
  torch::Tensor values;     // float32 [256]
  torch::Tensor midpoints;  // float32 [255]: between neighbours
  uint8_t zero = 0;         // the code of the number 0
};

// Both are parts of `storage`, float32 [kDynamicCodeFloats] on the device.
DynamicCode MakeDynamicCode(bool is_signed, const torch::Tensor& storage);

struct QuantizedTensor {
  torch::Tensor codes;   // uint8 [blocks * 256]; what is behind the last value is 0
  torch::Tensor scales;  // float32 [blocks]
};

// `elements` zeros. Allocates codes and scales.
QuantizedTensor QuantizedZeros(int64_t elements, const DynamicCode& code);

// Blocks `first` to `first + count` into `values` (float32 [count * 256]). `indices`: int32 of that
// size, overwritten. Allocates nothing.
void Decode(const QuantizedTensor& quantized, int64_t first, const DynamicCode& code,
            torch::Tensor indices, torch::Tensor values);

// The reverse; `scratch`: float32 as `values`, overwritten. Allocates nothing.
void Encode(const torch::Tensor& values, const DynamicCode& code, torch::Tensor indices,
            torch::Tensor scratch, const QuantizedTensor& quantized, int64_t first);

}  // namespace hpo::trainer
