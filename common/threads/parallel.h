// Independent work on several threads.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace hpo {

// Calls `work` with each number below `count`, once and in no order, on the caller's thread and up
// to three more: no more in all than there are processors. Returns after the last call. `work` does
// not throw. Where the system gives no thread, those that there are do all.
void ForEachInParallel(size_t count, absl::FunctionRef<void(size_t)> work);

}  // namespace hpo
