// A study of a few trials, from its beginning to its end, while the database's files fail: what a
// full or broken disk does to a server, and whether it recovers by itself.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "tests/server/storage/faulty_vfs.h"

namespace hpo {

struct FaultyStudyOptions {
  int64_t num_trials = 20;
  server::FileFault fault;  // armed before the server starts
  // SQLite keeps a few pages in memory and writes before the commit, so that writes fail in the
  // middle of a transaction.
  bool small_cache = false;
};

struct FaultyStudyResult {
  int64_t num_failed_operations = 0;  // of the database's files; 0: `fault.first` is past the end
  int64_t num_failed_calls = 0;       // answered with an error
  // Internal: what was acknowledged is lost or changed, a trial has no end although its worker
  // asked again and again, or memory differs from a rebuild from rows. The message names the rule.
  absl::Status status;
};

// Calls are repeated with their request ids, as workers repeat them, a second apart. A fault that
// lasts is healed after some failed calls. Not thread-safe: SQLite's file system is the process's.
FaultyStudyResult RunFaultyStudy(const FaultyStudyOptions& options);

}  // namespace hpo
