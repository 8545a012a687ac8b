// What each StudyService request that reads does, in value types. Thread-safe. Codes are documented
// per method; DataLoss where the database is damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "memory/need/memory_estimate.h"
#include "server/api/study_tables.h"

namespace hpo::server {

class TrialScheduler;

// Some of all studies, in the order of their names.
struct StudyPage {
  std::vector<StudyStatus> studies;
  std::string next_token;  // empty: these are the last
};

// A trial among others: long texts of its outcome are shortened (kListedTextLimit).
Trial Listed(Trial trial);

class StudyQueries {
 public:
  // `scheduler` outlives it.
  explicit StudyQueries(const TrialScheduler& scheduler)
      : scheduler_(scheduler), tables_(scheduler) {}

  //   NotFound  no such study; lists those there are. An empty name is the only study.
  absl::StatusOr<StudyStatus> GetStudy(const std::string& name) const;
  // All of them: one that is missing for a moment could be taken for one that is not there. Of one
  // whose row cannot be read, its name and why.
  absl::StatusOr<std::vector<StudyStatus>> ListStudies() const;

  // Those after the one that `token` names; `page_size` 0 means 100. Studies are few: pages are cut
  // from the whole list.
  absl::StatusOr<StudyPage> ListStudies(int page_size, const std::string& token) const;

  // page_size 0 means 100; at most 1,000.
  //   InvalidArgument  page_size out of range, or a token that ListTrials did not give
  absl::StatusOr<TrialPage> ListTrials(const std::string& study, const TrialQuery& query) const;

  // The sequence of each study's last change, by name: cheap.
  std::map<std::string, int64_t> LastChanges() const;

  const StudyTables& tables() const { return tables_; }

  // A page of a table of the study's trials (server/table/table_page.h).
  absl::StatusOr<TablePage> QueryTrials(const std::string& study, const TableQuery& query) const;
  // At most `points` trials of its history, beside the steps of the best one; 0 means 1,500.
  absl::StatusOr<HistorySample> GetHistory(const std::string& study, int points) const;

  absl::StatusOr<TrialView> GetTrial(const std::string& study, TrialNumber number) const;
  // `count` 0: the best one; with several objectives the whole Pareto front.
  //   Cancelled  `cancelled` returned true meanwhile
  absl::StatusOr<std::vector<Trial>> ListBestTrials(
      const std::string& study, int count,
      const std::function<bool()>& cancelled = [] { return false; }) const;

  //   FailedPrecondition  no worker has registered, or nothing is known of the configuration
  absl::StatusOr<memory::MemoryAnswer> EstimateMemory(const std::string& study,
                                                      const MemoryQuery& query) const;

  // Calls `emit` with the study, then for every change after `after_sequence` (0: from now;
  // negative: from the study's first), until emit returns false, `cancelled` returns true or the
  // server drains. A change of the study itself is a snapshot and a bookmark; each 5 s in which
  // nothing happened are a bookmark. Trials are as Listed gives them. Blocks.
  absl::Status WatchStudy(const std::string& study, int64_t after_sequence,
                          const std::function<bool(const WatchEvent&)>& emit,
                          const std::function<bool()>& cancelled) const;

 private:
  const TrialScheduler& scheduler_;
  StudyTables tables_;
};

}  // namespace hpo::server
