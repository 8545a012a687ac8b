#include "worker/trainer/device/precision.h"

namespace hpo::trainer {

absl::Status CheckPrecision(const TrainingOptions& options, torch::Device device) {
  if (!options.tf32 || !device.is_cpu()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "train.precision: tf32 needs a GPU, got a CPU; expected fp32, bf16 or fp16");
}

void AllowTf32(bool allowed) {
  at::globalContext().setFloat32MatmulPrecision(allowed ? "high" : "highest");
}

}  // namespace hpo::trainer
