// Tested by tests/server/table/trial_table_test.cc.
#include "server/table/history_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace hpo::server {
namespace {

constexpr size_t kNumKinds = 9;
constexpr char kLetters[kNumKinds + 1] = "CIPOEFXRQ";  // by RowKind

double NumberAt(const Column* column, size_t row) {
  const bool has_number = column != nullptr && column->CodeAt(row) == Column::kNumber;
  return has_number ? column->NumberAt(row) : std::numeric_limits<double>::quiet_NaN();
}

bool IsCompleted(RowKind kind) {
  return kind == RowKind::kCompleted || kind == RowKind::kInfeasible;
}

// The rows at which the best feasible value changes.
std::vector<size_t> BestSteps(const TrialColumns& columns, const Column* value, bool maximize) {
  std::vector<size_t> steps;
  double best = std::numeric_limits<double>::quiet_NaN();
  for (size_t row = 0; row < columns.num_rows(); ++row) {
    if (columns.KindAt(row) != RowKind::kCompleted || columns.IsDemonstration(row)) continue;
    const double now = NumberAt(value, row);
    if (!std::isfinite(now)) continue;
    const bool is_better = std::isnan(best) || (maximize ? now > best : now < best);
    if (!is_better) continue;
    best = now;
    steps.push_back(row);
  }
  return steps;
}

// At most `most` of them, first and last included.
std::vector<size_t> Thinned(const std::vector<size_t>& rows, size_t most) {
  if (rows.size() <= most || most < 2) return rows;
  std::vector<size_t> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(rows[i * (rows.size() - 1) / (most - 1)]);
  return kept;
}

// Of rows [begin, end): the completed ones with the lowest and the highest value, and the first one
// of each other kind.
void KeepOf(const TrialColumns& columns, const Column* value, size_t begin, size_t end,
            std::set<size_t>& kept) {
  std::optional<size_t> lowest;
  std::optional<size_t> highest;
  std::array<bool, kNumKinds> has{};
  for (size_t row = begin; row < end; ++row) {
    const RowKind kind = columns.KindAt(row);
    const double now = NumberAt(value, row);
    if (IsCompleted(kind) && !std::isnan(now)) {
      if (!lowest || now < NumberAt(value, *lowest)) lowest = row;
      if (!highest || now > NumberAt(value, *highest)) highest = row;
    } else if (!std::exchange(has[static_cast<size_t>(kind)], true)) {
      kept.insert(row);
    }
  }
  if (lowest) kept.insert(*lowest);
  if (highest) kept.insert(*highest);
}

std::set<size_t> KeptRows(const TrialColumns& columns, const Column* value, size_t most) {
  const size_t rows = columns.num_rows();
  std::set<size_t> kept;
  if (rows <= most) {
    for (size_t row = 0; row < rows; ++row) kept.insert(row);
    return kept;
  }
  // A stretch keeps from one to nine rows: as many stretches as leave room for all.
  for (size_t stretches = most;; stretches = stretches * 3 / 4) {
    kept.clear();
    for (size_t i = 0; i < stretches; ++i) {
      KeepOf(columns, value, i * rows / stretches, (i + 1) * rows / stretches, kept);
    }
    if (kept.size() <= most || stretches <= 1) return kept;
  }
}

}  // namespace

char LetterOf(RowKind kind) { return kLetters[static_cast<size_t>(kind)]; }

HistorySample SampleHistory(const TrialColumns& columns, const StudySpec& study, size_t most) {
  const Column* const value = columns.Field("value");
  const bool maximize = study.objectives.front().direction == Direction::kMaximize;
  HistorySample sample{.total = static_cast<int64_t>(columns.num_rows())};
  const std::vector<size_t> steps = Thinned(BestSteps(columns, value, maximize), most);
  std::set<size_t> kept = KeptRows(columns, value, most);
  for (const size_t row : steps) {
    kept.insert(row);
    sample.best_numbers.push_back(static_cast<int64_t>(row));
    sample.best_values.push_back(NumberAt(value, row));
  }
  for (const size_t row : kept) {
    sample.numbers.push_back(static_cast<int64_t>(row));
    sample.states.push_back(LetterOf(columns.KindAt(row)));
  }
  for (const Objective& objective : study.objectives) {
    HistorySample::Series series{.metric = objective.metric};
    const Column* const metric = columns.Find("metric:" + objective.metric);
    for (const size_t row : kept) series.values.push_back(NumberAt(metric, row));
    sample.series.push_back(std::move(series));
  }
  return sample;
}

}  // namespace hpo::server
