#include "common/study/outcome_text.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/last_line.h"
#include "common/base/limits.h"

namespace hpo {
namespace {

void Shorten(std::string& text, const Limit& limit) {
  if (text.size() > static_cast<size_t>(limit.most)) text = Shortened(text, limit);
}

struct TextShortener {
  void operator()(Completed&) const {}
  void operator()(StoppedByPruner& stopped) const { Shorten(stopped.pruner, kNameLimit); }
  void operator()(OutOfMemory& oom) const {
    Shorten(oom.phase, kNameLimit);
    Shorten(oom.message, kErrorTextLimit);
    Shorten(oom.traceback, kErrorTextLimit);
  }
  void operator()(Failed& failed) const { Shorten(failed.message, kErrorTextLimit); }
  void operator()(Cancelled& cancelled) const { Shorten(cancelled.reason, kTextLimit); }
};

std::string ReasonIn(absl::string_view message);

std::string MetricsText(const Metrics& metrics) {
  return absl::StrJoin(metrics, ", ", [](std::string* out, const auto& metric) {
    absl::StrAppend(out, metric.first, " ", ShortNumber(metric.second));
  });
}

std::string SizeText(Bytes size) { return size.count > 0 ? FormatBytes(size) : "-"; }

std::string Sentence(const Completed& completed) {
  return completed.metrics.empty() ? "no metrics" : MetricsText(completed.metrics);
}

std::string Sentence(const StoppedByPruner& stopped) {
  const std::string text =
      absl::StrCat("stopped by the ", stopped.pruner, " pruner at step ", stopped.step);
  return stopped.metrics.empty() ? text : absl::StrCat(text, ", ", MetricsText(stopped.metrics));
}

std::string Sentence(const OutOfMemory& oom) {
  if (oom.predicted) {
    return absl::StrCat("not started: needs ", SizeText(oom.needed), ", allowed ",
                        SizeText(oom.limit));
  }
  const char* memory = oom.kind == OomKind::kHost ? "host memory" : "memory";
  // A program of the user's own has its error's words alone.
  if (oom.requested == Bytes() && oom.phase.empty() && !oom.message.empty()) {
    return absl::StrCat("out of ", memory, ": ", LastLine(oom.message));
  }
  return absl::StrCat("out of ", memory, " in ", oom.phase.empty() ? "a step" : oom.phase,
                      " at step ", oom.step, ": wanted ", SizeText(oom.requested),
                      " more at a peak of ", SizeText(oom.peak), ", allowed ", SizeText(oom.limit));
}

std::string Sentence(const Failed& failed) {
  return failed.message.empty() ? "no message" : ReasonIn(failed.message);
}

std::string Sentence(const Cancelled& cancelled) {
  return cancelled.reason.empty() ? "no reason given" : cancelled.reason;
}

// Of a traceback, boxes drawn around it included: lines below its head that are not the error's.
bool IsWithinTraceback(absl::string_view line) {
  return line.empty() || line[0] == ' ' || line[0] == '\t' || absl::StartsWith(line, "\xe2\x94") ||
         absl::StartsWith(line, "\xe2\x95");  // U+2500 to U+257F
}

// The line that names the error of the last traceback in `text`; empty: there is none.
std::string ErrorOfTraceback(absl::string_view text) {
  constexpr absl::string_view kHead = "Traceback (most recent call last)";
  const size_t head = text.rfind(kHead);
  if (head == absl::string_view::npos) return "";
  const std::vector<absl::string_view> lines = absl::StrSplit(text.substr(head), '\n');
  const auto error = std::find_if_not(lines.begin() + 1, lines.end(), IsWithinTraceback);
  return error == lines.end() ? "" : std::string(absl::StripTrailingAsciiWhitespace(*error));
}

std::string ReasonIn(absl::string_view message) {
  if (std::string error = ErrorOfTraceback(message); !error.empty()) return error;
  // What the worker says of a program comes first, then what that has printed.
  const size_t output = message.find(kLastOutput);
  const std::string last = LastLine(message);
  if (output == absl::string_view::npos) return last;
  return absl::StrCat(message.substr(0, output), kLastOutput, " ", last);
}

}  // namespace

std::string ShortNumber(double value) { return absl::StrFormat("%.6g", value); }

std::string WholeOutcome(const TrialOutcome& outcome) {
  const auto* const failed = std::get_if<Failed>(&outcome);
  if (failed == nullptr || failed->message.empty()) return DescribeOutcome(outcome);
  return failed->message;
}

std::string DescribeOutcome(const TrialOutcome& outcome) {
  return std::visit([](const auto& held) { return Sentence(held); }, outcome);
}

void ShortenTexts(TrialOutcome& outcome) { std::visit(TextShortener(), outcome); }

}  // namespace hpo
