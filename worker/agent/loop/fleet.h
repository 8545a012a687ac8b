// One worker process for each of several GPUs, or sets of them, started from this one; `--workers
// N`: several on the CPU. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/command_line/exit_status.h"
#include "common/device/gpu_probe.h"
#include "worker/agent/process/stop_signal.h"

namespace hpo::agent {

// The exit code that stands for all of them: the gravest. Codes that a worker does not have
// (another program's, or 128 + signal) count as internal errors.
ExitCode CombineExitCodes(std::span<const int> codes);

// The arguments of one GPU's worker, or of that of several: those given to this process, with the
// GPUs and the name, where there is one, put behind them (the last one counts).
std::vector<std::string> GpuArguments(const std::vector<std::string>& own,
                                      std::span<const GpuState> gpus, const std::string& name);

// The arguments of the CPU's worker `number` of several; `name` is the name of all of them.
std::vector<std::string> CpuArguments(const std::vector<std::string>& own, const std::string& name,
                                      int number);

// Starts `program` with each list of arguments, passes on each raise of `stop` as SIGTERM, and
// waits for all. They get SIGTERM, too, when the thread that called ends.
//   kInternal  a process could not be started; those that were are told to end
ExitCode RunFleet(const std::string& program, const std::vector<std::vector<std::string>>& workers,
                  StopSignal& stop);

}  // namespace hpo::agent
