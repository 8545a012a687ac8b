// `hpo watch`: follows a study as it happens.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/client/client.h"
#include "cli/client/terminal.h"
#include "cli/render/progress.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

// Is told what a watch brings. Thread-safe.
class WatchListener {
 public:
  virtual ~WatchListener() = default;

  // The study as it is now.
  virtual void Show(const StudyStatus& study) = 0;
  // A change, and the study as it is after it.
  virtual void Show(const TrialEvent& change, const StudyStatus& study) = 0;
  // The watch is over.
  virtual void Close() = 0;
};

// For people. On a terminal one line is redrawn in place; elsewhere there is a line for each
// finished trial.
class WatchDisplay final : public WatchListener {
 public:
  // `out` outlives the display. `said` is called after each line that news have brought.
  WatchDisplay(const Terminal& terminal, std::ostream& out, std::function<void()> said = nullptr)
      : terminal_(terminal), out_(out), said_(std::move(said)) {}

  void Show(const StudyStatus& study) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Show(const TrialEvent& change, const StudyStatus& study) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What is waited for while there are no news; on a terminal in place of the redrawn line.
  void Remind(const std::string& line) ABSL_LOCKS_EXCLUDED(mutex_);

  // A line that is no news of the study.
  void Say(const std::string& line) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the redrawn line, so that what follows starts on its own.
  void Close() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void ShowLocked(const StudyStatus& study) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Redraw(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A line of its own, above the redrawn one.
  void PrintLine(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Terminal terminal_;
  absl::Mutex mutex_;
  std::ostream& out_ ABSL_GUARDED_BY(mutex_);
  const std::function<void()> said_;
  RunningSteps running_ ABSL_GUARDED_BY(mutex_);
  bool drawn_ ABSL_GUARDED_BY(mutex_) = false;
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);  // said already
};

// For programs: one JSON object a line, with "event" and "study", the study's name. The event is
// "study" at the beginning and whenever the study itself has changed, "end" at the end of a watch
// that did not fail, both with the study's "status"; else the kind of a trial's change
// (TrialEvent), with the "trial" after it.
class WatchLines final : public WatchListener {
 public:
  // `out` outlives this.
  explicit WatchLines(std::ostream& out) : out_(out) {}

  void Show(const StudyStatus& study) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Show(const TrialEvent& change, const StudyStatus& study) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Close() override {}
  // The last line.
  void End(const StudyStatus& study) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Print(const std::string& event, const StudyStatus& study, const char* key,
             nlohmann::ordered_json value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::ostream& out_ ABSL_GUARDED_BY(mutex_);
  std::string shown_ ABSL_GUARDED_BY(mutex_);  // the last status
};

struct WatchOptions {
  std::string study;
  bool until_finished = false;
  // What happened after this change of the study is shown, too; nullopt: what happens from now on.
  std::optional<int64_t> after_sequence;
  // How long a server may be away before the watch gives up.
  absl::Duration patience = absl::Seconds(60);
  // Ends the watch of a study that has been blocked (StudyStatus) for so long; nullopt: never.
  std::optional<absl::Duration> until_blocked_for = {};
  // Ends the watch when nothing can be written to it any more; null: it goes on.
  const std::ostream* output = nullptr;
};

// Watches until the study is finished or blocked (where asked), the server drains or is away for
// longer than `patience`. The study as it was last seen.
//   Unavailable  the server is away
absl::StatusOr<StudyStatus> Watch(Client& client, const WatchOptions& options,
                                  WatchListener& listener);

}  // namespace hpo::cli
