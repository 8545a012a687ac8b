// Who changed what, and who was refused: one JSON object a line in a file for its owner alone.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hpo::server {

// An event. Empty members are left out.
struct AuditEvent {
  std::string event;  // "call", "refused", "handshake", "start"
  std::string who;    // a token's name
  std::string role;
  std::string from;  // an address
  std::string method;
  std::string what;    // "study=criteria number=12"
  std::string result;  // a status code's name
  std::string why;
};

// Thread-safe. Never fails and never blocks the caller for longer than a write to the file: what
// cannot be written is reported once in the program's log.
class AuditLog {
 public:
  // Appends to `path`, mode 0600; beyond `most_bytes` the file becomes `path`.1 and a new one is
  // begun. An empty path: nothing is written.
  AuditLog(std::string path, const Clock& clock, int64_t most_bytes = int64_t{64} << 20);
  AuditLog(const AuditLog&) = delete;

  void Write(const AuditEvent& event);

  // For events that strangers can cause in any number: of equal ones (all but `from`'s port) only
  // the first in a second is written, and the next line says how many were left out.
  void WriteSparingly(const AuditEvent& event);

  const std::string& path() const { return path_; }

 private:
  struct Closed {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Recent {
    absl::Time written;
    int64_t left_out = 0;
  };

  void Append(const AuditEvent& event, int64_t left_out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Clock& clock_;
  const int64_t most_bytes_;
  absl::Mutex mutex_;
  std::unique_ptr<std::FILE, Closed> file_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Recent> recent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
