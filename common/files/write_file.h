// Whole files, written so that a reader sees the old content or the new, never a part.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo {

// Writes to a temporary name in the same folder and renames it to `path`. Not synced to the disk:
// for files that a restart makes again.
//   NotFound, PermissionDenied, ResourceExhausted, Unavailable  see FileError (read_file.h)
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// The same, synced: once it returns, a power cut does not take the file back.
absl::Status WriteFileDurably(const std::string& path, absl::string_view content);

// As WriteFileDurably, piece by piece: Create, Write as often as needed, Commit. Removed when never
// committed. Not thread-safe. Codes: see FileError.
class DurableFile {
 public:
  // `mode`: who may read it, less the process's umask.
  explicit DurableFile(std::string path, int mode = 0644);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  absl::Status Create();
  absl::Status Write(const void* data, size_t size);
  absl::Status Commit();

 private:
  std::string path_;
  std::string temporary_;
  int mode_;
  int fd_ = -1;
  bool committed_ = false;
};

// Gives the folder `made` the name `folder`, durably; what had that name is removed. Both are
// siblings. Names are exchanged in one step; where a file system cannot do that (NFS), the old
// folder is for a moment called `folder`.old. Codes: see FileError.
absl::Status ReplaceFolder(const std::string& made, const std::string& folder);

// Makes durable what a file holds, or which names are in a folder. Codes: see FileError.
absl::Status Sync(const std::string& path);

}  // namespace hpo
