#include "worker/agent/catalog/contained_path.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::agent {

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

std::optional<std::string> DanglingLink(const std::filesystem::path& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error)) || fs::exists(path, error)) {
    return std::nullopt;
  }
  return fs::read_symlink(path, error).string();
}

absl::StatusOr<std::string> FileBelow(const std::string& folder, const std::string& name,
                                      const std::string& option) {
  const bool below = !fs::path(name).is_absolute() && !absl::StrContains(name, "..");
  if (const auto target = DanglingLink(fs::path(folder) / name); below && target.has_value()) {
    return absl::NotFoundError(absl::StrCat(name, ": it is a link to ", *target,
                                            ", which does not exist; put the file there, or copy "
                                            "it in place of the link"));
  }
  HPO_ASSIGN_OR_RETURN(std::string path, PathBelow(folder, name, option));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_regular_file(status)) return path;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected a regular file, got ",
                   fs::is_directory(status) ? "a folder" : "a device or a pipe"));
}

}  // namespace hpo::agent
