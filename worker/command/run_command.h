// A trial as runs of a command: one, or more of a smaller plan after an out-of-memory error.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/device/gpu_probe.h"
#include "worker/channel/event_sink.h"
#include "worker/command/command_template.h"
#include "worker/command/metric_reader.h"

namespace hpo::command {

struct CommandOptions {
  CommandTemplate command;
  std::vector<MetricPattern> patterns;
  // The file that holds a JSON object of metrics at the end; empty: metrics are read from output.
  CommandTemplate metrics_file{""};
  // From SIGTERM to SIGKILL where the trial is to stop.
  absl::Duration stop_grace = absl::Seconds(25);

  // Where {micro_batch} is in the command, a trial is planned, and planned again after an
  // out-of-memory error.
  bool Plans() const { return command.Has("micro_batch"); }
};

struct CommandEnd {
  OutcomeMessage message;
  // SIGKILL where it killed the program and was not ours: the worker says what it means, the kernel
  // for want of memory or somebody else. 0: no. Other signals are the program's own failure, which
  // another attempt would repeat.
  int signal = 0;
  // Why the program cannot be started, by this trial or any other (judge_run.h); empty: it
  // can. The outcome is then that of the trial alone.
  std::string cannot_start;
};

// Runs the job until it has an end or `stop` is asked for. On the CPU the host memory of the
// program and its children is watched: above the job's limit it is out of memory. On a card it is
// what they hold of that, which ends nothing: the card itself says when it is full.
//   `probe`  of the cards; null: a card's memory is not seen
//   `cards`  UUIDs of the job's GPUs
CommandEnd RunCommand(const CommandOptions& options, const TrainerJob& job, EventSink& events,
                      StopSource& stop, GpuProbe* probe = nullptr,
                      const std::vector<std::string>& cards = {});

}  // namespace hpo::command
