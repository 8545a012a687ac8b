// What people ask of a study. Shared by the scheduler and the api.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/space/params.h"

namespace hpo {

struct StudyUpdate {
  std::optional<int64_t> trials;  // new total
  // On top of the budget, or of the trials that there are where those are more.
  std::optional<int64_t> add_trials;
  std::optional<absl::Duration> wall_clock;
  std::optional<int64_t> failures_in_a_row;
  std::optional<double> failed_share;  // 1: no limit
  std::map<std::string, std::vector<ParamValue>> added_choices;
};

struct EnqueueRequest {
  ParamMap params;
  bool demonstration = false;
  bool skip_admission = false;
  int64_t forced_micro_batch = 0;
};

}  // namespace hpo
