// Join strings of servers (common/tls/join_string.h) are secrets. Where one stands in a place that
// is printed, sent to a server or written into a script, the program has to refuse it unseen.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// Whether a part of the text has the form of a join string with a secret.
bool HasJoinString(absl::string_view text);

// What is wrong with the command line, or with a variable that names a server, a file or a study:
// the place of a join string and what to use, without the string. It may only be the value of
// --join, and of no worker that another program starts (after `--`). nullopt: nothing.
std::optional<std::string> FindMisplacedSecret(int argc, const char* const* argv);

}  // namespace hpo
