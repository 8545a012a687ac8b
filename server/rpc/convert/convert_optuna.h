// Optuna's storage messages to values, and back. Protobuf types stop here.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/interop/optuna/optuna_trial.h"
#include "common/study/study.h"
#include "optuna/storage.pb.h"

namespace hpo::server {

OptunaState FromProto(optuna::TrialState state);
std::vector<Direction> FromProto(const google::protobuf::RepeatedField<int>& proto);
optuna::StudyDirection ToProto(Direction direction);

//   InvalidArgument  a parameter without a distribution, or a distribution without a parameter
absl::StatusOr<OptunaTrial> FromProto(const optuna::Trial& proto);
void ToProto(const OptunaTrial& trial, optuna::Trial& proto);

}  // namespace hpo::server
