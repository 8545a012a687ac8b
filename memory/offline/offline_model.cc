// Tested by tests/cli/memory/memory_commands_test.cc.
#include "memory/offline/offline_model.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/model_spec.h"
#include "common/models/task_kind.h"
#include "memory/offline/model_step.h"
#include "memory/trace/lora.h"

namespace hpo::memory {
namespace {

constexpr Bytes kWeightUnit{512};

// hpo-trainer's is that of a study without one, Hugging Face's by the model.
absl::StatusOr<std::string> TaskOf(const std::string& asked, bool trainer,
                                   const ModelShape& shape) {
  const std::string classification(Name(TaskKind::kTextClassification));
  const std::string modelling(Name(TaskKind::kLanguageModeling));
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  const bool decodes = family.has_value() && IsDecoder(*family);
  if (asked.empty()) return decodes && !trainer ? modelling : classification;
  if (asked == classification || (asked == modelling && decodes)) return asked;
  return absl::InvalidArgumentError(absl::StrCat("--task: expected ", classification,
                                                 decodes ? absl::StrCat(" or ", modelling) : "",
                                                 " with ", shape.family, ", got ", asked));
}

}  // namespace

absl::StatusOr<OfflineModel> OfflineModel::Create(const std::string& name_or_path,
                                                  const KernelOptions& kernels,
                                                  const OfflineDevice& device) {
  HPO_ASSIGN_OR_RETURN(ModelFacts facts, FindNamedModel(name_or_path));
  OfflineModel model(std::move(facts), kernels, device);
  const ModelShape& shape = model.facts_.shape;
  HPO_ASSIGN_OR_RETURN(model.trainer_, UsesTrainer(kernels, shape));
  HPO_ASSIGN_OR_RETURN(model.kernels_.task, TaskOf(kernels.task, model.trainer_, shape));
  return model;
}

ParamMap OfflineModel::Named(const ParamMap& params) const {
  ParamMap named = params;
  named[kModelNameParameter] = facts_.name;
  return named;
}

FitDecider OfflineModel::Decider(MemoryPolicy policy) const {
  StudySpec study;
  study.trainer.task = kernels_.task;
  return OfflineDecider(study, policy, {&facts_, 1}, device_);
}

absl::StatusOr<StepDescription> OfflineModel::StepOf(const ParamMap& params) const {
  HPO_ASSIGN_OR_RETURN(const KernelOptions kernels, WithParams(kernels_, params));
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  return MakeModelStep(facts_, kernels, device_, config);
}

absl::StatusOr<ConfigVerdict> OfflineModel::Judge(const ParamMap& params, Bytes card) const {
  if (trainer_) return JudgeConfig(Decider(MemoryPolicy::kStrict), Named(params), card);
  HPO_ASSIGN_OR_RETURN(const StepDescription step, StepOf(params));
  return JudgeStep(step, device_, card);
}

absl::StatusOr<std::optional<ConfigVerdict>> OfflineModel::Largest(const ParamMap& params,
                                                                   Bytes card, int64_t most) const {
  if (trainer_) {
    return LargestBatchSize(Decider(MemoryPolicy::kStrict), Named(params), card, most);
  }
  HPO_ASSIGN_OR_RETURN(StepDescription step, StepOf(params));
  return LargestStep(step, device_, card, most);
}

absl::StatusOr<ConfigAdvice> OfflineModel::Advise(const ParamMap& params, Bytes card) const {
  if (trainer_) {
    return AdviseConfig(Decider(MemoryPolicy::kStrict), Decider(MemoryPolicy::kPlan), Named(params),
                        card);
  }
  HPO_ASSIGN_OR_RETURN(const StepDescription step, StepOf(params));
  return AdviseStep(step, Named(params), device_, card);
}

absl::StatusOr<Basis> OfflineModel::BasisOf(const ParamMap& params) const {
  KernelOptions kernels = kernels_;
  if (!trainer_) {
    HPO_ASSIGN_OR_RETURN(kernels, WithParams(kernels_, params));
  }
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  Basis basis = TrainerBasis(device_);
  basis.task = kernels_.task;
  std::string base = config.lora.has_value() ? std::string(Name(config.lora->base)) : "";
  if (trainer_) {
    basis.precision = std::string(Name(config.precision));
    if (config.optimizer != OptimizerKind::kAdamW) {
      basis.optimizer = std::string(Name(config.optimizer));
    }
  } else {
    basis.kernels = "Hugging Face";
    basis.precision = kernels.precision;
    basis.optimizer = kernels.optimizer;
    if (facts_.shape.family == "deberta-v2") basis.attention = "written out";
    const bool half = basis.precision == "bfloat16" || basis.precision == "float16";
    if (half && base == Name(FrozenStorage::Type::kFloat32)) base = basis.precision;
  }
  if (config.lora.has_value()) {
    basis.adapters = absl::StrCat("rank ", config.lora->rank, " on ", base);
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
