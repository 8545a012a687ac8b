// `hpo fleet ...`: workers on the machines of an engine, started and ended as one thing.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command FleetGroup();

}  // namespace hpo::cli
