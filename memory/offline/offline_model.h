// A model on a GPU that need not be here, in hpo-trainer's training step: the answers that `fit`,
// `plan`, `table` and `budget` show. Pure; some tens of milliseconds an answer.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "memory/offline/offline_card.h"
#include "memory/plan/config_advice.h"
#include "memory/plan/fit_decision.h"

namespace hpo::memory {

class OfflineModel {
 public:
  // `task`: "text-classification", "language-modeling"; empty: the former.
  //   NotFound         no such model, with a suggestion
  //   InvalidArgument  a task that is not the model's
  //   Unimplemented    hpo-trainer does not run the family
  static absl::StatusOr<OfflineModel> Create(const std::string& name_or_path,
                                             const std::string& task, const OfflineDevice& device);

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
  OfflineModel(ModelFacts facts, std::string task, const OfflineDevice& device)
      : facts_(std::move(facts)), task_(std::move(task)), device_(device) {}

  ParamMap Named(const ParamMap& params) const;
  FitDecider Decider(MemoryPolicy policy) const;

  ModelFacts facts_;
  std::string task_;
  OfflineDevice device_;
};

}  // namespace hpo::memory
