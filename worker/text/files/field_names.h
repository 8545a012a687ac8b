// The names of the fields of a row, which JSON and CSV share; they are taken in any case.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::text {

// A row's text is in the first of these that it has.
inline constexpr std::array<absl::string_view, 3> kTextNames = {"text", "sentence", "review"};

// For messages: that, with the one to prefer first.
inline constexpr absl::string_view kTextNamesShown = "'text' (or 'sentence' or 'review')";

// "'sentence', 'label', ... (9 in all)": the first few of `names`, which are in quotes and not
// long.
std::string FirstNames(const std::vector<std::string>& names);

}  // namespace hpo::text
