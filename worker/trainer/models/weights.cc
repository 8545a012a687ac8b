#include "worker/trainer/models/weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/trainer/models/layers.h"
#include "worker/trainer/models/safetensors_writer.h"
#include "worker/trainer/models/tensor_bytes.h"

namespace hpo {
namespace {

bool StartsWithOneOf(absl::string_view name, std::initializer_list<absl::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

bool IsPooler(absl::string_view name) { return absl::StrContains(name, "pooler."); }

bool MayBeMissing(absl::string_view name) {
  return IsPooler(name) || StartsWithOneOf(name, {"classifier.", "pre_classifier.", "score."});
}

// Heads of pre-training (BERT, RoBERTa and decoders, DeBERTa, ELECTRA, DistilBERT), RoBERTa's
// pooler that a classifier does not use, and buffers that old versions of the library stored.
bool MayBeIgnored(absl::string_view name) {
  return IsPooler(name) ||
         StartsWithOneOf(name,
                         {"cls.", "lm_head.", "lm_predictions.", "mask_predictions.",
                          "discriminator_predictions.", "generator_predictions.", "vocab_"}) ||
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

std::string ShapeOf(const torch::Tensor& tensor) {
  return FormatShape({tensor.sizes().data(), tensor.sizes().size()});
}

absl::Status CopyInto(torch::Tensor& parameter, const FoundTensor& found) {
  const TensorView& view = *found.view;
  const bool floats = view.type != TensorType::kInt64 && view.type != TensorType::kUint8;
  if (!floats || parameter.sizes() != at::IntArrayRef(view.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(found.file->origin(), ": tensor '", found.name,
                                                   "': expected floats of shape ",
                                                   ShapeOf(parameter), " by config.json, found ",
                                                   Name(view.type), " ", FormatShape(view.shape)));
  }
  parameter.copy_(TensorOf(view));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ParameterNames(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
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
}

namespace {

// What of the files no parameter has taken.
absl::Status CheckUnused(std::span<const SafetensorsFile> files, const std::set<std::string>& used,
                         LoadReport& report) {
  for (const SafetensorsFile& file : files) {
    for (const auto& [name, view] : file.tensors()) {
      if (used.count(name) > 0) continue;
      if (!MayBeIgnored(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat(file.origin(), ": tensor '", name, "' of shape ", FormatShape(view.shape),
                         " has no place in the model of config.json"));
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
  for (auto& item : model.named_parameters()) {
    const FoundTensor found = FindParameter(files, item.key());
    if (found.view != nullptr) {
      HPO_RETURN_IF_ERROR(CopyInto(item.value(), found));
      used.insert(found.name);
    } else if (MayBeMissing(item.key())) {
      report.missing.push_back(item.key());
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          files.front().origin(), files.size() > 1 ? " and other shards" : "", ": tensor '",
          item.key(), "' of shape ", ShapeOf(item.value()), " is missing"));
    }
  }
  HPO_RETURN_IF_ERROR(CheckUnused(files, used, report));
  return report;
}

namespace {

// Layers with adapters, by their weights' names.
std::map<std::string, const AdaptableLayer*> AdaptedWeights(torch::nn::Module& model) {
  std::map<std::string, const AdaptableLayer*> layers;
  for (const auto& item : model.named_modules()) {
    const auto* const layer = dynamic_cast<const AdaptableLayer*>(item.value().get());
    if (layer == nullptr || layer->adapter() == nullptr) continue;
    layers[absl::StrCat(item.key(), ".weight")] = layer;
  }
  return layers;
}

bool IsOfAdapter(absl::string_view name) {
  return absl::StrContains(name, ".lora_A.") || absl::StrContains(name, ".lora_B.");
}

// The weight with what the adapter adds. It is made in `buffer`, which is no memory of torch's.
TensorSource MergedSource(const std::string& name, const torch::Tensor& weight,
                          const AdaptableLayer& layer, std::vector<float>& buffer) {
  return {name, TensorType::kFloat32, weight.sizes().vec(),
          [weight, &layer, &buffer]() -> std::span<const std::byte> {
            buffer.resize(static_cast<size_t>(weight.numel()));
            torch::Tensor merged = at::from_blob(buffer.data(), weight.sizes(), torch::kFloat32);
            merged.copy_(weight);
            layer.adapter()->MergeInto(layer.ByOutputs(merged));
            return std::as_bytes(std::span(buffer));
          }};
}

}  // namespace

absl::Status SaveParameters(torch::nn::Module& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const auto adapted = AdaptedWeights(model);
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  std::vector<float> merged;
  for (auto& item : model.named_parameters()) {
    if (IsOfAdapter(item.key())) continue;
    if (const auto found = adapted.find(item.key()); found != adapted.end()) {
      sources.push_back(MergedSource(item.key(), item.value(), *found->second, merged));
      continue;
    }
    HPO_ASSIGN_OR_RETURN(sources.emplace_back(),
                         SourceOf(item.key(), item.value(), torch::kFloat32, on_host));
  }
  return WriteSafetensors(path, sources, {{"format", "pt"}});
}

}  // namespace hpo
