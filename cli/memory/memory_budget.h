// `hpo memory budget`. Codes, apart from its own: InvalidArgument where a word, size or file is
// wrong, NotFound where a file or model is not there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemoryBudgetOptions {
  std::vector<std::string> params;
  std::vector<std::string> compare;  // in place of those of `params`; empty: one column
  memory::CardOptions device;        // one card
  std::string task;                  // of the model; empty: text-classification
};

// What a training run holds at its peak, class by class, before and after a change. Whether the
// last fits. Needs no server.
absl::StatusOr<bool> ShowMemoryBudget(Session& session, const MemoryBudgetOptions& options);

}  // namespace hpo::cli
