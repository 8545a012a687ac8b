// A folder that lives as long as an object.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/files/read_file.h"

namespace hpo {

// Removed with all that is in it by the destructor.
class TemporaryFolder {
 public:
  // A new folder in $TMPDIR, else /tmp, for its owner alone; its name begins with `prefix`.
  //   codes of FileError (read_file.h)
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Create(absl::string_view prefix) {
    std::error_code error;
    const std::string parent = std::filesystem::temp_directory_path(error).string();
    if (error) return FileError(error.value(), "TMPDIR");
    std::string path = absl::StrCat(parent, "/", prefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return FileError(errno, path);
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace hpo
