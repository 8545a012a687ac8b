// `hpo trial logs`: what a trial's program printed, as its worker left it on this machine's disk,
// or its end, as the server keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct TrialLogOptions {
  TrialNumber number;
  std::optional<int64_t> attempt;  // nullopt: the last
  std::string state_dir;           // the workers'; empty: their default, or
                                   // that of `hpo run` beside the database
};

// What the trial's program printed; where its worker's files are not on this machine, the last
// lines that the server keeps, and a sentence that says so.
//   NotFound  no such trial or attempt, or its worker's files are not where --state-dir says, or
//   not
//             here and the server has no lines
absl::Status ShowTrialLog(Session& session, const TrialLogOptions& options);

}  // namespace hpo::cli
