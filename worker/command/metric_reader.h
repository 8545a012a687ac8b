// Metrics and out-of-memory errors in what a program prints. Pure.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study/trial.h"
#include "re2/re2.h"
#include "worker/command/dict_lines.h"
#include "worker/command/ranks/rank_reader.h"

namespace hpo::command {

// A regular expression whose groups hold numbers: a group "(?P<accuracy>\S+)" is the metric of its
// name, the first group without a name the objective's.
using MetricPattern = std::shared_ptr<const re2::RE2>;

//   InvalidArgument  no regular expression of RE2, or one without a group
absl::StatusOr<MetricPattern> ParseMetricPattern(const std::string& text);

// The one number that a group has matched in [begin, end) of `line`, which holds it whole
// (printed_number.h); nullopt: no digit, inf or nan is in it.
//   InvalidArgument  a number begins before or ends after the group, there are several, or it is
//                    none that is read
absl::StatusOr<std::optional<double>> NumberInGroup(absl::string_view line, size_t begin,
                                                    size_t end);

// The numbers of a text that is a dict (printed_dict.h) and nothing else; nullopt: it is none.
std::optional<Metrics> ParseMetrics(absl::string_view text, const std::string& objective);

// Each dict (dict_lines.h) with the objective's metric is a measurement, and so is each line in
// which a pattern finds that metric. Their step is the dict's "step", else one more than the last
// one's; "epoch" is taken too, where it is there. Lines are read as a terminal shows them
// (common/command_line/terminal_text.h).
class MetricReader {
 public:
  MetricReader(std::string objective, std::vector<MetricPattern> patterns);

  // What is measured by a line, without its newline, and by those before it that are decided now.
  // `overwritten`: the next line takes its place, as of a progress bar.
  std::vector<Measurement> Take(absl::string_view line, bool overwritten = false);
  // What is measured by the last lines; nothing follows.
  std::vector<Measurement> Finish();

  // Why a pattern's match is no number: the first such error, with its line. Nothing is measured
  // from then on.
  const absl::Status& error() const { return error_; }

  const std::optional<Measurement>& last() const { return last_; }

  // The objective named without a number after the last measurement: that is not the result then.
  // A list that ends with the last measurement's value is its history and no such name.
  const std::optional<UnreadObjective>& unread() const { return unread_; }

  // Metrics that were beyond the limits, of the first measurement that had such ones.
  size_t num_left_out() const { return num_left_out_; }

  // Metrics of dicts without the objective's, to tell somebody who expected a result.
  const Metrics& other_metrics() const { return other_metrics_; }

  // The first line that tells of memory that ran out; empty: none.
  const std::string& oom_line() const { return oom_line_; }
  // What is known of the program's ranks, and which of them ran out of memory.
  const RankReader& ranks() const { return ranks_; }
  // Of the host; else of a card.
  bool is_host_oom() const { return is_host_oom_; }

  // The last lines, at most 4 KiB; of those that are overwritten the last.
  std::string Tail() const;

 private:
  void Remember(absl::string_view line, bool overwritten);
  void LookForOom(absl::string_view line);
  std::vector<Measurement> Judge(const std::vector<ReadLines>& decided);
  // Puts what patterns find into found_by_patterns_; whether the objective's is among it.
  absl::StatusOr<bool> MatchAll(absl::string_view line);
  absl::StatusOr<bool> Match(const re2::RE2& pattern, absl::string_view line);
  Measurement Measured(Metrics metrics);
  bool IsHistory(const UnreadObjective& unread) const;

  std::string objective_;
  std::vector<MetricPattern> patterns_;
  DictLines dict_lines_;
  absl::Status error_;
  Metrics found_by_patterns_;
  std::optional<Measurement> last_;
  std::optional<UnreadObjective> unread_;
  size_t num_left_out_ = 0;
  Metrics other_metrics_;
  std::string oom_line_;
  bool is_host_oom_ = false;
  RankReader ranks_;
  std::deque<std::string> tail_;
  size_t tail_bytes_ = 0;
  bool last_is_overwritten_ = false;
};

}  // namespace hpo::command
