// A trial's memory, told at its stages: to people in the log, to the supervisor as messages; and
// the account of it that ends up in the outcome.
#pragma once

#include <string>

#include "common/protocol/trainer_protocol.h"
#include "worker/channel/event_sink.h"
#include "worker/trainer/memory/device_memory.h"
#include "worker/trainer/memory/growth_watch.h"

namespace hpo::trainer {

// "Trial 42 - Trial Start: Allocated: 0.12GB (0.4%), Reserved: 0.50GB, Free: 31.38GB, Total:
// 31.50GB". GB are 2^30 bytes, as in the documents this form comes from; free is what is not
// allocated.
std::string FormatStage(TrialNumber trial, const std::string& stage, const MemoryUse& use);

// "Trial 42 - Training End: Memory change: +1.23GB, Current: 3.68GB"; change of live bytes.
std::string FormatChange(TrialNumber trial, const std::string& stage, Bytes before, Bytes now);

// The block that ends an attempt that did not fit: "[OOM] Trial 42 exceeded GPU memory: ...".
std::string FormatOomBlock(const TrainerJob& job, const std::string& device_kind,
                           const std::string& error);

// One trial's. Not thread-safe.
class StageLog {
 public:
  // The baseline is what is live now.
  StageLog(const TrainerJob& job, DeviceMemory& memory, EventSink& events);

  // A stage is reached: a line and a message. "Training End" tells the change since the
  // "Training Start" before it.
  void Stage(const std::string& stage, int64_t step);

  // From the step after `step` on, `plan` is in force; `why`: "out of memory", ...
  void Replan(const MemoryPlan& plan, int64_t step, const std::string& why);

  // An out-of-memory error was met, recovered from or not: the stage "OOM Error", with the reading
  // at the fault. `needed`, `predicted`: see MemoryMessage.
  void OutOfMemoryMet(const MemoryUse& use, Bytes needed, Bytes predicted, int64_t step);

  // The peak starts again from what is live now; the one before stays in the report.
  void StartPeak();

  // The stage "Probe": the peak since StartPeak against the `predicted` one (0: none). Returns it.
  // `predicted_reserved`: see MemoryMessage.
  Bytes Probed(Bytes predicted, Bytes predicted_reserved = Bytes{});

  // Live bytes do not come back: the stage "Growth", and a line that says where.
  void Growing(const Growth& growth, int64_t step);

  // After the trial, `bytes` more are live than before it: the stage "Growth" too. Names the stage
  // that grew, where Growing told of one, else "trial".
  void LeftBehind(Bytes bytes);

  // What runs from now on: "forward", "backward", ... Attributes a new peak to what ran until now.
  void EnterPhase(const char* phase);
  const std::string& phase() const { return phase_; }

  // Up to now; reads the device once more.
  MemoryReport Report();

  Bytes baseline() const { return report_.baseline; }

 private:
  MemoryMessage MessageOf(const std::string& stage, const MemoryUse& use, int64_t step) const;
  void SendGrowth(int64_t step);
  void NotePeak(const MemoryUse& use);

  const TrainerJob& job_;
  DeviceMemory& memory_;
  EventSink& events_;
  MemoryReport report_;
  std::string phase_ = "start";
  Bytes training_start_;
};

}  // namespace hpo::trainer
