// Lists for messages.
#pragma once

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo {

// "a, b or c" of a range of at least one name.
template <typename Names>
std::string OneOf(const Names& names) {
  const auto last = std::prev(std::end(names));
  if (last == std::begin(names)) return std::string(*last);
  return absl::StrCat(absl::StrJoin(std::begin(names), last, ", "), " or ", *last);
}

}  // namespace hpo
