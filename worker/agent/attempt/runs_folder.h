// The folder that attempts leave their files in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "common/base/write_file.h"

namespace hpo {

// Whether an attempt could write there what it writes at least: its log, its result.
//   a status  it could not: the disk is full, the folder cannot be made
inline absl::Status CheckRoom(const std::string& folder) {
  constexpr size_t kLeastBytes = 64 << 10;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string probe = folder + "/.room";
  const absl::Status written = WriteFileAtomically(probe, std::string(kLeastBytes, '\0'));
  std::filesystem::remove(probe, error);
  return written;
}

}  // namespace hpo
