#include "worker/agent/catalog/model_catalog.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/base/read_file.h"
#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "worker/agent/catalog/contained_path.h"

namespace hpo {
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
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(folder.string(), shape);
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

// Git LFS leaves a few lines of text in a large file's place until it is fetched.
//   FailedPrecondition  a file of the folder is such a text
absl::Status CheckFetched(const fs::path& folder) {
  constexpr absl::string_view kPointer = "version https://git-lfs.github.com/spec/";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    std::string start(kPointer.size(), '\0');
    std::ifstream file(entry.path(), std::ios::binary);
    if (!file.read(start.data(), static_cast<std::streamsize>(start.size())) || start != kPointer) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(entry.path().filename().string(),
                     " is a pointer of Git LFS, not the file itself; fetch it, in its folder: git "
                     "lfs pull"));
  }
  return absl::OkStatus();
}

absl::Status AddModel(const fs::path& folder, const std::string& name, ModelCatalog& catalog) {
  ModelFacts facts;
  facts.name = name;
  HPO_RETURN_IF_ERROR(CheckFetched(folder));
  HPO_ASSIGN_OR_RETURN(const std::string config, ReadFile((folder / kConfigFile).string()));
  HPO_ASSIGN_OR_RETURN(facts.shape, ParseModelConfig(config, (folder / kConfigFile).string()));
  HPO_ASSIGN_OR_RETURN(facts.tokenizer_digest, AddTokenizer(folder, name, facts.shape, catalog));
  std::error_code error;
  auto weights_size = fs::file_size(folder / kWeightsFile, error);
  if (error) weights_size = fs::file_size(folder / kWeightsIndex, error);
  facts.has_weights = !error;
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
      catalog.left_out[name] = absl::StrCat(folder.string(), " holds no ", kConfigFile);
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

}  // namespace hpo
