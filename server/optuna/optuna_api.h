// What each request of Optuna's StorageService does, in value types. Thread-safe.
//
// A study of an Optuna client's lives in tables of its own (optuna_study_store.h); what changes it
// is durable when the call returns. One of ours is there to read (own_studies.h).
//
// Codes of every call, in addition to those named in optuna_study_store.h and
// optuna_trial_store.h:
//   PermissionDenied  a change of a study of ours. GrpcStorageProxy turns this code into no
//                     exception of Optuna's, so that its caller sees the text
//   Unavailable       nothing was stored, see WriteQueue
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/api/study_queries.h"
#include "server/optuna/optuna_study_store.h"
#include "server/optuna/optuna_trial_store.h"
#include "server/optuna/own_studies.h"
#include "server/storage/store.h"

namespace hpo::server {

class OptunaApi {
 public:
  // All outlive it.
  OptunaApi(Store& store, const StudyQueries& studies, const Clock& clock)
      : store_(store), own_(store, studies), clock_(clock) {}

  //   InvalidArgument  no direction
  absl::StatusOr<int64_t> CreateStudy(const std::string& name,
                                      const std::vector<Direction>& directions);
  absl::Status DeleteStudy(int64_t study);
  //   InvalidArgument  not JSON
  absl::Status SetStudyAttribute(int64_t study, OptunaAttribute kind, const std::string& key,
                                 const std::string& json);
  absl::StatusOr<int64_t> FindStudy(const std::string& name) const;
  absl::StatusOr<OptunaStudySummary> GetStudy(int64_t study) const;
  // Those of Optuna's clients, then ours.
  absl::StatusOr<std::vector<OptunaStudySummary>> ListStudies() const;

  // A trial that runs from now on.
  absl::StatusOr<int64_t> StartTrial(int64_t study);
  // One that is as `trial` says.
  //   InvalidArgument  also where times are none, attributes no JSON, values not numbers
  absl::StatusOr<int64_t> CreateTrial(int64_t study, const OptunaTrial& trial);
  absl::Status SetParam(int64_t trial, const OptunaParam& param);
  absl::StatusOr<bool> SetState(int64_t trial, OptunaState state,
                                const std::vector<double>& values);
  absl::Status SetIntermediateValue(int64_t trial, int64_t step, double value);
  //   InvalidArgument  not JSON
  absl::Status SetTrialAttribute(int64_t trial, OptunaAttribute kind, const std::string& key,
                                 const std::string& json);
  absl::StatusOr<int64_t> FindTrial(int64_t study, int64_t number) const;
  absl::StatusOr<OptunaTrial> GetTrial(int64_t trial) const;
  absl::Status GetTrials(int64_t study, const OptunaTrialQuery& query,
                         const TakeOptunaTrial& take) const;

 private:
  absl::Status CheckStudyIsOptunas(int64_t study) const;
  absl::Status CheckTrialIsOptunas(int64_t trial) const;

  Store& store_;
  const OwnStudies own_;
  const Clock& clock_;
};

}  // namespace hpo::server
