#include "memory/trace/training_config.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/space/describe_param.h"
#include "common/study/trial.h"

namespace hpo::memory {
namespace {

constexpr int64_t kMaxHeadLayers = 3;

constexpr const char* kMemoryParameters[] = {
    "model.name",
    "model.dropout",
    "model.freeze_embeddings",
    "model.freeze_layers",
    kMaxLengthParameter,
    kBatchSizeParameter,
    kGradAccumParameter,
    "train.eval_batch_multiplier",
    "train.group_by_length",
    "train.optimizer",
    "train.momentum",
    "train.precision",
    "train.label_smoothing",
    "train.class_weights",
    "head.layers",
    "head.size_1",
    "head.size_2",
    "head.size_3",
    "head.dropout",
    "lora.rank",
    "lora.base",
    "lora.targets",
    "lora.dropout",
    "memory.checkpoint_every",
    "memory.loss_rows",
    "memory.clear_cache_every",
    "memory.unpadded",
    "aspects.max",
    "aspects.at_once",
    "aspects.padding",
};

// Read here too; it scales numbers.
constexpr const char* kScale = "lora.alpha";

[[maybe_unused]] bool IsListed(const std::string& name) {
  return name == kScale || std::find(std::begin(kMemoryParameters), std::end(kMemoryParameters),
                                     name) != std::end(kMemoryParameters);
}

// Looks a parameter up in a configuration, then in the study's defaults.
class Lookup {
 public:
  Lookup(const ParamMap& params, const ParamMap& defaults) : params_(params), defaults_(defaults) {}

  // `value` stays what it is where the parameter is given nowhere.
  absl::Status ReadInt(const std::string& name, int64_t least, int64_t* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const int64_t* const number = std::get_if<int64_t>(given);
    if (number == nullptr || *number < least) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": expected an integer of at least ",
                                                     least, ", got ", DescribeParam(*given)));
    }
    *value = *number;
    return absl::OkStatus();
  }

  absl::Status ReadProbability(const std::string& name, std::optional<double>* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const std::optional<double> number = AsNumber(*given);
    if (!number.has_value() || !(*number >= 0.0 && *number < 1.0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected a number in [0, 1), got ", DescribeParam(*given)));
    }
    *value = number;
    return absl::OkStatus();
  }

  absl::Status ReadPositive(const std::string& name, double* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const std::optional<double> number = AsNumber(*given);
    if (!number.has_value() || !(*number > 0.0) || !std::isfinite(*number)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected a number above 0, got ", DescribeParam(*given)));
    }
    *value = *number;
    return absl::OkStatus();
  }

  absl::Status ReadFlag(const std::string& name, bool* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const bool* const flag = std::get_if<bool>(given);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected true or false, got ", DescribeParam(*given)));
    }
    *value = *flag;
    return absl::OkStatus();
  }

  absl::Status ReadText(const std::string& name, std::string* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const std::string* const text = std::get_if<std::string>(given);
    if (text == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected a text, got ", DescribeParam(*given)));
    }
    *value = *text;
    return absl::OkStatus();
  }

  // As it is written, whatever its type.
  std::string Text(const std::string& name, const std::string& fallback) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return fallback;
    const std::string* const word = std::get_if<std::string>(given);
    return word == nullptr ? FormatParam(*given) : *word;
  }

  // A word that `parse` knows.
  template <typename Value>
  absl::Status ReadWord(const std::string& name, absl::StatusOr<Value> (*parse)(absl::string_view),
                        Value* value) const {
    const ParamValue* const given = Find(name);
    if (given == nullptr) return absl::OkStatus();
    const auto parsed = parse(Text(name, ""));
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", parsed.status().message()));
    }
    *value = *parsed;
    return absl::OkStatus();
  }

 private:
  const ParamValue* Find(const std::string& name) const {
    assert(IsListed(name));
    for (const ParamMap* values : {&params_, &defaults_}) {
      if (const auto found = values->find(name); found != values->end()) return &found->second;
    }
    return nullptr;
  }

  const ParamMap& params_;
  const ParamMap& defaults_;
};

// What memory depends on: tf32 keeps every tensor in float32.
absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  if (name == "fp32" || name == "tf32") return Precision::kFloat32;
  if (name == "bf16") return Precision::kBfloat16;
  if (name == "fp16") return Precision::kFloat16;
  return absl::InvalidArgumentError(
      absl::StrCat("expected fp32, tf32, bf16 or fp16, got '", name, "'"));
}

absl::StatusOr<FrozenType> ParseBase(absl::string_view name) {
  if (name == "fp32") return FrozenType::kFloat32;
  if (name == "bf16") return FrozenType::kBFloat16;
  if (name == "nf4") return FrozenType::kNf4;
  return absl::InvalidArgumentError(absl::StrCat("expected fp32, bf16 or nf4, got '", name, "'"));
}

// Nothing where lora.rank is 0, whatever the other parameters are.
absl::Status ReadLora(const Lookup& lookup, std::optional<LoraOptions>* lora) {
  LoraOptions options{.rank = 0};
  HPO_RETURN_IF_ERROR(lookup.ReadInt("lora.rank", 0, &options.rank));
  std::optional<double> dropout;
  HPO_RETURN_IF_ERROR(lookup.ReadProbability("lora.dropout", &dropout));
  options.dropout = dropout.value_or(0.0);
  HPO_RETURN_IF_ERROR(lookup.ReadPositive(kScale, &options.alpha));
  std::string targets;
  HPO_RETURN_IF_ERROR(lookup.ReadText("lora.targets", &targets));
  for (const absl::string_view target : absl::StrSplit(targets, ',', absl::SkipWhitespace())) {
    options.targets.emplace_back(absl::StripAsciiWhitespace(target));
  }
  HPO_RETURN_IF_ERROR(lookup.ReadWord("lora.base", &ParseBase, &options.base));
  if (options.rank > 0) *lora = std::move(options);
  return absl::OkStatus();
}

}  // namespace

Execution ExecutionOf(const TrainingConfig& config, const MemoryPlan& plan) {
  return {
      .checkpoint_every = plan.checkpointing ? std::max<int64_t>(1, config.checkpoint_every) : 0,
      .precision = plan.precision};
}

absl::Status CheckTrainedParts(const TrainingConfig& config, const ModelShape& shape) {
  HPO_RETURN_IF_ERROR(CheckFreezing(config.freezing, shape));
  if (!config.lora.has_value()) return absl::OkStatus();
  if (config.freezing.Any()) {
    return absl::InvalidArgumentError(
        "model.freeze_embeddings, model.freeze_layers: expected neither with lora.rank, which "
        "leaves the whole model as it is");
  }
  return AdaptedLayers(shape, *config.lora).status();
}

absl::Status CheckUnpadded(const TrainingConfig& config, const ModelShape& shape, TaskKind task) {
  if (!config.unpadded) return absl::OkStatus();
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  if (!family.has_value() || IsDecoder(*family) || *family == ModelFamily::kDeberta) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory.unpadded: expected a model of bert, roberta, xlm-roberta, camembert, "
                     "electra or distilbert, got ",
                     shape.family, ", which runs padded"));
  }
  if (task != TaskKind::kTextClassification && task != TaskKind::kTextRegression) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory.unpadded: expected text-classification or text-regression, got ",
                     Name(task), ", which runs padded"));
  }
  return absl::OkStatus();
}

std::span<const char* const> MemoryParameters() { return kMemoryParameters; }

absl::StatusOr<TrainingConfig> TrainingConfigOf(const ParamMap& params,
                                                const TrainerSpec& trainer) {
  const Lookup lookup(params, trainer.defaults);
  TrainingConfig config;
  HPO_RETURN_IF_ERROR(lookup.ReadInt(kBatchSizeParameter, 1, &config.batch_size));
  HPO_RETURN_IF_ERROR(lookup.ReadInt(kGradAccumParameter, 1, &config.grad_accum));
  HPO_RETURN_IF_ERROR(lookup.ReadInt(kMaxLengthParameter, 1, &config.max_length));
  HPO_RETURN_IF_ERROR(
      lookup.ReadInt("train.eval_batch_multiplier", 1, &config.eval_batch_multiplier));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("head.layers", 0, &config.head_layers));
  HPO_RETURN_IF_ERROR(lookup.ReadProbability("model.dropout", &config.dropout));
  HPO_RETURN_IF_ERROR(lookup.ReadProbability("head.dropout", &config.head_dropout));
  HPO_RETURN_IF_ERROR(lookup.ReadWord("train.optimizer", &ParseOptimizerKind, &config.optimizer));
  HPO_RETURN_IF_ERROR(lookup.ReadWord("train.precision", &ParsePrecision, &config.precision));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("memory.checkpoint_every", 0, &config.checkpoint_every));
  HPO_RETURN_IF_ERROR(lookup.ReadFlag("model.freeze_embeddings", &config.freezing.embeddings));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("model.freeze_layers", 0, &config.freezing.layers));
  HPO_RETURN_IF_ERROR(ReadLora(lookup, &config.lora));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("memory.loss_rows", 0, &config.loss_rows));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("memory.clear_cache_every", 0, &config.clear_cache_every));
  HPO_RETURN_IF_ERROR(lookup.ReadFlag("memory.unpadded", &config.unpadded));
  HPO_RETURN_IF_ERROR(lookup.ReadFlag("train.group_by_length", &config.group_by_length));
  std::optional<double> smoothing;
  HPO_RETURN_IF_ERROR(lookup.ReadProbability("train.label_smoothing", &smoothing));
  config.smooths_labels = smoothing.value_or(0.0) > 0.0;
  HPO_RETURN_IF_ERROR(lookup.ReadInt("aspects.max", 0, &config.most_aspects));
  HPO_RETURN_IF_ERROR(lookup.ReadInt("aspects.at_once", 0, &config.queries_at_once));
  config.pads_queries = lookup.Text("aspects.padding", "none") != "none";
  config.weighs_classes = lookup.Text("train.class_weights", "none") != "none";
  std::optional<double> momentum;
  HPO_RETURN_IF_ERROR(lookup.ReadProbability("train.momentum", &momentum));
  config.momentum = momentum.value_or(config.momentum);
  if (config.head_layers > kMaxHeadLayers) {
    return absl::InvalidArgumentError(absl::StrCat("head.layers: expected at most ", kMaxHeadLayers,
                                                   ", got ", config.head_layers));
  }
  for (int64_t layer = 0; layer < config.head_layers; ++layer) {
    const std::string name = absl::StrCat("head.size_", layer + 1);
    HPO_RETURN_IF_ERROR(lookup.ReadInt(name, 1, &config.head_sizes[layer]));
    if (config.head_sizes[layer] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": expected a size because head.layers is ", config.head_layers, ", got none"));
    }
  }
  return config;
}

}  // namespace hpo::memory
