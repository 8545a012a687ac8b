// What a commit has changed, as memory takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/study/study_status.h"
#include "common/study/trial.h"
#include "server/storage/records.h"

namespace hpo::server {

// A trial as one event left it.
struct TrialChange {
  int64_t sequence = 0;
  std::string kind;    // see TrialEvent
  TrialRecord record;  // with attempts
  std::vector<Measurement> measurements;
  std::optional<AttemptRecord> lease;  // the current attempt, while it holds one
};

// Measurements that an attempt of a trial has added to those that it had, and nothing else.
struct TrialMeasured {
  int64_t sequence = 0;
  TrialNumber trial;
  AttemptNumber attempt;
  std::vector<Measurement> added;
};

// What people want of a study from the event `sequence` on.
struct OrderedStudy {
  StudyOrder order = StudyOrder::kRun;
  TrialNumber failures_from;  // as StudyRecord's
  int64_t sequence = 0;
};

}  // namespace hpo::server
