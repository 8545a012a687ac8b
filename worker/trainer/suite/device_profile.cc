#include "worker/trainer/suite/device_profile.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/device/host_memory.h"
#include "common/device/nvml.h"
#include "worker/trainer/data/batch_tensors.h"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/memory/error_text.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/optimizers/adamw.h"

namespace hpo::trainer {
namespace {

constexpr double kTypicalDropout = 0.1;

struct ProfiledBatch {
  int64_t rows;
  int64_t tokens;
};

ModelShape TypicalShape() {
  ModelShape shape;
  shape.family = "bert";
  shape.vocab_size = 1024;
  shape.hidden_size = 768;
  shape.num_layers = 2;
  shape.num_heads = 12;
  shape.intermediate_size = 3072;
  shape.max_positions = 512;
  shape.type_vocab_size = 2;
  shape.hidden_dropout = kTypicalDropout;
  shape.attention_dropout = kTypicalDropout;
  return shape;
}

DeviceBatch MakeBatch(ProfiledBatch shape, torch::Device device) {
  text::TokenBatch batch{.rows = shape.rows, .length = shape.tokens};
  const auto size = static_cast<size_t>(shape.rows * shape.tokens);
  batch.ids.assign(size, 7);
  batch.type_ids.assign(size, 0);
  batch.mask.assign(size, 1);
  batch.labels.assign(static_cast<size_t>(shape.rows), 1);
  return ToDevice(batch, /*num_labels=*/2, device);
}

// One step and one evaluation at each of `shapes`, so that their kernels are loaded. Libraries
// choose kernels by size, so sizes differ.
absl::Status LoadKernels(torch::Device device, std::span<const ProfiledBatch> shapes) {
  HPO_ASSIGN_OR_RETURN(
      const std::shared_ptr<TextClassifier> model,
      MakeTextClassifier(TypicalShape(), {.num_labels = 2, .dropout = kTypicalDropout}, device));
  InitializeParameters(*model, ParameterNames(*model), 0.02, 0, 1);
  AdamW optimizer(DecayGroups(*model, 0.01), AdamWOptions{});
  for (const ProfiledBatch& shape : shapes) {
    const DeviceBatch batch = MakeBatch(shape, device);
    model->train();
    SumOfRowLosses(model->forward(batch.input), batch.labels).backward();
    ClipGradients(optimizer.groups(), 1.0);
    optimizer.Step(1e-5);
    ClearGradients(optimizer.groups());
    model->eval();
    const torch::NoGradGuard no_grad;
    model->forward(batch.input);
  }
  return absl::OkStatus();
}

// What the process sees of its device, now measured.
DeviceProfile MeasuredProfile(const TrialDevice& device, const std::string& torch_build) {
  DeviceProfile profile = device.profile;
  profile.source = "measured";
  profile.torch_build = torch_build;
  return profile;
}

absl::StatusOr<DeviceProfile> ProfileCpu(const std::string& torch_build) {
  HPO_ASSIGN_OR_RETURN(const TrialDevice device, OpenTrialDevice("cpu"));
  HPO_RETURN_IF_ERROR(LoadKernels(device.device, std::vector<ProfiledBatch>{{2, 32}}));
  DeviceProfile profile = MeasuredProfile(device, torch_build);
  profile.workspace = device.memory->Read().live;
  if (const auto host = HostMemoryReader().ReadHost(); host.ok()) profile.total = host->total;
  return profile;
}

absl::StatusOr<DeviceProfile> ProfileCard(const std::string& name, const std::string& torch_build) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<NvmlProbe> probe, NvmlProbe::Create());
  HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> before, probe->List());
  HPO_ASSIGN_OR_RETURN(const TrialDevice device, OpenTrialDevice(name));
  HPO_RETURN_IF_ERROR(LoadKernels(device.device, std::vector<ProfiledBatch>{{4, 64}, {16, 256}}));
  device.memory->ReleaseCache();
  const MemoryUse use = device.memory->Read();
  HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> after, probe->List());

  DeviceProfile profile = MeasuredProfile(device, torch_build);
  const std::optional<GpuState> card_before = FindCard(before, profile.uuid);
  const std::optional<GpuState> card_after = FindCard(after, profile.uuid);
  if (!card_before.has_value() || !card_after.has_value()) {
    return absl::UnavailableError(absl::StrCat(name, ": NVML knows no card ", profile.uuid,
                                               "; it has ", DescribeGpus(after)));
  }
  profile.uuid = card_after->uuid;
  profile.driver = card_after->driver;
  profile.total = use.total;
  profile.workspace = use.live;
  profile.base = BaseBytes(*card_before, *card_after, ::getpid(), use.reserved);
  return profile;
}

}  // namespace

absl::StatusOr<DeviceProfile> ProfileDevice(const std::string& device,
                                            const std::string& torch_build) {
  try {
    return absl::StartsWith(device, "cuda:") ? ProfileCard(device, torch_build)
                                             : ProfileCpu(torch_build);
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(absl::StrCat(device, ": ", DescribeError(error)));
  }
}

Bytes BaseBytes(const GpuState& before, const GpuState& after, int64_t pid, Bytes reserved) {
  Bytes used = after.used - before.used;
  for (const GpuProcess& process : after.processes) {
    if (process.pid == pid && process.used.has_value()) used = *process.used;
  }
  return std::max(Bytes{}, used - reserved);
}

std::optional<GpuState> FindCard(std::span<const GpuState> cards, const std::string& uuid) {
  // "GPU-..." or "MIG-...": without that word the digits are the same.
  static constexpr size_t kWord = 4;
  const auto digits = [](const std::string& text) {
    return text.substr(std::min(kWord, text.size()));
  };
  const auto found = std::find_if(cards.begin(), cards.end(), [&](const GpuState& card) {
    return digits(card.uuid) == digits(uuid);
  });
  if (found == cards.end()) return std::nullopt;
  return *found;
}

}  // namespace hpo::trainer
