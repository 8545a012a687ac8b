// A model on a card that need not be here, by whosever training step: the answers that `fit`,
// `plan`, `table` and `budget` show. Pure; some tens of milliseconds an answer.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "memory/offline/offline_card.h"
#include "memory/offline/step_description.h"
#include "memory/plan/config_advice.h"
#include "memory/plan/fit_decision.h"

namespace hpo::memory {

// Whose training step it is. Empty: hpo-trainer where it runs the model, in float32 with fused
// AdamW, which classifies, else Hugging Face's, in float32 with torch's AdamW; a decoder models
// language there.
struct KernelOptions {
  std::string kernels;    // "hpo-trainer", "huggingface"
  std::string task;       // "text-classification", "language-modeling"
  std::string precision;  // as in docs/step-description.md
  std::string optimizer;
};

class OfflineModel {
 public:
  //   NotFound         no such model, with a suggestion
  //   InvalidArgument  an option of Hugging Face's step with hpo-trainer's, a task that is not its
  //   Unimplemented    hpo-trainer is asked for, and does not run the family
  static absl::StatusOr<OfflineModel> Create(const std::string& name_or_path,
                                             const KernelOptions& kernels,
                                             const OfflineDevice& device);

  const ModelFacts& facts() const { return facts_; }

  // A configuration of the model at its word.
  //   InvalidArgument, Unimplemented  it cannot be run; names the parameter
  absl::StatusOr<ConfigVerdict> Judge(const ParamMap& params, Bytes card) const;
  // See LargestBatchSize, AdviseConfig. Codes as Judge.
  absl::StatusOr<std::optional<ConfigVerdict>> Largest(const ParamMap& params, Bytes card,
                                                       int64_t most) const;
  absl::StatusOr<ConfigAdvice> Advise(const ParamMap& params, Bytes card) const;

  // What the answers stand on. Codes as Judge.
  absl::StatusOr<Basis> BasisOf(const ParamMap& params) const;

  // Weights of adapters, each tensor rounded up as a card does; 0 without adapters. Codes as Judge.
  absl::StatusOr<Bytes> AdapterBytes(const ParamMap& params) const;

 private:
  OfflineModel(ModelFacts facts, const KernelOptions& kernels, const OfflineDevice& device)
      : facts_(std::move(facts)), kernels_(kernels), device_(device) {}

  ParamMap Named(const ParamMap& params) const;
  FitDecider Decider(MemoryPolicy policy) const;
  absl::StatusOr<StepDescription> StepOf(const ParamMap& params) const;

  ModelFacts facts_;
  KernelOptions kernels_;
  OfflineDevice device_;
  bool trainer_ = true;  // hpo-trainer's step
};

}  // namespace hpo::memory
