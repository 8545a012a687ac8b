// Trials as columns. Row i is trial #i.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "server/table/table_rows.h"

namespace hpo::server {

// What the trials at hand have of a field.
struct FieldFacts {
  bool has_values = false;
  bool only_numbers = true;        // none has another value
  std::vector<ParamValue> values;  // that it has, each once; of a parameter with choices
  std::vector<std::string> words;  // all that a field of few words may have; empty: it is none
};

// Values of one field. A value is a number, another (text, boolean, null), or missing.
class Column {
 public:
  // What a row has where it has no number.
  static constexpr int32_t kNumber = -1;
  static constexpr int32_t kMissing = -2;

  void Set(size_t row, const std::optional<ParamValue>& value);
  std::optional<ParamValue> At(size_t row) const;

  double NumberAt(size_t row) const { return row < numbers_.size() ? numbers_[row] : 0.0; }
  // kNumber, kMissing, or a place in others(), which has each value once.
  int32_t CodeAt(size_t row) const { return row < codes_.size() ? codes_[row] : kMissing; }
  const std::vector<ParamValue>& others() const { return others_; }
  FieldFacts Facts() const;

 private:
  int32_t CodeOf(const ParamValue& value);

  std::vector<double> numbers_;
  std::vector<int32_t> codes_;
  std::vector<ParamValue> others_;
  absl::flat_hash_map<ParamValue, int32_t> places_;  // in others_
};

// The fields that every table has beside parameters and metrics.
inline constexpr const char* kTableFields[] = {
    "number",       "state",           "why",        "value",      "time",
    "started",      "ended",           "attempts",   "worker",     "message",
    "violation",    "predicted_bytes", "peak_bytes", "live_bytes", "reserved_bytes",
    "device_bytes", "limit_bytes"};

// How a trial's row is shown and told apart, beside its fields.
enum class RowKind : uint8_t {
  kCompleted,
  kInfeasible,
  kPruned,
  kOutOfMemory,
  kPredicted,
  kFailed,
  kCancelled,
  kRunning,
  kQueued
};

// Not thread-safe.
class TrialColumns {
 public:
  // Takes the trial as it is now.
  void Set(const TableRow& row);

  size_t num_rows() const { return kinds_.size(); }
  RowKind KindAt(size_t row) const { return kinds_[row]; }
  bool IsDemonstration(size_t row) const { return demonstrations_[row]; }

  // "value", "param:lr", "metric:loss"; a parameter or metric also by its name alone, where no
  // other field has it. nullptr: there is none.
  const Column* Find(const std::string& name) const;
  // One of kTableFields, whatever parameters are called; nullptr: there is none.
  const Column* Field(const std::string& name) const;
  // Parameters and metrics that trials have.
  std::vector<std::string> Parameters() const { return NamesOf(parameters_); }
  std::vector<std::string> Metrics() const { return NamesOf(metrics_); }
  // Of a name that Find takes.
  FieldFacts FactsOf(const std::string& name) const;

 private:
  static std::vector<std::string> NamesOf(const std::map<std::string, Column>& columns);

  std::vector<RowKind> kinds_;
  std::vector<bool> demonstrations_;
  std::array<Column, std::size(kTableFields)> fields_;
  std::map<std::string, Column> parameters_;
  std::map<std::string, Column> metrics_;
};

}  // namespace hpo::server
