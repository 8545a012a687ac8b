#include "common/memory/foreign/step_description.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/memory/allocator/allocation_timeline.h"
#include "common/memory/families/model_trace.h"
#include "common/memory/foreign/step_check.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = int64_t{1} << 31;
constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostSteps = 100;
constexpr int64_t kMostBaseBytes = int64_t{1} << 44;

// ---- Words -------------------------------------------------------------------------------------

template <typename T>
using Words = std::vector<std::pair<const char*, T>>;

template <typename T>
absl::StatusOr<T> ParseWord(const Json& json, const Words<T>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) {
    if (json.is_string() && json.get_ref<const std::string&>() == name) return value;
    names.emplace_back(name);
  }
  const std::string hint = json.is_string() ? DidYouMean(json.get<std::string>(), names) : "";
  return absl::InvalidArgumentError(absl::StrCat("expected one of ", absl::StrJoin(names, ", "),
                                                 "; got ", DescribeJson(json), hint));
}

absl::StatusOr<Activation> ParseActivation(const Json& json) {
  return ParseWord<Activation>(json, {{"relu", Activation::kRelu},
                                      {"gelu", Activation::kGelu},
                                      {"silu", Activation::kSilu},
                                      {"tanh", Activation::kTanh}});
}

absl::StatusOr<bool> ParseNormFirst(const Json& json) {
  return ParseWord<bool>(json, {{"post", false}, {"pre", true}});
}

absl::StatusOr<PoolingLayer::Kind> ParsePooling(const Json& json) {
  return ParseWord<PoolingLayer::Kind>(json, {{"mean", PoolingLayer::Kind::kMean},
                                              {"first_token", PoolingLayer::Kind::kFirstToken}});
}

absl::StatusOr<StepOptimizer> ParseOptimizer(const Json& json) {
  return ParseWord<StepOptimizer>(json, {{"none", StepOptimizer::kNone},
                                         {"sgd", StepOptimizer::kSgd},
                                         {"sgd-momentum", StepOptimizer::kSgdMomentum},
                                         {"adam-foreach", StepOptimizer::kAdamForeach},
                                         {"adamw-foreach", StepOptimizer::kAdamForeach},
                                         {"adam-loop", StepOptimizer::kAdamLoop},
                                         {"adamw-loop", StepOptimizer::kAdamLoop},
                                         {"adam-fused", StepOptimizer::kAdamFused},
                                         {"adamw-fused", StepOptimizer::kAdamFused}});
}

absl::StatusOr<StepPrecision> ParsePrecision(const Json& json) {
  return ParseWord<StepPrecision>(json, {{"float32", StepPrecision::kFloat32},
                                         {"bfloat16", StepPrecision::kHalf},
                                         {"float16", StepPrecision::kHalf},
                                         {"bfloat16-autocast", StepPrecision::kAutocast},
                                         {"float16-autocast", StepPrecision::kAutocast}});
}

absl::StatusOr<AttentionKernel> ParseAttention(const Json& json) {
  return ParseWord<AttentionKernel>(json, {{"flash", AttentionKernel::kFlash},
                                           {"efficient", AttentionKernel::kEfficient},
                                           {"math", AttentionKernel::kMath}});
}

// Bytes as an integer or as a size such as "1487MiB".
absl::StatusOr<Bytes> ParseSize(const Json& json) {
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  if (std::any_of(text.begin(), text.end(), absl::ascii_isalpha)) return ParseBytes(text);
  const int64_t count = json.is_number_integer() ? json.get<int64_t>() : -1;
  if (count >= 0 && count <= AllocatorOptions::kUnlimited / 2) return Bytes{count};
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a number of bytes or a size such as \"24GiB\", got ", DescribeJson(json)));
}

// ---- Members -----------------------------------------------------------------------------------

absl::Status CheckMembers(const Json& object, const std::vector<std::string>& known) {
  if (!object.is_object()) return absl::OkStatus();  // the reader says it
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat("expected no member '", key, "'",
                                                     DidYouMean(key, known), "; known are ",
                                                     absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ParseCount(const Json& json, int64_t low, int64_t high) {
  const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= static_cast<uint64_t>(high)
                                              : json.is_number_integer();
  if (fits) {
    const auto value = json.get<int64_t>();
    if (value >= low && value <= high) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected an integer from ", low, " to ", high, ", got ", DescribeJson(json)));
}

absl::StatusOr<int64_t> ParsePositive(const Json& json) {
  return ParseCount(json, 1, kLargestSize);
}

absl::StatusOr<double> ParseProbability(const Json& json) {
  if (json.is_number() && json.get<double>() >= 0.0 && json.get<double>() < 1.0) {
    return json.get<double>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number in [0, 1), got ", DescribeJson(json)));
}

// ---- Layers ------------------------------------------------------------------------------------

absl::StatusOr<DescribedLayer> ParseEncoder(const Json& json) {
  HPO_RETURN_IF_ERROR(
      CheckMembers(json, {"type", "layers", "heads", "feed_forward", "norm", "activation",
                          "dropout", "attention_dropout", "checkpointing"}));
  EncoderLayers layer;
  JsonReader reader(json, "");
  reader.RequiredWith("layers", layer.count,
                      [](const Json& j) { return ParseCount(j, 1, kMostLayers); });
  reader.RequiredWith("heads", layer.heads, ParsePositive);
  reader.RequiredWith("feed_forward", layer.feed_forward, ParsePositive);
  reader.OptionalWith("norm", layer.norm_first, ParseNormFirst);
  reader.OptionalWith("activation", layer.activation, ParseActivation);
  reader.OptionalWith("dropout", layer.dropout, ParseProbability);
  layer.attention_dropout = layer.dropout;
  reader.OptionalWith("attention_dropout", layer.attention_dropout, ParseProbability);
  reader.Optional("checkpointing", layer.checkpointing);
  HPO_RETURN_IF_ERROR(reader.status());
  return layer;
}

enum class LayerType {
  kEmbedding,
  kFeatures,
  kImage,
  kConvolution,
  kPositions,
  kEncoder,
  kLinear,
  kActivation,
  kDropout,
  kNorm,
  kPooling,
  kFlatten,
  kLanguageHead,
};

absl::StatusOr<LayerType> ParseLayerType(const Json& json) {
  return ParseWord<LayerType>(json, {{"embedding", LayerType::kEmbedding},
                                     {"features", LayerType::kFeatures},
                                     {"image", LayerType::kImage},
                                     {"convolution", LayerType::kConvolution},
                                     {"positions", LayerType::kPositions},
                                     {"encoder", LayerType::kEncoder},
                                     {"linear", LayerType::kLinear},
                                     {"activation", LayerType::kActivation},
                                     {"dropout", LayerType::kDropout},
                                     {"norm", LayerType::kNorm},
                                     {"pooling", LayerType::kPooling},
                                     {"flatten", LayerType::kFlatten},
                                     {"language_head", LayerType::kLanguageHead}});
}

// A layer with few members: `known` are those besides the type, `read` reads them.
template <typename Layer, typename Read>
absl::StatusOr<DescribedLayer> ParseSmall(const Json& json, std::vector<std::string> known,
                                          Read read) {
  known.insert(known.begin(), "type");
  HPO_RETURN_IF_ERROR(CheckMembers(json, known));
  Layer layer;
  JsonReader reader(json, "");
  read(reader, layer);
  HPO_RETURN_IF_ERROR(reader.status());
  return layer;
}

absl::StatusOr<DescribedLayer> ParsePictureLayer(const Json& json, LayerType type) {
  if (type == LayerType::kImage) {
    return ParseSmall<ImageLayer>(json, {"channels", "height", "width"},
                                  [](auto& reader, auto& layer) {
                                    reader.RequiredWith("channels", layer.channels, ParsePositive);
                                    reader.RequiredWith("height", layer.height, ParsePositive);
                                    reader.RequiredWith("width", layer.width, ParsePositive);
                                  });
  }
  const std::vector<std::string> known = {"out", "kernel", "stride", "padding", "bias"};
  return ParseSmall<ConvolutionLayer>(json, known, [](auto& reader, auto& layer) {
    reader.RequiredWith("out", layer.out, ParsePositive);
    reader.RequiredWith("kernel", layer.kernel, ParsePositive);
    reader.OptionalWith("stride", layer.stride, ParsePositive);
    reader.OptionalWith("padding", layer.padding,
                        [](const Json& j) { return ParseCount(j, 0, kLargestSize); });
    reader.Optional("bias", layer.bias);
  });
}

absl::StatusOr<DescribedLayer> ParseLayer(const Json& json) {
  LayerType type = LayerType::kEmbedding;
  JsonReader typed(json, "");
  typed.RequiredWith("type", type, ParseLayerType);
  HPO_RETURN_IF_ERROR(typed.status());
  switch (type) {
    case LayerType::kEmbedding:
      return ParseSmall<EmbeddingLayer>(json, {"rows", "width"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("rows", layer.rows, ParsePositive);
        reader.RequiredWith("width", layer.width, ParsePositive);
      });
    case LayerType::kFeatures:
      return ParseSmall<FeaturesLayer>(json, {"width"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("width", layer.width, ParsePositive);
      });
    case LayerType::kImage:
    case LayerType::kConvolution:
      return ParsePictureLayer(json, type);
    case LayerType::kPositions:
      return ParseSmall<PositionLayer>(json, {"rows"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("rows", layer.rows, ParsePositive);
      });
    case LayerType::kEncoder:
      return ParseEncoder(json);
    case LayerType::kLinear:
      return ParseSmall<LinearLayer>(json, {"out", "bias"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("out", layer.out, ParsePositive);
        reader.Optional("bias", layer.bias);
      });
    case LayerType::kActivation:
      return ParseSmall<ActivationLayer>(json, {"function"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("function", layer.function, ParseActivation);
      });
    case LayerType::kDropout:
      return ParseSmall<DropoutLayer>(json, {"probability"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("probability", layer.probability, ParseProbability);
      });
    case LayerType::kNorm:
      return ParseSmall<NormLayer>(json, {}, [](auto&, auto&) {});
    case LayerType::kPooling:
      return ParseSmall<PoolingLayer>(json, {"kind"}, [](auto& reader, auto& layer) {
        reader.RequiredWith("kind", layer.kind, ParsePooling);
      });
    case LayerType::kFlatten:
      return ParseSmall<FlattenLayer>(json, {}, [](auto&, auto&) {});
    case LayerType::kLanguageHead:
      return ParseSmall<LanguageHeadLayer>(
          json, {"tied"}, [](auto& reader, auto& layer) { reader.Optional("tied", layer.tied); });
  }
  return absl::InternalError("unknown layer type");
}

// ---- Known models ------------------------------------------------------------------------------

// A name of the catalogue, or the content of a config.json.
absl::StatusOr<ModelShape> ParseModel(const Json& json) {
  if (json.is_object()) {
    HPO_ASSIGN_OR_RETURN(const ModelShape shape, ParseModelConfig(json.dump(), "config.json"));
    HPO_RETURN_IF_ERROR(CheckHasTrace(shape));
    return shape;
  }
  if (!json.is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a model's name or the content of its config.json, got ", DescribeJson(json)));
  }
  const auto& name = json.get_ref<const std::string&>();
  const std::optional<ModelShape> shape = KnownModelShape(FullModelName(name));
  if (!shape.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a model of the catalogue (docs/memory.md) or the content of a "
                     "config.json, got '",
                     name, "'", DidYouMean(name, KnownModelNames())));
  }
  HPO_RETURN_IF_ERROR(CheckHasTrace(*shape));
  return *shape;
}

// One name, or several.
absl::StatusOr<std::vector<std::string>> ParseTargets(const Json& json) {
  const Json names = json.is_array() ? json : Json::array({json});
  return ArrayFromJson<std::string>(names, [](const Json& name) -> absl::StatusOr<std::string> {
    if (name.is_string()) return name.get<std::string>();
    return absl::InvalidArgumentError(
        absl::StrCat("expected a module's name, got ", DescribeJson(name)));
  });
}

absl::StatusOr<FrozenStorage::Type> ParseLoraBase(const Json& json) {
  return ParseWord<FrozenStorage::Type>(json, {{"fp32", FrozenStorage::Type::kFloat32},
                                               {"bf16", FrozenStorage::Type::kBFloat16},
                                               {"nf4", FrozenStorage::Type::kNf4}});
}

absl::StatusOr<LoraOptions> ParseLora(const Json& json) {
  HPO_RETURN_IF_ERROR(CheckMembers(json, {"rank", "alpha", "dropout", "targets", "base"}));
  LoraOptions lora;
  JsonReader reader(json, "");
  reader.RequiredWith("rank", lora.rank, ParsePositive);
  reader.Optional("alpha", lora.alpha);
  reader.Optional("dropout", lora.dropout);
  reader.OptionalWith("targets", lora.targets, ParseTargets);
  reader.OptionalWith("base", lora.base, ParseLoraBase);
  HPO_RETURN_IF_ERROR(reader.status());
  if (lora.dropout >= 0.0 && lora.dropout < 1.0) return lora;
  return absl::InvalidArgumentError(
      absl::StrCat("dropout: expected 0 <= dropout < 1, got ", lora.dropout));
}

absl::StatusOr<TaskHead::Kind> ParseTask(const Json& json) {
  return ParseWord<TaskHead::Kind>(
      json, {{"text-classification", TaskHead::Kind::kSequenceClassification},
             {"language-modeling", TaskHead::Kind::kCausalLm}});
}

void ReadModel(JsonReader& reader, StepDescription& step) {
  int64_t num_labels = 2;
  reader.OptionalWith("num_labels", num_labels,
                      [](const Json& j) { return ParseCount(j, 1, 1 << 20); });
  if (!reader.Has("model")) {
    if (reader.Has("num_labels")) {
      reader.Fail("num_labels",
                  "expected with a model only; of layers the last one's width counts");
    }
    if (reader.Has("task")) reader.Fail("task", "expected with a model only");
    if (reader.Has("lora")) reader.Fail("lora", "expected with a model only");
    if (reader.Has("checkpointing")) {
      reader.Fail("checkpointing", "expected with a model only; an encoder layer has its own");
    }
    return;
  }
  ModelShape shape;
  reader.RequiredWith("model", shape, ParseModel);
  step.model = DescribeModel(shape);
  reader.OptionalWith("task", step.model->head.kind, ParseTask);
  step.model->head.num_labels = num_labels;
  ModelTechniques& techniques = step.model->techniques;
  if (reader.Has("lora")) reader.RequiredWith("lora", techniques.lora.emplace(), ParseLora);
  reader.Optional("checkpointing", techniques.checkpointing);
  if (reader.Has("num_labels") && step.model->head.kind == TaskHead::Kind::kCausalLm) {
    reader.Fail("num_labels",
                "expected with the task text-classification only, got language-modeling");
  }
}

// ---- Device and allocator ----------------------------------------------------------------------

absl::StatusOr<DescribedDevice> ParseDevice(const Json& json) {
  HPO_RETURN_IF_ERROR(CheckMembers(json, {"base_bytes", "total_bytes", "gemm_workspace_bytes",
                                          "multiprocessors", "threads_per_multiprocessor"}));
  DescribedDevice device;
  Bytes workspace{device.gemm_workspace};
  JsonReader reader(json, "");
  reader.OptionalWith("base_bytes", device.base, ParseSize);
  reader.OptionalWith("total_bytes", device.total, ParseSize);
  reader.OptionalWith("gemm_workspace_bytes", workspace, ParseSize);
  reader.OptionalWith("multiprocessors", device.multiprocessors, ParsePositive);
  reader.OptionalWith("threads_per_multiprocessor", device.threads_per_multiprocessor,
                      ParsePositive);
  HPO_RETURN_IF_ERROR(reader.status());
  if (std::max(device.base, workspace).count > kMostBaseBytes) {
    return absl::InvalidArgumentError(absl::StrCat("expected base and workspace of at most ",
                                                   FormatBytes(Bytes{kMostBaseBytes}), ", got ",
                                                   FormatBytes(std::max(device.base, workspace))));
  }
  device.gemm_workspace = workspace.count;
  return device;
}

absl::StatusOr<AllocatorOptions> ParseAllocator(const Json& json) {
  HPO_RETURN_IF_ERROR(
      CheckMembers(json, {"expandable_segments", "max_split_bytes", "garbage_collection_threshold",
                          "roundup_power2_divisions"}));
  AllocatorOptions options;
  Bytes max_split{options.max_split_bytes};
  JsonReader reader(json, "");
  reader.Optional("expandable_segments", options.expandable_segments);
  reader.OptionalWith("max_split_bytes", max_split, ParseSize);
  reader.Optional("garbage_collection_threshold", options.garbage_collection_threshold);
  reader.Optional("roundup_power2_divisions", options.roundup_power2_divisions);
  HPO_RETURN_IF_ERROR(reader.status());
  options.max_split_bytes = max_split.count;
  HPO_RETURN_IF_ERROR(ValidateAllocatorOptions(options));
  return options;
}

// ---- The whole ---------------------------------------------------------------------------------

// Of an image the convolutions say how many positions there are.
void ReadLength(JsonReader& reader, StepDescription& step) {
  const DescribedLayer* const first = step.layers.empty() ? nullptr : &step.layers.front();
  if (first != nullptr && std::holds_alternative<ImageLayer>(*first)) {
    if (!reader.Has("length")) return;
    return reader.Fail("length", "expected none with an image, whose convolutions say it");
  }
  if (first != nullptr && std::holds_alternative<FeaturesLayer>(*first)) {
    step.length = 1;
    return reader.OptionalWith("length", step.length, ParsePositive);
  }
  reader.RequiredWith("length", step.length, ParsePositive);
}

absl::StatusOr<StepDescription> Parse(const Json& json) {
  HPO_RETURN_IF_ERROR(CheckMembers(
      json,
      {"layers",    "model",  "task",         "num_labels",       "lora",      "checkpointing",
       "batch",     "length", "accumulation", "last_batch",       "optimizer", "precision",
       "attention", "clip",   "steps",        "warm_up_forwards", "evaluates", "evaluates_first",
       "allocator", "device"}));
  StepDescription step;
  JsonReader reader(json, "");
  const auto parse_layers = [](const Json& j) {
    return ArrayFromJson<DescribedLayer>(j, ParseLayer);
  };
  if (reader.Has("model")) {
    if (reader.Has("layers")) reader.Fail("layers", "expected none beside a model");
  } else {
    reader.RequiredWith("layers", step.layers, parse_layers);
  }
  ReadModel(reader, step);
  reader.RequiredWith("batch", step.batch, ParsePositive);
  ReadLength(reader, step);
  const auto up_to = [](int64_t high) {
    return [high](const Json& j) { return ParseCount(j, 0, high); };
  };
  reader.OptionalWith("accumulation", step.accumulation,
                      [](const Json& j) { return ParseCount(j, 1, kLargestSize); });
  if (reader.Has("last_batch")) {
    reader.RequiredWith("last_batch", step.last_batch.emplace(),
                        [&step](const Json& j) { return ParseCount(j, 1, step.batch); });
  }
  reader.OptionalWith("optimizer", step.optimizer, ParseOptimizer);
  reader.OptionalWith("precision", step.precision, ParsePrecision);
  step.float16 = reader.Has("precision") && absl::StartsWith(json["precision"].dump(), "\"float16");
  const bool half = step.precision != StepPrecision::kFloat32;
  step.attention = half ? AttentionKernel::kFlash : AttentionKernel::kEfficient;
  reader.OptionalWith("attention", step.attention, ParseAttention);
  reader.Optional("clip", step.clips);
  reader.OptionalWith("steps", step.steps,
                      [](const Json& j) { return ParseCount(j, 1, kMostSteps); });
  reader.OptionalWith("warm_up_forwards", step.warm_up_forwards, up_to(kMostSteps));
  reader.Optional("evaluates", step.evaluates);
  reader.Optional("evaluates_first", step.evaluates_first);
  reader.OptionalWith("allocator", step.allocator, ParseAllocator);
  reader.OptionalWith("device", step.device, ParseDevice);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_RETURN_IF_ERROR(CheckStep(step));
  return step;
}

}  // namespace

DescribedModel DescribeModel(const ModelShape& shape) {
  DescribedModel model{.shape = shape};
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  model.head.kind = family.has_value() && IsDecoder(*family)
                        ? TaskHead::Kind::kCausalLm
                        : TaskHead::Kind::kSequenceClassification;
  return model;
}

absl::StatusOr<StepOptimizer> OptimizerNamed(absl::string_view name) {
  return ParseOptimizer(Json(std::string(name)));
}

absl::Status SetPrecision(absl::string_view name, StepDescription& step) {
  HPO_ASSIGN_OR_RETURN(step.precision, ParsePrecision(Json(std::string(name))));
  step.float16 = absl::StartsWith(name, "float16");
  return absl::OkStatus();
}

absl::StatusOr<StepDescription> ParseStepDescription(absl::string_view json,
                                                     absl::string_view origin) {
  const absl::StatusOr<Json> parsed = ParseJson(json);
  if (!parsed.ok()) return Annotate(parsed.status(), origin);
  absl::StatusOr<StepDescription> step = Parse(*parsed);
  if (!step.ok()) return Annotate(step.status(), origin);
  return step;
}

}  // namespace hpo
