// The list of a checkpoint's files, by which a torn one is told. Pure; free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::trainer {

struct FileSum {
  int64_t size = 0;   // bytes
  int64_t crc32 = 0;  // zlib's
  bool operator==(const FileSum&) const = default;
};

// By the path within the checkpoint's folder.
using CheckpointManifest = std::map<std::string, FileSum>;

// One line of JSON with a newline.
std::string EncodeManifest(const CheckpointManifest& manifest);

//   InvalidArgument  not JSON, another version, a member missing or of another type, a negative
//                    size, or a path that leaves the folder; names it
absl::StatusOr<CheckpointManifest> DecodeManifest(absl::string_view text);

}  // namespace hpo::trainer
