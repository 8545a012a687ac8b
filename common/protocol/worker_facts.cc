#include "common/protocol/worker_facts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

nlohmann::json ModelFactsToJson(const ModelFacts& facts) {
  return {{"name", facts.name},
          {"shape", ModelShapeToJson(facts.shape)},
          {"digest", facts.digest},
          {"tokenizer_digest", facts.tokenizer_digest},
          {"has_weights", facts.has_weights}};
}

absl::StatusOr<ModelFacts> ModelFactsFromJson(const nlohmann::json& json) {
  ModelFacts facts;
  JsonReader reader(json, "");
  reader.Required("name", facts.name);
  reader.RequiredWith("shape", facts.shape, ModelShapeFromJson);
  reader.Required("digest", facts.digest);
  reader.Optional("tokenizer_digest", facts.tokenizer_digest);
  reader.Optional("has_weights", facts.has_weights);
  HPO_RETURN_IF_ERROR(reader.status());
  return facts;
}

}  // namespace

nlohmann::json DeviceProfileToJson(const DeviceProfile& device) {
  return {{"kind", device.kind},
          {"name", device.name},
          {"uuid", device.uuid},
          {"driver", device.driver},
          {"total_bytes", device.total.count},
          {"base_bytes", device.base.count},
          {"workspace_bytes", device.workspace.count},
          {"source", device.source},
          {"torch_build", device.torch_build},
          {"capability", device.capability},
          {"attention", device.attention},
          {"allocator", device.allocator},
          {"threads", device.threads},
          {"multiprocessors", device.multiprocessors},
          {"threads_per_multiprocessor", device.threads_per_multiprocessor}};
}

absl::StatusOr<DeviceProfile> DeviceProfileFromJson(const nlohmann::json& json) {
  DeviceProfile device;
  JsonReader reader(json, "");
  reader.Required("kind", device.kind);
  reader.Optional("name", device.name);
  reader.Optional("uuid", device.uuid);
  reader.Optional("driver", device.driver);
  reader.Required("total_bytes", device.total);
  reader.Optional("base_bytes", device.base);
  reader.Optional("workspace_bytes", device.workspace);
  reader.Optional("source", device.source);
  reader.Optional("torch_build", device.torch_build);
  reader.Optional("capability", device.capability);
  reader.Optional("attention", device.attention);
  reader.Optional("allocator", device.allocator);
  reader.Optional("threads", device.threads);
  reader.Optional("multiprocessors", device.multiprocessors);
  reader.Optional("threads_per_multiprocessor", device.threads_per_multiprocessor);
  HPO_RETURN_IF_ERROR(reader.status());
  return device;
}

nlohmann::json WorkerFactsToJson(const WorkerFacts& facts) {
  nlohmann::json models = nlohmann::json::array();
  for (const ModelFacts& model : facts.models) models.push_back(ModelFactsToJson(model));
  nlohmann::json data_sets = nlohmann::json::array();
  for (const DataSetFacts& data : facts.data_sets) data_sets.push_back(DataSetFactsToJson(data));
  nlohmann::json json = {{"worker", facts.worker},
                         {"instance_key", facts.instance_key},
                         {"version", facts.version},
                         {"torch_build", facts.torch_build},
                         {"trainer", facts.trainer},
                         {"plans", facts.plans},
                         {"device", DeviceProfileToJson(facts.device)},
                         {"capacity_bytes", facts.capacity.count},
                         {"models", models},
                         {"data_sets", data_sets}};
  if (facts.serves.has_value()) json["serves"] = *facts.serves;
  return json;
}

absl::StatusOr<WorkerFacts> WorkerFactsFromJson(const nlohmann::json& json) {
  WorkerFacts facts;
  JsonReader reader(json, "");
  reader.Required("worker", facts.worker);
  reader.Required("instance_key", facts.instance_key);
  reader.Optional("version", facts.version);
  reader.Optional("torch_build", facts.torch_build);
  reader.Optional("trainer", facts.trainer);
  reader.Optional("plans", facts.plans);
  reader.RequiredWith("device", facts.device, DeviceProfileFromJson);
  reader.Required("capacity_bytes", facts.capacity);
  reader.OptionalWith("models", facts.models, [](const nlohmann::json& member) {
    return ArrayFromJson<ModelFacts>(member, ModelFactsFromJson);
  });
  reader.OptionalWith("data_sets", facts.data_sets, [](const nlohmann::json& member) {
    return ArrayFromJson<DataSetFacts>(member, DataSetFactsFromJson);
  });
  if (json.contains("serves")) reader.Required("serves", facts.serves.emplace());
  HPO_RETURN_IF_ERROR(reader.status());
  return facts;
}

}  // namespace hpo
