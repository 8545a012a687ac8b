// Metrics and out-of-memory errors in what a program prints. Pure.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study/trial.h"
#include "re2/re2.h"

namespace hpo {

// A regular expression whose groups are numbers: a group "(?P<accuracy>[0-9.]+)" is the metric of
// its name, the first group without a name the objective's.
using MetricPattern = std::shared_ptr<const re2::RE2>;

//   InvalidArgument  no regular expression of RE2, or one without a group
absl::StatusOr<MetricPattern> ParseMetricPattern(const std::string& text);

// The numbers of an object of JSON, or of a dict as Python prints one (also numbers as text, which
// is how transformers prints them); nullopt: the text is neither. NaN and infinities are read.
std::optional<Metrics> ParseMetrics(absl::string_view text);

// Each line that is such an object with the objective's metric is a measurement, and so is each
// line in which a pattern finds that metric. Their step is the object's "step", else one more than
// the last one's; "epoch" is taken too, where it is there.
class MetricReader {
 public:
  MetricReader(std::string objective, std::vector<MetricPattern> patterns);

  // What a line, without its newline, measures.
  std::optional<Measurement> Take(absl::string_view line);

  const std::optional<Measurement>& last() const { return last_; }
  // Metrics of objects without the objective's, to tell somebody who expected a result.
  const Metrics& other_metrics() const { return other_metrics_; }

  // The first line that tells of memory that ran out; empty: none.
  const std::string& oom_line() const { return oom_line_; }
  // Of the host; else of a card.
  bool is_host_oom() const { return is_host_oom_; }

  // The last lines, at most 4 KiB.
  std::string Tail() const;

 private:
  void Remember(absl::string_view line);
  void LookForOom(absl::string_view line);
  // Puts what a pattern finds into found_by_patterns_; whether the objective's is among it.
  bool Match(const re2::RE2& pattern, absl::string_view line);
  std::optional<Measurement> Measured(Metrics metrics);

  std::string objective_;
  std::vector<MetricPattern> patterns_;
  Metrics found_by_patterns_;
  std::optional<Measurement> last_;
  Metrics other_metrics_;
  std::string oom_line_;
  bool is_host_oom_ = false;
  std::deque<std::string> tail_;
  size_t tail_bytes_ = 0;
};

}  // namespace hpo
