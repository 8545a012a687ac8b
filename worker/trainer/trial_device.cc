#include "worker/trainer/trial_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hpo {

void WarmUp(torch::Device device) {
  const auto options = torch::TensorOptions(torch::kFloat32).device(device);
  const torch::Tensor weight = at::ones({64, 64}, options).requires_grad_();
  const torch::Tensor bias = at::ones({64}, options).requires_grad_();
  at::linear(at::ones({64, 64}, options), weight, bias).sum().backward();
}

absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, OpenDeviceMemory(name));
  TrialDevice device{torch::Device(name), std::move(memory), Bytes{}};
  try {
    WarmUp(device.device);
    device.memory->ReleaseCache();
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": a first computation failed: ", error.what()));
  }
  device.baseline = device.memory->Read().live;
  device.reads_late = !device.device.is_cpu();
  return device;
}

}  // namespace hpo
