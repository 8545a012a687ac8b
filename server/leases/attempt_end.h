// What the end of an attempt does to its trial's rows.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/study/study.h"
#include "server/leases/retry_policy.h"
#include "server/storage/records.h"
#include "server/studies/trial_writer.h"
#include "server/trials/open_trials.h"

namespace hpo::server {

struct AttemptEnding {
  AttemptState state;
  Verdict verdict;
};

// Ends the attempt, and its trial where the verdict says so or people have stopped it; else the
// trial is queued again. Both records are stored.
absl::Status EndAttempt(TrialTransaction& transaction, const StudySpec& spec,
                        const AttemptEnding& ending, TrialRecord& record, AttemptRecord& attempt);

// Stores the last lines of the attempt's program: `told` by its worker at the end; where that is
// empty, what its last heartbeat said, which `open` holds.
absl::Status StoreLogTail(TrialTransaction& transaction, const OpenTrials& open,
                          const AttemptRecord& attempt, const std::string& told);

}  // namespace hpo::server
