// TrialScheduler: what is kept only for a while.
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {
namespace {

constexpr absl::Duration kForgetEach = absl::Minutes(10);

}  // namespace

// A write per study and not one for all: each holds up the other writers.
absl::Status TrialScheduler::ForgetOld() {
  const absl::Duration now = clock_.Monotonic();
  if (now - forgot_at_ < kForgetEach) return absl::OkStatus();
  forgot_at_ = now;
  HPO_RETURN_IF_ERROR(store_->Write(
      [&](Database& database) { return StudyStore(database).ForgetAnswers(clock_.Now()); }));
  for (const StudyRuntime* study : Studies()) {
    const int64_t before = study->last_sequence() - kEventLimit.most;
    if (before <= 0) continue;
    HPO_RETURN_IF_ERROR(store_->Write([&](Database& database) {
      return TrialStore(database, study->id(), study->name()).ForgetEvents(before);
    }));
  }
  return absl::OkStatus();
}

}  // namespace hpo
