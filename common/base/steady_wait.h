// A timed wait on an absl::Mutex that a change of the wall clock does not stretch. absl's own waits
// until a time of the wall clock (in Debian 12's 20220623): where that is set back by an hour, a
// wait of a second takes one of an hour, and no lease expires and no heartbeat is sent meanwhile.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hpo {

// What Mutex::AwaitWithTimeout does, by the monotonic clock: waits until `condition` holds or
// `timeout` is over, some milliseconds late at most; whether it holds. The calling thread holds
// `mutex`; from any thread.
bool AwaitSteadily(absl::Mutex& mutex, const absl::Condition& condition, absl::Duration timeout)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

}  // namespace hpo
