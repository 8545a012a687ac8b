#include "cli/commands/studies/admin_commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "common/base/status.h"
#include "common/files/user_folder.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr char kServer[] = "hpo-server";

std::string ServerProgram() {
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::path(ProgramFolder()) / kServer;
  return std::filesystem::exists(beside, error) ? beside.string() : kServer;
}

}  // namespace

absl::Status BackUpDatabase(Session& session, const std::string& file) {
  HPO_ASSIGN_OR_RETURN(const Bytes size, session.client.BackUp(file));
  if (session.json) {
    PrintJson(nlohmann::ordered_json{{"file", file}, {"bytes", size.count}}, session.out);
  } else {
    session.out << "wrote " << file << " (" << FormatBytes(size) << ")\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunRestore(const std::string& backup, const std::string& database) {
  const std::string program = ServerProgram();
  std::vector<std::string> words = {program, "--restore", backup};
  if (!database.empty()) words.insert(words.end(), {"--db", database});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(program.c_str(), arguments.data());
  return absl::NotFoundError(
      absl::StrCat("cannot run ", program, ": ", std::strerror(errno), "; it restores databases"));
}

}  // namespace hpo::cli
