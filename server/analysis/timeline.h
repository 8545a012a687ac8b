// The latest attempts of a study by their start: which worker ran which, when, and what for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

struct TimelineEntry {
  std::string worker;
  TrialNumber trial;
  AttemptNumber attempt;
  absl::Time started;
  absl::Time ended;  // InfinitePast: it runs
  char use = 'R';    // proto/hpo/v1/analysis.proto
};

struct Timeline {
  std::vector<TimelineEntry> entries;  // by start
  int64_t left_off = 0;                // earlier ones
};

// The latest `count` of them, without what another program ran. Codes: database.h.
absl::StatusOr<Timeline> ReadTimeline(Database& database, int64_t study_id, int64_t count);

}  // namespace hpo::server
