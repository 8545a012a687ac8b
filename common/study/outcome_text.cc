#include "common/study/outcome_text.h"

#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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
  return failed.message.empty() ? "no message" : failed.message;
}

std::string Sentence(const Cancelled& cancelled) {
  return cancelled.reason.empty() ? "no reason given" : cancelled.reason;
}

}  // namespace

std::string ShortNumber(double value) { return absl::StrFormat("%.6g", value); }

std::string DescribeOutcome(const TrialOutcome& outcome) {
  return std::visit([](const auto& held) { return Sentence(held); }, outcome);
}

void ShortenTexts(TrialOutcome& outcome) { std::visit(TextShortener(), outcome); }

std::string LastLine(absl::string_view text) {
  text = absl::StripTrailingAsciiWhitespace(text);
  const size_t line_end = text.rfind('\n');
  return std::string(line_end == absl::string_view::npos ? text : text.substr(line_end + 1));
}

}  // namespace hpo
