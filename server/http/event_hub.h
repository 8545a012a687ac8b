// Streams of server-sent events (HTML Living Standard, 9.2): what changes in a study, once for all
// who watch it. One thread for each study that somebody watches reads and formats its changes;
// viewers get copies of the text, each at its own pace.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"
#include "server/json/watch_json.h"

namespace hpo::server {

// Where events come from. Thread-safe.
struct EventSource {
  // See WatchJson and SnapshotJson.
  std::function<absl::Status(const std::string& study, const std::function<void(JsonEvent)>& emit,
                             const std::function<bool()>& cancelled)>
      watch;
  std::function<absl::StatusOr<JsonEvent>(const std::string& study)> snapshot;
  // How far each study's changes have come.
  std::function<std::map<std::string, int64_t>()> last_changes;
};

struct HubOptions {
  size_t most_streams = 128;
  size_t most_of_one_host = 64;
  size_t most_studies = 64;  // that are watched at once
  size_t most_kept = 4096;   // events of a study, for who reconnects
  size_t most_kept_bytes = size_t{8} << 20;
  size_t most_unread_bytes = size_t{1} << 20;          // of a viewer, who is cut off then
  absl::Duration gathering = absl::Milliseconds(200);  // measurements of a trial become one
  absl::Duration between_snapshots = absl::Seconds(1);
  absl::Duration idle_life = absl::Seconds(30);  // of a study that nobody watches any more
};

// Who watches.
struct Viewer {
  std::string host;
  std::string study;             // empty: which studies change
  std::optional<int64_t> after;  // the sequence of what it has seen
  bool polls = false;            // one answer, and no stream
  // Whether it may still watch; asked now and then.
  std::function<bool()> may_watch;
  std::shared_ptr<void> holds;  // kept while it watches
  std::shared_ptr<Reply> reply;
};

// Thread-safe.
class EventHub {
 public:
  EventHub(EventSource source, HubOptions options);
  // Ends all streams.
  ~EventHub();
  EventHub(const EventHub&) = delete;

  // Takes the viewer, and answers by its reply: with events, or with an error of the study's.
  //   ResourceExhausted  there is no stream left: the viewer is to poll
  absl::Status Add(Viewer viewer);

  size_t num_streams() const;

 private:
  class Topic;

  // Forgets the topics that are over.
  void ReapLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoomLocked(const Viewer& viewer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EventSource source_;
  const HubOptions options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<Topic>> topics_ ABSL_GUARDED_BY(mutex_);  // by study
};

// An event as text: "id: 17\nevent: change\ndata: ...\n\n".
std::string EventText(const JsonEvent& event);

}  // namespace hpo::server
