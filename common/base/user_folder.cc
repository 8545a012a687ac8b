#include "common/base/user_folder.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace hpo {

std::string UserFolder(const char* variable, absl::string_view below_home) {
  const char* const folder = std::getenv(variable);
  if (folder != nullptr && *folder != '\0') return folder;
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : absl::StrCat(home, "/", below_home);
}

}  // namespace hpo
