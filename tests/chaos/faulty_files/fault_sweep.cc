#include "tests/chaos/faulty_files/fault_sweep.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

struct Kind {
  const char* name;
  server::FileOperation operation;
  int code;
  bool small_cache = false;
};

constexpr Kind kKinds[] = {
    {"write, disk full", server::FileOperation::kWrite, SQLITE_FULL},
    {"write, disk full, in a transaction", server::FileOperation::kWrite, SQLITE_FULL, true},
    {"write, I/O error, in a transaction", server::FileOperation::kWrite, SQLITE_IOERR_WRITE, true},
    {"sync", server::FileOperation::kSync, SQLITE_IOERR_FSYNC},
    {"read", server::FileOperation::kRead, SQLITE_IOERR_READ, true},
    {"open", server::FileOperation::kOpen, SQLITE_CANTOPEN},
    {"map", server::FileOperation::kMap, SQLITE_IOERR_SHMMAP},
};

// Runs until `first` is past the study's last operation.
void SweepKind(const Kind& kind, int64_t count, const SweepOptions& options, SweepResult& result) {
  for (int64_t first = options.first;; first += options.stride) {
    const FaultyStudyOptions study{
        .num_trials = options.num_trials,
        .fault =
            server::FileFault{
                .operation = kind.operation, .code = kind.code, .first = first, .count = count},
        .small_cache = kind.small_cache};
    const FaultyStudyResult run = RunFaultyStudy(study);
    if (run.num_failed_operations == 0 && run.status.ok()) return;
    ++result.num_studies;
    ++result.faults_by_kind[kind.name];
    result.num_failed_calls += run.num_failed_calls;
    if (run.status.ok()) continue;
    result.not_recovered.push_back(absl::StrCat(kind.name, " ", first, count == 1 ? "" : " and on",
                                                ": ", run.status.ToString()));
    // One that fails without a fault would fail for ever.
    if (run.num_failed_operations == 0) return;
  }
}

}  // namespace

SweepResult SweepFaults(const SweepOptions& options) {
  SweepResult result;
  for (const Kind& kind : kKinds) {
    SweepKind(kind, 1, options, result);
    SweepKind(kind, server::kUntilHealed, options, result);
  }
  return result;
}

}  // namespace hpo
