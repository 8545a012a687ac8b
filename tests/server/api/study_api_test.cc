#include "server/api/study_api.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StudyApiTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    api_ = std::make_unique<StudyApi>(*scheduler_);
  }

  std::unique_ptr<StudyApi> api_;
};

TEST_F(StudyApiTest, CreatesOnceAndDescribes) {
  const auto dry = api_->CreateStudy(PlainStudy(), /*validate_only=*/true, "");
  ASSERT_TRUE(dry.ok()) << dry.status();
  EXPECT_FALSE(dry->created);
  EXPECT_EQ(dry->study.spec, PlainStudy());
  EXPECT_TRUE(api_->queries().ListStudies()->empty());
  EXPECT_TRUE(api_->CreateStudy(PlainStudy(), false, "")->created);
  EXPECT_FALSE(api_->CreateStudy(PlainStudy(), false, "")->created);
  EXPECT_EQ(api_->queries().GetStudy("")->spec.name, "plain");
  EXPECT_EQ(api_->queries().ListStudies()->size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(api_->queries().GetStudy("other").status()));
  EXPECT_EQ(api_->UpdateStudy("plain", {.trials = 5}, "")->spec.budget.trials, 5);
}

TEST_F(StudyApiTest, ATrialIsShownWithAttemptsMeasurementsAndSampler) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const Measurement seen{.step = 3, .epoch = 1, .metrics = {{"score", 0.4}}};
  ASSERT_TRUE(
      scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {seen}}).ok());
  const MemoryRecord start{.stage = "Trial Start", .allocated = MiB(1)};
  ASSERT_TRUE(
      scheduler_->results().ReportMeasurements({.lease = lease, .memory_records = {start}}).ok());
  Complete(lease, 0.4);
  const auto detail = api_->queries().GetTrial("plain", TrialNumber{0});
  ASSERT_TRUE(detail.ok()) << detail.status();
  EXPECT_EQ(detail->trial.state, TrialState::kCompleted);
  ASSERT_EQ(detail->trial.attempts.size(), 1u);
  EXPECT_EQ(detail->trial.attempts.front().worker, "a");
  EXPECT_EQ(detail->trial.attempts.front().memory_records, std::vector<MemoryRecord>{start});
  EXPECT_EQ(detail->measurements, std::vector<Measurement>{seen});
  EXPECT_EQ(detail->sampler, "scripted");
  EXPECT_TRUE(absl::IsNotFound(api_->queries().GetTrial("plain", TrialNumber{1}).status()));
}

TEST_F(StudyApiTest, ATableShowsTheLastAttemptAndTheLastMemoryAndMeasurement) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef killed = MustAcquire(session).lease;
  const FinishRequest end{
      .lease = killed,
      .outcome = Failed{.failure_class = FailureClass::kTrainerKilled, .message = "killed"},
      .memory = {.live_peak = MiB(100), .limit = GiB(1)}};
  ASSERT_TRUE(scheduler_->results().FinishTrial("", end).ok());
  Pass(absl::Minutes(10), {{session, GiB(8)}});
  const LeaseRef again = MustAcquire(session).lease;
  ASSERT_EQ(again.attempt, AttemptNumber{2});
  const Measurement seen{.step = 3, .epoch = 1, .metrics = {{"score", 0.4}}};
  ASSERT_TRUE(
      scheduler_->results().ReportMeasurements({.lease = again, .measurements = {seen}}).ok());
  MustAcquire(Register(MakeWorker("b")));  // trial 1, which tells nothing
  const auto page = api_->queries().QueryTrials(
      "plain", {.columns = {"state", "attempts", "worker", "live_bytes", "metric:score"}});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->numbers, ElementsAre(0, 1));
  EXPECT_THAT(page->columns[0].texts, ElementsAre("RUNNING"));
  EXPECT_THAT(page->columns[1].numbers, ElementsAre(2, 1));
  EXPECT_THAT(page->columns[2].texts, ElementsAre("a", "b"));
  EXPECT_EQ(page->columns[3].numbers[0], MiB(100).count) << "of the first attempt";
  EXPECT_THAT(page->columns[3].missing, ElementsAre(1));
  EXPECT_EQ(page->columns[4].numbers[0], 0.4);
  EXPECT_THAT(page->columns[4].missing, ElementsAre(1));
}

TEST_F(StudyApiTest, TenThousandTrialsListByPages) {
  constexpr int64_t kTrials = 10'000;
  AddStudy(PlainStudy());
  Stop();
  {
    auto store = Store::Open(database_.path());
    ASSERT_TRUE(store.ok());
    const absl::Status written = (*store)->Write([](Database& database) -> absl::Status {
      TrialStore trials(database, 1, "plain");
      for (int64_t number = 0; number < kTrials; ++number) {
        TrialRecord record{.study_id = 1};
        record.trial.id = TrialId{"plain", TrialNumber{number}};
        record.trial.params = {{"train.batch_size", int64_t{8}}};
        record.trial.created = absl::FromUnixSeconds(1'700'000'000);
        HPO_RETURN_IF_ERROR(trials.InsertTrial(record));
        record.trial.state = TrialState::kCompleted;
        record.trial.outcome = Completed{};
        record.trial.value = static_cast<double>(number % 1000);
        HPO_RETURN_IF_ERROR(trials.UpdateTrial(record));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(written.ok()) << written;
  }
  Start();
  api_ = std::make_unique<StudyApi>(*scheduler_);
  int64_t next = 0;
  int pages = 0;
  std::string token;
  do {
    const auto page = api_->queries().ListTrials("plain", {.page_size = 1000, .page_token = token});
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->total, kTrials);
    for (const Trial& trial : page->trials) EXPECT_EQ(trial.id.number.value, next++);
    token = page->next_token;
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(next, kTrials);
  EXPECT_EQ(pages, 10);
  EXPECT_EQ(api_->queries().ListBestTrials("plain", 3)->back().id.number, TrialNumber{2999});
  EXPECT_EQ(api_->queries().ListBestTrials("plain", 0)->size(), 1);
  EXPECT_EQ(api_->queries().GetStudy("plain")->counts.completed, kTrials);
}

TEST_F(StudyApiTest, PagesHaveBoundsAndTokensBelongToTheirFilter) {
  AddStudy(PlainStudy());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(api_->EnqueueTrial("plain", {}, "").ok());
  const auto page = api_->queries().ListTrials("plain", {.page_size = 2});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->trials.size(), 2u);
  const TrialQuery next{.page_size = 2, .page_token = page->next_token};
  EXPECT_EQ(api_->queries().ListTrials("plain", next)->trials.size(), 1u);
  EXPECT_EQ(api_->queries().ListTrials("plain", {})->trials.size(), 3u);
  TrialQuery newest = next;
  newest.filter.newest_first = true;
  for (const TrialQuery& query : {newest, {.page_size = 1001}, {.page_size = -1}}) {
    const absl::Status status = api_->queries().ListTrials("plain", query).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

TEST_F(StudyApiTest, MemoryIsEstimatedForAWorker) {
  AddStudy(BertStudy());
  const ParamMap params = {{"model.name", std::string("tiny")}, {"train.batch_size", int64_t{8}}};
  const StudyQueries& queries = api_->queries();
  const MemoryQuery query{.params = params};
  EXPECT_TRUE(absl::IsFailedPrecondition(queries.EstimateMemory("bert", query).status()));
  Register(MakeBertWorker("small", GiB(1)));
  Register(MakeBertWorker("large", GiB(8)));
  const auto largest = queries.EstimateMemory("bert", query);
  ASSERT_TRUE(largest.ok()) << largest.status();
  EXPECT_EQ(largest->usable, GiB(8));
  EXPECT_TRUE(largest->fits);
  EXPECT_THAT(largest->explanation, HasSubstr("fits: needs"));
  MemoryQuery small{.params = params, .worker = "small"};
  EXPECT_EQ(queries.EstimateMemory("bert", small)->usable, GiB(1));
  small.limit = Bytes{1};
  const auto tight = queries.EstimateMemory("bert", small);
  EXPECT_FALSE(tight->fits);
  EXPECT_THAT(tight->explanation, HasSubstr("allowed 1 B"));
  const MemoryQuery refused[] = {{.params = params, .worker = "other"},
                                 {.params = {{"model.name", std::string("absent")}}}};
  for (const MemoryQuery& unknown : refused) {
    EXPECT_TRUE(absl::IsFailedPrecondition(queries.EstimateMemory("bert", unknown).status()));
  }
}

TEST_F(StudyApiTest, AWatchSeesEveryChangeInOrder) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  ASSERT_TRUE(api_->EnqueueTrial("plain", {}, "").ok());
  std::vector<std::string> kinds;
  std::vector<int64_t> sequences;
  absl::Notification started;
  std::thread watcher([&] {
    const absl::Status watched = api_->queries().WatchStudy(
        "plain", 0,
        [&](const WatchEvent& told) {
          const auto* event = std::get_if<TrialEvent>(&told);
          if (event == nullptr) return true;
          kinds.push_back(event->kind);
          sequences.push_back(event->sequence);
          return event->kind != "finished";
        },
        [&] {
          if (!started.HasBeenNotified()) started.Notify();
          return false;
        });
    EXPECT_TRUE(watched.ok()) << watched;
  });
  started.WaitForNotification();
  const LeaseRef lease = MustAcquire(session).lease;
  const Measurement seen{.step = 3, .epoch = 1, .metrics = {{"score", 0.4}}};
  ASSERT_TRUE(scheduler_->results()
                  .ReportMeasurements({.lease = lease,
                                       .measurements = {seen},
                                       .new_plan = MemoryPlan{.effective_batch = 4},
                                       .num_ooms = 1})
                  .ok());
  Complete(lease, 0.4);
  watcher.join();
  EXPECT_EQ(kinds, (std::vector<std::string>{"started", "measured", "replanned", "finished"}));
  EXPECT_EQ(sequences, (std::vector<int64_t>{2, 3, 4, 5}));

  std::vector<int64_t> replayed;
  ASSERT_TRUE(api_->queries()
                  .WatchStudy(
                      "plain", 3,
                      [&](const WatchEvent& told) {
                        if (std::holds_alternative<StudyStatus>(told)) return true;
                        replayed.push_back(std::get<TrialEvent>(told).sequence);
                        return replayed.size() < 2;
                      },
                      [] { return false; })
                  .ok());
  EXPECT_EQ(replayed, (std::vector<int64_t>{4, 5}));
}

TEST_F(StudyApiTest, ADrainEndsWatchesAndRefusesWrites) {
  AddStudy(PlainStudy());
  std::thread watcher([&] {
    EXPECT_TRUE(api_->queries()
                    .WatchStudy(
                        "plain", 0, [](const WatchEvent&) { return true; }, [] { return false; })
                    .ok());
  });
  scheduler_->state().work.Drain();
  watcher.join();
  EXPECT_TRUE(absl::IsUnavailable(api_->CreateStudy(PlainStudy("x"), false, "").status()));
  EXPECT_TRUE(absl::IsUnavailable(api_->UpdateStudy("plain", {}, "").status()));
  EXPECT_TRUE(absl::IsUnavailable(api_->EnqueueTrial("plain", {}, "").status()));
  EXPECT_TRUE(api_->queries().GetStudy("plain").ok());
}

}  // namespace
}  // namespace hpo::server
