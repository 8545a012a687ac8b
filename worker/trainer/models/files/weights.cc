#include "worker/trainer/models/files/weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "worker/trainer/models/files/safetensors_writer.h"
#include "worker/trainer/models/files/tensor_bytes.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {
namespace {

// Random numbers of stored weights, apart from those of parameters.
constexpr uint64_t kStoredStream = uint64_t{1} << 33;

bool StartsWithOneOf(absl::string_view name, std::initializer_list<absl::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

bool IsPooler(absl::string_view name) { return absl::StrContains(name, "pooler."); }

bool IsHead(absl::string_view name) {
  return StartsWithOneOf(name, {"classifier.", "pre_classifier.", "score.", "qa_outputs."});
}

bool MayBeMissing(absl::string_view name) { return IsPooler(name) || IsHead(name); }

// Heads of pre-training (BERT, RoBERTa and decoders, DeBERTa, ELECTRA, DistilBERT) and of question
// answering, RoBERTa's
// pooler that a classifier does not use, and buffers that old versions of the library stored.
bool MayBeIgnored(absl::string_view name) {
  return IsPooler(name) ||
         StartsWithOneOf(name, {"cls.", "lm_head.", "lm_predictions.", "mask_predictions.",
                                "discriminator_predictions.", "generator_predictions.", "vocab_",
                                "qa_outputs."}) ||
         absl::EndsWith(name, "position_ids") || absl::EndsWith(name, "rotary_emb.inv_freq") ||
         absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".attn.masked_bias");
}

// Names under which a file may hold the parameter `name`, the usual first.
std::vector<std::string> FileNames(const std::string& name) {
  std::vector<std::string> names = {name};
  const size_t dot = name.find('.');
  if (dot != std::string::npos) names.push_back(name.substr(dot + 1));
  if (absl::StrContains(name, "LayerNorm.")) {
    const bool is_weight = absl::EndsWith(name, "weight");
    for (const std::string& known : std::vector<std::string>(names)) {
      names.push_back(absl::StrCat(absl::StripSuffix(known, is_weight ? "weight" : "bias"),
                                   is_weight ? "gamma" : "beta"));
    }
  }
  return names;
}

struct FoundTensor {
  const SafetensorsFile* file = nullptr;
  const TensorView* view = nullptr;  // null: no file has it
  std::string name;                  // in the file
};

FoundTensor FindParameter(std::span<const SafetensorsFile> files, const std::string& parameter) {
  for (const std::string& name : FileNames(parameter)) {
    for (const SafetensorsFile& file : files) {
      const TensorView* const view = file.Find(name);
      if (view != nullptr) return {.file = &file, .view = view, .name = name};
    }
  }
  return {};
}

// " (the first one that is there: 'x')".
std::string FirstTensorOf(const SafetensorsFile& file) {
  if (file.tensors().empty()) return " (the file has no tensors)";
  return absl::StrCat(" (the first one that is there: ", Quoted(file.tensors().begin()->first),
                      ")");
}

std::string ShapeText(at::IntArrayRef sizes) { return FormatShape({sizes.data(), sizes.size()}); }

absl::Status CheckView(at::IntArrayRef sizes, const FoundTensor& found) {
  const TensorView& view = *found.view;
  if (IsFloat(view.type) && sizes == at::IntArrayRef(view.shape)) return absl::OkStatus();
  if (!IsFloat(view.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        found.file->origin(), ": tensor '", found.name, "': expected numbers of F32, F16, BF16 or ",
        "F64, found ", Name(view.type),
        ", as quantized models have; take the weights of the model ", "that is not quantized"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      found.file->origin(), ": tensor '", found.name, "': expected floats of shape ",
      ShapeText(sizes), " by config.json, found ", Name(view.type), " ", FormatShape(view.shape),
      "; correct config.json, or take the weights that belong to it"));
}

// A head of another number of labels, or of another task.
bool IsOtherHead(const std::string& parameter, at::IntArrayRef sizes, const FoundTensor& found) {
  return found.view != nullptr && IsHead(parameter) && IsFloat(found.view->type) &&
         sizes != at::IntArrayRef(found.view->shape);
}

std::string NameAndShape(const std::string& name, const TensorView& view) {
  return absl::StrCat(name, " ", FormatShape(view.shape));
}

// What the names of the body begin with in the files, such as "bert."; empty where they leave it
// out.
std::string BodyPrefix(const torch::nn::Module& model, std::span<const SafetensorsFile> files) {
  for (const auto& item : model.named_parameters()) {
    const std::string& name = item.key();
    if (MayBeMissing(name)) continue;
    const std::string found = FindParameter(files, name).name;
    const std::string prefix = name.substr(0, name.find('.') + 1);
    if (!found.empty()) return absl::StartsWith(found, prefix) ? prefix : "";
  }
  return "";
}

// The layers of a type of interest, by their weights' names.
using Layers = std::map<std::string, const AdaptableLayer*>;

Layers LayersThat(const torch::nn::Module& model,
                  absl::FunctionRef<bool(const AdaptableLayer&)> condition) {
  Layers layers;
  for (const auto& item : model.named_modules()) {
    const auto* const layer = dynamic_cast<const AdaptableLayer*>(item.value().get());
    if (layer != nullptr && condition(*layer)) layers[absl::StrCat(item.key(), ".weight")] = layer;
  }
  return layers;
}

Layers StoredLayers(const torch::nn::Module& model) {
  return LayersThat(model, [](const AdaptableLayer& layer) { return layer.stored() != nullptr; });
}

// No memory of torch's.
using HostBuffer = std::vector<float>;

torch::Tensor Over(HostBuffer& buffer, at::IntArrayRef sizes) {
  buffer.resize(static_cast<size_t>(c10::multiply_integers(sizes)));
  return at::from_blob(buffer.data(), sizes, torch::kFloat32);
}

}  // namespace

std::vector<std::string> ParameterNames(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
  for (const auto& [name, layer] : StoredLayers(model)) names.push_back(name);
  return names;
}

void InitializeParameters(torch::nn::Module& model, std::span<const std::string> names,
                          double range, int64_t pad_token_id, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const std::set<std::string> wanted(names.begin(), names.end());
  uint64_t position = 0;
  for (auto& item : model.named_parameters()) {
    const uint64_t own_seed = Rng(seed, position++).NextU64();
    if (wanted.count(item.key()) == 0) continue;
    torch::Tensor& parameter = item.value();
    auto generator = at::globalContext().defaultGenerator(parameter.device());
    generator.set_current_seed(own_seed);
    if (parameter.dim() >= 2) {
      parameter.normal_(0.0, range, generator);
    } else {
      // A vector called weight is that of a norm.
      parameter.fill_(absl::EndsWith(item.key(), "weight") ? 1.0 : 0.0);
    }
    if (absl::EndsWith(item.key(), "word_embeddings.weight") && pad_token_id < parameter.size(0)) {
      parameter.select(0, pad_token_id).zero_();
    }
  }
  HostBuffer buffer;
  position = kStoredStream;
  for (const auto& [name, layer] : StoredLayers(model)) {
    const uint64_t own_seed = Rng(seed, position++).NextU64();
    if (wanted.count(name) == 0) continue;
    auto generator = at::globalContext().defaultGenerator(torch::kCPU);
    generator.set_current_seed(own_seed);
    Over(buffer, layer->stored()->sizes()).normal_(0.0, range, generator);
    layer->stored()->Store(buffer);
  }
}

namespace {

// What of the files no parameter has taken.
absl::Status CheckUnused(std::span<const SafetensorsFile> files, const std::set<std::string>& used,
                         const std::string& body_prefix, LoadReport& report) {
  for (const SafetensorsFile& file : files) {
    for (const auto& [name, view] : file.tensors()) {
      if (used.count(name) > 0) continue;
      const bool beside_body = !body_prefix.empty() && !absl::StartsWith(name, body_prefix);
      if (!MayBeIgnored(name) && (IsHead(name) || beside_body)) {
        report.other_head.push_back(NameAndShape(name, view));
        continue;
      }
      if (!MayBeIgnored(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat(file.origin(), ": tensor '", name, "' of shape ", FormatShape(view.shape),
                         " is no parameter of the model of config.json; correct config.json, or "
                         "take the weights "
                         "that belong to it"));
      }
      report.ignored.push_back(name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadReport> LoadParameters(torch::nn::Module& model,
                                          std::span<const SafetensorsFile> files) {
  HPO_CHECK(!files.empty());
  const torch::NoGradGuard no_grad;
  LoadReport report;
  std::set<std::string> used;
  const auto load = [&](const std::string& name, at::IntArrayRef sizes,
                        absl::FunctionRef<void(const torch::Tensor&)> take) -> absl::Status {
    const FoundTensor found = FindParameter(files, name);
    if (IsOtherHead(name, sizes, found)) {
      report.missing.push_back(name);
      report.other_head.push_back(NameAndShape(found.name, *found.view));
      used.insert(found.name);
    } else if (found.view != nullptr) {
      HPO_RETURN_IF_ERROR(CheckView(sizes, found));
      take(TensorOf(*found.view));
      used.insert(found.name);
    } else if (MayBeMissing(name)) {
      report.missing.push_back(name);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          files.front().origin(), files.size() > 1 ? " and other shards" : "", ": tensor '", name,
          "' of shape ", ShapeText(sizes), " is missing", FirstTensorOf(files.front()),
          "; correct config.json, or take the weights that belong to it"));
    }
    return absl::OkStatus();
  };
  for (auto& item : model.named_parameters()) {
    torch::Tensor& parameter = item.value();
    HPO_RETURN_IF_ERROR(load(item.key(), parameter.sizes(),
                             [&](const torch::Tensor& values) { parameter.copy_(values); }));
  }
  HostBuffer buffer;
  for (const auto& [name, layer] : StoredLayers(model)) {
    StoredWeight& weight = *layer->stored();
    HPO_RETURN_IF_ERROR(load(name, weight.sizes(), [&](const torch::Tensor& values) {
      Over(buffer, weight.sizes()).copy_(values);
      weight.Store(buffer);
    }));
  }
  HPO_RETURN_IF_ERROR(CheckUnused(files, used, BodyPrefix(model, files), report));
  return report;
}

namespace {

bool IsOfAdapter(absl::string_view name) {
  return absl::StrContains(name, ".lora_A.") || absl::StrContains(name, ".lora_B.");
}

// A parameter of fewer bits; made in `buffer`.
TensorSource WidenedSource(const std::string& name, const torch::Tensor& parameter,
                           HostBuffer& buffer) {
  return {name, TensorType::kFloat32, parameter.sizes().vec(),
          [parameter, &buffer]() -> std::span<const std::byte> {
            Over(buffer, parameter.sizes()).copy_(parameter);
            return std::as_bytes(std::span(buffer));
          }};
}

// A layer's weight, with what its adapter adds. It is made in `buffer`.
TensorSource WeightSource(const std::string& name, const AdaptableLayer& layer,
                          const torch::Tensor& parameter, HostBuffer& buffer) {
  const at::IntArrayRef sizes =
      layer.stored() != nullptr ? layer.stored()->sizes() : parameter.sizes();
  return {name, TensorType::kFloat32, sizes.vec(),
          [sizes, parameter, &layer, &buffer]() -> std::span<const std::byte> {
            torch::Tensor values = Over(buffer, sizes);
            if (layer.stored() != nullptr) {
              layer.stored()->Load(buffer);
            } else {
              values.copy_(parameter);
            }
            if (layer.adapter() != nullptr) layer.adapter()->MergeInto(layer.ByOutputs(values));
            return std::as_bytes(std::span(buffer));
          }};
}

}  // namespace

absl::Status SaveParameters(torch::nn::Module& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const Layers adapted =
      LayersThat(model, [](const AdaptableLayer& layer) { return layer.adapter() != nullptr; });
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  HostBuffer buffer;
  for (auto& item : model.named_parameters()) {
    if (IsOfAdapter(item.key())) continue;
    if (item.value().scalar_type() != torch::kFloat32) {
      sources.push_back(WidenedSource(item.key(), item.value(), buffer));
      continue;
    }
    if (const auto found = adapted.find(item.key()); found != adapted.end()) {
      sources.push_back(WeightSource(item.key(), *found->second, item.value(), buffer));
      continue;
    }
    HPO_ASSIGN_OR_RETURN(sources.emplace_back(),
                         SourceOf(item.key(), item.value(), torch::kFloat32, on_host));
  }
  for (const auto& [name, layer] : StoredLayers(model)) {
    sources.push_back(WeightSource(name, *layer, {}, buffer));
  }
  return WriteSafetensors(path, sources, {{"format", "pt"}});
}

}  // namespace hpo::trainer
