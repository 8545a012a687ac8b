#include "worker/trainer/checkpoints/checkpoint_manifest.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

constexpr int64_t kManifestVersion = 1;

absl::StatusOr<FileSum> FileSumFromJson(const nlohmann::json& json) {
  FileSum sum;
  JsonReader reader(json, "");
  reader.Required("size", sum.size);
  reader.Required("crc32", sum.crc32);
  HPO_RETURN_IF_ERROR(reader.status());
  if (sum.size < 0 || sum.crc32 < 0 || sum.crc32 > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a size >= 0 and a checksum of 32 bits, got ", sum.size, " and ", sum.crc32));
  }
  return sum;
}

absl::StatusOr<CheckpointManifest> FilesFromJson(const nlohmann::json& json) {
  return MapFromJson(json, FileSumFromJson);
}

bool StaysInside(absl::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != absl::string_view::npos) {
    return false;
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

std::string EncodeManifest(const CheckpointManifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, sum] : manifest) files[name] = {{"size", sum.size}, {"crc32", sum.crc32}};
  return DumpJson({{"version", kManifestVersion}, {"files", files}}) + "\n";
}

absl::StatusOr<CheckpointManifest> DecodeManifest(absl::string_view text) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text));
  JsonReader reader(json, "");
  int64_t version = 0;
  CheckpointManifest manifest;
  reader.Required("version", version);
  reader.RequiredWith("files", manifest, FilesFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  if (version != kManifestVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("version: expected ", kManifestVersion, ", got ", version));
  }
  for (const auto& [name, sum] : manifest) {
    if (!StaysInside(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("files: expected paths within the folder, got '", name, "'"));
    }
  }
  return manifest;
}

}  // namespace hpo::trainer
