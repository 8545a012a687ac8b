#include "worker/trainer/training/effective_batch.h"

#include <vector>

#include "common/memory/memory_plan.h"
#include "common/random.h"
#include "worker/trainer/training/batch_tensors.h"

namespace hpo {

double ComputeGradients(TextClassifier& model, const EffectiveBatch& batch, torch::Device device,
                        StageLog& log) {
  auto generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(Rng(batch.seed, static_cast<uint64_t>(batch.step)).NextU64());
  const auto num_rows = static_cast<int64_t>(batch.rows.size());
  torch::Tensor loss = at::zeros({}, torch::TensorOptions(torch::kFloat32).device(device));
  const std::vector<int64_t> sizes = PartSizes(batch.plan, num_rows);
  for (const std::span<const int64_t> part : SplitBatch(batch.rows, sizes)) {
    log.EnterPhase("forward");
    const DeviceBatch tensors =
        ToDevice(PadBatch(batch.data, part, batch.max_positions), batch.data.num_labels, device);
    const torch::Tensor part_loss = SumOfRowLosses(model.forward(tensors.input), tensors.labels) /
                                    static_cast<double>(num_rows);
    log.EnterPhase("backward");
    part_loss.backward(at::full({}, batch.loss_scale, part_loss.options()));
    loss += part_loss.detach();
  }
  return loss.item<double>();
}

}  // namespace hpo
