// The last lines that a trial's program wrote, as workers send them and the server keeps them
// (Attempt::log_tail). Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// The last lines of `text` that have at most kLogTailLimit bytes together. Lines are whole, but for
// a last one that is longer by itself: of that the end. Bytes that are not UTF-8, and characters
// that steer a terminal, other than the newline and the tab, become '?'.
std::string CheckedLogTail(absl::string_view text);

}  // namespace hpo
