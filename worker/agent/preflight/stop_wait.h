// How what a dry run waits for can be ended.
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace hpo::agent {

// Waits up to `timeout`; returns early, true, when there is to be an end.
using StopWait = std::function<bool(absl::Duration timeout)>;

}  // namespace hpo::agent
