// Tested by tests/cli/memory/memory_commands_test.cc.
#include "memory/offline/offline_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/model_spec.h"
#include "common/models/task_kind.h"
#include "memory/trace/lora.h"

namespace hpo::memory {
namespace {

constexpr Bytes kWeightUnit{512};

// `asked`, or where that is empty the task that a study has by default.
absl::StatusOr<std::string> TaskOf(const std::string& asked, const ModelShape& shape) {
  const std::string classification(Name(TaskKind::kTextClassification));
  const std::string modelling(Name(TaskKind::kLanguageModeling));
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  const bool decodes = family.has_value() && IsDecoder(*family);
  if (asked.empty()) return classification;
  if (asked == classification || (asked == modelling && decodes)) return asked;
  return absl::InvalidArgumentError(absl::StrCat("--task: expected ", classification,
                                                 decodes ? absl::StrCat(" or ", modelling) : "",
                                                 " with ", shape.family, ", got ", asked));
}

}  // namespace

absl::StatusOr<OfflineModel> OfflineModel::Create(const std::string& name_or_path,
                                                  const std::string& task,
                                                  const OfflineDevice& device) {
  HPO_ASSIGN_OR_RETURN(ModelFacts facts, FindTraceableModel(name_or_path));
  HPO_ASSIGN_OR_RETURN(std::string known_task, TaskOf(task, facts.shape));
  return OfflineModel(std::move(facts), std::move(known_task), device);
}

ParamMap OfflineModel::Named(const ParamMap& params) const {
  ParamMap named = params;
  named[kModelNameParameter] = facts_.name;
  return named;
}

FitDecider OfflineModel::Decider(MemoryPolicy policy) const {
  StudySpec study;
  study.trainer.task = task_;
  return OfflineDecider(study, policy, {&facts_, 1}, device_);
}

absl::StatusOr<ConfigVerdict> OfflineModel::Judge(const ParamMap& params, Bytes card) const {
  return JudgeConfig(Decider(MemoryPolicy::kStrict), Named(params), card);
}

absl::StatusOr<std::optional<ConfigVerdict>> OfflineModel::Largest(const ParamMap& params,
                                                                   Bytes card, int64_t most) const {
  return LargestBatchSize(Decider(MemoryPolicy::kStrict), Named(params), card, most);
}

absl::StatusOr<ConfigAdvice> OfflineModel::Advise(const ParamMap& params, Bytes card) const {
  return AdviseConfig(Decider(MemoryPolicy::kStrict), Decider(MemoryPolicy::kPlan), Named(params),
                      card);
}

absl::StatusOr<Basis> OfflineModel::BasisOf(const ParamMap& params) const {
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  Basis basis = TrainerBasis(device_);
  basis.task = task_;
  basis.precision = std::string(Name(config.precision));
  if (config.optimizer != OptimizerKind::kAdamW) {
    basis.optimizer = std::string(Name(config.optimizer));
  }
  if (config.lora.has_value()) {
    basis.adapters = absl::StrCat("rank ", config.lora->rank, " on ", Name(config.lora->base));
  }
  return basis;
}

absl::StatusOr<Bytes> OfflineModel::AdapterBytes(const ParamMap& params) const {
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  if (!config.lora.has_value()) return Bytes{};
  HPO_ASSIGN_OR_RETURN(const std::vector<AdaptedLayer> layers,
                       AdaptedLayers(facts_.shape, *config.lora));
  Bytes bytes;
  for (const AdaptedLayer& layer : layers) {
    for (const ParameterTensor& tensor : AdapterTensors(layer, config.lora->rank)) {
      bytes += RoundUp(Bytes{4 * tensor.NumElements()}, kWeightUnit);
    }
  }
  return bytes;
}

}  // namespace hpo::memory
