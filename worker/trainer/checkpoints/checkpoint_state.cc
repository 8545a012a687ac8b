#include "worker/trainer/checkpoints/checkpoint_state.h"

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

constexpr int64_t kStateVersion = 1;

absl::StatusOr<nlohmann::json> ObjectFromJson(const nlohmann::json& json) {
  if (json.is_object()) return json;
  return absl::InvalidArgumentError(absl::StrCat("expected an object, got ", DescribeJson(json)));
}

}  // namespace

std::string EncodeCheckpointState(const CheckpointState& state) {
  return DumpJson({{"version", kStateVersion},
                   {"optimizer_steps", state.optimizer_steps},
                   {"loop", LoopStateToJson(state.loop)},
                   {"identity", state.identity}}) +
         "\n";
}

absl::StatusOr<CheckpointState> DecodeCheckpointState(absl::string_view text) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text));
  JsonReader reader(json, "state.json");
  int64_t version = 0;
  CheckpointState state;
  reader.Required("version", version);
  reader.Required("optimizer_steps", state.optimizer_steps);
  reader.RequiredWith("loop", state.loop, LoopStateFromJson);
  reader.RequiredWith("identity", state.identity, ObjectFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  if (version != kStateVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("state.json: expected version ", kStateVersion, ", found ", version));
  }
  if (state.optimizer_steps < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state.json.optimizer_steps: expected at least 0, got ", state.optimizer_steps));
  }
  return state;
}

absl::Status CheckIdentity(const nlohmann::json& found, const nlohmann::json& expected) {
  for (const auto& [key, value] : expected.items()) {
    const nlohmann::json& other = found.contains(key) ? found[key] : nlohmann::json();
    if (other == value) continue;
    return absl::FailedPreconditionError(absl::StrCat("it is of another configuration: ", key,
                                                      ": expected ", DumpJson(value), ", found ",
                                                      DumpJson(other)));
  }
  return absl::OkStatus();
}

}  // namespace hpo::trainer
