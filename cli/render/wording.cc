#include "cli/render/wording.h"

#include <algorithm>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/client/terminal.h"
#include "common/study/outcome_text.h"

namespace hpo::cli {
namespace {

constexpr int kFewestDigits = 4;
constexpr int kMostDigits = 12;
constexpr size_t kMostNamedOfFront = 4;  // trials that a line names

std::string FrontLine(const StudyStatus& study) {
  std::string text = "front";
  const size_t shown = std::min(study.front.size(), kMostNamedOfFront);
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, " ", Hash(study.front[i].number));
  if (shown < study.front.size()) {
    absl::StrAppend(&text, " and ", study.front.size() - shown, " more");
  }
  return absl::StrCat(text, study.best_violation > 0.0 ? ", infeasible" : "");
}

}  // namespace

std::string ShortDuration(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(std::max(duration, absl::ZeroDuration()));
  const struct {
    int64_t size;
    const char* name;
  } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
  for (size_t i = 0; i + 1 < std::size(units); ++i) {
    if (seconds < units[i].size) continue;
    const int64_t rest = seconds % units[i].size / units[i + 1].size;
    return absl::StrCat(seconds / units[i].size, units[i].name,
                        rest > 0 ? absl::StrCat(rest, units[i + 1].name) : "");
  }
  return absl::StrCat(seconds, "s");
}

std::string NumberOf(double value, int digits) { return absl::StrFormat("%.*g", digits, value); }

int DigitsThatTell(const std::vector<double>& values) {
  const size_t different = std::set<double>(values.begin(), values.end()).size();
  for (int digits = kFewestDigits; digits < kMostDigits; ++digits) {
    std::set<std::string> shown;
    for (const double value : values) shown.insert(NumberOf(value, digits));
    if (shown.size() >= different) return digits;
  }
  return kMostDigits;
}

std::string OrDash(const std::optional<double>& value) { return value ? ShortNumber(*value) : "-"; }

std::string OrDash(Bytes size) { return size.count > 0 ? FormatBytes(size) : "-"; }

std::string TakenText(absl::Time started, absl::Time ended) {
  if (ended == absl::InfinitePast()) return "-";
  return ShortDuration(started == absl::InfinitePast() ? absl::ZeroDuration() : ended - started);
}

std::string LocalTime(absl::Time time) {
  if (time == absl::InfinitePast()) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
}

std::optional<double> MetricOf(const Trial& trial, const std::string& metric) {
  const auto find = [&metric](const Metrics& metrics) -> std::optional<double> {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? std::nullopt : std::optional<double>(found->second);
  };
  std::optional<double> value;
  if (trial.outcome) {
    const auto* completed = std::get_if<Completed>(&*trial.outcome);
    const auto* stopped = std::get_if<StoppedByPruner>(&*trial.outcome);
    if (completed != nullptr) value = find(completed->metrics);
    if (stopped != nullptr) value = find(stopped->metrics);
  }
  if (!value && trial.last_measurement) value = find(trial.last_measurement->metrics);
  return value;
}

std::string Hash(TrialNumber number) { return absl::StrCat("#", number.value); }

std::string DescribeState(const Trial& trial) {
  std::string text(Name(trial.state));
  if (!trial.outcome) return text;
  if (const auto reason = PruneReasonOf(*trial.outcome)) {
    return absl::StrCat(text, " (", Name(*reason), ")");
  }
  if (const Failed* failed = std::get_if<Failed>(&*trial.outcome)) {
    return absl::StrCat(text, " (", Name(failed->failure_class), ")");
  }
  if (trial.violation > 0.0) absl::StrAppend(&text, " (infeasible)");
  return text;
}

std::string DescribeEnd(const Trial& trial) {
  return trial.outcome ? DescribeOutcome(*trial.outcome) : "";
}

std::string DescribePlan(const MemoryPlan& plan) {
  std::string text =
      absl::StrCat(plan.effective_batch, " = ", plan.NumParts(), " x ", plan.micro_batch);
  const int64_t rest = plan.effective_batch % plan.micro_batch;
  if (rest != 0) {
    text = absl::StrCat(plan.effective_batch, " = ", plan.NumParts() - 1, " x ", plan.micro_batch,
                        " + ", rest);
  }
  if (plan.checkpointing) absl::StrAppend(&text, ", checkpointing");
  if (plan.precision != Precision::kFloat32) {
    absl::StrAppend(&text, ", ", Name(plan.precision));
  }
  return text;
}

std::string ChangeText(const std::optional<Bytes>& change) {
  if (!change) return "-";
  return absl::StrCat(*change > Bytes{} ? "+" : "", FormatBytes(*change));
}

std::optional<Bytes> AllocatedChange(const Attempt& attempt, size_t index) {
  if (index == 0) return std::nullopt;
  return attempt.memory_records[index].allocated - attempt.memory_records[index - 1].allocated;
}

std::string DescribeRecord(const MemoryRecord& record) {
  std::vector<std::string> notes;
  if (record.plan) notes.push_back(absl::StrCat("batch ", DescribePlan(*record.plan)));
  if (record.predicted > Bytes{}) {
    notes.push_back(absl::StrCat("predicted ", FormatBytes(record.predicted)));
  }
  if (record.needed > Bytes{}) notes.push_back(absl::StrCat("needed ", FormatBytes(record.needed)));
  if (record.growth > Bytes{}) {
    notes.push_back(
        absl::StrCat(FormatBytes(record.growth), " did not come back: ", record.growth_stage));
  }
  return absl::StrJoin(notes, ", ");
}

std::string DescribeProgress(const StudyStatus& study) {
  const std::optional<int64_t> budget = study.spec.budget.trials;
  return absl::StrCat(study.counts.Finished(),
                      budget ? absl::StrCat(" of ", *budget) : " (no limit)");
}

std::string DescribeBest(const StudyStatus& study) {
  if (!study.best_trial) return "-";
  if (!study.front.empty()) return FrontLine(study);
  return absl::StrCat(OrDash(study.best_value), " (", Hash(*study.best_trial),
                      study.best_violation > 0.0 ? ", infeasible)" : ")");
}

std::vector<std::string> DescribeFront(const StudyStatus& study) {
  const std::vector<Objective>& objectives = study.spec.objectives;
  std::vector<int> digits;
  for (size_t i = 0; i < objectives.size(); ++i) {
    std::vector<double> values;
    for (const FrontTrial& trial : study.front) values.push_back(trial.values[i]);
    digits.push_back(DigitsThatTell(values));
  }
  std::vector<std::string> lines;
  for (const FrontTrial& trial : study.front) {
    std::string line = Hash(trial.number);
    for (size_t i = 0; i < objectives.size(); ++i) {
      absl::StrAppend(&line, i == 0 ? " " : ", ", objectives[i].metric, " ",
                      NumberOf(trial.values[i], digits[i]));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string DescribeExcess(const Trial& trial, const MetricConstraint& constraint) {
  const auto* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  if (completed == nullptr || ExcessOf(constraint, completed->metrics) <= 0.0) return "";
  const auto metric = completed->metrics.find(constraint.metric);
  return absl::StrCat(DescribeConstraint(constraint), ": ",
                      metric == completed->metrics.end()
                          ? "not reported"
                          : absl::StrCat("reported ", ShortNumber(metric->second)));
}

std::string AttributeLines(const Attributes& attributes, int width) {
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    const size_t columns = static_cast<size_t>(width);
    const size_t blanks = name.size() < columns ? columns - name.size() : 1;
    absl::StrAppend(&text, Printable(name), std::string(blanks, ' '), Printable(value), "\n");
  };
  if (const std::string note = NoteOf(attributes); !note.empty()) add("note", note);
  const std::vector<std::string> tags = TagsOf(attributes);
  if (!tags.empty()) add("tags", absl::StrJoin(tags, ", "));
  const auto retry = attributes.find(kRetryOfKey);
  if (retry != attributes.end()) add("retries", absl::StrCat("trial #", retry->second));
  for (const auto& [key, value] : UsersOwn(attributes)) add(key, value);
  return text;
}

std::string DescribeDryRuns(const DryRunCounts& counts) {
  std::string text = absl::StrCat(counts.made, " in ", ShortDuration(counts.took), ": ",
                                  counts.refused, " did not fit");
  if (counts.uncertain > 0) absl::StrAppend(&text, ", ", counts.uncertain, " uncertain");
  if (counts.failed > 0) absl::StrAppend(&text, ", ", counts.failed, " failed");
  if (counts.saved > absl::ZeroDuration()) {
    absl::StrAppend(&text, "; saved about ", ShortDuration(counts.saved), " of a GPU");
  }
  return counts.trouble.empty() ? text : absl::StrCat(text, "; ", counts.trouble);
}

std::string DescribeOoms(const TrialCounts& counts) {
  std::string text = absl::StrCat("OOM ", counts.oom_met, " met");
  if (counts.oom_recovered > 0) absl::StrAppend(&text, " (", counts.oom_recovered, " recovered)");
  return absl::StrCat(text, ", ", counts.oom_predicted, " predicted");
}

}  // namespace hpo::cli
