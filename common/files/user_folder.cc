#include "common/files/user_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hpo {

std::string UserFolder(const char* variable, absl::string_view below_home) {
  const char* const folder = std::getenv(variable);
  if (folder != nullptr && *folder != '\0') return folder;
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : absl::StrCat(home, "/", below_home);
}

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string OwnProgram(const std::string& name) {
  const std::string path = absl::StrCat(ProgramFolder(), "/", name);
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : name;
}

}  // namespace hpo
