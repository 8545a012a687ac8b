// Trials as MLflow runs: one experiment, one run a trial and one for the study, written again as
// often as one likes.
//
// A run is found again by its tag hpo.key (study, number and time of creation of the trial), so
// that a second export brings it up to date. The tag hpo.logged tells up to which step of which
// attempt metrics are there. A metric's timestamp is TrialView::TimeOf.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/interop/mlflow/mlflow_client.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"

namespace hpo {

// What a run is, apart from what has been logged already. Pure.
struct MlflowRunImage {
  std::string key;
  std::string name;    // "criteria #12"
  std::string status;  // see MlflowClient::UpdateRun
  std::string logged;  // "2:150": attempt and last step
  MlflowBatch batch;   // params, tags (hpo.*) and all metrics
};
MlflowRunImage ImageOf(const TrialView& view);

// One study's. One thread at a time. Codes: MlflowClient.
class MlflowExport {
 public:
  // `client` outlives the export.
  MlflowExport(MlflowClient& client, std::string study, std::string experiment)
      : client_(client), study_(std::move(study)), experiment_(std::move(experiment)) {}

  // Creates the trial's run or brings it up to date, below the study's own where that has been
  // written. A trial that has never started is left out.
  // After an error the runs that are there are looked up again before the next is made.
  absl::Status Write(const TrialView& view);

  // The same of the study's own run, which has its name: trials by state (completed_trials, ...)
  // and the best value, at the step of as many trials as have ended. `now`: the time of these
  // metrics. Without a call where they are as they were.
  absl::Status WriteStudy(const StudyStatus& study, absl::Time now);

 private:
  absl::Status FindRuns();
  // The run of this key, which is made where there is none.
  absl::StatusOr<MlflowRun*> RunOf(const std::string& key, const std::string& name,
                                   absl::Time start);
  absl::Status WriteImage(const TrialView& view, MlflowRunImage image);
  absl::Status WriteCounts(const StudyStatus& study, absl::Time now);

  MlflowClient& client_;
  const std::string study_;
  const std::string experiment_;
  bool found_ = false;
  std::string experiment_id_;
  std::map<std::string, MlflowRun> runs_;  // by key
  std::string study_run_;                  // the id of the study's own
};

}  // namespace hpo
