// Whether a command failed since its program is not there or cannot be executed. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::command {

// The line in which a shell, a launcher such as env, or Python says that a program or script which
// `command_text` names cannot be started; empty: there is none. Then no trial's values change that.
//   `exit_status`   of the command: 126 or 127 by a shell or a launcher, 2 by Python
//   `output`        the last lines that were printed
//   `command_text`  CommandTemplate::PlainText: what other trials have, too
std::string WhyNotStarted(int exit_status, absl::string_view output,
                          absl::string_view command_text);

}  // namespace hpo::command
