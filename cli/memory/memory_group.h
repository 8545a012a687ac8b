// `hpo memory ...`.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

// Exit status of those that predict: 3 where it does not fit.
Command MemoryGroup();

}  // namespace hpo::cli
