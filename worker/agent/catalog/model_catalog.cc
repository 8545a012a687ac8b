// Tested by tests/worker/agent/catalog_test.cc.
#include "worker/agent/catalog/model_catalog.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "nlohmann/json.hpp"
#include "worker/agent/catalog/contained_path.h"
#include "worker/text/files/foreign_file.h"
#include "worker/text/tokenizers/make_tokenizer.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFile[] = "config.json";
constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kWeightsIndex[] = "model.safetensors.index.json";  // of weights in several files

// Sub-folders by name; those that cannot be listed are empty.
std::vector<fs::path> SubFolders(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool HasConfig(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kConfigFile, error);
}

// The tokenizer's digest, the tokenizer put into `catalog`; empty where it cannot be used here,
// with a warning for a family that could be trained here.
absl::StatusOr<std::string> AddTokenizer(const fs::path& folder, const std::string& name,
                                         const ModelShape& shape, ModelCatalog& catalog) {
  absl::StatusOr<std::unique_ptr<text::Tokenizer>> tokenizer =
      text::MakeTokenizer(folder.string(), shape);
  if (absl::IsUnimplemented(tokenizer.status())) {
    if (shape.num_layers == 0) return "";
    catalog.warnings.push_back(
        absl::StrCat("model ", name,
                     " needs --trainer with a program of your own: hpo-trainer "
                     "cannot use its tokenizer: ",
                     tokenizer.status().message()));
    return "";
  }
  HPO_RETURN_IF_ERROR(tokenizer.status());
  const std::string digest = (*tokenizer)->digest();
  catalog.tokenizers.try_emplace(digest, *std::move(tokenizer));
  return digest;
}

bool IsRead(const std::string& name) {
  return absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".json") ||
         absl::EndsWith(name, ".txt") || absl::EndsWith(name, ".model");
}

// Their length, in which any bytes may stand, and the JSON of their header.
bool IsSafetensors(const std::string& start) {
  constexpr size_t kLength = 8;
  return start.size() > kLength && start[kLength] == '{' && start.substr(4, 4) == std::string(4, 0);
}

// What a file is, with the cure for a file of data replaced by that for one of a model.
std::string OfAModel(const std::string& what) {
  const bool fetched = absl::StrContains(what, "git lfs") || absl::StrContains(what, "download");
  const bool of_torch = absl::StartsWith(what, "a ZIP") || absl::StartsWith(what, "a pickle");
  if (fetched) return what;
  if (of_torch) {
    return "a file of torch.save by another name; load it by torch.load, and save the model by "
           "save_pretrained(), which writes model.safetensors";
  }
  return absl::StrCat(what.substr(0, what.find(';')), ", not a file of a model; download it again");
}

// Names a link to nowhere, as a copy of a part of Hugging Face's cache has; empty: there is none.
std::string FindDanglingLink(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::optional<std::string> target = DanglingLink(entry.path());
    if (!target.has_value() || !IsRead(name)) continue;
    return absl::StrCat(name, " is a link to ", *target,
                        ", which does not exist; copy the model's files with cp -L");
  }
  return "";
}

// Git LFS leaves a few lines of text in a large file's place until it is fetched, and a failed
// download a page of HTML.
//   FailedPrecondition  a file that a model is read from is such a text, or a link to nowhere
absl::Status CheckFetched(const fs::path& folder) {
  if (const std::string link = FindDanglingLink(folder); !link.empty()) {
    return absl::FailedPreconditionError(link);
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!IsRead(name) || !entry.is_regular_file(error)) continue;
    std::string start(text::kForeignStart, '\0');
    std::ifstream file(entry.path(), std::ios::binary);
    file.read(start.data(), static_cast<std::streamsize>(start.size()));
    start.resize(static_cast<size_t>(file.gcount()));
    if (IsSafetensors(start)) continue;
    if (const std::optional<std::string> what = text::ForeignFile(start); what.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(name, " is ", OfAModel(*what)));
    }
  }
  return absl::OkStatus();
}

// Whether the folder has weights: a file, or an index of several.
//   FailedPrecondition  the index is no JSON object of files, or one of its files is not there
absl::StatusOr<bool> HasWeights(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kWeightsFile, error)) return true;
  if (!fs::exists(folder / kWeightsIndex, error)) return false;
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile((folder / kWeightsIndex).string()));
  const absl::StatusOr<nlohmann::json> index = ParseJson(text);
  if (!index.ok() || !index->is_object() || !index->contains("weight_map")) {
    return absl::FailedPreconditionError(
        absl::StrCat(kWeightsIndex, " is no JSON object with a weight_map; download it again"));
  }
  for (const auto& [tensor, file] : index->at("weight_map").items()) {
    if (!file.is_string() || fs::exists(folder / file.get<std::string>(), error)) continue;
    return absl::FailedPreconditionError(absl::StrCat(file.get<std::string>(),
                                                      " is missing, which ", kWeightsIndex,
                                                      " names; download it into the folder"));
  }
  return true;
}

// Weights in formats that are not read here, and how to convert them; empty: there are none.
std::string OtherWeights(const fs::path& folder) {
  for (const char* const name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    std::error_code error;
    if (!fs::exists(folder / name, error)) continue;
    return absl::StrCat("it has ", name, ", but no ", kWeightsFile,
                        ", which is the format that is read; convert it: python3 -c \"from "
                        "transformers import AutoModel as m; m.from_pretrained('",
                        folder.string(), "').save_pretrained('", folder.string(), "')\"");
  }
  for (const char* const name : {"tf_model.h5", "flax_model.msgpack", "model.gguf"}) {
    std::error_code error;
    if (!fs::exists(folder / name, error)) continue;
    return absl::StrCat("it has ", name, ", but no ", kWeightsFile,
                        ", which is the format that is read; download that file of the model");
  }
  return "";
}

// What a folder without config.json is.
std::string WithoutConfig(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "adapter_config.json", error)) {
    return absl::StrCat(folder.string(), " holds an adapter (adapter_config.json), not a whole ",
                        "model; merge it into its base model: peft's merge_and_unload(), then ",
                        "save_pretrained()");
  }
  if (const std::string link = FindDanglingLink(folder); !link.empty()) {
    return absl::StrCat(folder.string(), ": ", link);
  }
  for (const fs::path& snapshot : SubFolders(folder / "snapshots")) {
    if (!HasConfig(snapshot)) continue;
    return absl::StrCat(folder.string(), " is a folder of Hugging Face's cache; the model is in ",
                        snapshot.string(), ": link that folder into --models");
  }
  return absl::StrCat(folder.string(), " holds no ", kConfigFile);
}

absl::Status AddModel(const fs::path& folder, const std::string& name, ModelCatalog& catalog) {
  ModelFacts facts;
  facts.name = name;
  HPO_RETURN_IF_ERROR(CheckFetched(folder));
  HPO_ASSIGN_OR_RETURN(const std::string config, ReadFile((folder / kConfigFile).string()));
  HPO_ASSIGN_OR_RETURN(facts.shape, ParseModelConfig(config, (folder / kConfigFile).string()));
  HPO_ASSIGN_OR_RETURN(facts.tokenizer_digest, AddTokenizer(folder, name, facts.shape, catalog));
  HPO_ASSIGN_OR_RETURN(facts.has_weights, HasWeights(folder));
  std::error_code error;
  auto weights_size = fs::file_size(folder / kWeightsFile, error);
  if (error) weights_size = fs::file_size(folder / kWeightsIndex, error);
  if (!facts.has_weights) {
    // It stays, for studies that begin with random weights.
    if (std::string other = OtherWeights(folder); !other.empty()) catalog.left_out[name] = other;
  }
  facts.digest = Sha256Hex(absl::StrCat(config, "\n", facts.has_weights ? weights_size : 0));
  catalog.models.push_back(std::move(facts));
  return absl::OkStatus();
}

void AddOrWarn(const fs::path& folder, const std::string& name, ModelCatalog& catalog) {
  if (const absl::Status added = AddModel(folder, name, catalog); !added.ok()) {
    catalog.warnings.push_back(
        absl::StrCat("model ", name, " (", folder.string(), ") left out: ", added.message()));
    catalog.left_out[name] = std::string(added.message());
  }
}

}  // namespace

absl::StatusOr<ModelCatalog> ScanModels(const std::string& root) {
  ModelCatalog catalog;
  catalog.root = root;
  if (root.empty()) return catalog;
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    return absl::NotFoundError(
        absl::StrCat("--models: expected a folder of models, got '", root, "'"));
  }
  for (const fs::path& folder : SubFolders(root)) {
    const std::string name = folder.filename().string();
    if (HasConfig(folder)) {
      AddOrWarn(folder, name, catalog);
      continue;
    }
    const std::vector<fs::path> inner_folders = SubFolders(folder);
    if (std::none_of(inner_folders.begin(), inner_folders.end(), HasConfig)) {
      catalog.left_out[name] = WithoutConfig(folder);
    }
    for (const fs::path& inner : inner_folders) {
      if (HasConfig(inner)) {
        AddOrWarn(inner, name + "/" + inner.filename().string(), catalog);
      }
    }
  }
  return catalog;
}

absl::StatusOr<std::string> ModelFolder(const ModelCatalog& catalog, const std::string& model) {
  if (model.empty() || catalog.root.empty()) return "";
  // One that is a link to another place was put there by whoever runs this worker.
  for (const std::string& name : {model, FullModelName(model)}) {
    for (const ModelFacts& known : catalog.models) {
      if (known.name == name) return fs::absolute(fs::path(catalog.root) / name).string();
    }
  }
  return PathBelow(catalog.root, model, "--models");
}

}  // namespace hpo::agent
