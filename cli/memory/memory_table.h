// `hpo memory table`. Codes, apart from its own: InvalidArgument where a word, size or file is
// wrong, NotFound where a file or model is not there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemoryTableOptions {
  std::string file;  // CSV with a header of parameters, a configuration a row; "-": standard input
  memory::CardOptions device;  // one card
  std::string task;            // of the model; empty: text-classification
};

// What each configuration of a file needs on a card, and what would make it fit. Whether all fit as
// they are. Needs no server.
absl::StatusOr<bool> ShowMemoryTable(Session& session, const MemoryTableOptions& options);

}  // namespace hpo::cli
