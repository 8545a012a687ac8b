// Rows of trials as a table shows them, read from the database.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/study/trial.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// A trial without attempts and attributes; with its last measurement where its outcome has no
// metrics.
struct TableRow {
  Trial trial;
  int64_t num_attempts = 0;
  // Of the attempt that tells about the trial; empty and 0: there is none, or it is not known.
  std::string worker;
  Bytes predicted;
  MemoryReport memory;  // of the last attempt that has measured
};

// Codes: database.h.
class TableRows {
 public:
  // `database` outlives it.
  TableRows(Database& database, int64_t study_id, std::string study)
      : database_(database), study_id_(study_id), study_(std::move(study)) {}

  // The largest number of a trial, or kNoTrial.
  absl::StatusOr<TrialNumber> Last() const;

  // Calls `visit` with each trial from `first` to `last`, in order; those that cannot be read say
  // so.
  absl::Status Visit(TrialNumber first, TrialNumber last,
                     const std::function<void(const TableRow&)>& visit) const;

 private:
  absl::StatusOr<TableRow> Read(const Statement& row) const;

  Database& database_;
  const int64_t study_id_;
  const std::string study_;
};

}  // namespace hpo::server
