// Trials that another program ran to their end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/space/params.h"
#include "common/study/attributes.h"
#include "common/study/trial.h"

namespace hpo {

struct ImportedTrial {
  std::string origin;  // unique in a study; the same again is the same trial
  ParamMap params;
  TrialOutcome outcome;
  std::vector<Measurement> measurements;
  bool demonstration = false;
  absl::Time started = absl::InfinitePast();
  absl::Time ended = absl::InfinitePast();
  Attributes attributes;  // note and tags among them
  bool operator==(const ImportedTrial&) const = default;
};

struct TrialImport {
  std::string study;  // empty: the only one
  bool count_against_budget = false;
  std::vector<ImportedTrial> trials;
  // Whether nobody waits for the result any more; empty: somebody does.
  std::function<bool()> cancelled;
};

struct ImportResult {
  std::string study;
  int64_t num_added = 0;
  int64_t num_known = 0;  // were there already
};

}  // namespace hpo
