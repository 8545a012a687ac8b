// The configurations that wait until the workers that are to get them have dry-run them. In memory
// only: after a restart they are proposed again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/space/params.h"
#include "server/storage/records.h"
#include "server/trials/work_signal.h"

namespace hpo::server {

struct HeldProposal {
  std::string id;  // set by Hold
  int64_t study_id = 0;
  std::string study;
  ParamMap params;
  // The trial that waits in the queue; nullopt: a proposal, which becomes a trial when it is given.
  std::optional<TrialNumber> queued;
  SuggestionRecord origin;  // of a proposal
  absl::Duration since;     // monotonic
  bool answered = false;
};

// At most one for each worker. Thread-safe.
class PreflightDesk {
 public:
  // Ids of this server's start begin with `epoch`.
  explicit PreflightDesk(int64_t epoch) : epoch_(epoch) {}

  // Takes the place of what was held for the worker.
  void Hold(const std::string& worker, HeldProposal proposal);
  std::optional<HeldProposal> Of(const std::string& worker) const;
  void Drop(const std::string& worker);
  // How many proposals of the study are held for other workers.
  int64_t NumHeldForOthers(int64_t study_id, const std::string& worker) const;

  // What the worker is to dry-run; each once for a session. nullopt: nothing.
  std::optional<HeldProposal> GiveOut(const std::string& worker, const std::string& session);
  // The dry run `id` of the worker was reported. nullopt: it is not known any more.
  std::optional<HeldProposal> Answer(const std::string& worker, const std::string& id);

  // Counts one more search for the worker's next configuration while it runs the trial; how many
  // there were before.
  int CountLookAhead(const std::string& worker, const std::string& trial);
  // No more are needed while it runs the trial, which was counted before.
  void EndLookAheads(const std::string& worker);

  // News for calls that wait for something to dry-run.
  WorkSignal& news() { return news_; }

 private:
  struct Held {
    HeldProposal proposal;
    std::string given_to;  // session
  };
  struct LookAheads {
    std::string trial;
    int count = 0;
  };

  const int64_t epoch_;
  mutable absl::Mutex mutex_;
  int64_t num_held_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);  // by worker
  std::map<std::string, LookAheads> look_aheads_ ABSL_GUARDED_BY(mutex_);
  WorkSignal news_;
};

}  // namespace hpo::server
