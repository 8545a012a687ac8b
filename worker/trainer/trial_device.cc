#include "worker/trainer/trial_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/trainer/models/attention.h"

namespace hpo {

// Of the attention whose kernels are asked for.
constexpr double kDropout = 0.1;

void WarmUp(torch::Device device) {
  const auto options = torch::TensorOptions(torch::kFloat32).device(device);
  const torch::Tensor weight = at::ones({64, 64}, options).requires_grad_();
  const torch::Tensor bias = at::ones({64}, options).requires_grad_();
  const torch::Tensor output = at::linear(at::ones({64, 64}, options), weight, bias);
  // Layers that are computed again run forward in the thread of backward.
  output.register_hook([&](const torch::Tensor& gradient) {
    const torch::NoGradGuard no_grad;
    at::linear(gradient, weight, bias);
  });
  output.sum().backward();
}

namespace {

DeviceProfile ProfileInside(const TrialDevice& device) {
  const DeviceDescription description = device.memory->Describe();
  DeviceProfile profile;
  profile.kind = device.device.is_cpu() ? "cpu" : "cuda";
  profile.name = description.name;
  profile.uuid = description.uuid;
  profile.capability = description.capability;
  profile.allocator = description.allocator;
  profile.multiprocessors = description.multiprocessors;
  profile.threads_per_multiprocessor = description.threads_per_multiprocessor;
  profile.attention = "math";  // where it has dropout
  if (!device.device.is_cpu()) {
    profile.attention = FormatAttentionKernels(AttentionKernelsOf(device.device, kDropout));
    profile.workspace = device.baseline;
  }
  return profile;
}

}  // namespace

void GiveBack(TrialDevice& device) {
  device.memory->SetLimit(Bytes{});
  device.memory->ReleaseCache();
  if (device.memory->Read().reserved <= device.reserved_baseline) return;
  if (!device.memory->Relieve(Relief::kNewWorkspaces)) return;
  WarmUp(device.device);
  device.memory->ReleaseCache();
}

absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, OpenDeviceMemory(name));
  TrialDevice device{torch::Device(name), std::move(memory)};
  try {
    WarmUp(device.device);
    device.memory->ReleaseCache();
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": a first computation failed: ", error.what()));
  }
  const MemoryUse use = device.memory->Read();
  device.baseline = use.live;
  device.reserved_baseline = use.reserved;
  device.profile = ProfileInside(device);
  device.reads_late = !device.device.is_cpu();
  return device;
}

}  // namespace hpo
