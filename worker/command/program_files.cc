#include "worker/command/program_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

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

}  // namespace hpo::command
