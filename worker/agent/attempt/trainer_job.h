// From what the server assigned to what a trainer is told: names become paths of this machine.
// Pure, but for FindPlaces.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/catalog/data_catalog.h"
#include "worker/agent/catalog/model_catalog.h"

namespace hpo::agent {

// Where things are on this machine.
struct JobPlaces {
  std::string device;      // "cpu", "cuda:0"
  std::string model_path;  // empty: the trainer is given no model folder
  std::string train_path;
  std::string validation_path;
  std::string output_dir;
  CheckpointSpec checkpoints;
  // Context and libraries: part of what the server allows, not of what a trainer's allocator may
  // use.
  Bytes base;
};

// Where the model and the data of `assignment` are; the rest of the places is the caller's.
//   PermissionDenied, InvalidArgument  the study names what no worker may open (contained_path.h)
absl::StatusOr<JobPlaces> FindPlaces(const Assignment& assignment, const ModelCatalog& models,
                                     const DataCatalog& data);

TrainerJob MakeJob(const Assignment& assignment, const JobPlaces& places);

// A study's name as that of a folder: "team/criteria" is "team_criteria".
std::string StudyFolder(const std::string& study);

// "criteria/000012": what a trial's attempts share.
std::string TrialFolder(const TrialId& trial);

// "criteria/000012-1": where an attempt's files go, below the runs folder.
std::string AttemptFolder(const LeaseRef& lease);

}  // namespace hpo::agent
