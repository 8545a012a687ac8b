// The names of an enum's values, as they are stored and shown.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/one_of.h"

namespace hpo {

// Specialized for each enum: kNames, in the order of its declaration; kInFiles where people write
// them; and kMeans, "a precision", where messages have it.
template <typename Enum>
struct NamesOf;

template <typename Enum>
absl::string_view NameIn(Enum value) {
  return NamesOf<Enum>::kNames[static_cast<size_t>(value)];
}

// nullopt for an unknown name.
template <typename Enum>
std::optional<Enum> ValueNamed(absl::string_view name) {
  for (size_t i = 0; i < std::size(NamesOf<Enum>::kNames); ++i) {
    if (name == NamesOf<Enum>::kNames[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// "plan, strict or off"; of names that programs write "one of HOST, LATE_PEAK".
template <typename Enum>
std::string ExpectedNames() {
  if constexpr (requires { NamesOf<Enum>::kInFiles; }) {
    return OneOf(NamesOf<Enum>::kNames);
  } else {
    return absl::StrCat("one of ", absl::StrJoin(NamesOf<Enum>::kNames, ", "));
  }
}

}  // namespace hpo
