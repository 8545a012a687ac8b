// Trials that people ask for: configurations of their own, and again those of trials that failed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/study_exchange.h"
#include "common/space/params.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {

// What came of a RetryRequest; stored as the answer to its id.
struct QueuedAgain {
  std::vector<TrialNumber> queued;
  std::vector<SkippedTrial> skipped;
};

// Thread-safe. Codes: StudyApi.
class TrialEnqueuer {
 public:
  // `state` outlives it.
  explicit TrialEnqueuer(SchedulerState& state) : state_(state) {}

  absl::StatusOr<TrialNumber> EnqueueTrial(const std::string& name, const EnqueueRequest& request,
                                           const std::string& request_id);
  absl::StatusOr<QueuedAgain> RetryTrials(const std::string& name, const RetryRequest& request,
                                          const std::string& request_id);

 private:
  // What is not given is drawn, or is the parameter's default; of the models, from those that a
  // connected worker has.
  //   InvalidArgument  an unknown parameter, or a value outside its domain
  absl::StatusOr<ParamMap> CompleteEnqueued(const StudyRuntime& study, const ParamMap& given,
                                            TrialNumber number) const;
  absl::Status QueueAgain(TrialTransaction& transaction, const StudyRuntime& study,
                          const RetryRequest& request, QueuedAgain& result) const;

  SchedulerState& state_;
};

}  // namespace hpo::server
