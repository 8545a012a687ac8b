// What people ask of a study. Shared by the scheduler and the api.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "common/study/study.h"

namespace hpo::server {

struct StudyUpdate {
  std::optional<int64_t> trials;  // new total
  // On top of the budget, or of the trials that there are where those are more.
  std::optional<int64_t> add_trials;
  std::optional<absl::Duration> wall_clock;
  std::optional<int64_t> failures_in_a_row;
  std::optional<double> failed_share;  // 1: no limit
  std::optional<double> target;
  bool remove_target = false;
  std::map<std::string, std::vector<ParamValue>> added_choices;
};

struct EnqueueRequest {
  ParamMap params;
  bool demonstration = false;
  bool skip_admission = false;
  int64_t forced_micro_batch = 0;
};

struct StudyEdit {
  std::optional<StudySpec> file;         // the study's changed file; or
  std::map<std::string, Domain> ranges;  // by parameter
  bool validate_only = false;            // tells what would come of it
};

struct EditResult {
  // Of each parameter that has changed.
  std::map<std::string, Domain> before;
  std::map<std::string, Domain> after;
  int64_t num_outside = 0;             // trials that lie outside of the space now
  std::vector<TrialNumber> cancelled;  // of those, that waited and had never run
};

struct RetryRequest {
  std::vector<TrialNumber> numbers;
  bool all_failed = false;  // every trial that could be named
};

struct RetryResult {
  std::vector<TrialNumber> queued;
  std::vector<std::pair<TrialNumber, std::string>> skipped;  // and why
};

}  // namespace hpo::server
