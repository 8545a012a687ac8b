// Finished attempts on disk until the server has them: a result outlives a dead server, a dead
// worker and a power cut.
//
// An append-only file, one JSON object per line with its checksum; every append is fsynced before
// it returns. A torn last line (a crash during an append) is dropped: that result had not been
// acknowledged to anyone. One thread at a time; one process at a time (the owner of the state
// directory holds its lock).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/worker_exchange.h"
#include "worker/agent/unique_fd.h"

namespace hpo {

// The same request id is used for every delivery, so that the server stores it once.
struct OutboxEntry {
  std::string request_id;
  FinishRequest request;
  bool operator==(const OutboxEntry&) const = default;
};

class Outbox {
 public:
  // Reads what a former process left; makes the file where there is none.
  //   DataLoss  a line before the last is damaged; names file and line
  //   Internal  the file cannot be opened, read or written
  static absl::StatusOr<Outbox> Open(const std::string& path);

  // Durable when it returns.
  //   Internal  the file cannot be written
  absl::Status Append(const OutboxEntry& entry);

  // The server has it (or will never take it). Rewrites the file without acknowledged entries when
  // none is left or they have become many. An unknown id is a no-op.
  absl::Status Acknowledge(const std::string& request_id);

  // Not acknowledged, oldest first.
  const std::vector<OutboxEntry>& pending() const { return pending_; }

 private:
  Outbox(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Load();
  absl::Status TakeRecord(const std::string& record);
  absl::Status WriteRecord(const std::string& json);
  absl::Status Compact();

  std::string path_;
  UniqueFd file_;
  std::vector<OutboxEntry> pending_;
  int num_records_ = 0;  // in the file, acknowledgements included
};

}  // namespace hpo
