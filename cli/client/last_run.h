// Which `hpo run` was the last one of this user, for commands that come after it: its server has
// then ended.
#pragma once

#include <optional>
#include <string>

namespace hpo::cli {

struct LastRun {
  std::string folder;  // absolute; holds hpo.db
  std::string study;   // its name
};

// Notes the run in $XDG_STATE_HOME/hpo/last_run.json. Where that cannot be written, it is not
// noted.
void RememberRun(const LastRun& run);

// nullopt: none is noted, or its database is gone.
std::optional<LastRun> FindLastRun();

}  // namespace hpo::cli
