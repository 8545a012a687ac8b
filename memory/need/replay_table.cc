#include "memory/need/replay_table.h"

#include <utility>

#include "common/base/status.h"
#include "memory/need/memory_replay.h"

namespace hpo::memory {
namespace {

// Of a probability or a momentum memory sees only whether there is one.
double WhetherAny(double value) { return value > 0.0 ? 0.5 : 0.0; }

}  // namespace

// The plan says all about the batch; its effective batch also how short the last of an epoch is.
// Where the number of texts is not known, an epoch has no last one: of parts but the first and a
// shorter last one there is one (CachedReplay).
ReplayTable::Key ReplayTable::KeyOf(const EstimateInput& input, const MemoryPlan& plan) {
  Key key(input, plan);
  const Workload& workload = input.workload;
  if (workload.train_lengths.empty() && workload.train_queries.empty() &&
      plan.effective_batch > 2 * plan.micro_batch) {
    key.second.effective_batch = 2 * plan.micro_batch + plan.effective_batch % plan.micro_batch;
  }
  TrainingConfig& config = key.first.config;
  config.batch_size = key.second.micro_batch;
  config.grad_accum = 1;
  config.momentum = WhetherAny(config.momentum);
  if (config.dropout.has_value()) config.dropout = WhetherAny(*config.dropout);
  if (config.head_dropout.has_value()) config.head_dropout = WhetherAny(*config.head_dropout);
  if (config.lora.has_value()) {
    config.lora->alpha = 0.0;
    config.lora->dropout = WhetherAny(config.lora->dropout);
  }
  return key;
}

absl::StatusOr<MemoryEstimate> ReplayTable::Replay(const EstimateInput& input,
                                                   const MemoryPlan& plan) {
  return ReplayWithin(input, plan, kAnyLimit);
}

absl::StatusOr<MemoryEstimate> ReplayTable::ReplayWithin(const EstimateInput& input,
                                                         const MemoryPlan& plan, Bytes limit) {
  HPO_RETURN_IF_ERROR(CheckEstimateInput(input, plan));
  const Key key = KeyOf(input, plan);
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = known_.find(key);
    if (found != known_.end() && limit <= found->second.up_to) {
      return LimitedTo(found->second.estimate, limit);
    }
  }
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate estimate,
                       ReplayMemoryWithin(key.first, key.second, limit));
  const absl::MutexLock lock(&mutex_);
  if (known_.size() >= kMostRemembered && !known_.contains(key)) return estimate;
  const Bytes up_to = estimate.needed_limit <= limit ? kAnyLimit : limit;
  const Known learned{.estimate = estimate, .up_to = up_to};
  const auto [known, is_new] = known_.emplace(key, learned);
  if (!is_new && up_to > known->second.up_to) known->second = learned;
  return estimate;
}

}  // namespace hpo::memory
