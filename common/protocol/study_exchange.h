// What people ask of studies and their trials, and what the server answers, as values: the messages
// of proto/hpo/v1/study.proto without protobuf. Used by server/api and by the CLI's client. The
// meaning of each call is documented in proto/hpo/v1/study.proto. Which study is asked, and the id
// of the request, are arguments of the call. The answer to a MemoryQuery is in
// memory/need/memory_estimate.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"

namespace hpo {

struct CreateResult {
  StudyStatus study;
  bool created = false;  // whether the study is new
};

struct StudyUpdate {
  std::optional<int64_t> trials;  // new total
  // On top of the budget, or of the trials that there are where those are more.
  std::optional<int64_t> add_trials;
  std::optional<absl::Duration> wall_clock;
  std::optional<int64_t> failures_in_a_row;
  std::optional<double> failed_share;  // 1: no limit
  std::optional<double> target;
  bool remove_target = false;
  std::map<std::string, std::vector<ParamValue>> added_choices;
  bool operator==(const StudyUpdate&) const = default;
};

// Either a changed file's text or ranges.
struct StudyEdit {
  std::string yaml;
  std::string origin;                    // name that errors start with
  std::map<std::string, Domain> ranges;  // by parameter
  bool validate_only = false;            // reports the result without storing it
};

struct EditResult {
  StudyStatus study;
  // Of each parameter that has changed.
  std::map<std::string, Domain> before;
  std::map<std::string, Domain> after;
  int64_t num_outside = 0;             // trials that lie outside of the space now
  std::vector<TrialNumber> cancelled;  // of those, that waited and had never run
};

// The end of an archive.
struct ArchiveEnd {
  Bytes size;
  std::string sha256;  // of all data, hexadecimal
  int64_t num_trials = 0;
};

struct EnqueueRequest {
  ParamMap params;
  bool demonstration = false;
  bool skip_admission = false;
  int64_t forced_micro_batch = 0;  // 0: planned
};

struct RetryRequest {
  std::vector<TrialNumber> numbers;
  bool all_failed = false;  // every trial that could be named
};

struct SkippedTrial {
  TrialNumber number;
  std::string why;
  bool operator==(const SkippedTrial&) const = default;
};

struct RetryResult {
  std::vector<Trial> trials;  // that wait now
  std::vector<SkippedTrial> skipped;
};

struct TrialFilter {
  std::vector<TrialState> states;          // empty: all
  std::vector<PruneReason> prune_reasons;  // empty: all
  bool newest_first = false;
};

struct TrialQuery {
  TrialFilter filter;
  int page_size = 0;       // 0: the server's default
  std::string page_token;  // empty: the first page
};

struct TrialPage {
  std::vector<Trial> trials;  // attempts left out
  std::string next_token;     // empty on the last page
  int64_t total = 0;          // that match the filter
};

// A page of a table of trials.
struct TableQuery {
  std::vector<std::string> where;    // conditions, as QueryTrials has them
  std::string sort;                  // a column, "-" before it: largest first; empty: number
  std::vector<std::string> columns;  // empty: the usual ones
  int page_size = 0;                 // 0: 100
  std::string page_token;            // empty: the first page
  bool from_end = false;             // the last page, in the order of `sort`
};

// Values of one column, a row each: either numbers, or texts by their place in `texts`.
struct TableColumn {
  std::string name;
  bool is_text = false;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  std::vector<int32_t> indexes;
  std::vector<int32_t> missing;  // rows without a value
};

// A column that may be asked for.
struct ColumnInfo {
  enum class Kind { kField, kParameter, kMetric };
  std::string name;
  Kind kind = Kind::kField;
  bool numeric = false;
  bool log = false;  // a parameter that is searched on a logarithmic scale
};

struct TablePage {
  int64_t total = 0;     // trials of the study
  int64_t matching = 0;  // that the conditions hold for
  int64_t position = 0;  // matching ones before the page
  int64_t sequence = 0;  // of the study's change that the page shows
  std::vector<int64_t> numbers;
  std::vector<TableColumn> columns;
  std::vector<ColumnInfo> all_columns;  // with the first page
  std::string next_page_token;          // empty: the last page
  std::string previous_page_token;      // empty: the first page
};

// The history of a study as far as a chart can show it.
struct HistorySample {
  int64_t sequence = 0;
  int64_t total = 0;
  std::vector<int64_t> numbers;  // of the trials that are kept, ascending
  std::string states;            // a letter each, proto/hpo/v1/study.proto
  struct Series {
    std::string metric;
    std::vector<double> values;  // NaN: none
  };
  std::vector<Series> series;  // an objective each
  std::vector<int64_t> best_numbers;
  std::vector<double> best_values;
};

struct MemoryQuery {
  ParamMap params;
  std::string worker;  // empty: the one with the largest capacity
  Bytes limit;         // 0: the worker's capacity
};

// A trial as a change left it. `sequence` grows by one per change of the study.
struct TrialEvent {
  int64_t sequence = 0;
  std::string kind;  // "queued", "started", "measured", "oom_met", "replanned",
                     // "preempt_ordered", "stop_ordered", "requeued", "finished"
  Trial trial;
};

// The sequence of a change: the watch has sent all changes up to it, and may be resumed from here.
struct Bookmark {
  int64_t value = 0;
};

// The study as it was found or as an order left it, or what has changed.
using WatchEvent = std::variant<StudyStatus, TrialEvent, Bookmark>;

}  // namespace hpo
