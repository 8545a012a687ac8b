// Enumerations on the wire: one table of pairs serves both directions.
#pragma once

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace hpo {

template <typename Ours, typename Wire, size_t N>
using EnumPairs = std::array<std::pair<Ours, Wire>, N>;

// `table` must name every enumerator.
template <typename Ours, typename Wire, size_t N>
Wire ToWire(const EnumPairs<Ours, Wire, N>& table, Ours value) {
  for (const auto& [ours, wire] : table) {
    if (ours == value) return wire;
  }
  HPO_CHECK(false && "an enumerator is missing from its table");
}

//   InvalidArgument  `value` is unspecified or from a newer version: "expected a precision, got 9"
template <typename Ours, typename Wire, size_t N>
absl::StatusOr<Ours> FromWire(const EnumPairs<Ours, Wire, N>& table, Wire value,
                              absl::string_view what) {
  for (const auto& [ours, wire] : table) {
    if (wire == value) return ours;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, ", got ", static_cast<int>(value)));
}

}  // namespace hpo
