#include "worker/trainer/models/files/adapter_folder.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "common/models/model_modules.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/models/files/safetensors_writer.h"
#include "worker/trainer/models/files/tensor_bytes.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;

// Peft's name of the model inside its own.
constexpr char kBaseModel[] = "base_model.model.";

// Modules outside the model under the head, which are trained whole.
std::set<std::string> HeadModules(const torch::nn::Module& model, absl::string_view prefix) {
  std::set<std::string> modules;
  for (const auto& item : model.named_parameters()) {
    if (absl::StartsWith(item.key(), prefix)) continue;
    modules.insert(item.key().substr(0, item.key().find('.')));
  }
  return modules;
}

absl::StatusOr<std::string> ConfigOf(const torch::nn::Module& model,
                                     const AdapterFolderContents& contents) {
  HPO_ASSIGN_OR_RETURN(const std::vector<memory::AdaptedLayer> layers,
                       memory::AdaptedLayers(contents.shape, contents.options));
  const ModelFamily family = *ModelFamilyOf(contents.shape.family);
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const memory::AdaptedLayer& layer : layers) targets.push_back(layer.module);
  const nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", contents.task_type},
      {"base_model_name_or_path", contents.model_name},
      {"r", contents.options.rank},
      {"lora_alpha", contents.options.alpha},
      {"lora_dropout", contents.options.dropout},
      {"target_modules", std::move(targets)},
      {"modules_to_save", HeadModules(model, absl::StrCat(ModulesOf(family).prefix, "."))},
      {"fan_in_fan_out", family == ModelFamily::kGpt2},
      {"bias", "none"},
      {"inference_mode", true}};
  return config.dump(2) + "\n";
}

absl::Status WriteTensors(const torch::nn::Module& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    HPO_ASSIGN_OR_RETURN(sources.emplace_back(), SourceOf(absl::StrCat(kBaseModel, item.key()),
                                                          item.value(), torch::kFloat32, on_host));
  }
  return WriteSafetensors(path, sources, {{"format", "pt"}});
}

}  // namespace

absl::Status WriteAdapterFolder(const torch::nn::Module& model,
                                const AdapterFolderContents& contents, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileError(error.value(), folder);
  HPO_ASSIGN_OR_RETURN(const std::string config, ConfigOf(model, contents));
  HPO_RETURN_IF_ERROR(WriteFileDurably(folder + "/adapter_config.json", config));
  return WriteTensors(model, folder + "/adapter_model.safetensors");
}

}  // namespace hpo::trainer
