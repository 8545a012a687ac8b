// What the end of an attempt does to its trial's rows.
#pragma once

#include "absl/status/status.h"
#include "common/study/study.h"
#include "server/leases/retry_policy.h"
#include "server/storage/records.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {

struct AttemptEnding {
  AttemptState state;
  Verdict verdict;
};

// Ends the attempt, and its trial where the verdict says so or people have stopped it; else the
// trial is queued again. Both records are stored.
absl::Status EndAttempt(TrialTransaction& transaction, const StudySpec& spec,
                        const AttemptEnding& ending, TrialRecord& record, AttemptRecord& attempt);

}  // namespace hpo::server
