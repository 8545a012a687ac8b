// How a configuration can be made to fit a card: the largest micro-batch, and the cheapest changes,
// by the decisions of a FitDecider. Pure; safe from any thread; on a GPU as many milliseconds as
// replays are needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/plan/fit_decision.h"

namespace hpo::memory {

// One configuration as a policy decides it for one capacity.
struct ConfigVerdict {
  PlannedMemory planned;
  Bytes required;  // with the margin
  Bytes usable;    // capacity less headroom
};

ConfigVerdict VerdictOf(const PlannedMemory& planned, Bytes usable);

//   NotFound         nothing is known of the configuration's model
//   InvalidArgument  see TrainingConfigOf, EstimateMemory
absl::StatusOr<ConfigVerdict> JudgeConfig(const FitDecider& decider, const ParamMap& params,
                                          Bytes capacity);

// The largest train.batch_size, at most `most`, with which `params` fits `capacity` by `strict`, a
// decider of policy kStrict; nullopt: not even 1. Codes as JudgeConfig.
absl::StatusOr<std::optional<ConfigVerdict>> LargestBatchSize(const FitDecider& strict,
                                                              const ParamMap& params,
                                                              Bytes capacity, int64_t most);

struct ConfigChange {
  std::string what;  // "micro-batch 12 in 4 parts", ...
  std::string cost;  // what it costs, in a few words
  ParamMap params;   // after it
  ConfigVerdict verdict;
};

struct ConfigAdvice {
  ConfigVerdict literal;  // the configuration at its word
  // Each on top of those before it; without any of them it would not fit, or need more. The
  // cheapest that make it fit: a smaller evaluation batch, a smaller micro-batch with accumulation
  // at the same effective batch, layers computed again, frozen weights in NF4 under adapters,
  // 16-bit products, shorter texts. Empty where the configuration fits.
  std::vector<ConfigChange> changes;
  bool fits = false;  // literally, or with the changes
  // The smallest capacity (to 1 MiB) on which the configuration runs by plan, with margin and
  // headroom.
  Bytes smallest_capacity;
  // The same with every change that cuts no texts.
  Bytes smallest_changed_capacity;
};

// `strict` and `plan` decide by those policies, and are alike otherwise. Codes as JudgeConfig.
absl::StatusOr<ConfigAdvice> AdviseConfig(const FitDecider& strict, const FitDecider& plan,
                                          const ParamMap& params, Bytes capacity);

}  // namespace hpo::memory
