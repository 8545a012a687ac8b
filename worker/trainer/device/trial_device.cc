#include "worker/trainer/device/trial_device.h"

#include <ATen/Parallel.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/allocator/allocator_settings.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/memory/error_text.h"
#include "worker/trainer/memory/memory_fault.h"
#include "worker/trainer/memory/open_device.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {
namespace {

// Of the attention whose kernels are asked for.
constexpr double kDropout = 0.1;

DeviceProfile ProfileInside(const TrialDevice& device) {
  const DeviceDescription description = device.memory->Describe();
  DeviceProfile profile;
  profile.kind = device.device.is_cpu() ? "cpu" : "cuda";
  profile.name = description.name;
  profile.uuid = description.uuid;
  profile.capability = description.capability;
  profile.allocator =
      description.allocator ? memory::FormatAllocatorSettings(*description.allocator) : "counting";
  profile.multiprocessors = description.multiprocessors;
  profile.threads_per_multiprocessor = description.threads_per_multiprocessor;
  profile.attention = "math";  // where it has dropout
  if (device.device.is_cpu()) {
    profile.threads = at::get_num_threads();
  } else {
    profile.attention = memory::FormatAttentionKernels(AttentionKernelsOf(device.device, kDropout));
    profile.workspace = device.baseline;
  }
  return profile;
}

absl::StatusOr<TrialDevice> OpenAndWarmUp(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, OpenDeviceMemory(name));
  TrialDevice device{torch::Device(name), std::move(memory)};
  WarmUp(device.device);
  device.memory->ReleaseCache();
  const MemoryUse use = device.memory->Read();
  device.baseline = use.live;
  device.reserved_baseline = use.reserved;
  device.profile = ProfileInside(device);
  device.reads_late = !device.device.is_cpu();
  return device;
}

absl::Status CannotOpen(const std::string& name, const std::exception& error) {
  const std::string message =
      absl::StrCat(name, ": a first computation failed: ", DescribeError(error));
  const std::optional<MemoryFault> fault = ClassifyError(error);
  if (!fault.has_value()) return absl::FailedPreconditionError(message);
  const bool lost = fault->type == MemoryFaultType::kDeviceLost || !fault->certain;
  if (lost) return absl::UnavailableError(message);
  return absl::ResourceExhaustedError(message);
}

}  // namespace

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

void GiveBack(TrialDevice& device) {
  device.memory->SetLimit(Bytes{});
  device.memory->ReleaseCache();
  if (device.memory->Read().reserved <= device.reserved_baseline) return;
  if (!device.memory->Relieve(Relief::kNewWorkspaces)) return;
  WarmUp(device.device);
  device.memory->ReleaseCache();
}

absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name) {
  try {
    return OpenAndWarmUp(name);
  } catch (const std::exception& error) {
    return CannotOpen(name, error);
  }
}

OutcomeMessage OutcomeWithoutDevice(const TrainerJob& job, const absl::Status& reason) {
  OutcomeMessage message{.outcome = {}, .memory = {}, .final_plan = job.task.plan, .clean = false};
  const std::string text(reason.message());
  if (absl::IsResourceExhausted(reason)) {
    const bool host = job.device == "cpu";
    message.memory.num_ooms = 1;
    message.outcome = OutOfMemory{.kind = host ? OomKind::kHost : OomKind::kDirtyDevice,
                                  .limit = job.task.limit,
                                  .needed = job.task.predicted,
                                  .phase = "device",
                                  .plan = job.task.plan,
                                  .message = text};
    LogError(FormatOomBlock(job, host ? "CPU" : "GPU", text));
    return message;
  }
  const bool lost = absl::IsUnavailable(reason);
  message.outcome =
      Failed{.failure_class = lost ? FailureClass::kDeviceLost : FailureClass::kBadConfiguration,
             .message = text};
  return message;
}

}  // namespace hpo::trainer
