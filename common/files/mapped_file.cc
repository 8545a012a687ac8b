#include "common/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"

namespace hpo {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(errno, path);
  struct stat info = {};
  const bool known = ::fstat(fd, &info) == 0;
  const bool regular = known && S_ISREG(info.st_mode);
  const size_t size = regular ? static_cast<size_t>(info.st_size) : 0;
  void* const mapping = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  const int error = errno;
  ::close(fd);
  if (!known || mapping == MAP_FAILED) return FileError(error, path);
  if (!regular) return absl::InvalidArgumentError(absl::StrCat(path, ": expected a regular file"));
  return MappedFile({static_cast<const std::byte*>(mapping), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hpo
