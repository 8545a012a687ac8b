// Tested by tests/integration/test_optuna_storage.py.
#include "server/rpc/convert/convert_optuna.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "proto/convert/params_proto.h"

namespace hpo::server {

// Both enumerations have Optuna's numbers.
static_assert(static_cast<int>(OptunaState::kWaiting) == optuna::WAITING);
static_assert(static_cast<int>(OptunaState::kComplete) == optuna::COMPLETE);

OptunaState FromProto(optuna::TrialState state) { return static_cast<OptunaState>(state); }

std::vector<Direction> FromProto(const google::protobuf::RepeatedField<int>& proto) {
  std::vector<Direction> directions;
  for (const int direction : proto) {
    directions.push_back(direction == optuna::MINIMIZE ? Direction::kMinimize
                                                       : Direction::kMaximize);
  }
  return directions;
}

optuna::StudyDirection ToProto(Direction direction) {
  return direction == Direction::kMinimize ? optuna::MINIMIZE : optuna::MAXIMIZE;
}

absl::StatusOr<OptunaTrial> FromProto(const optuna::Trial& proto) {
  OptunaTrial trial;
  trial.state = FromProto(proto.state());
  trial.values = {proto.values().begin(), proto.values().end()};
  trial.started = proto.datetime_start();
  trial.completed = proto.datetime_complete();
  for (const auto& [name, value] :
       std::map<std::string, double>(proto.params().begin(), proto.params().end())) {
    const auto distribution = proto.distributions().find(name);
    if (distribution == proto.distributions().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("distributions: expected one of parameter ", Quoted(name), ", got none"));
    }
    trial.params.push_back({name, value, distribution->second});
  }
  if (proto.distributions_size() != proto.params_size()) {
    return absl::InvalidArgumentError(absl::StrCat("distributions: expected ", proto.params_size(),
                                                   ", one of each parameter, got ",
                                                   proto.distributions_size()));
  }
  trial.intermediate_values = {proto.intermediate_values().begin(),
                               proto.intermediate_values().end()};
  trial.user_attributes = hpo::FromProto(proto.user_attributes());
  trial.system_attributes = hpo::FromProto(proto.system_attributes());
  return trial;
}

void ToProto(const OptunaTrial& trial, optuna::Trial& proto) {
  proto.set_trial_id(trial.id);
  proto.set_number(trial.number);
  proto.set_state(static_cast<optuna::TrialState>(trial.state));
  proto.mutable_values()->Add(trial.values.begin(), trial.values.end());
  proto.set_datetime_start(trial.started);
  proto.set_datetime_complete(trial.completed);
  for (const OptunaParam& param : trial.params) {
    (*proto.mutable_params())[param.name] = param.value;
    (*proto.mutable_distributions())[param.name] = param.distribution;
  }
  proto.mutable_intermediate_values()->insert(trial.intermediate_values.begin(),
                                              trial.intermediate_values.end());
  *proto.mutable_user_attributes() = hpo::ToProto(trial.user_attributes);
  *proto.mutable_system_attributes() = hpo::ToProto(trial.system_attributes);
}

}  // namespace hpo::server
