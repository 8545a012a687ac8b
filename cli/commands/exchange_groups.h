// `hpo export ...`, `hpo import ...` and `hpo admin ...`: what leaves a server, and what comes
// back.
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command ExportGroup();
Command ImportGroup();
Command AdminGroup();

}  // namespace hpo::cli
