#include "cli/client/last_run.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "common/base/json_reader.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

// Empty where the environment names no home.
std::string NotePath() {
  const std::string folder = UserFolder("XDG_STATE_HOME", ".local/state");
  return folder.empty() ? "" : folder + "/hpo/last_run.json";
}

}  // namespace

void RememberRun(const LastRun& run) {
  const std::string path = NotePath();
  if (path.empty()) return;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const nlohmann::json note = {{"folder", run.folder}, {"study", run.study}};
  WriteFileAtomically(path, DumpJson(note)).IgnoreError();
}

std::optional<LastRun> FindLastRun() {
  const std::string path = NotePath();
  if (path.empty()) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const nlohmann::json note = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&note](const char* key) {
    return note.is_object() && note.contains(key) && note[key].is_string()
               ? note[key].get<std::string>()
               : std::string();
  };
  LastRun run{.folder = text_of("folder"), .study = text_of("study")};
  std::error_code error;
  const bool is_there = !run.folder.empty() && fs::is_regular_file(run.folder + "/hpo.db", error);
  return is_there ? std::optional(std::move(run)) : std::nullopt;
}

}  // namespace hpo::cli
