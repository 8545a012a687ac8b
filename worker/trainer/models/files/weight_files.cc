#include "worker/trainer/models/files/weight_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

constexpr absl::string_view kLightning = "model.";

// Tensor names by the shard that holds them.
using Shards = std::map<std::string, std::set<std::string>>;

absl::StatusOr<Shards> ReadIndex(const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<nlohmann::json> json = ParseJson(text);
  if (!json.ok()) return Annotate(json.status(), path);
  const auto map = json->is_object() ? json->find("weight_map") : json->end();
  if (!json->is_object() || map == json->end() || !map->is_object() || map->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": weight_map: expected tensor names with their files; download it again"));
  }
  Shards shards;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || absl::StrContains(name, '/')) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": weight_map: ", tensor,
                                                     ": expected a file of this folder, got ",
                                                     DescribeJson(file), "; download it again"));
    }
    shards[name].insert(tensor);
  }
  return shards;
}

absl::Status CheckShard(const SafetensorsFile& file, const std::set<std::string>& expected,
                        const std::string& index) {
  for (const std::string& name : expected) {
    if (file.Find(name) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(file.origin(), ": tensor '", name,
                                                     "' is missing; ", index, " says it is here"));
    }
  }
  for (const auto& [name, view] : file.tensors()) {
    if (expected.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(file.origin(), ": tensor '", name,
                                                     "' is not listed for this file in ", index));
    }
  }
  return absl::OkStatus();
}

// Lightning's name of a model stands before the one of the model's body; Llama's own is the same.
bool IsOfLightning(absl::string_view name) {
  constexpr absl::string_view kBodies[] = {"bert.",    "roberta.",     "deberta.", "distilbert.",
                                           "electra.", "transformer.", "model."};
  return absl::ConsumePrefix(&name, kLightning) &&
         std::any_of(std::begin(kBodies), std::end(kBodies),
                     [&](absl::string_view body) { return absl::StartsWith(name, body); });
}

// Torch's wrappers of a model, and Lightning's, put their names before those of its parameters.
void RemoveWrappers(std::vector<SafetensorsFile>& files) {
  constexpr absl::string_view kWrappers[] = {"module.", "_orig_mod.", kLightning};
  const auto all_begin_with = [&](absl::string_view prefix) {
    return std::all_of(files.begin(), files.end(), [&](const SafetensorsFile& file) {
      return std::all_of(file.tensors().begin(), file.tensors().end(), [&](const auto& tensor) {
        return absl::StartsWith(tensor.first, prefix);
      });
    });
  };
  const bool empty = std::all_of(files.begin(), files.end(), [](const SafetensorsFile& file) {
    return file.tensors().empty();
  });
  const auto is_wrapper = [&](absl::string_view prefix) {
    return all_begin_with(prefix) &&
           (prefix != kLightning ||
            std::any_of(files.front().tensors().begin(), files.front().tensors().end(),
                        [](const auto& tensor) { return IsOfLightning(tensor.first); }));
  };
  for (size_t wrapper = 0; !empty && wrapper < std::size(kWrappers);) {
    if (is_wrapper(kWrappers[wrapper])) {
      for (SafetensorsFile& file : files) file.RemovePrefix(kWrappers[wrapper]);
      wrapper = 0;
    } else {
      ++wrapper;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<SafetensorsFile>> OpenWeights(const std::string& folder) {
  const std::string single = folder + "/model.safetensors";
  const std::string index = folder + "/model.safetensors.index.json";
  std::vector<SafetensorsFile> files;
  if (std::filesystem::exists(single) || !std::filesystem::exists(index)) {
    HPO_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
    files.push_back(std::move(file));
    RemoveWrappers(files);
    return files;
  }
  HPO_ASSIGN_OR_RETURN(const Shards shards, ReadIndex(index));
  for (const auto& [name, tensors] : shards) {
    HPO_ASSIGN_OR_RETURN(SafetensorsFile file,
                         SafetensorsFile::Open(absl::StrCat(folder, "/", name)));
    HPO_RETURN_IF_ERROR(CheckShard(file, tensors, index));
    files.push_back(std::move(file));
  }
  RemoveWrappers(files);
  return files;
}

}  // namespace hpo::trainer
