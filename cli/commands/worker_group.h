// `hpo worker ...`: which workers there are, and which get no more trials.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command WorkerGroup();

}  // namespace hpo::cli
