#include "worker/trainer/data/trial_batches.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "memory/plan/memory_plan.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/data/probe.h"

namespace hpo::trainer {
namespace {

// How rows run together.
struct RowLayout {
  int64_t max_positions = 0;
  bool unpadded = false;
  text::QueryLayout queries;
};

memory::BatchShape ShapeOf(const text::EncodedDataset& data, std::span<const int64_t> rows,
                           const RowLayout& layout) {
  if (layout.unpadded) return memory::BatchShape::Of(text::PackedRowsOf(data, rows));
  return {.rows = static_cast<int64_t>(rows.size()),
          .tokens = text::PaddedLength(data, rows, layout.max_positions)};
}

// The pieces that these rows run in.
void AddPieces(const text::EncodedDataset& data, const std::optional<text::QuerySet>& queries,
               const RowLayout& layout, std::span<const int64_t> rows,
               std::vector<memory::BatchShape>& pieces) {
  if (!queries.has_value()) {
    pieces.push_back(ShapeOf(data, rows, layout));
    return;
  }
  for (const text::BatchRows& piece : text::QueryPieces(*queries, layout.queries, rows)) {
    pieces.push_back({.rows = static_cast<int64_t>(piece.size()),
                      .tokens = text::PaddedLength(*queries, piece, layout.max_positions)});
  }
}

std::vector<memory::BatchShape> PartsOf(const TextData& data, const text::BatchRows& batch,
                                        const MemoryPlan& plan, const RowLayout& layout) {
  const auto sizes = memory::PartSizes(plan, static_cast<int64_t>(batch.size()));
  std::vector<memory::BatchShape> parts;
  for (const std::span<const int64_t> part : text::SplitBatch(batch, sizes)) {
    AddPieces(data.train, data.train_queries, layout, part, parts);
  }
  return parts;
}

}  // namespace

memory::TrialPasses PassesOf(const TrainerJob& job, const TrainingOptions& options,
                             const TextData& data, int64_t max_positions, const MemoryPlan& plan) {
  const RowLayout layout{.max_positions = max_positions,
                         .unpadded = options.config.unpadded,
                         .queries = data.query_layout};
  std::vector<memory::BatchShape> evaluation;
  size_t first_batch = 0;  // pieces of the first batch, which the probe runs
  const int64_t evaluation_rows = plan.micro_batch * options.config.eval_batch_multiplier;
  for (const text::BatchRows& rows : text::EvaluationBatches(data.validation, evaluation_rows)) {
    AddPieces(data.validation, data.validation_queries, layout, rows, evaluation);
    if (first_batch == 0) first_batch = evaluation.size();
  }
  memory::TrialPasses passes;
  passes.begins_with_probe = job.task.memory.policy != MemoryPolicy::kOff;
  if (passes.begins_with_probe) {
    passes.stretches.push_back(
        {.steps = {PartsOf(data, HeaviestBatch(data.train, plan), plan, layout)},
         .evaluation = {evaluation.begin(),
                        evaluation.begin() + static_cast<std::ptrdiff_t>(first_batch)}});
  }
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < job.task.trainer.epochs && step < kMostPassedSteps; ++epoch) {
    memory::MeasuredSteps stretch;
    for (const text::BatchRows& batch :
         text::TrainingBatches(data.train, options.DrawOf(plan.effective_batch, epoch))) {
      stretch.steps.push_back(PartsOf(data, batch, plan, layout));
      if (++step == kMostPassedSteps) break;
      if (job.task.trainer.measure_every_steps > 0 &&
          step % job.task.trainer.measure_every_steps == 0) {
        stretch.evaluation = evaluation;
        passes.stretches.push_back(std::exchange(stretch, {}));
      }
    }
    if (stretch.steps.empty()) continue;
    stretch.evaluation = evaluation;
    passes.stretches.push_back(std::move(stretch));
  }
  return passes;
}

}  // namespace hpo::trainer
