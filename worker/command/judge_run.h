// What one run of a program means for its trial. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/study/trial.h"
#include "worker/command/metric_reader.h"

namespace hpo::command {

// How a run ended: one of the two is not 0 where it ended badly. A shell says 128 + signal for what
// it ran.
struct RunExit {
  int code = 0;
  int signal = 0;
};

// The facts about a run, except its output.
struct RunFacts {
  RunExit exit;
  std::optional<std::string> stop_reason;  // it was told to stop, and why
  bool over_limit = false;                 // it was killed for holding more than `limit`
  Bytes peak;                              // of the device's memory; 0 where that is not seen
  Bytes limit;
  MemoryPlan plan;
  std::string objective;     // the metric
  std::string metrics_file;  // empty: the result is what it printed
  // What that file holds; the error says what is wrong with it.
  absl::StatusOr<std::string> metrics_text = std::string();
  std::string command_text;  // CommandTemplate::PlainText
};

struct RunVerdict {
  std::optional<TrialOutcome> outcome;  // nullopt: stopped on request without a result
  int signal = 0;                       // see CommandEnd
  std::string cannot_start;             // WhyNotStarted, where nothing was measured
};

// The verdict on a run that has ended; `printed` has read all of its output. The first that holds:
//   host memory beyond the limit              OutOfMemory
//   a pattern matched what is no number       Failed, bad configuration
//   told to stop, and ended badly or with an  StoppedByPruner with the last measurement, for
//   objective that is no number               "pruned" and "time limit"; else nullopt
//   status 0, the last objective no number    Failed: diverged where it is null, else bad
//                                             configuration
//   status 0 with the objective               Completed, also where it was told to stop
//   a line that reports an OOM                OutOfMemory, also with status 0
//   told to stop                              as above
//   status 0                                  Failed, bad configuration
//   any other status, a signal                Failed, internal, or it cannot start
RunVerdict JudgeRun(const RunFacts& facts, const MetricReader& printed);

// The line in which a shell, a launcher such as env, or Python says that a program or script which
// `command_text` names cannot be started; empty: there is none. Then no trial's values change that.
//   `exit_status`   of the command: 126 or 127 by a shell or a launcher, 2 by Python
//   `output`        the last lines that were printed
//   `command_text`  CommandTemplate::PlainText: what other trials have, too
std::string WhyNotStarted(int exit_status, absl::string_view output,
                          absl::string_view command_text);

}  // namespace hpo::command
