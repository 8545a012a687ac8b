// The models of this worker: what the folders under --models hold.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::agent {

// Immutable after ScanModels.
struct ModelCatalog {
  std::string root;
  std::vector<ModelFacts> models;  // by name
  // One for each distinct tokenizer, by digest.
  std::map<std::string, std::unique_ptr<text::Tokenizer>> tokenizers;
  // One line for each folder that was left out: the folder and what is wrong with it.
  std::vector<std::string> warnings;
  // The same by the model's name; also of folders that hold no config.json, here and below, and of
  // models whose weights are in a format that is not read, which are among `models` all the same.
  std::map<std::string, std::string> left_out;
};

// A model is a folder with a config.json, in `root` or one level below ("org/name"). Folders that
// cannot be read, or hold what Git LFS puts in a file's place, are left out with a warning. A model
// whose tokenizer cannot be used here keeps an empty tokenizer digest, with a warning where its
// family is known. An empty `root` gives an empty catalog.
//   NotFound  `root` is not a folder
absl::StatusOr<ModelCatalog> ScanModels(const std::string& root);

// The folder of `model` as a trainer gets it: absolute, whether it is there or not; "" where there
// is no model or no root. `model` is a name of the catalogue, or short for one (FullModelName);
// what the catalogue does not have must lie below its root.
//   PermissionDenied  it leads out of the root
absl::StatusOr<std::string> ModelFolder(const ModelCatalog& catalog, const std::string& model);

}  // namespace hpo::agent
