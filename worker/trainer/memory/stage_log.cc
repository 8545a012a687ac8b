#include "worker/trainer/memory/stage_log.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/device/host_memory.h"
#include "worker/trainer/base/trial_log.h"

namespace hpo::trainer {
namespace {

constexpr double kBytesPerGigabyte = 1 << 30;
constexpr size_t kMaxErrorLength = 200;  // of the block; the outcome carries the whole message

double Gigabytes(Bytes size) { return static_cast<double>(size.count) / kBytesPerGigabyte; }

}  // namespace

std::string FormatStage(TrialNumber trial, const std::string& stage, const MemoryUse& use) {
  const double percent = use.total.count > 0 ? 100.0 * static_cast<double>(use.live.count) /
                                                   static_cast<double>(use.total.count)
                                             : 0.0;
  return absl::StrFormat(
      "Trial %d - %s: Allocated: %.2fGB (%.1f%%), Reserved: %.2fGB, Free: %.2fGB, Total: %.2fGB",
      trial.value, stage, Gigabytes(use.live), percent, Gigabytes(use.reserved),
      Gigabytes(std::max(Bytes{}, use.total - use.live)), Gigabytes(use.total));
}

std::string FormatChange(TrialNumber trial, const std::string& stage, Bytes before, Bytes now) {
  return absl::StrFormat("Trial %d - %s: Memory change: %+.2fGB, Current: %.2fGB", trial.value,
                         stage, Gigabytes(now - before), Gigabytes(now));
}

std::string FormatOomBlock(const TrainerJob& job, const std::string& device_kind,
                           const std::string& error) {
  const int64_t batch_size = FindInt(job.task.params, "train.batch_size").value_or(0);
  const int64_t grad_accum = FindInt(job.task.params, "train.grad_accum").value_or(1);
  return absl::StrFormat(
      "\n[OOM] Trial %d exceeded %s memory:\n"
      "  Model: %s\n"
      "  Batch size: %d (effective: %d with grad_accum=%d)\n"
      "  Max length: %d\n"
      "  Error: %s\n"
      "  Pruning trial to allow the sampler to learn memory constraints.\n",
      job.trial.value, device_kind, job.model_name, batch_size, batch_size * grad_accum, grad_accum,
      FindInt(job.task.params, "tok.max_length").value_or(0), error.substr(0, kMaxErrorLength));
}

StageLog::StageLog(const TrainerJob& job, DeviceMemory& memory, EventSink& events)
    : job_(job), memory_(memory), events_(events) {
  memory_.ResetPeak();
  const MemoryUse use = memory_.Read();
  report_.baseline = use.live;
  report_.limit = job.task.limit;
  training_start_ = use.live;
}

void StageLog::Stage(const std::string& stage, int64_t step) {
  const MemoryUse use = memory_.Read();
  NotePeak(use);
  if (stage == "Training End") {
    LogInfo(FormatChange(job_.trial, stage, training_start_, use.live));
  } else {
    LogInfo(FormatStage(job_.trial, stage, use));
  }
  if (stage == "Training Start") training_start_ = use.live;
  events_.Send(MessageOf(stage, use, step));
}

void StageLog::OutOfMemoryMet(const MemoryUse& use, Bytes needed, Bytes predicted, int64_t step) {
  ++report_.num_ooms;
  NotePeak(use);
  LogWarning(FormatStage(job_.trial, "OOM Error", use));
  MemoryMessage message = MessageOf("OOM Error", use, step);
  message.needed = needed;
  message.predicted = predicted;
  events_.Send(message);
}

void StageLog::StartPeak() {
  NotePeak(memory_.Read());
  memory_.ResetPeak();
}

Bytes StageLog::Probed(Bytes predicted, Bytes predicted_reserved) {
  const MemoryUse use = memory_.Read();
  NotePeak(use);
  LogInfo(absl::StrFormat("Trial %d - Probe: peak %s, predicted %s", job_.trial.value,
                          FormatBytes(use.peak), FormatBytes(predicted)));
  MemoryMessage message = MessageOf("Probe", use, 0);
  message.predicted = predicted;
  message.predicted_reserved = predicted_reserved;
  events_.Send(message);
  return use.peak;
}

void StageLog::Replan(const MemoryPlan& plan, int64_t step, const std::string& why) {
  ++report_.num_replans;
  const MemoryUse use = memory_.Read();
  LogWarning(
      absl::StrFormat("Trial %d - replan (%s): from step %d on, micro-batch %d in %d parts%s; "
                      "the effective batch stays %d",
                      job_.trial.value, why, step + 1, plan.micro_batch, plan.NumParts(),
                      plan.checkpointing ? ", gradient checkpointing" : "", plan.effective_batch));
  MemoryMessage message = MessageOf("replan", use, step);
  message.plan = plan;
  events_.Send(message);
}

void StageLog::Growing(const Growth& growth, int64_t step) {
  LogWarning(absl::StrFormat(
      "Trial %d - tensors take more and more memory: %s in %d times '%s', up to step %d",
      job_.trial.value, FormatBytes(growth.bytes), growth.times, growth.stage, step));
  report_.growth = growth.bytes;
  report_.growth_stage = growth.stage;
  SendGrowth(step);
}

void StageLog::LeftBehind(Bytes bytes) {
  report_.growth = bytes;
  if (report_.growth_stage.empty()) report_.growth_stage = "trial";
  LogWarning(
      absl::StrFormat("Trial %d - tensors take %s more than before the trial, since stage '%s'",
                      job_.trial.value, FormatBytes(bytes), report_.growth_stage));
  SendGrowth(0);
}

void StageLog::SendGrowth(int64_t step) {
  MemoryMessage message = MessageOf("Growth", memory_.Read(), step);
  message.growth = report_.growth;
  message.growth_stage = report_.growth_stage;
  events_.Send(message);
}

void StageLog::EnterPhase(const char* phase) {
  NotePeak(memory_.Read());
  phase_ = phase;
}

MemoryReport StageLog::Report() {
  NotePeak(memory_.Read());
  return report_;
}

MemoryMessage StageLog::MessageOf(const std::string& stage, const MemoryUse& use,
                                  int64_t step) const {
  return {.stage = stage,
          .allocated = use.live,
          .reserved = use.reserved,
          .free = use.free,
          .total = use.total,
          .peak = use.peak,
          .predicted = {},
          .predicted_reserved = {},
          .needed = {},
          .plan = std::nullopt,
          .step = step,
          .resident = HostMemoryReader().ReadResident().value_or(Bytes{})};
}

void StageLog::NotePeak(const MemoryUse& use) {
  if (use.peak > report_.live_peak) {
    report_.live_peak = use.peak;
    report_.peak_phase = phase_;
  }
  report_.reserved_peak = std::max(report_.reserved_peak, use.reserved_peak);
}

}  // namespace hpo::trainer
