#include "worker/trainer/training/effective_batch.h"

#include <utility>
#include <vector>

#include "common/base/random.h"
#include "memory/plan/memory_plan.h"

namespace hpo::trainer {
namespace {

// What runs at a time, in order.
std::vector<text::BatchRows> PiecesOf(const Task& task, const text::BatchRows& rows,
                                      const MemoryPlan& plan) {
  const std::vector<int64_t> sizes = memory::PartSizes(plan, static_cast<int64_t>(rows.size()));
  std::vector<text::BatchRows> pieces;
  for (const std::span<const int64_t> part : text::SplitBatch(rows, sizes)) {
    for (text::BatchRows& piece : task.PiecesOf(part)) pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Those of piece i, with the one after it begun.
text::TokenBatch TokensOf(const Task& task, const EffectiveBatch& batch,
                          const std::vector<text::BatchRows>& pieces, size_t i) {
  if (batch.ahead == nullptr) return task.TokensOf(pieces[i]);
  text::TokenBatch tokens = batch.ahead->Take(pieces[i]);
  if (i + 1 < pieces.size()) {
    batch.ahead->Start(pieces[i + 1]);
  } else if (batch.next != nullptr) {
    batch.ahead->Start(PiecesOf(task, *batch.next, batch.plan).front());
  }
  return tokens;
}

}  // namespace

torch::Tensor AddGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                           StageLog& log) {
  auto generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(Rng(batch.seed, static_cast<uint64_t>(batch.step)).NextU64());
  const double weight = task.WeightOf(batch.rows);
  torch::Tensor loss = at::zeros({}, torch::TensorOptions(torch::kFloat32).device(device));
  const std::vector<text::BatchRows> pieces = PiecesOf(task, batch.rows, batch.plan);
  for (size_t i = 0; i < pieces.size(); ++i) {
    log.EnterPhase("forward");
    const DeviceBatch tensors = task.ToTensors(TokensOf(task, batch, pieces, i));
    const torch::Tensor piece_loss = task.SumOfLosses(tensors) / weight;
    log.EnterPhase("backward");
    piece_loss.backward(at::full({}, batch.loss_scale, piece_loss.options()));
    loss += piece_loss.detach();
  }
  return loss;
}

double ComputeGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                        StageLog& log) {
  return AddGradients(task, batch, device, log).item<double>();
}

}  // namespace hpo::trainer
