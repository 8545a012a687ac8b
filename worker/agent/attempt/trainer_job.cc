#include "worker/agent/attempt/trainer_job.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/space/params.h"

namespace hpo::agent {

absl::StatusOr<JobPlaces> FindPlaces(const Assignment& assignment, const ModelCatalog& models,
                                     const DataCatalog& data) {
  const std::string model = FindString(assignment.task.params, "model.name").value_or("");
  JobPlaces places;
  HPO_ASSIGN_OR_RETURN(places.model_path, ModelFolder(models, model));
  HPO_ASSIGN_OR_RETURN(places.train_path, data.TrainPath(assignment.task.trainer.train));
  HPO_ASSIGN_OR_RETURN(places.validation_path,
                       data.ValidationPath(assignment.task.trainer.validation));
  return places;
}

TrainerJob MakeJob(const Assignment& assignment, const JobPlaces& places) {
  TrialTask task = assignment.task;
  task.trainer.train = places.train_path;
  task.trainer.validation = places.validation_path;
  // 0 would mean no limit, and no estimate.
  task.limit = std::max(Bytes{1}, task.limit - places.base);
  if (task.predicted > Bytes{}) task.predicted = std::max(Bytes{1}, task.predicted - places.base);
  return {.study = assignment.lease.trial.study,
          .trial = assignment.lease.trial.number,
          .attempt = assignment.lease.attempt,
          .task = std::move(task),
          .model_name = FindString(assignment.task.params, "model.name").value_or(""),
          .model_path = places.model_path,
          .device = places.device,
          .output_dir = places.output_dir,
          .checkpoints = places.checkpoints};
}

std::string StudyFolder(const std::string& study) {
  const bool leads_out = study == "." || study == "..";
  return leads_out ? "_" + study : absl::StrReplaceAll(study, {{"/", "_"}});
}

std::string TrialFolder(const TrialId& trial) {
  return absl::StrFormat("%s/%06d", StudyFolder(trial.study), trial.number.value);
}

std::string AttemptFolder(const LeaseRef& lease) {
  return absl::StrCat(TrialFolder(lease.trial), "-", lease.attempt.value);
}

}  // namespace hpo::agent
