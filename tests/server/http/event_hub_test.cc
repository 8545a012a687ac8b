#include "server/http/event_hub.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kDeadline = absl::Seconds(20);

// Keeps what is sent; reads only while `reads`.
class KeptReply final : public Reply {
 public:
  explicit KeptReply(bool reads = true) : reads_(reads) {}

  void Send(HttpAnswer response) override { Keep(response.body, true); }
  void Begin(HttpAnswer) override {}
  void Write(std::string piece, std::function<void(bool)> taken) override {
    Keep(piece, false);
    if (reads_) taken(true);
  }
  void End() override { Keep("", true); }
  void Abort() override { Keep("aborted", true); }

  // What was sent, once it has `text`.
  std::string Until(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    const auto has_it = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return absl::StrContains(sent_, text);
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&has_it), kDeadline)) << text << "\n"
                                                                              << sent_;
    return sent_;
  }
  bool AwaitOver() {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&is_over_), kDeadline);
  }

 private:
  void Keep(const std::string& text, bool is_over) {
    absl::MutexLock lock(&mutex_);
    sent_ += text;
    is_over_ = is_over_ || is_over;
  }

  const bool reads_;
  absl::Mutex mutex_;
  std::string sent_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

// A study "s" whose changes the test makes.
class Changes {
 public:
  EventSource Source() {
    return {.watch = [this](const std::string& study, const std::function<void(JsonEvent)>& emit,
                            const std::function<bool()>& cancelled) -> absl::Status {
              if (study != "s") return absl::NotFoundError("study: expected s");
              emit({.name = "snapshot", .sequence = 10, .data = "{\"first\":1}"});
              while (!cancelled()) {
                for (JsonEvent& event : Take()) emit(std::move(event));
              }
              return absl::OkStatus();
            },
            .snapshot = [](const std::string&) -> absl::StatusOr<JsonEvent> {
              return JsonEvent{.name = "snapshot", .sequence = 0, .data = "{\"again\":1}"};
            },
            .last_changes =
                [] {
                  return std::map<std::string, int64_t>{{"s", 10}, {"t", 1}};
                }};
  }
  void Make(int64_t sequence, int64_t trial, const std::string& kind) {
    absl::MutexLock lock(&mutex_);
    made_.push_back({.name = "change",
                     .sequence = sequence,
                     .data = absl::StrCat("{\"kind\":\"", kind, "\"}"),
                     .trial = trial,
                     .kind = kind});
  }

 private:
  std::vector<JsonEvent> Take() {
    absl::MutexLock lock(&mutex_);
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !made_.empty(); };
    mutex_.AwaitWithTimeout(absl::Condition(&any), absl::Milliseconds(5));
    return std::exchange(made_, {});
  }
  absl::Mutex mutex_;
  std::vector<JsonEvent> made_ ABSL_GUARDED_BY(mutex_);
};

Viewer ViewerOf(const std::shared_ptr<Reply>& reply, std::optional<int64_t> after = std::nullopt,
                const std::string& study = "s") {
  return {.host = "h",
          .study = study,
          .after = after,
          .polls = false,
          .may_watch = [] { return true; },
          .holds = nullptr,
          .reply = reply};
}

TEST(EventHub, TellsChangesInOrderAndOnesMeasurementsOnce) {
  Changes changes;
  EventHub hub(changes.Source(), {.gathering = absl::Milliseconds(50)});
  const auto reply = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(reply)).ok());
  reply->Until("id: 10\nevent: snapshot\ndata: {\"first\":1}\n\n");
  changes.Make(11, 1, "started");
  changes.Make(12, 1, "measured");
  changes.Make(13, 1, "measured");
  changes.Make(14, 2, "measured");
  changes.Make(15, 1, "finished");
  const std::string sent = reply->Until("id: 15\nevent: change\ndata: {\"kind\":\"finished\"}");
  EXPECT_THAT(sent, HasSubstr("id: 11\n"));
  EXPECT_THAT(sent, Not(HasSubstr("id: 12\n")));
  EXPECT_THAT(sent, Not(HasSubstr("id: 13\n")));
  EXPECT_THAT(sent, HasSubstr("id: 14\n"));
  // A trial has ended: the study is described again.
  reply->Until("{\"again\":1}");
}

TEST(EventHub, WhoComesBackGetsWhatWasMissedOrIsToldThatItIsGone) {
  Changes changes;
  EventHub hub(changes.Source(), {.most_kept = 2, .gathering = absl::ZeroDuration()});
  const auto first = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(first)).ok());
  first->Until("snapshot");
  for (int64_t sequence = 11; sequence <= 14; ++sequence)
    changes.Make(sequence, sequence, "queued");
  first->Until("id: 14\n");
  const auto back = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(back, 13)).ok());
  EXPECT_THAT(back->Until("id: 14\nevent: change"), Not(HasSubstr("id: 13\n")));
  const auto late = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(late, 10)).ok());
  late->Until("id: 14\nevent: reset");
  Viewer polls = ViewerOf(std::make_shared<KeptReply>(), 12);
  polls.polls = true;
  const auto answer = std::static_pointer_cast<KeptReply>(polls.reply);
  ASSERT_TRUE(hub.Add(std::move(polls)).ok());
  EXPECT_THAT(answer->Until("\"after\":\"14\""), HasSubstr("{\"id\":\"13\",\"event\":\"change\""));
}

TEST(EventHub, WhoDoesNotReadIsCutOff) {
  Changes changes;
  EventHub hub(changes.Source(), {.most_unread_bytes = 500, .gathering = absl::ZeroDuration()});
  const auto stuck = std::make_shared<KeptReply>(/*reads=*/false);
  const auto other = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(stuck)).ok());
  ASSERT_TRUE(hub.Add(ViewerOf(other)).ok());
  stuck->Until("snapshot");
  for (int64_t sequence = 11; sequence <= 60; ++sequence)
    changes.Make(sequence, sequence, "queued");
  EXPECT_TRUE(stuck->AwaitOver());
  stuck->Until("aborted");
  other->Until("id: 60\n");
}

TEST(EventHub, HasALimitThatPollsDoNotMeet) {
  Changes changes;
  EventHub hub(changes.Source(), {.most_streams = 2});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(hub.Add(ViewerOf(std::make_shared<KeptReply>())).ok());
  const absl::Status full = hub.Add(ViewerOf(std::make_shared<KeptReply>()));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("poll=1"));
  Viewer polls = ViewerOf(std::make_shared<KeptReply>());
  polls.polls = true;
  EXPECT_TRUE(hub.Add(std::move(polls)).ok());
}

TEST(EventHub, TellsWhichStudiesThereAre) {
  Changes changes;
  EventHub hub(changes.Source(), {});
  const auto reply = std::make_shared<KeptReply>();
  ASSERT_TRUE(hub.Add(ViewerOf(reply, std::nullopt, "")).ok());
  reply->Until("event: studies\ndata: {\"changed\":[\"s\",\"t\"]}");
}

TEST(EventHub, AnUnknownStudyIsAnErrorAndTheEndEndsStreams) {
  Changes changes;
  const auto reply = std::make_shared<KeptReply>();
  {
    EventHub hub(changes.Source(), {});
    const auto unknown = std::make_shared<KeptReply>();
    ASSERT_TRUE(hub.Add(ViewerOf(unknown, std::nullopt, "none")).ok());
    unknown->Until("NOT_FOUND");
    ASSERT_TRUE(hub.Add(ViewerOf(reply)).ok());
    reply->Until("snapshot");
  }
  EXPECT_TRUE(reply->AwaitOver());
}

}  // namespace
}  // namespace hpo::server
