#include "common/memory/trial_passes.h"

#include <algorithm>
#include <utility>

#include "common/memory/allocation_timeline.h"

namespace hpo {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 60;

// At least 1; kMostRows where nothing is known.
int64_t NumRows(const LengthHistogram& lengths) {
  if (lengths.empty()) return kMostRows;
  int64_t rows = 0;
  for (const auto& [length, count] : lengths) {
    rows = std::min(kMostRows, rows + std::clamp<int64_t>(count, 0, kMostRows));
  }
  return std::max<int64_t>(rows, 1);
}

// Leaves out what another is at least as large as in both dimensions.
std::vector<BatchShape> Maximal(std::vector<BatchShape> shapes) {
  std::sort(shapes.begin(), shapes.end(), [](const BatchShape& a, const BatchShape& b) {
    return a.rows != b.rows ? a.rows > b.rows : a.tokens > b.tokens;
  });
  std::vector<BatchShape> maximal;
  for (const BatchShape& shape : shapes) {
    if (maximal.empty() || shape.tokens > maximal.back().tokens) maximal.push_back(shape);
  }
  return maximal;
}

// Without those that aspects.max leaves out.
LengthHistogram KeptTexts(LengthHistogram texts, int64_t most) {
  if (most > 0) texts.erase(texts.upper_bound(most), texts.end());
  return texts;
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

int64_t LongestTokens(const EstimateInput& input, const LengthHistogram& lengths) {
  return std::min(LongestPadded(lengths, input.config.max_length), input.model.max_positions);
}

TrialPasses LargestPasses(const EstimateInput& input, const MemoryPlan& plan) {
  const Workload& workload = input.workload;
  const auto shape_of = [&input](int64_t rows, const LengthHistogram& lengths) {
    return BatchShape{.rows = rows, .tokens = LongestTokens(input, lengths)};
  };
  const LengthHistogram queries = KeptTexts(workload.train_queries, input.config.most_aspects);
  const LengthHistogram& texts = queries.empty() ? workload.train_lengths : queries;
  const int64_t effective_batch = std::min(plan.effective_batch, NumRows(texts));
  const int64_t rows = std::min(plan.micro_batch, effective_batch);
  std::vector<BatchShape> parts;
  const auto add_part = [&](int64_t part_rows) {
    for (const int64_t piece : PiecesOf(input.config, queries, part_rows)) {
      parts.push_back(shape_of(piece, workload.train_lengths));
    }
  };
  add_part(rows);
  if (effective_batch > rows) add_part(std::min(rows, effective_batch - rows));
  const LengthHistogram& validation_texts = workload.validation_queries.empty()
                                                ? workload.validation_lengths
                                                : workload.validation_queries;
  const int64_t evaluation_rows =
      std::min(TensorBytes({plan.micro_batch, input.config.eval_batch_multiplier}),
               NumRows(validation_texts));
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

}  // namespace hpo
