// Colours of a terminal. Pure. They only repeat what the text says.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::cli {

enum class Color { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// `text` between the ANSI sequences that switch the colour on and off; `text` itself for kPlain and
// where `enabled` is false.
std::string Colored(absl::string_view text, Color color, bool enabled = true);

// Colour of a trial's or a study's state, as DescribeState and the table of studies write it.
Color ColorOfState(absl::string_view state);

}  // namespace hpo::cli
