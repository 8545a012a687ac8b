// Why a study leaves a worker idle for want of memory, and what would help, for people.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/placement/placement.h"

namespace hpo::server {

// "100 % of the space does not fit; reduce tok.max_length to 96": the share of the space that does
// not fit the worker (space_survey.h), and the change that makes the rest of it, or the least
// demanding configuration, fit (config_advice.h). Empty where nothing is known of the needs, or all
// fits. Tenths of a second.
std::string AdviseOnMisfit(const StudySpec& study, const WorkerFacts& worker,
                           const MemoryKnowledge& knowledge);

// The same, computed again only if it may have changed; where there are no estimates and what was
// learnt from other trials rules everything out, that more memory helps. Thread-safe.
class MisfitAdvisor {
 public:
  std::string Advise(const StudySpec& study, WorkerFacts worker, const MemoryKnowledge& knowledge)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string AdviseByEstimate(const StudySpec& study, const WorkerFacts& worker,
                               const MemoryKnowledge& knowledge) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Given {
    StudySpec study;
    WorkerFacts worker;
    int64_t calibration_version = 0;
    std::string advice;
  };

  absl::Mutex mutex_;
  // By study and worker.
  std::map<std::pair<std::string, std::string>, Given> given_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
