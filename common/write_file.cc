#include "common/write_file.h"

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/ids.h"
#include "common/read_file.h"

namespace hpo {

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  const std::string temporary = absl::StrCat(path, ".", RandomId(), ".tmp");
  std::FILE* file = std::fopen(temporary.c_str(), "wxe");
  if (file == nullptr) return FileError(errno, path);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  std::remove(temporary.c_str());
  return FileError(error, path);
}

}  // namespace hpo
