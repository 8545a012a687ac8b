// Finished attempts on disk until the server has them: a result outlives a dead server, a dead
// worker and a power cut.
//
// An append-only file, one JSON object per line with its checksum; every append is fsynced before
// it returns. A torn last line (a crash during an append) is dropped: that result had not been
// acknowledged to anyone. A disk that takes no more does not stop anything: what cannot be written
// is pending in memory. What the server will never take is a file of its own in the folder
// `set_aside` beside the outbox, in the same format. One thread at a time; one process at a time
// (the owner of the state directory holds its lock).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

// The same request id is used for every delivery, so that the server stores it once.
struct OutboxEntry {
  std::string request_id;
  FinishRequest request;
  bool operator==(const OutboxEntry&) const = default;
};

class Outbox {
 public:
  // Reads what a former process left; makes the file where there is none. A damaged line before the
  // last is set aside.
  //   DataLoss     it cannot be set aside; names file and line
  //   Internal     the file cannot be opened, read or written
  //   Unavailable  the same, and it may pass (MayPass in read_file.h)
  static absl::StatusOr<Outbox> Open(const std::string& path);

  // Pending in any case; durable when it returns OK.
  //   Internal, Unavailable  the file cannot be written: in memory alone until Save() succeeds
  absl::Status Append(const OutboxEntry& entry);

  // Writes what is in memory alone.
  //   Internal, Unavailable  the file cannot be written
  absl::Status Save();

  // The server has it (or it is no longer wanted). Rewrites the file without acknowledged entries
  // when none is left or they have become many. An unknown id is a no-op.
  //   Internal, Unavailable  the file cannot be written: a later process will deliver the entry
  //                          once more
  absl::Status Acknowledge(const std::string& request_id);

  // Moves a pending entry into a file of its own; returns the file's name.
  //   NotFound               no such entry
  //   Internal, Unavailable  the file cannot be written; the entry stays pending
  absl::StatusOr<std::string> SetAside(const std::string& request_id);

  // Not acknowledged, oldest first.
  const std::vector<OutboxEntry>& pending() const { return pending_; }
  size_t num_unsaved() const { return unsaved_.size(); }
  // Names of the files in set_aside_folder(), also of former processes.
  const std::vector<std::string>& set_aside() const { return set_aside_; }
  std::string set_aside_folder() const;

 private:
  Outbox(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Load();
  void ListSetAside();
  absl::Status TakeRecord(const std::string& record);
  absl::Status SetDamagedAside(const std::string& record, const absl::Status& damage);
  absl::Status WriteRecord(const std::string& json);
  absl::Status Compact();

  std::string path_;
  UniqueFd file_;
  std::vector<OutboxEntry> pending_;
  std::set<std::string> unsaved_;  // request ids
  std::vector<std::string> set_aside_;
  int num_records_ = 0;  // in the file, acknowledgements included
};

}  // namespace hpo::agent
