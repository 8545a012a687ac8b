// `hpo study ...`.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command StudyGroup();

}  // namespace hpo::cli
