#include "worker/trainer/training/effective_batch.h"

#include <vector>

#include "common/memory/memory_plan.h"
#include "common/random.h"

namespace hpo {

torch::Tensor AddGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                           StageLog& log) {
  auto generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(Rng(batch.seed, static_cast<uint64_t>(batch.step)).NextU64());
  const auto num_rows = static_cast<int64_t>(batch.rows.size());
  const double weight = task.WeightOf(batch.rows);
  torch::Tensor loss = at::zeros({}, torch::TensorOptions(torch::kFloat32).device(device));
  const std::vector<int64_t> sizes = PartSizes(batch.plan, num_rows);
  for (const std::span<const int64_t> part : SplitBatch(batch.rows, sizes)) {
    for (const BatchRows& piece : task.PiecesOf(part)) {
      log.EnterPhase("forward");
      const DeviceBatch tensors = task.BatchOf(piece);
      const torch::Tensor piece_loss = task.SumOfLosses(tensors) / weight;
      log.EnterPhase("backward");
      piece_loss.backward(at::full({}, batch.loss_scale, piece_loss.options()));
      loss += piece_loss.detach();
    }
  }
  return loss;
}

double ComputeGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                        StageLog& log) {
  return AddGradients(task, batch, device, log).item<double>();
}

}  // namespace hpo
