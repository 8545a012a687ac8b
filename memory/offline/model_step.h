// Verdicts on Hugging Face's training step of a model, for `hpo memory fit` and `plan`, by
// replaying its allocations: for models that hpo-trainer does not run, and for comparison. The
// answers have the form of those for hpo-trainer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "memory/offline/offline_card.h"
#include "memory/offline/offline_model.h"
#include "memory/offline/step_description.h"
#include "memory/plan/config_advice.h"

namespace hpo::memory {

// Whether `kernels` means hpo-trainer's for this model.
//   InvalidArgument  a precision or an optimizer that hpo-trainer does not have
//   Unimplemented    hpo-trainer is asked for, and does not run the family
absl::StatusOr<bool> UsesTrainer(const KernelOptions& kernels, const ModelShape& shape);

// `kernels` with the precision and optimizer that `params` name, or else the defaults.
//   InvalidArgument  a parameter that Hugging Face's step has not, or a value of it; both an option
//                    and a parameter
absl::StatusOr<KernelOptions> WithParams(const KernelOptions& kernels, const ParamMap& params);

// The step of one configuration: of kernels.task, under two labels where it classifies, padded, so
// that attention is efficient. The device is as `device` says, without a limit.
//   InvalidArgument  a precision or optimizer without that name, a device that is no card, what
//                    CheckStep says
//   Unimplemented    a family without a trace
absl::StatusOr<StepDescription> MakeModelStep(const ModelFacts& model, const KernelOptions& kernels,
                                              const OfflineDevice& device,
                                              const TrainingConfig& config);

// For one card, with the margin before any evidence. Some ten milliseconds.
ConfigVerdict JudgeStep(const StepDescription& step, const OfflineDevice& device, Bytes card);

// As LargestBatchSize.
std::optional<ConfigVerdict> LargestStep(const StepDescription& step, const OfflineDevice& device,
                                         Bytes card, int64_t most);

// As AdviseConfig, with the changes of CheapestChanges; `params` are kept as they are.
ConfigAdvice AdviseStep(const StepDescription& step, const ParamMap& params,
                        const OfflineDevice& device, Bytes card);

// What Hugging Face's steps of a study's models need, for `hpo memory space`: what their segments
// take without a limit, the base and the margin; so many configurations cannot each be replayed at
// many limits, and a limit below that often does. 0 where a model has no trace. Answers are
// remembered. Not thread-safe.
class StepNeeds {
 public:
  // `device` outlives it.
  StepNeeds(const StudySpec& study, const OfflineDevice& device);

  Bytes Of(const ParamMap& params, const TrainingConfig& config, const MemoryPlan& plan);

 private:
  // Model, micro-batch, tokens, dropout, whether there are several parts.
  using Key = std::tuple<std::string, int64_t, int64_t, double, bool>;

  const ModelFacts* Find(const std::string& name);

  const ParamMap defaults_;
  const OfflineDevice& device_;
  std::map<std::string, std::optional<ModelFacts>> models_;
  std::map<Key, Bytes> known_;
};

}  // namespace hpo::memory
