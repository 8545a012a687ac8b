#include "worker/agent/attempt/trainer_job.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/space/params.h"

namespace hpo::agent {

absl::StatusOr<JobPlaces> FindPlaces(const Assignment& assignment, const ModelCatalog& models,
                                     const DataCatalog& data) {
  const std::string model = FindString(assignment.params, "model.name").value_or("");
  JobPlaces places;
  HPO_ASSIGN_OR_RETURN(places.model_path, ModelFolder(models, model));
  HPO_ASSIGN_OR_RETURN(places.train_path, data.TrainPath(assignment.trainer.train));
  HPO_ASSIGN_OR_RETURN(places.validation_path, data.ValidationPath(assignment.trainer.validation));
  return places;
}

TrainerJob MakeJob(const Assignment& assignment, const JobPlaces& places) {
  TrainerJob job;
  job.study = assignment.lease.trial.study;
  job.trial = assignment.lease.trial.number;
  job.attempt = assignment.lease.attempt;
  job.params = assignment.params;
  job.task = assignment.trainer.task;
  job.train_path = places.train_path;
  job.validation_path = places.validation_path;
  job.labels = assignment.trainer.labels;
  job.epochs = assignment.trainer.epochs;
  job.measure_every_steps = assignment.trainer.measure_every_steps;
  job.model_name = FindString(assignment.params, "model.name").value_or("");
  job.model_path = places.model_path;
  job.model_init = assignment.trainer.model_init;
  job.objective = assignment.objective;
  job.device = places.device;
  job.policy = assignment.policy;
  job.allow_checkpointing = assignment.allow_checkpointing;
  job.admission = assignment.admission;
  // 0 would mean no limit, and no estimate.
  job.limit = std::max(Bytes{1}, assignment.limit - places.base);
  if (assignment.predicted > Bytes{}) {
    job.predicted = std::max(Bytes{1}, assignment.predicted - places.base);
  }
  job.plan = assignment.plan;
  job.seed = assignment.seed;
  job.output_dir = places.output_dir;
  job.checkpoints = places.checkpoints;
  return job;
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
