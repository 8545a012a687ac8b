// Commands that are advised in texts of the server. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// `text`, in which each command that asks a server (hpo status, hpo-worker, ...) ends in
// `--server address`, so that it works as it stands. Unchanged for the default address.
std::string WithServer(absl::string_view text, absl::string_view address);

// `text` without its advice on how a study goes on, for those whose server has then ended.
std::string WithoutGoingOn(absl::string_view text);

}  // namespace hpo
