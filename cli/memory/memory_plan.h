// `hpo memory plan`. Codes, apart from its own: InvalidArgument where a word, size or file is
// wrong, NotFound where a file or model is not there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemoryPlanOptions {
  std::vector<std::string> params;
  memory::CardOptions device;  // one card
  std::string task;            // of the model; empty: text-classification
};

// The cheapest changes that make a configuration fit. Whether it fits with them. Needs no server.
absl::StatusOr<bool> ShowMemoryPlan(Session& session, const MemoryPlanOptions& options);

}  // namespace hpo::cli
