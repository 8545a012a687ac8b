// A database file, read without a server: what `hpo --db FILE` goes by.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "common/command_line/temporary_folder.h"

namespace hpo::cli {

class LocalService;

// An hpo-server of this command's own that serves a copy of the file as it is now. The file and
// what lies beside it stay as they are, and a server may use it meanwhile.
class DatabaseSnapshot {
 public:
  // Writes to `err` what a reader has to know of the file, such as an older version.
  //   FailedPrecondition  no file, no database of hpo-server, one of a newer version, or a damaged
  //                       one: with what the server said
  static absl::StatusOr<std::unique_ptr<DatabaseSnapshot>> Open(const std::string& file,
                                                                std::ostream& err);
  DatabaseSnapshot(const DatabaseSnapshot&) = delete;
  DatabaseSnapshot& operator=(const DatabaseSnapshot&) = delete;
  ~DatabaseSnapshot();

  // Where the copy is served.
  const std::string& address() const;

  // Once a client is connected: removes the server's socket and log, so that no end of this process
  // leaves them behind.
  void RemoveFiles() { folder_.reset(); }

 private:
  DatabaseSnapshot(std::unique_ptr<TemporaryFolder> folder, std::unique_ptr<LocalService> service);

  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<LocalService> service_;
};

}  // namespace hpo::cli
