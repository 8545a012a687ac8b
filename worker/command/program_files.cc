#include "worker/command/program_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/files/write_file.h"
#include "worker/command/param_text.h"

namespace hpo::command {
namespace {

namespace fs = std::filesystem;

bool Mentions(const fs::path& path) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return absl::StrContains(text, "HPO_PARAM");
}

}  // namespace

bool ReadsParamVariables(const std::string& command) {
  const std::vector<std::string> words =
      absl::StrSplit(command, absl::ByAnyChar(" \t\n'\";&|()"), absl::SkipEmpty());
  std::vector<fs::path> folders = {"."};
  std::error_code error;
  for (const std::string& word : words) {
    if (fs::is_directory(word, error)) folders.emplace_back(word);
  }
  for (const fs::path& folder : folders) {
    for (const std::string& word : words) {
      if (Mentions(folder / word)) return true;
    }
  }
  return absl::StrContains(command, "HPO_PARAM");
}

// Linux takes 128 KiB with the name (MAX_ARG_STRLEN).
constexpr size_t kLongestVariable = size_t{127} << 10;

// Python would keep what it prints until there is enough of it; TensorFlow and JAX would take the
// whole card at once, so that what a trial needs could not be seen.
std::map<std::string, std::string> ProgramEnvironment(const TrainerJob& job) {
  std::map<std::string, std::string> environment = ParamVariables(job.task.params);
  environment.emplace("HPO_OUTPUT_DIR", job.output_dir);
  // Ranks have no channel to the worker; the package hpo reads the job here.
  const std::string text = job.task.trainer.gpus > 1 ? EncodeDown(job) : "";
  if (!text.empty() && text.size() < kLongestVariable) environment.emplace("HPO_TRIAL_JOB", text);
  for (const auto& [name, value] :
       {std::pair{"PYTHONUNBUFFERED", "1"}, std::pair{"TF_FORCE_GPU_ALLOW_GROWTH", "true"},
        std::pair{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}) {
    if (std::getenv(name) == nullptr) environment.emplace(name, value);
  }
  return environment;
}

absl::Status WriteConfigs(const CommandTemplate& command, const TrainerJob& job,
                          const std::map<std::string, std::string>& values) {
  for (const char* place : {"config", "config:yaml", "config:json"}) {
    if (!command.Has(place) || job.task.params.contains(place)) continue;
    HPO_RETURN_IF_ERROR(WriteFileAtomically(values.at(place), ConfigText(job.task.params)));
  }
  return absl::OkStatus();
}

}  // namespace hpo::command
