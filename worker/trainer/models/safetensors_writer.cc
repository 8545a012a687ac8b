#include "worker/trainer/models/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/ids.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

absl::Status DiskError(const std::string& path, absl::string_view what) {
  const std::string message = absl::StrCat(path, ": cannot ", what, ": ", std::strerror(errno));
  return errno == ENOSPC || errno == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::InternalError(message);
}

// A file under a temporary name that Commit() moves into place; removed when never committed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path)
      : path_(std::move(path)), temporary_(absl::StrCat(path_, ".tmp-", RandomId())) {}
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!committed_) ::unlink(temporary_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  absl::Status Create() {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd_ < 0 ? DiskError(temporary_, "create") : absl::OkStatus();
  }

  absl::Status Write(const void* data, size_t size) {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(fd_, next, size);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return DiskError(temporary_, "write");
      next += written;
      size -= static_cast<size_t>(written);
    }
    return absl::OkStatus();
  }

  absl::Status Commit() {
    if (::fsync(fd_) != 0) return DiskError(temporary_, "flush");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return DiskError(path_, "rename into");
    committed_ = true;
    // Without this the rename itself may be lost in a power cut.
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int folder_fd =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0) return DiskError(folder, "open");
    const bool flushed = ::fsync(folder_fd) == 0;
    ::close(folder_fd);
    return flushed ? absl::OkStatus() : DiskError(folder, "flush");
  }

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

absl::StatusOr<std::string> BuildHeader(const std::string& path,
                                        std::span<const TensorSource> tensors,
                                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  int64_t offset = 0;
  for (const TensorSource& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor '", tensor.name, "' given twice"));
    }
    int64_t size = ElementSize(tensor.type);
    for (const int64_t dimension : tensor.shape) {
      if (dimension < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": tensor '", tensor.name, "': shape ", FormatShape(tensor.shape)));
      }
      size *= dimension;
    }
    header[tensor.name] = {{"dtype", std::string(Name(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start on a multiple of 8
  return text;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, std::span<const TensorSource> tensors,
                              const std::map<std::string, std::string>& metadata) {
  HPO_ASSIGN_OR_RETURN(const std::string header, BuildHeader(path, tensors, metadata));
  TemporaryFile file(path);
  HPO_RETURN_IF_ERROR(file.Create());
  unsigned char length[8];
  for (size_t i = 0; i < sizeof(length); ++i) {
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  }
  HPO_RETURN_IF_ERROR(file.Write(length, sizeof(length)));
  HPO_RETURN_IF_ERROR(file.Write(header.data(), header.size()));
  for (const TensorSource& tensor : tensors) {
    const std::span<const std::byte> bytes = tensor.bytes();
    int64_t expected = ElementSize(tensor.type);
    for (const int64_t dimension : tensor.shape) expected *= dimension;
    if (static_cast<int64_t>(bytes.size()) != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor '", tensor.name, "': expected ", expected, " bytes, got ", bytes.size()));
    }
    HPO_RETURN_IF_ERROR(file.Write(bytes.data(), bytes.size()));
  }
  return file.Commit();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  TemporaryFile file(path);
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(contents.data(), contents.size()));
  return file.Commit();
}

}  // namespace hpo
