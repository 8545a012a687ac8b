#include "memory/trace/trial_passes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "memory/allocator/allocation_timeline.h"

namespace hpo::memory {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 60;

// At least 1; kMostRows where nothing is known.
int64_t RowsOf(const LengthHistogram& lengths) {
  if (lengths.empty()) return kMostRows;
  int64_t rows = 0;
  for (const auto& [length, count] : lengths) {
    rows = std::min(kMostRows, rows + std::clamp<int64_t>(count, 0, kMostRows));
  }
  return std::max<int64_t>(rows, 1);
}

// Whether every row of `b` has one of `a` that is at least as long, in groups that are no larger:
// each tensor of a group is rounded up by itself.
bool Covers(const PackedRows& a, const PackedRows& b) {
  auto covering = a.begin();
  int64_t used = 0;  // rows of `covering`
  for (const RowGroup& group : b) {
    if (used > 0) return false;
    for (int64_t rows = group.rows; rows > 0;) {
      if (covering == a.end() || covering->tokens < group.tokens) return false;
      const int64_t taken = std::min(rows, covering->rows - used);
      rows -= taken;
      used += taken;
      if (used < covering->rows) continue;
      ++covering;
      used = 0;
    }
  }
  return true;
}

bool Covers(const BatchShape& a, const BatchShape& b) {
  return a.rows >= b.rows && a.tokens >= b.tokens && Covers(a.packed, b.packed);
}

// Leaves out what another covers.
std::vector<BatchShape> Maximal(std::vector<BatchShape> shapes) {
  const auto size_of = [](const BatchShape& shape) {
    return std::tuple(shape.rows, shape.tokens, shape.TotalTokens());
  };
  std::stable_sort(
      shapes.begin(), shapes.end(),
      [&size_of](const BatchShape& a, const BatchShape& b) { return size_of(a) > size_of(b); });
  std::vector<BatchShape> maximal;
  for (const BatchShape& shape : shapes) {
    const bool is_covered =
        std::any_of(maximal.rbegin(), maximal.rend(),
                    [&shape](const BatchShape& other) { return Covers(other, shape); });
    if (!is_covered) maximal.push_back(shape);
  }
  return maximal;
}

// The `rows` rows that are longest but for `skipped` others, truncated to `most_tokens`, of a
// histogram that has as many; an empty one's are all that long.
PackedRows LongestRows(const LengthHistogram& lengths, int64_t most_tokens, int64_t skipped,
                       int64_t rows) {
  if (lengths.empty()) return {{.rows = rows, .tokens = most_tokens}};
  PackedRows longest;
  for (auto entry = lengths.rbegin(); entry != lengths.rend() && rows > 0; ++entry) {
    const int64_t count = std::max<int64_t>(entry->second, 0);
    const int64_t passed = std::min(skipped, count);
    const int64_t taken = std::min(rows, count - passed);
    skipped -= passed;
    rows -= taken;
    if (taken == 0) continue;
    const int64_t tokens = std::clamp<int64_t>(entry->first, 1, most_tokens);
    if (!longest.empty() && longest.back().tokens == tokens) {
      longest.back().rows += taken;
    } else {
      longest.push_back({.rows = taken, .tokens = tokens});
    }
  }
  if (longest.empty()) longest.push_back({});
  return longest;
}

// The most queries that a text of so many aspects asks.
int64_t MostQueriesOf(TaskKind task, int64_t aspects) {
  if (task != TaskKind::kMultiQuerySpans) return aspects;
  // For all aspects, all opinions, and at most three for each aspect.
  return aspects > kMostRows / 3 ? kMostRows : 2 + 3 * aspects;
}

// The most queries that so many texts ask.
int64_t MostQueries(const LengthHistogram& texts, int64_t rows, bool pads) {
  if (pads) return TensorBytes({rows, texts.rbegin()->first});
  int64_t queries = 0;
  for (auto entry = texts.rbegin(); entry != texts.rend() && rows > 0; ++entry) {
    const int64_t count = std::min(rows, std::max<int64_t>(entry->second, 0));
    queries += TensorBytes({count, entry->first});
    rows -= count;
  }
  return std::max<int64_t>(queries, 1);
}

// Rows of the model that a part of `rows` texts runs at a time: the first piece, which is the
// largest, and the second, which meets its gradients.
std::vector<int64_t> PiecesOf(const TrainingConfig& config, const LengthHistogram& texts,
                              int64_t rows) {
  if (texts.empty()) return {rows};
  const int64_t queries = MostQueries(texts, rows, config.pads_queries);
  const int64_t at_once = config.queries_at_once;
  if (at_once == 0 || queries <= at_once) return {queries};
  return {at_once, std::min(at_once, queries - at_once)};
}

}  // namespace

BatchShape BatchShape::Of(PackedRows packed) {
  BatchShape shape{.rows = NumRows(packed), .tokens = LongestRow(packed)};
  shape.packed = std::move(packed);
  return shape;
}

int64_t BatchShape::TotalTokens() const {
  return packed.empty() ? TensorBytes({rows, tokens}) : hpo::TotalTokens(packed);
}

int64_t LongestTokens(const EstimateInput& input, const LengthHistogram& lengths) {
  return std::min(LongestPadded(lengths, input.config.max_length), input.model.max_positions);
}

LengthHistogram TrainingQueries(const EstimateInput& input) {
  LengthHistogram texts = input.workload.train_queries;
  const int64_t most_aspects = input.config.most_aspects;
  if (most_aspects > 0) {
    texts.erase(texts.upper_bound(MostQueriesOf(input.workload.task, most_aspects)), texts.end());
  }
  return texts;
}

TrialPasses LargestPasses(const EstimateInput& input, const MemoryPlan& plan) {
  const Workload& workload = input.workload;
  const int64_t most_tokens = std::min(input.config.max_length, input.model.max_positions);
  const auto shape_of = [&](int64_t rows, const LengthHistogram& lengths, int64_t skipped = 0) {
    if (!input.config.unpadded) {
      return BatchShape{.rows = rows, .tokens = LongestTokens(input, lengths)};
    }
    return BatchShape::Of(LongestRows(lengths, most_tokens, skipped, rows));
  };
  const LengthHistogram queries = TrainingQueries(input);
  const LengthHistogram& texts = queries.empty() ? workload.train_lengths : queries;
  const int64_t effective_batch = std::min(plan.effective_batch, RowsOf(texts));
  const int64_t rows = std::min(plan.micro_batch, effective_batch);
  std::vector<BatchShape> parts;
  const auto add_part = [&](int64_t part_rows, int64_t skipped) {
    for (const int64_t piece : PiecesOf(input.config, queries, part_rows)) {
      parts.push_back(shape_of(piece, workload.train_lengths, skipped));
    }
  };
  add_part(rows, /*skipped=*/0);
  if (effective_batch > rows) add_part(std::min(rows, effective_batch - rows), /*skipped=*/rows);
  const LengthHistogram& validation_texts = workload.validation_queries.empty()
                                                ? workload.validation_lengths
                                                : workload.validation_queries;
  const int64_t evaluation_rows =
      std::min(TensorBytes({plan.micro_batch, input.config.eval_batch_multiplier}),
               RowsOf(validation_texts));
  const int64_t evaluated =
      PiecesOf(input.config, workload.validation_queries, evaluation_rows).front();
  return {.stretches = {{.steps = {std::move(parts)},
                         .evaluation = {shape_of(evaluated, workload.validation_lengths)}}}};
}

TrialPasses DecidingPasses(const TrialPasses& all) {
  std::vector<BatchShape> first;
  std::vector<BatchShape> later;
  MeasuredSteps deciding;
  for (const MeasuredSteps& stretch : all.stretches) {
    for (const std::vector<BatchShape>& parts : stretch.steps) {
      first.push_back(parts.front());
      later.insert(later.end(), parts.begin() + 1, parts.end());
    }
    deciding.evaluation.insert(deciding.evaluation.end(), stretch.evaluation.begin(),
                               stretch.evaluation.end());
  }
  deciding.evaluation = Maximal(std::move(deciding.evaluation));
  for (const BatchShape& shape : Maximal(std::move(first))) deciding.steps.push_back({shape});
  if (!deciding.steps.empty()) {
    later = Maximal(std::move(later));
    std::vector<BatchShape>& parts = deciding.steps.front();
    parts.insert(parts.end(), later.begin(), later.end());
  }
  return {.stretches = {std::move(deciding)}, .scales_gradients = all.scales_gradients};
}

}  // namespace hpo::memory
