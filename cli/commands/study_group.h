// `hpo study ...`.
#pragma once

#include "cli/syntax/command.h"

namespace hpo {

Command StudyGroup();

}  // namespace hpo
