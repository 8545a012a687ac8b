#include "worker/command/metric_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/command_line/terminal_text.h"
#include "worker/command/printed_dict.h"
#include "worker/command/printed_number.h"

namespace hpo::command {
namespace {

constexpr size_t kMaxTailBytes = 4096;
constexpr size_t kMostQuoted = 80;  // bytes of a match in a message

// As PyTorch, TensorFlow, JAX and CUDA's libraries word it; python/src/hpo/trainer.py has a list of
// its own, for exceptions.
constexpr std::array kCardTexts = {
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA error 2: out of memory",
    "[CUDA] out of memory",
    "HIP out of memory",
    "HIP error: out of memory",
    "XPU out of memory",
    "MPS backend out of memory",
    "OutOfMemoryError",
    "ResourceExhaustedError",
    "RESOURCE_EXHAUSTED: Out of memory",
    "OOM when allocating tensor",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "cudaErrorMemoryAllocation",
    "CUDA_ERROR_OUT_OF_MEMORY",
};
constexpr std::array kHostTexts = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "std::bad_alloc",
    "Cannot allocate memory",
};
constexpr char kPythonHostError[] = "MemoryError";  // alone, or before ":"

constexpr char kTraceback[] = "Traceback (most recent call last)";

// Whether a line about memory says itself that the program goes on.
bool IsSurvived(absl::string_view line) {
  const std::string text = absl::AsciiStrToLower(line);
  return absl::StrContains(text, "warn") || absl::StrContains(text, "skipping") ||
         absl::StrContains(text, "retrying");
}

template <size_t N>
bool HasOneOf(absl::string_view line, const std::array<const char*, N>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [line](const char* text) { return absl::StrContains(line, text); });
}

// The whole line where it is short, else what is around [begin, end).
std::string QuoteAround(absl::string_view line, size_t begin, size_t end) {
  constexpr size_t kAround = 80;
  const size_t from = begin > kAround ? begin - kAround : 0;
  const size_t to = std::min(line.size(), end + kAround);
  // Half a character at an edge becomes U+FFFD where JSON is written.
  std::string text = from > 0 ? "..." : "";
  absl::StrAppend(&text, line.substr(from, to - from), to < line.size() ? "..." : "");
  return absl::StrCat("'", text, "'");
}

constexpr char kGroupAdvice[] =
    "take the whole number, as --metric-pattern 'loss: (\\S+)' does; a number is like -0.5, "
    "1,234.5, 1.8e-05, inf or nan";

// Takes the member out; nullopt: there is none.
std::optional<double> Take(Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  if (found == metrics.end()) return std::nullopt;
  const double value = found->second;
  metrics.erase(found);
  return value;
}

}  // namespace

absl::StatusOr<MetricPattern> ParseMetricPattern(const std::string& text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto pattern = std::make_shared<const re2::RE2>(text, options);
  if (!pattern->ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metric-pattern: expected a regular expression such as 'acc: (\\S+)', "
                     "got '",
                     text, "': ", pattern->error()));
  }
  if (pattern->NumberOfCapturingGroups() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metric-pattern: expected round brackets around the number, such as 'acc: "
                     "(\\S+)', got '",
                     text, "'"));
  }
  return pattern;
}

absl::StatusOr<std::optional<double>> NumberInGroup(absl::string_view line, size_t begin,
                                                    size_t end) {
  std::vector<PrintedNumber> numbers;
  for (const PrintedNumber& number : FindPrintedNumbers(line)) {
    const auto from = static_cast<size_t>(number.text.data() - line.data());
    const bool overlaps = from < end && from + number.text.size() > begin;
    if (overlaps && !(number.in_word && from > begin)) numbers.push_back(number);
  }
  if (numbers.empty()) return std::nullopt;
  const absl::string_view group = line.substr(begin, end - begin);
  const std::string matched =
      absl::StrCat("--metric-pattern matched '", group.substr(0, kMostQuoted), "'");
  const std::string where = absl::StrCat("in the line ", QuoteAround(line, begin, end), "; ");
  const PrintedNumber& first = numbers.front();
  if (numbers.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(matched, ", which has more than one number (",
                                                   first.text, " and ", numbers[1].text, "), ",
                                                   where, kGroupAdvice));
  }
  const auto from = static_cast<size_t>(first.text.data() - line.data());
  if (from < begin || from + first.text.size() > end) {
    return absl::InvalidArgumentError(
        absl::StrCat(matched, ", a part of the number ", first.text, ", ", where, kGroupAdvice));
  }
  if (first.value) return first.value;
  return absl::InvalidArgumentError(
      absl::StrCat(matched, ": ", first.text, " is no number that is read, ", where, kGroupAdvice));
}

std::optional<Metrics> ParseMetrics(absl::string_view text, const std::string& objective) {
  text = absl::StripAsciiWhitespace(text);
  PrintedDict dict = ReadPrintedDict(text, objective);
  if (dict.end != PrintedDict::End::kClosed || dict.size != text.size()) return std::nullopt;
  return std::move(dict.numbers);
}

MetricReader::MetricReader(std::string objective, std::vector<MetricPattern> patterns)
    : objective_(std::move(objective)), patterns_(std::move(patterns)), dict_lines_(objective_) {}

std::vector<Measurement> MetricReader::Take(absl::string_view line, bool overwritten) {
  const std::string text = ShownLine(line);
  Remember(text, overwritten);
  ranks_.Take(text);
  LookForOom(text);
  return Judge(dict_lines_.Take(text));
}

std::vector<Measurement> MetricReader::Finish() { return Judge(dict_lines_.Finish()); }

std::vector<Measurement> MetricReader::Judge(const std::vector<ReadLines>& decided) {
  std::vector<Measurement> measured;
  for (const ReadLines& read : decided) {
    bool in_dict = false;
    for (const FoundDict& dict : read.dicts) {
      if (!error_.ok()) return measured;
      Metrics metrics = dict.numbers;
      if (metrics.contains(objective_)) {
        if (num_left_out_ == 0) num_left_out_ = dict.num_left_out;
        measured.push_back(Measured(std::move(metrics)));
        in_dict = true;
      } else {
        if (dict.unread && !IsHistory(*dict.unread)) unread_ = dict.unread;
        other_metrics_.merge(metrics);
      }
    }
    if (in_dict) continue;
    for (const std::string& line : read.lines) {
      if (!error_.ok()) return measured;
      const absl::StatusOr<bool> found = MatchAll(line);
      if (found.ok() && *found) measured.push_back(Measured(found_by_patterns_));
      error_ = found.status();
    }
  }
  return measured;
}

absl::StatusOr<bool> MetricReader::MatchAll(absl::string_view line) {
  bool found = false;
  for (const MetricPattern& pattern : patterns_) {
    HPO_ASSIGN_OR_RETURN(const bool has_objective, Match(*pattern, line));
    found |= has_objective;
  }
  return found;
}

absl::StatusOr<bool> MetricReader::Match(const re2::RE2& pattern, absl::string_view line) {
  const auto num_groups = static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1;
  std::vector<re2::StringPiece> groups(num_groups);
  const re2::StringPiece text(line.data(), line.size());
  if (!pattern.Match(text, 0, text.size(), re2::RE2::UNANCHORED, groups.data(),
                     static_cast<int>(num_groups))) {
    return false;
  }
  const std::map<int, std::string>& names = pattern.CapturingGroupNames();
  bool found = false;
  bool has_objective = false;
  for (size_t i = 1; i < num_groups; ++i) {
    const auto name = names.find(static_cast<int>(i));
    if (name == names.end() && std::exchange(has_objective, true)) continue;
    if (groups[i].data() == nullptr) continue;  // of another alternative
    const std::string& metric = name == names.end() ? objective_ : name->second;
    const auto begin = static_cast<size_t>(groups[i].data() - line.data());
    HPO_ASSIGN_OR_RETURN(const std::optional<double> value,
                         NumberInGroup(line, begin, begin + groups[i].size()));
    if (!value) continue;
    found_by_patterns_[metric] = *value;
    found |= metric == objective_;
  }
  return found;
}

Measurement MetricReader::Measured(Metrics metrics) {
  Measurement measurement{.step = last_ ? last_->step + 1 : 1};
  const std::optional<double> step = hpo::command::Take(metrics, "step");
  const bool whole = step && *step >= 0 && *step < 9e15 && std::floor(*step) == *step;
  if (whole) measurement.step = static_cast<int64_t>(*step);
  const std::optional<double> epoch = hpo::command::Take(metrics, "epoch");
  if (epoch && std::isfinite(*epoch)) measurement.epoch = *epoch;
  measurement.metrics = std::move(metrics);
  last_ = measurement;
  unread_.reset();
  return measurement;
}

bool MetricReader::IsHistory(const UnreadObjective& unread) const {
  const bool is_list = unread.value && (absl::StartsWith(*unread.value, "[") ||
                                        absl::StartsWith(*unread.value, "("));
  if (!is_list || !last_) return false;
  std::optional<double> end;
  for (const PrintedNumber& number : FindPrintedNumbers(*unread.value)) {
    if (!number.in_word) end = number.value;
  }
  return end && *end == last_->metrics.at(objective_);
}

void MetricReader::Remember(absl::string_view line, bool overwritten) {
  if (absl::StripAsciiWhitespace(line).empty()) return;
  if (std::exchange(last_is_overwritten_, overwritten) && !tail_.empty()) {
    tail_bytes_ -= tail_.back().size() + 1;
    tail_.pop_back();
  }
  line = line.substr(0, kMaxTailBytes / 2);
  tail_.emplace_back(line.substr(0, ValidUtf8Prefix(line)));
  tail_bytes_ += tail_.back().size() + 1;
  while (tail_bytes_ > kMaxTailBytes) {
    tail_bytes_ -= tail_.front().size() + 1;
    tail_.pop_front();
  }
}

void MetricReader::LookForOom(absl::string_view line) {
  // The program went on after it, and another error ended it.
  if (absl::StrContains(line, kTraceback) && IsSurvived(oom_line_)) {
    oom_line_.clear();
    ranks_.ForgetOom();
  }
  if (!oom_line_.empty()) return;
  const bool card = HasOneOf(line, kCardTexts);
  const absl::string_view said = WithoutRank(line);
  const absl::string_view name = said.substr(0, said.find(':'));
  const bool host = HasOneOf(line, kHostTexts) || absl::EndsWith(name, kPythonHostError);
  if (!card && !host) return;
  is_host_oom_ = !card;
  ranks_.NoteOom(line);
  line = line.substr(0, kMaxTailBytes / 2);
  oom_line_ = std::string(line.substr(0, ValidUtf8Prefix(line)));
}

std::string MetricReader::Tail() const { return absl::StrJoin(tail_, "\n"); }

}  // namespace hpo::command
