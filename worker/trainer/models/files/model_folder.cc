#include "worker/trainer/models/files/model_folder.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "common/models/model_modules.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/trainer/models/files/weights.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;

absl::Status DiskError(const fs::path& path, const std::error_code& error) {
  return FileError(error.value(), path.string());
}

std::string ConfigWithTask(const ModelFolderContents& contents) {
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(contents.config_json);
  config["architectures"] = {
      ArchitectureName(config.value("model_type", ""), contents.role.architecture)};
  config.erase("hpo_head_sizes");
  config.erase("problem_type");
  if (contents.labels.empty()) return config.dump(2) + "\n";
  if (!contents.role.problem_type.empty()) config["problem_type"] = contents.role.problem_type;
  // transformers derives num_labels from id2label.
  nlohmann::ordered_json id_to_label = nlohmann::ordered_json::object();
  nlohmann::ordered_json label_to_id = nlohmann::ordered_json::object();
  for (size_t i = 0; i < contents.labels.size(); ++i) {
    id_to_label[absl::StrCat(i)] = contents.labels[i];
    label_to_id[contents.labels[i]] = i;
  }
  config["num_labels"] = contents.labels.size();
  config["id2label"] = std::move(id_to_label);
  config["label2id"] = std::move(label_to_id);
  if (!contents.head_sizes.empty()) config["hpo_head_sizes"] = contents.head_sizes;
  // transformers finds a row's last token by it.
  const auto family = ModelFamilyOf(config.value("model_type", ""));
  if (ModulesOf(*family).classifier.last_token) config["pad_token_id"] = contents.pad_id;
  return config.dump(2) + "\n";
}

absl::Status CopyTokenizer(const fs::path& source, const fs::path& folder) {
  for (const char* name : text::kTokenizerFiles) {
    std::ifstream file(source / name, std::ios::binary);
    if (!file) continue;
    std::ostringstream contents;
    contents << file.rdbuf();
    HPO_RETURN_IF_ERROR(WriteFileDurably((folder / name).string(), contents.str()));
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(torch::nn::Module& model, const ModelFolderContents& contents,
                        const fs::path& folder) {
  std::error_code error;
  if (!fs::create_directories(folder, error)) return DiskError(folder, error);
  HPO_RETURN_IF_ERROR(
      WriteFileDurably((folder / "config.json").string(), ConfigWithTask(contents)));
  HPO_RETURN_IF_ERROR(CopyTokenizer(contents.source, folder));
  if (!contents.quadruplets.empty()) {
    HPO_RETURN_IF_ERROR(
        WriteFileDurably((folder / "quadruplets.jsonl").string(), contents.quadruplets));
  }
  if (contents.adapter.has_value()) {
    HPO_RETURN_IF_ERROR(
        WriteAdapterFolder(model, *contents.adapter, (folder / "adapter").string()));
  }
  return SaveParameters(model, (folder / "model.safetensors").string());
}

}  // namespace

absl::Status WriteModelFolder(torch::nn::Module& model, const ModelFolderContents& contents,
                              const std::string& folder) {
  const std::string made = absl::StrCat(folder, ".tmp-", RandomId());
  absl::Status status = WriteFiles(model, contents, made);
  if (status.ok()) status = ReplaceFolder(made, folder);
  std::error_code ignored;
  fs::remove_all(made, ignored);
  return status;
}

}  // namespace hpo::trainer
