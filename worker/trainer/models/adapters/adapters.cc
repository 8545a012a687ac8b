#include "worker/trainer/models/adapters/adapters.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {
namespace {

// Apart from that of the weights.
constexpr uint64_t kAdapterStream = uint64_t{1} << 32;

}  // namespace

absl::Status AddAdapters(torch::nn::Module& model, const ModelShape& shape,
                         const memory::LoraOptions& options, uint64_t seed, torch::Device device) {
  HPO_ASSIGN_OR_RETURN(const std::vector<memory::AdaptedLayer> layers,
                       memory::AdaptedLayers(shape, options));
  const std::string prefix = absl::StrCat(ModulesOf(*ModelFamilyOf(shape.family)).prefix, ".");
  for (auto& item : model.named_parameters()) {
    if (absl::StartsWith(item.key(), prefix)) item.value().set_requires_grad(false);
  }
  auto generator = at::globalContext().defaultGenerator(device);
  uint64_t position = kAdapterStream;
  for (const memory::AdaptedLayer& sizes : layers) {
    auto* const layer = dynamic_cast<AdaptableLayer*>(&ModuleAt(model, sizes.module));
    HPO_CHECK(layer != nullptr);
    generator.set_current_seed(Rng(seed, position++).NextU64());
    layer->Adapt(sizes, options, device);
  }
  return absl::OkStatus();
}

}  // namespace hpo::trainer
