// What the memory model and a study's trials say of its whole search space on GPUs of any memory:
// GetMemoryFrontier and GetMemoryFit of proto/hpo/v1/analysis.proto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "memory/frontier/need_grid.h"
#include "memory/plan/space_survey.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

struct FrontierQuery {
  std::string x;  // parameters; empty: those that memory depends on most
  std::string y;
  ParamMap params;                // the others; left out: those of the best trial
  std::vector<Bytes> capacities;  // of GPUs; empty: those of the workers
  std::string worker;             // whose device and data; empty: the one of the largest capacity
  int points = 0;                 // of each axis; 0: 16
};

struct MemoryFrontier {
  memory::NeedGrid grid;
  std::string basis;  // a sentence: what the figures stand on
};

// Thread-safe. Decisions are those that the study's trials are placed by; without a worker, those
// for a GPU that nobody has measured. No lock is held while it computes. Some milliseconds for each
// replay that was not made before; those of the last studies are remembered.
class MemoryAnalysis {
 public:
  // Configurations that a survey looks at; of more, as many are drawn.
  static constexpr int64_t kMostSurveyed = 1'000;

  // `scheduler` outlives it.
  explicit MemoryAnalysis(const TrialScheduler& scheduler) : scheduler_(scheduler) {}

  //   NotFound, InvalidArgument, FailedPrecondition  see analysis.proto and NeedGridOf
  absl::StatusOr<MemoryFrontier> Frontier(const std::string& study,
                                          const FrontierQuery& query) const;
  // The answer to the same question is remembered until the study's space, what is known of its
  // memory, or the workers change. Codes as Frontier.
  absl::StatusOr<memory::SpaceSurvey> Fit(const std::string& study,
                                          const std::vector<Bytes>& capacities) const;

 private:
  // By whose device, models and data a study is judged.
  struct Basis {
    StudySpec spec;
    WorkerFacts facts;
    MemoryKnowledge knowledge;
    int64_t history_sequence = 0;
  };
  // A survey, and all that it depends on.
  struct Surveyed {
    StudySpec spec;
    WorkerFacts facts;
    int64_t calibration_version = 0;
    int64_t history_sequence = 0;  // 0: it goes by replays alone
    std::vector<Bytes> capacities;
    memory::SpaceSurvey survey;

    bool IsFor(const Surveyed& asked) const {
      return spec == asked.spec && facts == asked.facts &&
             calibration_version == asked.calibration_version &&
             history_sequence == asked.history_sequence && capacities == asked.capacities;
    }
  };

  absl::StatusOr<Basis> BasisFor(const StudyRuntime& study, const std::string& worker) const;
  // The parameters of the study's best trial by its first objective; empty: there is none.
  absl::StatusOr<ParamMap> BestParams(const StudyRuntime& study) const;
  absl::StatusOr<std::vector<Bytes>> CapacitiesOr(const std::vector<Bytes>& asked) const;
  // The study's; of at most kMostStudies, the last ones that were asked for.
  std::shared_ptr<memory::ReplayTable> ReplaysOf(const StudyRuntime::Identity& study) const;
  absl::StatusOr<memory::SpaceSurvey> Survey(const Basis& basis,
                                             const std::vector<Bytes>& capacities) const;

  const TrialScheduler& scheduler_;
  mutable absl::Mutex mutex_;
  mutable std::vector<std::pair<StudyRuntime::Identity, std::shared_ptr<memory::ReplayTable>>>
      replays_ ABSL_GUARDED_BY(mutex_);  // the one that was asked for last is the last
  mutable std::map<std::string, Surveyed> surveyed_ ABSL_GUARDED_BY(mutex_);  // by study
};

}  // namespace hpo::server
