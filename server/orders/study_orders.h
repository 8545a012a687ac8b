// What people order of a study and of a trial, and what they note of them.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/study/attributes.h"
#include "common/study/study_status.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// Thread-safe. Codes: StudyApi.
class StudyOrders {
 public:
  // `state` outlives it.
  explicit StudyOrders(SchedulerState& state) : state_(state) {}

  absl::Status OrderStudy(const std::string& name, StudyOrder order, bool stop_running_trials);
  absl::Status PreemptTrial(const std::string& name, TrialNumber number);
  absl::Status StopTrial(const std::string& name, TrialNumber number, const std::string& reason);
  absl::Status CancelTrial(const std::string& name, TrialNumber number, const std::string& reason);
  // Of the study itself where no trial is named; what there is then.
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& name,
                                              std::optional<TrialNumber> trial,
                                              const AttributeChange& change);

 private:
  SchedulerState& state_;
};

}  // namespace hpo::server
