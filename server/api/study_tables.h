// The tables of all studies (server/table/trial_table.h), by the names of the studies. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/table/trial_table.h"

namespace hpo::server {

class TrialScheduler;

class StudyTables {
 public:
  // `scheduler` outlives it.
  explicit StudyTables(const TrialScheduler& scheduler) : scheduler_(scheduler) {}

  // Calls `use` with the study's columns at its change `sequence`.
  //   NotFound     no such study; lists those there are
  //   Unavailable  the database cannot be read for now
  using TableUse =
      std::function<absl::Status(const StudyRuntime&, const TrialColumns&, int64_t sequence)>;
  absl::Status Use(const std::string& study, const TableUse& use) const;

  // Reads the columns of all studies, until `cancelled` returns true: the first use of a large
  // study takes seconds otherwise.
  void ReadAll(const std::function<bool()>& cancelled) const;

 private:
  // The study's table; tables of studies that are gone are forgotten.
  std::shared_ptr<TrialTable> TableOf(const StudyRuntime& study) const;

  const TrialScheduler& scheduler_;
  mutable TrialTables tables_;
};

}  // namespace hpo::server
