// Whole files as bytes, with the errors every reader of a file gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

// The content of `path`, unchanged.
//   NotFound          no such file
//   PermissionDenied  not readable
//   InvalidArgument   it is a folder, or no name of a file
//   Unavailable       reading failed half way, or this machine lacks something at the moment
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The same in pieces of at most `most` bytes, until `take` fails, which is then what this returns.
absl::Status ReadFileInPieces(const std::string& path, size_t most,
                              absl::FunctionRef<absl::Status(absl::string_view piece)> take);

// The same codes for an errno value that came with `path`: "path: No such file or directory".
//   ResourceExhausted  the disk is full
//   PermissionDenied   also of a file system that is read-only
absl::Status FileError(int error, const std::string& path);

// Whether what failed with this errno value may work later although nobody changes the file or its
// rights: a full disk, one that fails, or no memory, processes or descriptors left.
bool MayPass(int error);

// The last `max_lines` lines that a log file holds after its first `from` bytes, at most 4 KiB, as
// UTF-8; empty when it cannot be read.
std::string LogTail(const std::string& path, int64_t from, int max_lines);

}  // namespace hpo
