// Which trials of a study are asked for. Shared by storage and the api.
#pragma once

#include <vector>

#include "common/study/trial.h"

namespace hpo::server {

struct TrialFilter {
  std::vector<TrialState> states;          // empty: all
  std::vector<PruneReason> prune_reasons;  // empty: all
  bool newest_first = false;
};

}  // namespace hpo::server
