#include "common/memory/replay_table.h"

#include <algorithm>
#include <utility>

#include "common/memory/memory_replay.h"
#include "common/memory/trial_passes.h"
#include "common/status.h"

namespace hpo {
namespace {

// Of a probability or a momentum memory sees only whether there is one.
double WhetherAny(double value) { return value > 0.0 ? 0.5 : 0.0; }

}  // namespace

// The plan says all about the batch, and of its parts after the first one counts.
ReplayTable::Key ReplayTable::KeyOf(const EstimateInput& input, const MemoryPlan& plan) {
  Key key(input, plan);
  const TrialPasses passes = LargestPasses(input, plan);
  key.second.effective_batch = 0;
  for (const BatchShape& part : passes.stretches.front().steps.front()) {
    key.second.effective_batch += part.rows;
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
  HPO_ASSIGN_OR_RETURN(std::optional<MemoryEstimate> estimate,
                       ReplayWithin(input, plan, Bytes{INT64_MAX}));
  HPO_CHECK(estimate.has_value());
  return *std::move(estimate);
}

absl::StatusOr<std::optional<MemoryEstimate>> ReplayTable::ReplayWithin(const EstimateInput& input,
                                                                        const MemoryPlan& plan,
                                                                        Bytes limit) {
  HPO_RETURN_IF_ERROR(CheckEstimateInput(input, plan));
  const Key key = KeyOf(input, plan);
  {
    const absl::MutexLock lock(&mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      const Known& known = found->second;
      if (known.estimate.has_value() && known.estimate->needed_limit <= limit) {
        return known.estimate;
      }
      if (known.estimate.has_value() || limit <= known.above) return std::nullopt;
    }
  }
  HPO_ASSIGN_OR_RETURN(const std::optional<MemoryEstimate> estimate,
                       ReplayMemoryWithin(key.first, key.second, limit));
  const absl::MutexLock lock(&mutex_);
  if (known_.size() >= kMostRemembered && !known_.contains(key)) return estimate;
  Known& known = known_[key];
  if (estimate.has_value()) {
    known.estimate = estimate;
  } else {
    known.above = std::max(known.above, limit);
  }
  return estimate;
}

}  // namespace hpo
