#include "worker/trainer/optimizers/dynamic_quantization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status.h"
#include "memory/trace/optimizer_states.h"

namespace hpo::trainer {
namespace {

constexpr int kExponents = 7;
// A block of zeros has this scale, so that nothing is divided by 0.
constexpr double kSmallestScale = 1e-38;

void CopyIn(torch::Tensor target, const float* values) {
  // from_blob never writes, but takes no pointer to const.
  target.copy_(at::from_blob(const_cast<float*>(values), target.sizes(), torch::kFloat32));
}

}  // namespace

std::array<float, kNumCodes> DynamicMap(bool is_signed) {
  std::vector<double> values = {0.0, 1.0};
  for (int exponent = 0; exponent < kExponents; ++exponent) {
    const double power = std::pow(10.0, exponent - (kExponents - 1));
    // Middles of as many equal parts of [0.1, 1].
    const int parts = 1 << (is_signed ? exponent : exponent + 1);
    for (int part = 0; part < parts; ++part) {
      const double middle = 0.1 + 0.9 * (part + 0.5) / parts;
      values.push_back(power * middle);
      if (is_signed) values.push_back(-power * middle);
    }
  }
  std::sort(values.begin(), values.end());
  HPO_CHECK(values.size() == kNumCodes);
  std::array<float, kNumCodes> map;
  std::copy(values.begin(), values.end(), map.begin());
  return map;
}

DynamicCode MakeDynamicCode(bool is_signed, const torch::Tensor& storage) {
  const std::array<float, kNumCodes> map = DynamicMap(is_signed);
  std::array<float, kNumCodes - 1> midpoints;
  for (size_t i = 0; i < midpoints.size(); ++i) midpoints[i] = (map[i] + map[i + 1]) / 2.0f;
  const auto zero = std::find(map.begin(), map.end(), 0.0f) - map.begin();
  DynamicCode code{.values = storage.narrow(0, 0, kNumCodes),
                   .midpoints = storage.narrow(0, kNumCodes, kNumCodes - 1),
                   .zero = static_cast<uint8_t>(zero)};
  CopyIn(code.values, map.data());
  CopyIn(code.midpoints, midpoints.data());
  return code;
}

QuantizedTensor QuantizedZeros(int64_t elements, const DynamicCode& code) {
  const int64_t blocks = (elements + memory::kQuantizationBlock - 1) / memory::kQuantizationBlock;
  const auto options = torch::TensorOptions().device(code.values.device());
  return {.codes = at::full({blocks * memory::kQuantizationBlock}, code.zero,
                            options.dtype(torch::kUInt8)),
          .scales = at::full({blocks}, kSmallestScale, options.dtype(torch::kFloat32))};
}

void Decode(const QuantizedTensor& quantized, int64_t first, const DynamicCode& code,
            torch::Tensor indices, torch::Tensor values) {
  const int64_t blocks = values.numel() / memory::kQuantizationBlock;
  indices.copy_(quantized.codes.narrow(0, first * memory::kQuantizationBlock, values.numel()));
  at::index_select_out(values, code.values, /*dim=*/0, indices);
  values.view({blocks, memory::kQuantizationBlock})
      .mul_(quantized.scales.narrow(0, first, blocks).unsqueeze(1));
}

void Encode(const torch::Tensor& values, const DynamicCode& code, torch::Tensor indices,
            torch::Tensor scratch, const QuantizedTensor& quantized, int64_t first) {
  const int64_t blocks = values.numel() / memory::kQuantizationBlock;
  torch::Tensor scales = quantized.scales.narrow(0, first, blocks);
  torch::Tensor scaled = scratch.view({blocks, memory::kQuantizationBlock});
  at::abs_out(scratch, values);
  at::amax_out(scales, scaled, /*dim=*/{1});
  scales.clamp_min_(kSmallestScale);
  at::div_out(scaled, values.view({blocks, memory::kQuantizationBlock}), scales.unsqueeze(1));
  at::bucketize_out(indices, scratch, code.midpoints, /*out_int32=*/true);
  quantized.codes.narrow(0, first * memory::kQuantizationBlock, values.numel()).copy_(indices);
}

}  // namespace hpo::trainer
