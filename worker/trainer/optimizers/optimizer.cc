#include "worker/trainer/optimizers/optimizer.h"

#include "common/base/status.h"
#include "worker/trainer/optimizers/adafactor.h"
#include "worker/trainer/optimizers/adamw.h"
#include "worker/trainer/optimizers/adamw_8bit.h"
#include "worker/trainer/optimizers/sgd.h"

namespace hpo::trainer {

std::unique_ptr<Optimizer> MakeOptimizer(std::vector<ParameterGroup> groups,
                                         const OptimizerOptions& options) {
  const AdamWOptions adamw{.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps};
  switch (options.kind) {
    case memory::OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(std::move(groups), adamw);
    case memory::OptimizerKind::kAdamW8bit:
      return std::make_unique<AdamW8bit>(std::move(groups), adamw);
    case memory::OptimizerKind::kAdafactor:
      return std::make_unique<Adafactor>(std::move(groups));
    case memory::OptimizerKind::kSgd:
      return std::make_unique<Sgd>(std::move(groups), options.momentum);
  }
  HPO_CHECK(false);
  return nullptr;
}

}  // namespace hpo::trainer
