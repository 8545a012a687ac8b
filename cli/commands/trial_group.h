// `hpo trial ...`.
#pragma once

#include "cli/syntax/command.h"

namespace hpo {

Command TrialGroup();

}  // namespace hpo
