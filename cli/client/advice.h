// Commands that are advised in texts of the server. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::cli {

// What the server is whose texts a command shows. Commands in them are given its address.
//   kServer    one that stays
//   kOwn       one that ends with this command, so that advice for later is left out, and advice
//              to start a worker
//   kSnapshot  as kOwn; it serves what a database file holds, so that what it says of workers and
//              of waiting is no fact, and is left out, too
enum class ServerSource { kServer, kOwn, kSnapshot };

// `text`, in which each command that asks a server (hpo status, hpo-worker, ...) ends in
// `--server address`, so that it works as it stands. Unchanged for the default address.
std::string WithServer(absl::string_view text, absl::string_view address);

// `text` without its advice on how a study goes on, for those whose server has then ended.
std::string WithoutGoingOn(absl::string_view text);

}  // namespace hpo::cli
