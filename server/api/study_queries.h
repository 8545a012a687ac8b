// What each StudyService request that reads does, in value types. Thread-safe. Codes are documented
// per method; DataLoss where the database is damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "server/api/memory_answer.h"
#include "server/storage/trial_query.h"

namespace hpo::server {

class TrialScheduler;

// One page. `next_token` is empty on the last.
struct TrialPage {
  std::vector<Trial> trials;  // attempts left out
  std::string next_token;
  int64_t total = 0;
};

// A change of one trial, or of what the study is to do. `sequence` grows by one per change of the
// study.
struct TrialEvent {
  int64_t sequence = 0;
  std::string kind;  // "queued", "started", "measured", "oom_met", "replanned",
                     // "preempt_ordered", "stop_ordered", "requeued", "finished"; of the study:
                     // the name of a StudyOrder
  std::optional<Trial> trial;  // nullopt: of the study
};

class StudyQueries {
 public:
  // `scheduler` outlives it.
  explicit StudyQueries(const TrialScheduler& scheduler) : scheduler_(scheduler) {}

  //   NotFound  no such study; lists those there are. An empty name is the only study.
  absl::StatusOr<StudyStatus> GetStudy(const std::string& name) const;
  // All of them: one that is missing for a moment could be taken for one that is not there. Of one
  // whose row cannot be read, its name and why.
  absl::StatusOr<std::vector<StudyStatus>> ListStudies() const;

  // page_size 0 means 100; at most 1,000.
  //   InvalidArgument  page_size out of range, or a token that ListTrials did not give
  absl::StatusOr<TrialPage> ListTrials(const std::string& study, const TrialFilter& filter,
                                       int page_size, const std::string& page_token) const;

  absl::StatusOr<TrialView> GetTrial(const std::string& study, TrialNumber number) const;
  // `count` 0: the best one; with several objectives the whole Pareto front.
  //   Cancelled  `cancelled` returned true meanwhile
  absl::StatusOr<std::vector<Trial>> ListBestTrials(
      const std::string& study, int count,
      const std::function<bool()>& cancelled = [] { return false; }) const;

  //   FailedPrecondition  no worker has registered, or nothing is known of the configuration
  absl::StatusOr<MemoryAnswer> EstimateMemory(const std::string& study, const ParamMap& params,
                                              const std::string& worker, Bytes limit) const;

  // Calls `emit` for every change after `after_sequence` (0: from now; negative: from the study's
  // first), and with nullopt each 15 s in which nothing happened, until emit returns false,
  // `cancelled` returns true or the server drains. Blocks.
  absl::Status WatchStudy(const std::string& study, int64_t after_sequence,
                          const std::function<bool(const std::optional<TrialEvent>&)>& emit,
                          const std::function<bool()>& cancelled) const;

 private:
  const TrialScheduler& scheduler_;
};

}  // namespace hpo::server
