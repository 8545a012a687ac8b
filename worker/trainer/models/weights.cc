#include "worker/trainer/models/weights.h"

#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/trainer/models/safetensors_writer.h"
#include "worker/trainer/models/tensor_bytes.h"

namespace hpo {
namespace {

constexpr absl::string_view kEncoderPrefix = "bert.";

bool MayBeMissing(absl::string_view name) {
  return absl::StartsWith(name, "classifier.") || absl::StrContains(name, "pooler.");
}

bool MayBeIgnored(absl::string_view name) {
  return absl::StartsWith(name, "cls.") || absl::EndsWith(name, "position_ids");
}

// Names under which a file may hold the parameter `name`, the usual first.
std::vector<std::string> FileNames(const std::string& name) {
  std::vector<std::string> names = {name};
  if (absl::StartsWith(name, kEncoderPrefix)) {
    names.emplace_back(absl::StripPrefix(name, kEncoderPrefix));
  }
  if (absl::StrContains(name, "LayerNorm.")) {
    const bool is_weight = absl::EndsWith(name, "weight");
    for (const std::string& known : std::vector<std::string>(names)) {
      names.push_back(absl::StrCat(absl::StripSuffix(known, is_weight ? "weight" : "bias"),
                                   is_weight ? "gamma" : "beta"));
    }
  }
  return names;
}

absl::Status CopyInto(torch::Tensor& parameter, const std::string& name, const TensorView& view,
                      const std::string& origin) {
  const bool floats = view.type != TensorType::kInt64 && view.type != TensorType::kUint8;
  if (!floats || parameter.sizes() != at::IntArrayRef(view.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": tensor '", name, "': expected floats of shape ",
                     FormatShape({parameter.sizes().data(), parameter.sizes().size()}), ", found ",
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
      parameter.fill_(absl::EndsWith(item.key(), "LayerNorm.weight") ? 1.0 : 0.0);
    }
    if (absl::EndsWith(item.key(), "word_embeddings.weight") && pad_token_id < parameter.size(0)) {
      parameter.select(0, pad_token_id).zero_();
    }
  }
}

absl::StatusOr<LoadReport> LoadParameters(torch::nn::Module& model, const SafetensorsFile& file) {
  const torch::NoGradGuard no_grad;
  LoadReport report;
  std::set<std::string> used;
  for (auto& item : model.named_parameters()) {
    const TensorView* view = nullptr;
    std::string found;
    for (const std::string& candidate : FileNames(item.key())) {
      view = file.Find(candidate);
      if (view != nullptr) {
        found = candidate;
        break;
      }
    }
    if (view != nullptr) {
      HPO_RETURN_IF_ERROR(CopyInto(item.value(), found, *view, file.origin()));
      used.insert(found);
    } else if (MayBeMissing(item.key())) {
      report.missing.push_back(item.key());
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          file.origin(), ": tensor '", item.key(), "' of shape ",
          FormatShape({item.value().sizes().data(), item.value().sizes().size()}), " is missing"));
    }
  }
  for (const auto& [name, view] : file.tensors()) {
    if (used.count(name) > 0) continue;
    if (!MayBeIgnored(name)) {
      return absl::InvalidArgumentError(absl::StrCat(file.origin(), ": tensor '", name,
                                                     "' of shape ", FormatShape(view.shape),
                                                     " has no place in the model of config.json"));
    }
    report.ignored.push_back(name);
  }
  return report;
}

absl::Status SaveParameters(torch::nn::Module& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  for (auto& item : model.named_parameters()) {
    HPO_ASSIGN_OR_RETURN(sources.emplace_back(),
                         SourceOf(item.key(), item.value(), torch::kFloat32, on_host));
  }
  return WriteSafetensors(path, sources, {{"format", "pt"}});
}

}  // namespace hpo
