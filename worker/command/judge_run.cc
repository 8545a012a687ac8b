#include "worker/command/judge_run.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/files/spawn.h"
#include "common/study/outcome_text.h"
#include "re2/re2.h"
#include "worker/command/ranks/rank_reader.h"

namespace hpo::command {
namespace {

OutOfMemory RanOut(const RunFacts& facts, const MetricReader& printed, OomKind kind,
                   std::string message) {
  return {.kind = kind,
          .peak = facts.peak,
          .limit = facts.limit,
          .step = printed.last() ? printed.last()->step : 0,
          .plan = facts.plan,
          .message = std::move(message),
          .traceback = printed.Tail()};
}

// "rank 1: torch.OutOfMemoryError: ...", of a program of several ranks.
std::string OomMessage(const MetricReader& printed) {
  const std::optional<int64_t> rank = printed.ranks().oom_rank();
  if (!rank) return printed.oom_line();
  return absl::StrCat("rank ", *rank, ": ", WithoutRank(printed.oom_line()));
}

std::optional<TrialOutcome> Stopped(const std::string& reason, const MetricReader& printed) {
  if (reason != "pruned" && reason != "time limit") return std::nullopt;
  StoppedByPruner pruned;
  if (printed.last()) {
    pruned.step = printed.last()->step;
    pruned.metrics = printed.last()->metrics;
  }
  return pruned;
}

// The last measurement is not the result, and nobody would see that.
Failed Unread(const UnreadObjective& unread, const std::string& metric,
              const std::optional<Measurement>& last) {
  std::string text;
  const bool is_null = unread.value && (*unread.value == "None" || *unread.value == "null");
  if (unread.value) {
    text = absl::StrCat("expected a ", is_null ? "finite " : "", "number as the metric ", metric,
                        ", got ", CutAfter(*unread.value, 80));
  } else {
    text = absl::StrCat("the metric ", metric, " cannot be read, as the dict around it is not ",
                        "understood");
  }
  absl::StrAppend(&text, ", in the line '", unread.line, "'");
  if (last) {
    absl::StrAppend(&text, "; the value before it, ", last->metrics.at(metric),
                    ", is not taken as the result");
  }
  if (!is_null) {
    absl::StrAppend(&text, "; let the program print {\"", metric, "\": 0.5} as its last such line");
  }
  return {.failure_class = is_null ? FailureClass::kDiverged : FailureClass::kBadConfiguration,
          .message = std::move(text)};
}

std::string WithTail(const std::string& message, const MetricReader& printed) {
  const std::string tail = printed.Tail();
  if (tail.empty()) return absl::StrCat(message, "; it printed nothing");
  return absl::StrCat(message, kLastOutput, "\n", tail);
}

// What came, with the objective's metric or without; the error says what is wrong with the file.
absl::StatusOr<Metrics> Result(const RunFacts& facts, const MetricReader& printed) {
  if (facts.metrics_file.empty()) {
    return printed.last() ? printed.last()->metrics : printed.other_metrics();
  }
  HPO_RETURN_IF_ERROR(facts.metrics_text.status());
  if (const auto metrics = ParseMetrics(*facts.metrics_text, facts.objective)) return *metrics;
  return absl::InvalidArgumentError(absl::StrCat("got ", DescribeJson(*facts.metrics_text)));
}

Failed WithoutResult(const RunFacts& facts, const MetricReader& printed,
                     const absl::StatusOr<Metrics>& metrics) {
  const std::string& metric = facts.objective;
  std::string text = absl::StrCat("the program exited with status 0 without the metric ", metric);
  if (facts.metrics_file.empty()) {
    absl::StrAppend(&text, ": expected a line such as {\"", metric,
                    "\": 0.5}, or one that --metric-pattern finds");
  } else {
    absl::StrAppend(&text, ": expected {\"", metric, "\": 0.5} in ", facts.metrics_file);
  }
  if (!metrics.ok()) absl::StrAppend(&text, ", ", metrics.status().message());
  if (metrics.ok() && !metrics->empty()) {
    absl::StrAppend(&text, "; got ",
                    absl::StrJoin(*metrics, ", ", [](std::string* out, const auto& entry) {
                      out->append(entry.first);
                    }));
  }
  return {.failure_class = FailureClass::kBadConfiguration, .message = WithTail(text, printed)};
}

RunVerdict EndedBadly(const RunFacts& facts, const MetricReader& printed) {
  const RunExit& exit = facts.exit;
  const std::string end = exit.signal != 0 ? absl::StrCat("was killed by ", SignalName(exit.signal))
                                           : absl::StrCat("exited with status ", exit.code);
  return {.outcome = Failed{.failure_class = FailureClass::kInternal,
                            .message = WithTail(absl::StrCat("the program ", end), printed)},
          .signal = exit.signal == SIGKILL || printed.ranks().killed() ? SIGKILL : 0,
          .cannot_start =
              printed.last() ? "" : WhyNotStarted(exit.code, printed.Tail(), facts.command_text)};
}

constexpr int kPythonsStatus = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// "sh: 1: NAME: not found", "bash: line 1: NAME: command not found", "env: 'NAME': No such file or
// directory", "sh: NAME: INTERPRETER: bad interpreter: No such file or directory".
const RE2& ShellsWords() {
  static const auto* const words = new RE2(
      "(?:^|[: ])['\"\\x{2018}]?"                                                // a quote
      "([^ :'\"\\x{2018}\\x{2019}][^:'\"\\x{2018}\\x{2019}]*)['\"\\x{2019}]?: "  // NAME
      "(?:[^:]*: bad interpreter: )?"
      "(?:command not found|not found|No such file or directory|Permission denied|"
      "Exec format error|cannot execute[^:]*|Is a directory)[^:]*$");
  return *words;
}

const RE2& PythonsWords() {
  static const auto* const words = new RE2("can't open file '([^']+)': \\[Errno \\d+\\]");
  return *words;
}

// Python gives the whole path of a file that the command names by a part of it.
bool Names(absl::string_view command_text, absl::string_view program) {
  // Within quotes of the command's.
  if (absl::StrContains(program, ' ')) return absl::StrContains(command_text, program);
  const std::vector<absl::string_view> words =
      absl::StrSplit(command_text, absl::ByAnyChar(" \t\n'\";&|()="), absl::SkipEmpty());
  return std::any_of(words.begin(), words.end(), [program](absl::string_view word) {
    return word == program || absl::EndsWith(program, absl::StrCat("/", word));
  });
}

}  // namespace

std::string WhyNotStarted(int exit_status, absl::string_view output,
                          absl::string_view command_text) {
  const bool by_shell = exit_status == kNotExecutable || exit_status == kNotFound;
  if (!by_shell && exit_status != kPythonsStatus) return "";
  const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    std::string program;
    const RE2& pattern = by_shell ? ShellsWords() : PythonsWords();
    if (RE2::PartialMatch(*line, pattern, &program) && Names(command_text, program)) return *line;
  }
  return "";
}

RunVerdict JudgeRun(const RunFacts& facts, const MetricReader& printed) {
  const bool ended_well = facts.exit.code == 0 && facts.exit.signal == 0;
  if (facts.over_limit) {
    const std::string message =
        absl::StrCat("the program held ", FormatBytes(facts.peak),
                     " of host memory; the trial's limit is ", FormatBytes(facts.limit));
    return {RanOut(facts, printed, OomKind::kConfiguration, message)};
  }
  if (!printed.error().ok()) {
    return {Failed{.failure_class = FailureClass::kBadConfiguration,
                   .message = std::string(printed.error().message())}};
  }
  const bool is_unread = ended_well && facts.metrics_file.empty() && printed.unread().has_value();
  if (facts.stop_reason && (!ended_well || is_unread)) {
    return {Stopped(*facts.stop_reason, printed)};
  }
  if (is_unread) return {Unread(*printed.unread(), facts.objective, printed.last())};
  const absl::StatusOr<Metrics> metrics = Result(facts, printed);
  if (ended_well && metrics.ok() && metrics->contains(facts.objective)) {
    return {Completed{.metrics = *metrics}};
  }
  if (!printed.oom_line().empty()) {
    const OomKind kind = printed.is_host_oom() ? OomKind::kHost : OomKind::kConfiguration;
    return {RanOut(facts, printed, kind, OomMessage(printed))};
  }
  if (facts.stop_reason) return {Stopped(*facts.stop_reason, printed)};
  if (ended_well) return {WithoutResult(facts, printed, metrics)};
  return EndedBadly(facts, printed);
}

}  // namespace hpo::command
