// What each AnalysisService request does, in value types. proto/hpo/v1/analysis.proto says what the
// calls do. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/interop/importance/study_importance.h"
#include "server/analysis/curve_sample.h"
#include "server/analysis/memory_analysis.h"
#include "server/analysis/timeline.h"
#include "server/api/study_tables.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

struct ImportanceAnswer {
  std::string metric;
  int64_t num_trials = 0;  // that were assessed
  ImportanceAssessment assessment;
  int64_t sequence = 0;  // of the study's last change that is in it
};

struct CurvesQuery {
  std::string metric;                // empty: the first objective
  std::vector<TrialNumber> numbers;  // empty: the newest ones that have values
  std::vector<std::string> where;    // conditions, as QueryTrials has them
  int count = 0;                     // of trials; 0: 50
  int points = 0;                    // of a curve; 0: 200
};

struct Curve {
  TrialNumber number;
  char state = 'R';  // LetterOf(RowKind)
  CurvePoints points;
};

struct CurvesAnswer {
  std::vector<Curve> curves;
  std::string metric;
  std::vector<std::string> metrics;  // that the trials which were looked at have measured
  int64_t sequence = 0;
};

// Calls fail with NOT_FOUND where there is no such study, and with DATA_LOSS where the database is
// damaged.
class AnalysisApi {
 public:
  // `scheduler` and `tables` outlive it.
  AnalysisApi(const TrialScheduler& scheduler, const StudyTables& tables)
      : scheduler_(scheduler), tables_(tables), memory_(scheduler) {}

  // GetMemoryFrontier and GetMemoryFit.
  const MemoryAnalysis& memory() const { return memory_; }

  // Importance for `metric`, of an objective; empty: the first. Kept until another trial completes.
  //   InvalidArgument     no such objective
  //   FailedPrecondition  nothing can be assessed: study_importance.h
  absl::StatusOr<ImportanceAnswer> GetImportance(const std::string& study,
                                                 const std::string& metric,
                                                 ImportanceMethod method) const;

  // Newest first. Of trials that are not named it looks at the newest 2,000.
  //   InvalidArgument  a condition that cannot be read
  //   NotFound         no such trial
  absl::StatusOr<CurvesAnswer> GetCurves(const std::string& study, const CurvesQuery& query) const;

  // The latest `count` attempts; 0 means 2,000.
  absl::StatusOr<Timeline> GetTimeline(const std::string& study, int count) const;

 private:
  // What makes two answers the same: beside it, the trials that were assessed.
  using ImportanceKey =
      std::tuple<StudyRuntime::Identity, std::string, ImportanceMethod>;  // metric
  struct KeptImportance {
    SearchSpace space;
    ImportanceAnswer answer;
  };

  const TrialScheduler& scheduler_;
  const StudyTables& tables_;
  const MemoryAnalysis memory_;
  mutable absl::Mutex mutex_;
  mutable std::map<ImportanceKey, KeptImportance> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
