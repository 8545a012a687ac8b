// --end-with PID: a program that ends with the one that started it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace hpo {

// Has the kernel send SIGTERM once the thread of the process `parent` ends that has started this
// one.
//   FailedPrecondition  another process has started this one, or that one has ended
absl::Status EndWith(int64_t parent);

}  // namespace hpo
