// `hpo watch`: follows a study as it happens.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/render/progress.h"
#include "cli/render/terminal.h"

namespace hpo {

// Turns events into output. On a terminal one line is redrawn in place; elsewhere there is a line
// for each finished trial.
class WatchDisplay {
 public:
  // `out` outlives the display.
  WatchDisplay(const Terminal& terminal, std::ostream& out) : terminal_(terminal), out_(out) {}

  void Show(const StudyStatus& study);
  void Show(const TrialChanged& change, const StudyStatus& study);

  // Ends the redrawn line, so that what follows starts on its own.
  void Close();

 private:
  void Redraw(const StudyStatus& study);
  // A line of its own, above the redrawn one.
  void PrintLine(const std::string& line);

  const Terminal terminal_;
  std::ostream& out_;
  RunningSteps running_;
  bool drawn_ = false;
  std::string waiting_for_;  // said already
};

struct WatchOptions {
  std::string study;
  bool until_finished = false;
  // What happened after this change of the study is shown, too; nullopt: what happens from now on.
  std::optional<int64_t> after_sequence;
  // How long a server may be away before the watch gives up.
  absl::Duration patience = absl::Seconds(60);
};

// Watches until the study is finished (where asked), the server drains or is away for longer than
// `patience`. The study as it was last seen.
//   Unavailable  the server is away
absl::StatusOr<StudyStatus> Watch(Client& client, const WatchOptions& options,
                                  WatchDisplay& display);

}  // namespace hpo
