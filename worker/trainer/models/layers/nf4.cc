#include "worker/trainer/models/layers/nf4.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace hpo::trainer {
namespace {

constexpr size_t kBlockElements = memory::kNf4Block;

// Half-way between each two values.
constexpr std::array<float, 15> kBorders = [] {
  std::array<float, 15> borders{};
  for (size_t i = 0; i < borders.size(); ++i) {
    borders[i] = (kNf4Values[i] + kNf4Values[i + 1]) / 2.0f;
  }
  return borders;
}();

// The number of borders below it: without branches, which none could foresee.
uint8_t NearestCode(float value) {
  uint8_t code = 0;
  for (const float border : kBorders) code = static_cast<uint8_t>(code + (border < value ? 1 : 0));
  return code;
}

}  // namespace

void QuantizeNf4(std::span<const float> values, std::span<uint8_t> codes, std::span<float> scales) {
  HPO_CHECK(codes.size() == scales.size() * kBlockElements / 2 &&
            values.size() <= scales.size() * kBlockElements);
  for (size_t block = 0; block < scales.size(); ++block) {
    const size_t begin = block * kBlockElements;
    const auto own = values.subspan(begin, std::min(kBlockElements, values.size() - begin));
    float largest = 0.0f;
    for (const float value : own) largest = std::max(largest, std::fabs(value));
    scales[block] = largest;
    const auto code = [&](size_t i) {
      return i < own.size() && largest > 0.0f ? NearestCode(own[i] / largest) : NearestCode(0.0f);
    };
    for (size_t i = 0; i < kBlockElements; i += 2) {
      codes[(begin + i) / 2] = static_cast<uint8_t>(code(i) << 4 | code(i + 1));
    }
  }
}

void DequantizeNf4(std::span<const uint8_t> codes, std::span<const float> scales,
                   std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t pair = codes[i / 2];
    values[i] = kNf4Values[i % 2 == 0 ? pair >> 4 : pair & 15] * scales[i / kBlockElements];
  }
}

}  // namespace hpo::trainer
