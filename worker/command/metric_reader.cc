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
#include "common/base/json_reader.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

constexpr size_t kMaxTailBytes = 4096;

// As PyTorch, TensorFlow, JAX and CUDA's libraries word it; python/src/hpo/trainer.py has a list of
// its own, for exceptions.
constexpr std::array kCardTexts = {
    "CUDA out of memory",         "OutOfMemoryError",          "RESOURCE_EXHAUSTED: Out of memory",
    "OOM when allocating tensor", "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED",
    "cudaErrorMemoryAllocation",  "HIP out of memory",         "CUDA_ERROR_OUT_OF_MEMORY",
};
constexpr std::array kHostTexts = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "std::bad_alloc",
    "Cannot allocate memory",
};
constexpr char kPythonHostError[] = "MemoryError";  // alone, or before ":"

template <size_t N>
bool HasOneOf(absl::string_view line, const std::array<const char*, N>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [line](const char* text) { return absl::StrContains(line, text); });
}

// JSON of what Python's json.dumps and print write of a dict of numbers.
std::string AsJson(absl::string_view text) {
  static const re2::RE2* const quotes = new re2::RE2("'([^'\"\\\\]*)'");
  static const re2::RE2* const not_finite = new re2::RE2("([:,\\[ ])(NaN|nan|-?Infinity|-?inf)\\b");
  static const re2::RE2* const none = new re2::RE2("\\bNone\\b");
  std::string json(text);
  re2::RE2::GlobalReplace(&json, *quotes, "\"\\1\"");
  re2::RE2::GlobalReplace(&json, *not_finite, "\\1\"\\2\"");
  re2::RE2::GlobalReplace(&json, *none, "null");
  return json;
}

std::optional<double> NumberOf(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  double number = 0;
  if (value.is_string() && absl::SimpleAtod(value.get_ref<const std::string&>(), &number)) {
    return number;
  }
  return std::nullopt;
}

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
        absl::StrCat("--metric-pattern: expected a regular expression such as 'acc: ([0-9.]+)', "
                     "got '",
                     text, "': ", pattern->error()));
  }
  if (pattern->NumberOfCapturingGroups() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metric-pattern: expected round brackets around the number, such as 'acc: "
                     "([0-9.]+)', got '",
                     text, "'"));
  }
  return pattern;
}

std::optional<Metrics> ParseMetrics(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return std::nullopt;
  absl::StatusOr<nlohmann::json> json = ParseJson(text);
  if (!json.ok()) json = ParseJson(AsJson(text));
  if (!json.ok() || !json->is_object()) return std::nullopt;
  Metrics metrics;
  for (const auto& [name, value] : json->items()) {
    if (const std::optional<double> number = NumberOf(value)) metrics[name] = *number;
  }
  return metrics;
}

MetricReader::MetricReader(std::string objective, std::vector<MetricPattern> patterns)
    : objective_(std::move(objective)), patterns_(std::move(patterns)) {}

std::optional<Measurement> MetricReader::Take(absl::string_view line) {
  Remember(line);
  LookForOom(line);
  if (std::optional<Metrics> metrics = ParseMetrics(line)) {
    if (metrics->contains(objective_)) return Measured(*std::move(metrics));
    other_metrics_.merge(*metrics);
    return std::nullopt;
  }
  bool found = false;
  for (const MetricPattern& pattern : patterns_) {
    found |= Match(*pattern, line);
  }
  return found ? Measured(found_by_patterns_) : std::nullopt;
}

bool MetricReader::Match(const re2::RE2& pattern, absl::string_view line) {
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
    const std::string& metric = name == names.end() ? objective_ : name->second;
    double value = 0;
    if (!absl::SimpleAtod(absl::string_view(groups[i].data(), groups[i].size()), &value)) continue;
    found_by_patterns_[metric] = value;
    found |= metric == objective_;
  }
  return found;
}

std::optional<Measurement> MetricReader::Measured(Metrics metrics) {
  Measurement measurement{.step = last_ ? last_->step + 1 : 1};
  const std::optional<double> step = hpo::Take(metrics, "step");
  if (step && *step >= 0 && *step < 9e15) measurement.step = static_cast<int64_t>(*step);
  const std::optional<double> epoch = hpo::Take(metrics, "epoch");
  if (epoch && std::isfinite(*epoch)) measurement.epoch = *epoch;
  measurement.metrics = std::move(metrics);
  last_ = measurement;
  return measurement;
}

void MetricReader::Remember(absl::string_view line) {
  if (absl::StripAsciiWhitespace(line).empty()) return;
  line = line.substr(0, kMaxTailBytes / 2);
  tail_.emplace_back(line.substr(0, ValidUtf8Prefix(line)));
  tail_bytes_ += tail_.back().size() + 1;
  while (tail_bytes_ > kMaxTailBytes) {
    tail_bytes_ -= tail_.front().size() + 1;
    tail_.pop_front();
  }
}

void MetricReader::LookForOom(absl::string_view line) {
  if (!oom_line_.empty()) return;
  const bool card = HasOneOf(line, kCardTexts);
  const absl::string_view name = line.substr(0, line.find(':'));
  const bool host = HasOneOf(line, kHostTexts) || absl::EndsWith(name, kPythonHostError);
  if (!card && !host) return;
  is_host_oom_ = !card;
  line = line.substr(0, kMaxTailBytes / 2);
  oom_line_ = std::string(line.substr(0, ValidUtf8Prefix(line)));
}

std::string MetricReader::Tail() const { return absl::StrJoin(tail_, "\n"); }

}  // namespace hpo
