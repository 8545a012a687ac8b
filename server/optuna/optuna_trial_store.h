// Trials of Optuna's clients in the database.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h, and those named here. NotFound names the id.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/interop/optuna/optuna_trial.h"
#include "server/optuna/optuna_study_store.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// Which trials of a study are asked for.
struct OptunaTrialQuery {
  int64_t after = -1;             // those of a higher id, and
  std::vector<int64_t> included;  // these, where the study has them
};

// Takes one trial of several; its error ends the reading.
using TakeOptunaTrial = std::function<absl::Status(OptunaTrial)>;

class OptunaTrialStore {
 public:
  explicit OptunaTrialStore(Database& database) : database_(database), studies_(database) {}

  // Stores `trial` under the study's next number; its own id and number do not count. Returns its
  // id.
  //   NotFound, InvalidArgument  as SetParam and SetState
  absl::StatusOr<int64_t> CreateTrial(int64_t study, const OptunaTrial& trial);

  // In place of the value that the trial had.
  //   NotFound            no such trial
  //   FailedPrecondition  the trial has finished
  //   InvalidArgument     no distribution, a value that it does not have, or one that cannot follow
  //                       the first of that name in the study
  absl::Status SetParam(int64_t trial, const OptunaParam& param);
  // Whether the trial has that state from now on: RUNNING is given to one caller alone, who finds
  // the trial WAITING. `values` empty: they stay.
  //   NotFound, FailedPrecondition  as SetParam
  //   InvalidArgument               COMPLETE without a value for each objective
  absl::StatusOr<bool> SetState(int64_t trial, OptunaState state, const std::vector<double>& values,
                                absl::Time now);
  //   NotFound, FailedPrecondition  as SetParam
  absl::Status SetIntermediateValue(int64_t trial, int64_t step, double value);
  absl::Status SetTrialAttribute(int64_t trial, OptunaAttribute kind, const std::string& key,
                                 const std::string& json);

  //   NotFound
  absl::StatusOr<int64_t> FindTrial(int64_t study, int64_t number) const;
  absl::StatusOr<OptunaTrial> LoadTrial(int64_t trial) const;
  // By id, each once.
  absl::Status LoadTrials(int64_t study, const OptunaTrialQuery& query,
                          const TakeOptunaTrial& take) const;

 private:
  struct Place {
    int64_t study = 0;
    OptunaState state = OptunaState::kRunning;
  };
  absl::StatusOr<Place> FindOpen(int64_t trial) const;
  absl::StatusOr<int64_t> FindDistribution(int64_t study, const OptunaParam& param);
  absl::Status PutParam(int64_t study, int64_t trial, const OptunaParam& param);
  absl::Status PutValues(int64_t trial, const std::vector<double>& values);
  absl::Status PutIntermediateValue(int64_t trial, int64_t step, double value);
  absl::Status PutTrialAttribute(int64_t trial, OptunaAttribute kind, const std::string& key,
                                 const std::string& json);
  absl::StatusOr<OptunaTrial> ReadTrial(const Statement& row) const;

  Database& database_;
  const OptunaStudyStore studies_;
};

}  // namespace hpo::server
