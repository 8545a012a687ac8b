// Tested by tests/memory/described_step_test.cc.
#include "memory/offline/step_description.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "memory/allocator/allocation_timeline.h"
#include "memory/offline/step_check.h"
#include "memory/offline/traces/model_trace.h"
#include "nlohmann/json.hpp"

namespace hpo::memory {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestStepSize = int64_t{1} << 31;
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

// Reads an object's members, through `parse` where that is given, and refuses those that nobody
// asks for.
class StrictReader {
 public:
  explicit StrictReader(const Json& object) : object_(object), reader_(object, "") {}

  template <typename T, typename... Parse>
  void Required(const char* key, T& out, Parse... parse) {
    Know(key);
    if constexpr (sizeof...(parse) > 0) {
      reader_.RequiredWith(key, out, parse...);
    } else {
      reader_.Required(key, out);
    }
  }

  template <typename T, typename... Parse>
  void Optional(const char* key, T& out, Parse... parse) {
    Know(key);
    if constexpr (sizeof...(parse) > 0) {
      reader_.OptionalWith(key, out, parse...);
    } else {
      reader_.Optional(key, out);
    }
  }

  // One that is read elsewhere, or refused with words of its own.
  bool Has(const char* key) {
    Know(key);
    return reader_.Has(key);
  }

  void Fail(const char* key, absl::string_view message) { reader_.Fail(key, message); }

  // A member that is not known comes before all that is wrong with others.
  absl::Status status() const {
    if (!object_.is_object()) return reader_.status();
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        return absl::InvalidArgumentError(absl::StrCat("expected no member '", key, "'",
                                                       DidYouMean(key, known_), "; known are ",
                                                       absl::StrJoin(known_, ", ")));
      }
    }
    return reader_.status();
  }

 private:
  void Know(const char* key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  }

  const Json& object_;
  JsonReader reader_;
  std::vector<std::string> known_;
};

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

auto CountIn(int64_t low, int64_t high) {
  return [low, high](const Json& json) { return ParseCount(json, low, high); };
}

absl::StatusOr<int64_t> ParsePositive(const Json& json) {
  return ParseCount(json, 1, kLargestStepSize);
}

absl::StatusOr<double> ParseProbability(const Json& json) {
  if (json.is_number() && json.get<double>() >= 0.0 && json.get<double>() < 1.0) {
    return json.get<double>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number in [0, 1), got ", DescribeJson(json)));
}

// ---- Layers ------------------------------------------------------------------------------------

void ReadMembers(StrictReader& reader, EmbeddingLayer& layer) {
  reader.Required("rows", layer.rows, ParsePositive);
  reader.Required("width", layer.width, ParsePositive);
}

void ReadMembers(StrictReader& reader, FeaturesLayer& layer) {
  reader.Required("width", layer.width, ParsePositive);
}

void ReadMembers(StrictReader& reader, ImageLayer& layer) {
  reader.Required("channels", layer.channels, ParsePositive);
  reader.Required("height", layer.height, ParsePositive);
  reader.Required("width", layer.width, ParsePositive);
}

void ReadMembers(StrictReader& reader, ConvolutionLayer& layer) {
  reader.Required("out", layer.out, ParsePositive);
  reader.Required("kernel", layer.kernel, ParsePositive);
  reader.Optional("stride", layer.stride, ParsePositive);
  reader.Optional("padding", layer.padding, CountIn(0, kLargestStepSize));
  reader.Optional("bias", layer.bias);
}

void ReadMembers(StrictReader& reader, PositionLayer& layer) {
  reader.Required("rows", layer.rows, ParsePositive);
}

void ReadMembers(StrictReader& reader, EncoderLayers& layer) {
  reader.Required("layers", layer.count, CountIn(1, kMostLayers));
  reader.Required("heads", layer.heads, ParsePositive);
  reader.Required("feed_forward", layer.feed_forward, ParsePositive);
  reader.Optional("norm", layer.norm_first, ParseNormFirst);
  reader.Optional("activation", layer.activation, ParseActivation);
  reader.Optional("dropout", layer.dropout, ParseProbability);
  layer.attention_dropout = layer.dropout;
  reader.Optional("attention_dropout", layer.attention_dropout, ParseProbability);
  reader.Optional("checkpointing", layer.checkpointing);
}

void ReadMembers(StrictReader& reader, LinearLayer& layer) {
  reader.Required("out", layer.out, ParsePositive);
  reader.Optional("bias", layer.bias);
}

void ReadMembers(StrictReader& reader, ActivationLayer& layer) {
  reader.Required("function", layer.function, ParseActivation);
}

void ReadMembers(StrictReader& reader, DropoutLayer& layer) {
  reader.Required("probability", layer.probability, ParseProbability);
}

void ReadMembers(StrictReader&, NormLayer&) {}

void ReadMembers(StrictReader& reader, PoolingLayer& layer) {
  reader.Required("kind", layer.kind, ParsePooling);
}

void ReadMembers(StrictReader&, FlattenLayer&) {}

void ReadMembers(StrictReader& reader, LanguageHeadLayer& layer) {
  reader.Optional("tied", layer.tied);
}

using LayerParser = absl::StatusOr<DescribedLayer> (*)(const Json&);

template <typename Layer>
absl::StatusOr<DescribedLayer> ParseAs(const Json& json) {
  Layer layer;
  StrictReader reader(json);
  reader.Has("type");
  ReadMembers(reader, layer);
  HPO_RETURN_IF_ERROR(reader.status());
  return layer;
}

absl::StatusOr<LayerParser> ParserOf(const Json& type) {
  return ParseWord<LayerParser>(type, {{"embedding", ParseAs<EmbeddingLayer>},
                                       {"features", ParseAs<FeaturesLayer>},
                                       {"image", ParseAs<ImageLayer>},
                                       {"convolution", ParseAs<ConvolutionLayer>},
                                       {"positions", ParseAs<PositionLayer>},
                                       {"encoder", ParseAs<EncoderLayers>},
                                       {"linear", ParseAs<LinearLayer>},
                                       {"activation", ParseAs<ActivationLayer>},
                                       {"dropout", ParseAs<DropoutLayer>},
                                       {"norm", ParseAs<NormLayer>},
                                       {"pooling", ParseAs<PoolingLayer>},
                                       {"flatten", ParseAs<FlattenLayer>},
                                       {"language_head", ParseAs<LanguageHeadLayer>}});
}

absl::StatusOr<DescribedLayer> ParseLayer(const Json& json) {
  LayerParser parse = nullptr;
  JsonReader typed(json, "");
  typed.RequiredWith("type", parse, ParserOf);
  HPO_RETURN_IF_ERROR(typed.status());
  return parse(json);
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
  LoraOptions lora;
  StrictReader reader(json);
  reader.Required("rank", lora.rank, ParsePositive);
  reader.Optional("alpha", lora.alpha);
  reader.Optional("dropout", lora.dropout);
  reader.Optional("targets", lora.targets, ParseTargets);
  reader.Optional("base", lora.base, ParseLoraBase);
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

// What is of a model alone.
void RefuseWithoutModel(StrictReader& reader) {
  constexpr std::pair<const char*, const char*> kMembers[] = {
      {"task", "expected with a model only"},
      {"num_labels", "expected with a model only; of layers the last one's width counts"},
      {"lora", "expected with a model only"},
      {"checkpointing", "expected with a model only; an encoder layer has its own"}};
  for (const auto& [key, message] : kMembers) {
    if (reader.Has(key)) reader.Fail(key, message);
  }
}

void ReadModel(StrictReader& reader, StepDescription& step) {
  ModelShape shape;
  reader.Required("model", shape, ParseModel);
  step.model = DescribeModel(shape);
  TaskHead& head = step.model->head;
  head.num_labels = 2;
  reader.Optional("task", head.kind, ParseTask);
  reader.Optional("num_labels", head.num_labels, CountIn(1, 1 << 20));
  if (reader.Has("num_labels") && head.kind == TaskHead::Kind::kCausalLm) {
    reader.Fail("num_labels",
                "expected with the task text-classification only, got language-modeling");
  }
  ModelTechniques& techniques = step.model->techniques;
  if (reader.Has("lora")) reader.Required("lora", techniques.lora.emplace(), ParseLora);
  reader.Optional("checkpointing", techniques.checkpointing);
}

// ---- Device and allocator ----------------------------------------------------------------------

absl::StatusOr<DescribedDevice> ParseDevice(const Json& json) {
  DescribedDevice device;
  Bytes workspace{device.gemm_workspace};
  StrictReader reader(json);
  reader.Optional("base_bytes", device.base, ParseSize);
  reader.Optional("total_bytes", device.total, ParseSize);
  reader.Optional("gemm_workspace_bytes", workspace, ParseSize);
  reader.Optional("multiprocessors", device.multiprocessors, ParsePositive);
  reader.Optional("threads_per_multiprocessor", device.threads_per_multiprocessor, ParsePositive);
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
  AllocatorOptions options;
  Bytes max_split{options.max_split_bytes};
  StrictReader reader(json);
  reader.Optional("expandable_segments", options.expandable_segments);
  reader.Optional("max_split_bytes", max_split, ParseSize);
  reader.Optional("garbage_collection_threshold", options.garbage_collection_threshold);
  reader.Optional("roundup_power2_divisions", options.roundup_power2_divisions);
  HPO_RETURN_IF_ERROR(reader.status());
  options.max_split_bytes = max_split.count;
  if (std::string invalid = InvalidOption(options); !invalid.empty()) {
    return absl::InvalidArgumentError(std::move(invalid));
  }
  return options;
}

// ---- The whole ---------------------------------------------------------------------------------

// Of an image the convolutions say how many positions there are.
void ReadLength(StrictReader& reader, StepDescription& step) {
  const DescribedLayer* const first = step.layers.empty() ? nullptr : &step.layers.front();
  if (first != nullptr && std::holds_alternative<ImageLayer>(*first)) {
    if (!reader.Has("length")) return;
    return reader.Fail("length", "expected none with an image, whose convolutions say it");
  }
  if (first != nullptr && std::holds_alternative<FeaturesLayer>(*first)) {
    step.length = 1;
    return reader.Optional("length", step.length, ParsePositive);
  }
  reader.Required("length", step.length, ParsePositive);
}

absl::StatusOr<std::vector<DescribedLayer>> ParseLayers(const Json& json) {
  return ArrayFromJson<DescribedLayer>(json, ParseLayer);
}

absl::StatusOr<StepDescription> Parse(const Json& json) {
  StepDescription step;
  StrictReader reader(json);
  const bool has_layers = reader.Has("layers");
  if (reader.Has("model")) {
    if (has_layers) reader.Fail("layers", "expected none with a model");
    ReadModel(reader, step);
  } else {
    reader.Required("layers", step.layers, ParseLayers);
    RefuseWithoutModel(reader);
  }
  reader.Required("batch", step.batch, ParsePositive);
  ReadLength(reader, step);
  reader.Optional("accumulation", step.accumulation, ParsePositive);
  if (reader.Has("last_batch")) {
    reader.Required("last_batch", step.last_batch.emplace(), CountIn(1, step.batch));
  }
  reader.Optional("optimizer", step.optimizer, ParseOptimizer);
  reader.Optional("precision", step.precision, ParsePrecision);
  step.float16 = reader.Has("precision") && absl::StartsWith(json["precision"].dump(), "\"float16");
  const bool half = step.precision != StepPrecision::kFloat32;
  step.attention = half ? AttentionKernel::kFlash : AttentionKernel::kEfficient;
  reader.Optional("attention", step.attention, ParseAttention);
  reader.Optional("clip", step.clips);
  reader.Optional("steps", step.steps, CountIn(1, kMostSteps));
  reader.Optional("warm_up_forwards", step.warm_up_forwards, CountIn(0, kMostSteps));
  reader.Optional("evaluates", step.evaluates);
  reader.Optional("evaluates_first", step.evaluates_first);
  reader.Optional("allocator", step.allocator, ParseAllocator);
  reader.Optional("device", step.device, ParseDevice);
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

}  // namespace hpo::memory
