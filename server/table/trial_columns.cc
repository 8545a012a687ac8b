// Tested by tests/server/table/trial_table_test.cc.
#include "server/table/trial_columns.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/selection/trial_states.h"
#include "common/study/outcome_text.h"
#include "common/study/trial_fields.h"

namespace hpo::server {
namespace {

RowKind KindOf(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kQueued:
      return RowKind::kQueued;
    case TrialState::kRunning:
      return RowKind::kRunning;
    case TrialState::kCompleted:
      return trial.violation > 0.0 ? RowKind::kInfeasible : RowKind::kCompleted;
    case TrialState::kFailed:
      return RowKind::kFailed;
    case TrialState::kCancelled:
      return RowKind::kCancelled;
    case TrialState::kPruned:
      break;
  }
  const auto* const oom = trial.outcome ? std::get_if<OutOfMemory>(&*trial.outcome) : nullptr;
  if (oom == nullptr) return RowKind::kPruned;
  return oom->predicted ? RowKind::kPredicted : RowKind::kOutOfMemory;
}

// In a word why it ended as it did; nullopt: there is nothing to say.
std::optional<ParamValue> WhyOf(const Trial& trial) {
  if (!trial.outcome) return std::nullopt;
  if (const auto reason = PruneReasonOf(*trial.outcome)) return std::string(Name(*reason));
  if (const auto* failed = std::get_if<Failed>(&*trial.outcome)) {
    return std::string(Name(failed->failure_class));
  }
  return std::nullopt;
}

// How it ended, in a line, where it has no result.
std::optional<ParamValue> MessageOf(const Trial& trial) {
  const bool has_result = !trial.outcome || std::holds_alternative<Completed>(*trial.outcome) ||
                          std::holds_alternative<StoppedByPruner>(*trial.outcome);
  if (has_result) return std::nullopt;
  return Shortened(DescribeOutcome(*trial.outcome), kTableTextLimit);
}

std::vector<std::string> WordsForState() {
  std::vector<std::string> words;
  for (const TrialState state : kTrialStates) words.push_back(absl::AsciiStrToLower(Name(state)));
  return words;
}

// All that WhyOf may say.
std::vector<std::string> WordsForWhy() {
  std::vector<std::string> words;
  for (const char* const name : NamesOf<PruneReason>::kNames) words.emplace_back(name);
  for (const char* const name : NamesOf<FailureClass>::kNames) words.emplace_back(name);
  return words;
}

std::optional<ParamValue> Seconds(absl::Time time) {
  if (time == absl::InfinitePast()) return std::nullopt;
  return static_cast<double>(absl::ToUnixMicros(time)) / 1e6;
}

std::optional<ParamValue> Took(const Trial& trial) {
  const bool ran = trial.started != absl::InfinitePast() && trial.ended != absl::InfinitePast();
  if (!ran) return std::nullopt;
  return absl::ToDoubleSeconds(trial.ended - trial.started);
}

std::optional<ParamValue> Known(Bytes bytes) {
  if (bytes.count <= 0) return std::nullopt;
  return bytes.count;
}

// The latest that is known of each: the outcome's, else the last measurement's.
Metrics MetricsOf(const Trial& trial) {
  Metrics metrics;
  if (trial.outcome) {
    if (const auto* completed = std::get_if<Completed>(&*trial.outcome))
      metrics = completed->metrics;
    if (const auto* stopped = std::get_if<StoppedByPruner>(&*trial.outcome)) {
      metrics = stopped->metrics;
    }
  }
  if (trial.last_measurement) {
    metrics.insert(trial.last_measurement->metrics.begin(), trial.last_measurement->metrics.end());
  }
  return metrics;
}

}  // namespace

int32_t Column::CodeOf(const ParamValue& value) {
  const auto [place, is_new] = places_.try_emplace(value, static_cast<int32_t>(others_.size()));
  if (is_new) others_.push_back(value);
  return place->second;
}

void Column::Set(size_t row, const std::optional<ParamValue>& value) {
  if (row >= codes_.size()) {
    if (!value) return;
    codes_.resize(row + 1, kMissing);
    numbers_.resize(row + 1, 0.0);
  }
  const std::optional<double> number = value ? AsNumber(*value) : std::nullopt;
  const bool has_number = number && !std::isnan(*number);
  numbers_[row] = has_number ? *number : 0.0;
  codes_[row] = has_number ? kNumber : !value || number ? kMissing : CodeOf(*value);
}

std::optional<ParamValue> Column::At(size_t row) const {
  const int32_t code = CodeAt(row);
  if (code == kMissing) return std::nullopt;
  if (code == kNumber) return numbers_[row];
  return others_[static_cast<size_t>(code)];
}

FieldFacts Column::Facts() const {
  return {.has_values = std::any_of(codes_.begin(), codes_.end(),
                                    [](int32_t code) { return code != kMissing; }),
          .only_numbers = others_.empty(),
          .values = others_};
}

void TrialColumns::Set(const TableRow& stored) {
  const Trial& trial = stored.trial;
  const auto row = static_cast<size_t>(trial.id.number.value);
  if (row >= kinds_.size()) {
    kinds_.resize(row + 1, RowKind::kFailed);
    demonstrations_.resize(row + 1, false);
  }
  kinds_[row] = KindOf(trial);
  demonstrations_[row] = trial.demonstration;
  const MemoryReport& memory = stored.memory;
  const Bytes peak = memory.device_peak.count > 0     ? memory.device_peak
                     : memory.reserved_peak.count > 0 ? memory.reserved_peak
                                                      : memory.live_peak;
  const std::optional<ParamValue> value =
      trial.value ? std::optional<ParamValue>(*trial.value) : std::nullopt;
  // In the order of kTableFields.
  const std::optional<ParamValue> fields[] = {
      ParamValue(trial.id.number.value),
      ParamValue(absl::AsciiStrToLower(Name(trial.state))),
      WhyOf(trial),
      value,
      Took(trial),
      Seconds(trial.started),
      Seconds(trial.ended),
      ParamValue(stored.num_attempts),
      stored.worker.empty() ? std::nullopt : std::optional<ParamValue>(stored.worker),
      MessageOf(trial),
      ParamValue(trial.violation),
      Known(stored.predicted),
      Known(peak),
      Known(memory.live_peak),
      Known(memory.reserved_peak),
      Known(memory.device_peak),
      Known(memory.limit)};
  static_assert(std::size(fields) == std::size(kTableFields));
  for (size_t i = 0; i < fields_.size(); ++i) fields_[i].Set(row, fields[i]);
  for (const auto& [name, held] : trial.params) parameters_[name].Set(row, held);
  for (auto& [name, column] : metrics_) column.Set(row, std::nullopt);
  for (const auto& [name, held] : MetricsOf(trial)) metrics_[name].Set(row, ParamValue(held));
}

const Column* TrialColumns::Find(const std::string& name) const {
  const auto in = [](const std::map<std::string, Column>& columns,
                     const std::string& key) -> const Column* {
    const auto found = columns.find(key);
    return found == columns.end() ? nullptr : &found->second;
  };
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "param:")) return in(parameters_, std::string(rest));
  if (absl::ConsumePrefix(&rest, "metric:")) return in(metrics_, std::string(rest));
  // As --where has it: a parameter hides all else.
  if (const Column* const parameter = in(parameters_, name)) return parameter;
  if (const Column* const field = Field(name)) return field;
  return in(metrics_, name);
}

const Column* TrialColumns::Field(const std::string& name) const {
  const auto* const field = std::find(std::begin(kTableFields), std::end(kTableFields), name);
  if (field == std::end(kTableFields)) return nullptr;
  return &fields_[static_cast<size_t>(field - kTableFields)];
}

std::vector<std::string> TrialColumns::NamesOf(const std::map<std::string, Column>& columns) {
  std::vector<std::string> names;
  for (const auto& [name, column] : columns) names.push_back(name);
  return names;
}

FieldFacts TrialColumns::FactsOf(const std::string& name) const {
  const Column* const column = Find(name);
  if (column == nullptr) return {};
  FieldFacts facts = column->Facts();
  // Texts, also where no trial has one yet.
  if (column == Field("state")) facts.words = WordsForState();
  if (column == Field("why")) facts.words = WordsForWhy();
  for (const char* const field : {"worker", "message"}) {
    if (column == Field(field)) facts.only_numbers = false;
  }
  return facts;
}

}  // namespace hpo::server
