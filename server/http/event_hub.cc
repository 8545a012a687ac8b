#include "server/http/event_hub.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "nlohmann/json.hpp"
#include "server/http/http_error.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr absl::Duration kBetweenLists = absl::Milliseconds(500);
constexpr absl::Duration kBetweenBookmarks = absl::Seconds(5);
constexpr int kShareOfSnapshots = 20;  // describing a study takes at most this part of the time
constexpr char kMeasuredKind[] = "measured";

JsonEvent ResetTo(int64_t sequence) {
  return {.name = "reset",
          .sequence = sequence,
          .data = absl::StrCat("{\"sequence\":\"", sequence, "\"}")};
}

// What a poll gets.
std::string PollText(const std::vector<JsonEvent>& events, int64_t after) {
  const auto one = [](std::string* out, const JsonEvent& event) {
    absl::StrAppend(out, "{\"id\":\"", event.sequence, "\",\"event\":\"", event.name,
                    "\",\"data\":", event.data, "}");
  };
  return absl::StrCat("{\"events\":[", absl::StrJoin(events, ",", one), "],\"after\":\"", after,
                      "\"}\n");
}

// The last events of a study, and from which sequence on none is missing.
class RecentEvents {
 public:
  explicit RecentEvents(const HubOptions& options) : options_(options) {}

  void Begin(int64_t sequence) { complete_after_ = last_ = sequence; }
  bool has_begun() const { return complete_after_ >= 0; }
  int64_t last() const { return last_; }

  void Add(JsonEvent event) {
    last_ = std::max(last_, event.sequence);
    if (event.name != "change") return;
    bytes_ += event.data.size();
    events_.push_back(std::move(event));
    while (events_.size() > options_.most_kept || bytes_ > options_.most_kept_bytes) {
      complete_after_ = events_.front().sequence;
      bytes_ -= events_.front().data.size();
      events_.pop_front();
    }
  }

  // What came after `sequence`; a reset where that is not known any more.
  std::vector<JsonEvent> After(int64_t sequence) const {
    if (sequence < complete_after_ || sequence > last_) return {ResetTo(last_)};
    std::vector<JsonEvent> found;
    for (const JsonEvent& event : events_) {
      if (event.sequence > sequence) found.push_back(event);
    }
    return found;
  }

 private:
  const HubOptions& options_;
  std::deque<JsonEvent> events_;
  size_t bytes_ = 0;
  int64_t complete_after_ = -1;
  int64_t last_ = -1;
};

// Changes that are not sent yet.
class GatheredEvents {
 public:
  // When the oldest came; in the future: there is none.
  absl::Duration since() const { return since_; }

  void Add(JsonEvent event, absl::Duration now) {
    if (events_.empty()) since_ = now;
    events_.push_back(std::move(event));
  }

  // Of measurements of a trial only the last ones, where something newer of it follows.
  std::vector<JsonEvent> TakeAll() {
    since_ = absl::InfiniteDuration();
    std::set<int64_t> newer;
    std::vector<JsonEvent> kept;
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      const bool is_last = newer.insert(event->trial).second;
      if (is_last || event->kind != kMeasuredKind) kept.push_back(std::move(*event));
    }
    events_.clear();
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

 private:
  std::vector<JsonEvent> events_;
  absl::Duration since_ = absl::InfiniteDuration();
};

// A viewer's stream. Owned by its topic and by the writes under way.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Viewer viewer, size_t most_unread)
      : viewer_(std::move(viewer)), most_unread_(most_unread) {}

  const Viewer& viewer() const { return viewer_; }

  bool is_over() const {
    absl::MutexLock lock(&mutex_);
    return is_over_;
  }

  void Append(const std::string& text) {
    bool is_slow = false;
    {
      absl::MutexLock lock(&mutex_);
      if (is_over_) return;
      unread_ += text;
      is_slow = unread_.size() > most_unread_;
    }
    is_slow ? CutOff() : Pump();
  }

  void CutOff() {
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(is_over_, true)) return;
    }
    viewer_.reply->Abort();
  }

  // After what was appended.
  void End() {
    {
      absl::MutexLock lock(&mutex_);
      ends_ = true;
    }
    Pump();
  }

 private:
  // Sends what there is, unless something is under way.
  void Pump() {
    std::string text;
    {
      absl::MutexLock lock(&mutex_);
      if (is_over_ || is_writing_ || (unread_.empty() && !ends_)) return;
      text.swap(unread_);
      is_writing_ = !text.empty();
      is_over_ = text.empty();
    }
    if (text.empty()) return viewer_.reply->End();
    viewer_.reply->Write(std::move(text),
                         [self = this->shared_from_this()](bool ok) { self->Taken(ok); });
  }

  void Taken(bool ok) {
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      if (!ok) is_over_ = true;
    }
    Pump();
  }

  const Viewer viewer_;
  const size_t most_unread_;
  mutable absl::Mutex mutex_;
  std::string unread_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::string EventText(const JsonEvent& event) {
  return absl::StrCat("id: ", event.sequence, "\nevent: ", event.name, "\ndata: ", event.data,
                      "\n\n");
}

// A study that is watched, or the list of them. One thread.
class EventHub::Topic {
 public:
  Topic(std::string study, const EventSource& source, const HubOptions& options)
      : study_(std::move(study)),
        source_(source),
        options_(options),
        recent_(options),
        thread_([this] { Run(); }) {}

  ~Topic() {
    if (!stopping_.HasBeenNotified()) stopping_.Notify();
    thread_.join();
  }

  // Asks it to end; the destructor waits for that.
  void Stop() { stopping_.Notify(); }

  // False: it is over; the viewer is for another one.
  bool Add(const Viewer& viewer) {
    absl::MutexLock lock(&mutex_);
    if (is_over_) return false;
    added_.push_back(viewer);
    return true;
  }

  bool is_over() const {
    absl::MutexLock lock(&mutex_);
    return is_over_;
  }

  // Streams by their viewers' hosts, those that are about to begin included.
  void CountStreams(std::map<std::string, size_t>& by_host) const {
    absl::MutexLock lock(&mutex_);
    for (const Viewer& viewer : added_) {
      if (!viewer.polls) ++by_host[viewer.host];
    }
    for (const auto& stream : streams_) {
      if (!stream->is_over()) ++by_host[stream->viewer().host];
    }
  }

 private:
  void Run() {
    const absl::Status status =
        study_.empty() ? FollowList()
                       : source_.watch(
                             study_, [this](JsonEvent event) { Take(std::move(event)); },
                             [this] { return Look(); });
    Finish(status);
  }

  absl::Status FollowList() {
    std::map<std::string, int64_t> known;
    absl::Duration looked = -absl::InfiniteDuration();
    recent_.Begin(0);
    while (!Look()) {
      if (clock_.Monotonic() - looked >= kBetweenLists) {
        looked = clock_.Monotonic();
        std::map<std::string, int64_t> now = source_.last_changes();
        if (now != known) TellChanged(known, now);
        known = std::move(now);
      }
      stopping_.WaitForNotificationWithTimeout(kLook);
    }
    return absl::OkStatus();
  }

  void TellChanged(const std::map<std::string, int64_t>& before,
                   const std::map<std::string, int64_t>& now) {
    std::set<std::string> changed;
    for (const auto& [name, sequence] : now) {
      const auto known = before.find(name);
      if (known == before.end() || known->second != sequence) changed.insert(name);
    }
    for (const auto& [name, sequence] : before) {
      if (!now.contains(name)) changed.insert(name);
    }
    all_studies_.clear();
    for (const auto& [name, sequence] : now) all_studies_.push_back(name);
    Tell(ListEvent({changed.begin(), changed.end()}));
  }

  static JsonEvent ListEvent(const std::vector<std::string>& names) {
    const nlohmann::json data = {{"changed", names}};
    return {.name = "studies",
            .data = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  }

  // An event of the study.
  void Take(JsonEvent event) {
    if (event.name == "snapshot") {
      snapshot_ = event;
      described_ = clock_.Monotonic();
      if (!recent_.has_begun()) {
        recent_.Begin(event.sequence);
        return;
      }
      Flush();
      Tell(event);
      return;
    }
    if (event.name == "bookmark") {
      Flush();
      recent_.Add(event);
      Tell(event);
      return;
    }
    is_described_ = is_described_ && event.kind == kMeasuredKind;
    gathered_.Add(std::move(event), clock_.Monotonic());
  }

  // Between events: sends what was gathered, begins new streams, looks after the others. True: the
  // topic ends.
  bool Look() {
    const absl::Duration now = clock_.Monotonic();
    if (now - gathered_.since() >= options_.gathering) Flush();
    if (!is_described_ && now - described_ >= pause_) Describe();
    if (recent_.has_begun()) BeginAdded();
    if (now - kept_ >= kBetweenBookmarks) {
      kept_ = now;
      KeepUp();
    }
    return IsUnused(now) || stopping_.HasBeenNotified();
  }

  void Flush() {
    for (JsonEvent& event : gathered_.TakeAll()) {
      Tell(event);
      recent_.Add(std::move(event));
    }
  }

  void Describe() {
    const absl::Duration before = clock_.Monotonic();
    absl::StatusOr<JsonEvent> study = source_.snapshot(study_);
    described_ = clock_.Monotonic();
    pause_ = std::max(options_.between_snapshots, kShareOfSnapshots * (described_ - before));
    is_described_ = true;
    if (!study.ok()) return;
    // It stands for no place in the stream of changes.
    study->sequence = recent_.last();
    snapshot_ = *std::move(study);
    Tell(snapshot_);
  }

  void Tell(const JsonEvent& event) {
    const std::string text = EventText(event);
    absl::MutexLock lock(&mutex_);
    for (const auto& stream : streams_) stream->Append(text);
  }

  void BeginAdded() {
    std::vector<Viewer> added;
    {
      absl::MutexLock lock(&mutex_);
      added.swap(added_);
    }
    if (added.empty()) return;
    Flush();
    for (Viewer& viewer : added) {
      used_ = clock_.Monotonic();
      viewer.polls ? Answer(viewer) : Begin(std::move(viewer));
    }
  }

  std::vector<JsonEvent> FirstOf(const Viewer& viewer) const {
    if (study_.empty()) return {ListEvent(all_studies_)};
    std::vector<JsonEvent> events;
    if (viewer.after) events = recent_.After(*viewer.after);
    JsonEvent snapshot = snapshot_;
    snapshot.sequence = recent_.last();
    // Before the changes, so that a browser's last id is that of the newest of them.
    if (!viewer.polls || !events.empty()) events.insert(events.begin(), std::move(snapshot));
    return events;
  }

  void Answer(const Viewer& viewer) const {
    viewer.reply->Send({.content_type = "application/json",
                        .headers = {{"Cache-Control", "no-store"}},
                        .body = PollText(FirstOf(viewer), recent_.last())});
  }

  void Begin(Viewer viewer) {
    viewer.reply->Begin({.content_type = "text/event-stream",
                         .headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}});
    const auto stream = std::make_shared<Stream>(std::move(viewer), options_.most_unread_bytes);
    for (const JsonEvent& event : FirstOf(stream->viewer())) stream->Append(EventText(event));
    absl::MutexLock lock(&mutex_);
    streams_.push_back(stream);
  }

  // Forgets streams that are over, and ends those of viewers who may no longer watch.
  void KeepUp() {
    if (study_.empty()) Tell({.name = "bookmark", .data = "{}"});
    absl::MutexLock lock(&mutex_);
    for (const auto& stream : streams_) {
      if (!stream->viewer().may_watch()) stream->CutOff();
    }
    std::erase_if(streams_, [](const auto& stream) { return stream->is_over(); });
  }

  bool IsUnused(absl::Duration now) {
    absl::MutexLock lock(&mutex_);
    if (!streams_.empty() || !added_.empty()) used_ = now;
    is_over_ = now - used_ >= options_.idle_life;
    return is_over_;
  }

  void Finish(const absl::Status& status) {
    std::vector<Viewer> added;
    std::vector<std::shared_ptr<Stream>> streams;
    {
      absl::MutexLock lock(&mutex_);
      is_over_ = true;
      added.swap(added_);
      streams.swap(streams_);
    }
    const absl::Status why =
        status.ok() ? absl::UnavailableError("hpo-server is shutting down; try again soon")
                    : status;
    for (const Viewer& viewer : added) viewer.reply->Send(ErrorResponse(why));
    for (const auto& stream : streams) stream->End();
  }

  const std::string study_;
  const EventSource& source_;
  const HubOptions& options_;
  const SystemClock clock_;
  absl::Notification stopping_;
  // Of the topic's thread alone:
  RecentEvents recent_;
  JsonEvent snapshot_;
  std::vector<std::string> all_studies_;
  GatheredEvents gathered_;
  bool is_described_ = true;  // snapshot_ is newer than the last change
  absl::Duration described_;
  absl::Duration pause_ = absl::Seconds(1);
  absl::Duration kept_ = clock_.Monotonic();
  absl::Duration used_ = clock_.Monotonic();

  mutable absl::Mutex mutex_;
  std::vector<Viewer> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member: it uses the others
};

EventHub::EventHub(EventSource source, HubOptions options)
    : source_(std::move(source)), options_(options) {}

EventHub::~EventHub() {
  std::map<std::string, std::unique_ptr<Topic>> topics;
  {
    absl::MutexLock lock(&mutex_);
    topics.swap(topics_);
  }
  for (const auto& [study, topic] : topics) topic->Stop();
}

absl::Status EventHub::CheckRoomLocked(const Viewer& viewer) const {
  std::map<std::string, size_t> by_host;
  for (const auto& [study, topic] : topics_) topic->CountStreams(by_host);
  size_t total = 0;
  for (const auto& [host, count] : by_host) total += count;
  if (!viewer.polls &&
      (total >= options_.most_streams || by_host[viewer.host] >= options_.most_of_one_host)) {
    return absl::ResourceExhaustedError(absl::StrCat("streams: expected at most ",
                                                     options_.most_streams, " open ones, and ",
                                                     options_.most_of_one_host,
                                                     " of one address, got one more; poll instead: "
                                                     "&poll=1"));
  }
  if (!topics_.contains(viewer.study) && topics_.size() >= options_.most_studies) {
    return absl::ResourceExhaustedError(
        absl::StrCat("streams: expected at most ", options_.most_studies,
                     " studies that are watched at once, got one more; try again later"));
  }
  return absl::OkStatus();
}

void EventHub::ReapLocked() {
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    topic = topic->second->is_over() ? topics_.erase(topic) : std::next(topic);
  }
}

absl::Status EventHub::Add(Viewer viewer) {
  absl::MutexLock lock(&mutex_);
  ReapLocked();
  if (const absl::Status room = CheckRoomLocked(viewer); !room.ok()) return room;
  for (;;) {
    std::unique_ptr<Topic>& topic = topics_[viewer.study];
    if (topic == nullptr) topic = std::make_unique<Topic>(viewer.study, source_, options_);
    if (topic->Add(viewer)) return absl::OkStatus();
    topic.reset();
  }
}

size_t EventHub::num_streams() const {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, size_t> by_host;
  for (const auto& [study, topic] : topics_) topic->CountStreams(by_host);
  size_t total = 0;
  for (const auto& [host, count] : by_host) total += count;
  return total;
}

}  // namespace hpo::server
