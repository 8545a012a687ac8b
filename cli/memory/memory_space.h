// `hpo memory space`. Codes, apart from its own: InvalidArgument where a word, size or file is
// wrong, NotFound where a file or model is not there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemorySpaceOptions {
  std::string file;  // a study's file or preset; empty: the session's study, from its server
  memory::CardOptions device;
};

// How much of a study's space fits each card. Whether all of it fits all of them by the study's own
// policy.
absl::StatusOr<bool> ShowMemorySpace(Session& session, const MemorySpaceOptions& options);

}  // namespace hpo::cli
