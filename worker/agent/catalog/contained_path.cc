#include "worker/agent/catalog/contained_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {

namespace fs = std::filesystem;

absl::StatusOr<std::string> PathBelow(const std::string& folder, const std::string& name,
                                      const std::string& option) {
  std::error_code error;
  fs::path root = fs::weakly_canonical(fs::absolute(folder.empty() ? "." : folder), error);
  if (!root.has_filename()) root = root.parent_path();  // "data/"
  const fs::path path = error ? fs::path() : fs::weakly_canonical(root / name, error);
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat(name, ": ", error.message()));
  }
  const auto [end_of_root, rest] =
      std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end_of_root == root.end()) return path.string();
  return absl::PermissionDeniedError(absl::StrCat(name, ": expected a path below ", option, " ",
                                                  root.string(), ", got one that leads to ",
                                                  path.string()));
}

absl::StatusOr<std::string> FileBelow(const std::string& folder, const std::string& name,
                                      const std::string& option) {
  HPO_ASSIGN_OR_RETURN(std::string path, PathBelow(folder, name, option));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_regular_file(status)) return path;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected a regular file, got ",
                   fs::is_directory(status) ? "a folder" : "a device or a pipe"));
}

}  // namespace hpo
