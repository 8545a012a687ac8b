#include "common/files/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/files/read_file.h"

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

absl::Status WriteFileDurably(const std::string& path, absl::string_view content) {
  DurableFile file(path);
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(content.data(), content.size()));
  return file.Commit();
}

DurableFile::DurableFile(std::string path, int mode)
    : path_(std::move(path)),
      temporary_(absl::StrCat(path_, ".", RandomId(), ".tmp")),
      mode_(mode) {}

DurableFile::~DurableFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(temporary_.c_str());
}

absl::Status DurableFile::Create() {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_);
  return fd_ < 0 ? FileError(errno, path_) : absl::OkStatus();
}

absl::Status DurableFile::Write(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, path_);
    next += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Commit() {
  if (::fsync(fd_) != 0) return FileError(errno, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return FileError(errno, path_);
  committed_ = true;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  return Sync(folder.empty() ? "." : folder.string());
}

absl::Status ReplaceFolder(const std::string& made, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string old = made;
  if (!fs::exists(folder, error)) {
    if (!error) fs::rename(made, folder, error);
  } else if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) return FileError(errno, folder);
    old = folder + ".old";
    fs::remove_all(old, error);
    if (!error) fs::rename(folder, old, error);
    if (!error) fs::rename(made, folder, error);
  }
  if (error) return FileError(error.value(), folder);
  HPO_RETURN_IF_ERROR(Sync(fs::path(folder).parent_path().string()));
  fs::remove_all(old, error);  // whether or not it can be: the new one is there
  return absl::OkStatus();
}

absl::Status Sync(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(errno, path);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error == 0 ? absl::OkStatus() : FileError(error, path);
}

}  // namespace hpo
