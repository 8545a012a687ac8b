#include "worker/trainer/training/trial_batches.h"

#include <span>
#include <utility>
#include <vector>

#include "common/memory/memory_plan.h"
#include "worker/text/batcher.h"
#include "worker/trainer/training/probe.h"

namespace hpo {
namespace {

BatchShape ShapeOf(const EncodedDataset& data, std::span<const int64_t> rows,
                   int64_t max_positions) {
  return {.rows = static_cast<int64_t>(rows.size()),
          .tokens = PaddedLength(data, rows, max_positions)};
}

std::vector<BatchShape> PartsOf(const EncodedDataset& data, const BatchRows& batch,
                                const MemoryPlan& plan, int64_t max_positions) {
  const auto sizes = PartSizes(plan, static_cast<int64_t>(batch.size()));
  std::vector<BatchShape> parts;
  for (const std::span<const int64_t> part : SplitBatch(batch, sizes)) {
    parts.push_back(ShapeOf(data, part, max_positions));
  }
  return parts;
}

}  // namespace

TrialPasses PassesOf(const TrainerJob& job, const TrainingOptions& options, const TextData& data,
                     int64_t max_positions, const MemoryPlan& plan) {
  std::vector<BatchShape> evaluation;
  const int64_t evaluation_rows = plan.micro_batch * options.config.eval_batch_multiplier;
  for (const BatchRows& rows : EvaluationBatches(data.validation, evaluation_rows)) {
    evaluation.push_back(ShapeOf(data.validation, rows, max_positions));
  }
  TrialPasses passes;
  if (job.policy != MemoryPolicy::kOff) {
    passes.stretches.push_back(
        {.steps = {PartsOf(data.train, HeaviestBatch(data.train, plan), plan, max_positions)},
         .evaluation = {evaluation.front()}});
  }
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < job.epochs; ++epoch) {
    MeasuredSteps stretch;
    for (const BatchRows& batch :
         TrainingBatches(data.train, plan.effective_batch, options.seed, epoch)) {
      stretch.steps.push_back(PartsOf(data.train, batch, plan, max_positions));
      ++step;
      if (job.measure_every_steps > 0 && step % job.measure_every_steps == 0) {
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

}  // namespace hpo
