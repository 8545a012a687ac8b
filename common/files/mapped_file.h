// A file's bytes, mapped into memory for reading: nothing is copied, and processes that map the
// same file share its pages.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace hpo {

// Movable; unmaps with its end. The mapping outlives the file's name, but nobody may shorten the
// file meanwhile: what writes it renames a new one over it. bytes() may be read by any thread.
class MappedFile {
 public:
  // NotFound, PermissionDenied, Unavailable  see FileError (read_file.h); InvalidArgument: no
  //                                          regular file
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Aligned to a page. Empty where the file is.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace hpo
