// The folder that attempts leave their files in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "common/files/write_file.h"

namespace hpo::agent {

constexpr char kTrainerLog[] = "trainer.log";  // of an attempt, in its folder

// The model of a program that does not say where it is: the attempt's folder, where the program has
// left anything in it. The worker's own files are no model: the log, and the parameters that
// {config} names. Empty: it has left none.
inline std::string ModelLeftIn(const std::string& attempt_folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(attempt_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name != kTrainerLog && name.rfind("hpo_params.", 0) != 0) return attempt_folder;
  }
  return "";
}

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

}  // namespace hpo::agent
