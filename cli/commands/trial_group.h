// `hpo trial ...`.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command TrialGroup();

}  // namespace hpo::cli
