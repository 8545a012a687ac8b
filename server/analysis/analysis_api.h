// What each AnalysisService request does, in value types. proto/hpo/v1/analysis.proto says what the
// calls do and how they fail. Thread-safe.
#pragma once

#include "server/analysis/memory_analysis.h"
#include "server/api/study_queries.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

class AnalysisApi {
 public:
  // `scheduler` and `queries` outlive it.
  AnalysisApi(const TrialScheduler& scheduler, const StudyQueries& queries)
      : scheduler_(scheduler), queries_(queries), memory_(scheduler, queries) {}

  // GetMemoryFrontier and GetMemoryFit.
  const MemoryAnalysis& memory() const { return memory_; }

 private:
  [[maybe_unused]] const TrialScheduler& scheduler_;
  [[maybe_unused]] const StudyQueries& queries_;
  const MemoryAnalysis memory_;
};

}  // namespace hpo::server
