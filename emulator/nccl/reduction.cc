#include "emulator/nccl/reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace hpo::emulator::nccl {
namespace {

// The value of an IEEE 754 binary16 or a bfloat16 by its bits, and back, to the nearest even.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

float Widen(Float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000U) << 16;
  const uint32_t exponent = (half.bits >> 10) & 0x1fU;
  const uint32_t fraction = half.bits & 0x3ffU;
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -tiny : tiny;
  }
  const uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float Widen(Bfloat16 half) { return std::bit_cast<float>(static_cast<uint32_t>(half.bits) << 16); }

void Narrow(float value, Float16& half) {
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 16 & 0x8000U;
  const float size = std::fabs(value);
  uint32_t bits = 0;
  if (std::isnan(value)) {
    bits = 0x7e00U;
  } else if (size >= 65520.0F) {
    bits = 0x7c00U;
  } else if (size > 0) {
    const int exponent = std::max(std::ilogb(size), -14);
    // In units of the last place; a carry into the exponent is right as it is.
    const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    bits = (static_cast<uint32_t>(exponent + 14) << 10) + units;
  }
  half.bits = static_cast<uint16_t>(sign | bits);
}

void Narrow(float value, Bfloat16& half) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded =
      std::isnan(value) ? bits | 0x400000U : bits + 0x7fffU + (bits >> 16 & 1U);
  half.bits = static_cast<uint16_t>(rounded >> 16);
}

template <typename T>
T Widen(T value) {
  return value;
}

template <typename T>
void Narrow(T value, T& out) {
  out = value;
}

template <typename T>
T Combine(int32_t reduction, T left, T right) {
  if (reduction == kMaximum) return std::max(left, right);
  if (reduction == kMinimum) return std::min(left, right);
  if constexpr (std::is_floating_point_v<T>) {
    return reduction == kProduct ? left * right : left + right;
  } else {
    // As unsigned ones of 64 bits, which wrap around.
    const auto a = static_cast<uint64_t>(left);
    const auto b = static_cast<uint64_t>(right);
    return static_cast<T>(reduction == kProduct ? a * b : a + b);
  }
}

template <typename T>
std::vector<T> ElementsOf(const std::string& value) {
  std::vector<T> elements(value.size() / sizeof(T));
  std::memcpy(elements.data(), value.data(), elements.size() * sizeof(T));
  return elements;
}

template <typename T>
std::string BytesOfAll(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

template <typename T>
std::string ReduceAs(int32_t reduction, const std::vector<std::string>& values) {
  using Wide = decltype(Widen(T{}));
  std::vector<Wide> totals;
  for (const T element : ElementsOf<T>(values.front())) totals.push_back(Widen(element));
  for (size_t rank = 1; rank < values.size(); ++rank) {
    const std::vector<T> elements = ElementsOf<T>(values[rank]);
    for (size_t i = 0; i < totals.size(); ++i) {
      totals[i] = Combine(reduction, totals[i], Widen(elements[i]));
    }
  }
  std::vector<T> reduced(totals.size());
  for (size_t i = 0; i < totals.size(); ++i) {
    if (reduction == kAverage)
      totals[i] = static_cast<Wide>(totals[i] / static_cast<Wide>(values.size()));
    Narrow(totals[i], reduced[i]);
  }
  return BytesOfAll(reduced);
}

template <typename T>
std::string ScaleAs(const std::string& value, const std::string& factor) {
  std::vector<T> elements = ElementsOf<T>(value);
  const auto by = Widen(ElementsOf<T>(factor).front());
  for (T& element : elements) Narrow(Combine(kProduct, Widen(element), by), element);
  return BytesOfAll(elements);
}

// Calls `work` with an element of the type; nothing for types whose arithmetic is not emulated.
template <typename Work>
std::optional<std::string> WithType(int32_t type, const Work& work) {
  switch (type) {
    case kInt8:
      return work(int8_t{});
    case kUint8:
      return work(uint8_t{});
    case kInt32:
      return work(int32_t{});
    case kUint32:
      return work(uint32_t{});
    case kInt64:
      return work(int64_t{});
    case kUint64:
      return work(uint64_t{});
    case kFloat16:
      return work(Float16{});
    case kFloat32:
      return work(float{});
    case kFloat64:
      return work(double{});
    case kBfloat16:
      return work(Bfloat16{});
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> Reduce(int32_t type, int32_t reduction,
                                  const std::vector<std::string>& values) {
  return WithType(type,
                  [&](auto element) { return ReduceAs<decltype(element)>(reduction, values); });
}

std::optional<std::string> Scale(int32_t type, const std::string& value,
                                 const std::string& factor) {
  return WithType(type, [&](auto element) { return ScaleAs<decltype(element)>(value, factor); });
}

}  // namespace hpo::emulator::nccl
