#include <cmath>
#include <set>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "server/storage/answer_store.h"
#include "server/storage/record_columns.h"
#include "server/storage/row_codec.h"
#include "server/storage/sqlite/migrations.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

StudySpec MakeSpec(const std::string& name) {
  StudySpec spec;
  spec.name = name;
  spec.objectives = {Objective{.metric = "f1", .direction = Direction::kMaximize}};
  spec.trainer.train = "train.jsonl";
  spec.trainer.validation = "valid.jsonl";
  spec.space.parameters = {Parameter{.name = "train.lr",
                                     .domain = FloatDomain{.low = 1e-6, .high = 1e-4, .log = true},
                                     .when = {},
                                     .default_value = {}}};
  return spec;
}

std::vector<int64_t> Numbers(const absl::StatusOr<std::vector<Trial>>& trials) {
  EXPECT_TRUE(trials.ok()) << trials.status();
  std::vector<int64_t> numbers;
  if (!trials.ok()) return numbers;
  for (const Trial& trial : *trials) numbers.push_back(trial.id.number.value);
  return numbers;
}

class StoresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::Open(file_.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status();
    database_ = *std::move(opened);
    ASSERT_TRUE(Migrate(*database_, EmbeddedMigrations()).ok());
    const auto id = StudyStore(*database_).Insert(MakeSpec("s"), kNow);
    ASSERT_TRUE(id.ok()) << id.status();
    study_id_ = *id;
  }

  TrialStore Trials() { return TrialStore(*database_, study_id_, "s"); }
  AttemptStore Attempts() { return AttemptStore(*database_, study_id_, "s"); }
  EventLog Events() { return EventLog(*database_, study_id_); }
  SuggestionStore Suggestions() { return SuggestionStore(*database_, study_id_); }
  StudyStore Studies() { return StudyStore(*database_); }
  AnswerStore Answers() { return AnswerStore(*database_); }

  std::vector<std::string> ColumnsOf(const std::string& table) {
    Statement rows = database_->Prepare("SELECT name FROM pragma_table_info(?1)");
    rows.Bind(table);
    std::vector<std::string> columns;
    while (rows.Next().value()) columns.push_back(rows.Text(0));
    return columns;
  }

  TrialRecord NewTrial(int64_t number) {
    TrialRecord record{.study_id = study_id_};
    record.trial.id = TrialId{"s", TrialNumber{number}};
    record.trial.params = {{"train.lr", 3e-5}, {"seed", int64_t{7}}, {"flag", true}};
    record.trial.created = kNow;
    return record;
  }

  void Insert(const TrialRecord& record) { ASSERT_TRUE(Trials().InsertTrial(record).ok()); }

  // Inserts a trial that has ended like this.
  void InsertEnded(int64_t number, const TrialOutcome& outcome, std::optional<double> value = {},
                   bool demonstration = false) {
    TrialRecord record = NewTrial(number);
    record.trial.demonstration = demonstration;
    Insert(record);
    record.trial.state = StateOf(outcome);
    record.trial.outcome = outcome;
    record.trial.value = value;
    ASSERT_TRUE(Trials().UpdateTrial(record).ok());
  }

  AttemptRecord NewAttempt(int64_t trial) {
    AttemptRecord attempt{.study_id = study_id_, .trial = TrialNumber{trial}};
    attempt.attempt.worker = "host:gpu0";
    attempt.attempt.capacity = GiB(8);
    attempt.attempt.predicted = GiB(3);
    attempt.required = GiB(3) + MiB(92);
    attempt.attempt.plan = {.effective_batch = 32, .micro_batch = 8};
    attempt.attempt.started = kNow;
    attempt.instance_key = "key";
    attempt.token_hash = "hash";
    attempt.limit = GiB(7);
    return attempt;
  }

  TemporaryDatabase file_;
  std::unique_ptr<Database> database_;
  int64_t study_id_ = 0;
};

TEST_F(StoresTest, AStudyComesBackAsItWas) {
  StudySpec changed = MakeSpec("s");
  changed.budget.trials = 50;
  ASSERT_TRUE(Studies().UpdateSpec(study_id_, changed).ok());
  ASSERT_TRUE(Studies().AddWallClock(study_id_, absl::Seconds(90)).ok());
  ASSERT_TRUE(Studies().PinData(study_id_, "s", "train.jsonl", "abc").ok());
  ASSERT_TRUE(Studies().UpdateOrder(study_id_, StudyOrder::kPause, TrialNumber{7}).ok());
  ASSERT_TRUE(Studies().Insert(MakeSpec("t"), kNow).ok());
  const auto studies = Studies().LoadAll();
  ASSERT_TRUE(studies.ok()) << studies.status();
  ASSERT_EQ(studies->records.size(), 2u);
  const StudyRecord& study = studies->records.front();
  EXPECT_EQ(study.spec, changed);
  EXPECT_EQ(study.created, kNow);
  EXPECT_EQ(study.wall_clock, absl::Seconds(90));
  EXPECT_EQ(study.order, StudyOrder::kPause);
  EXPECT_EQ(study.failures_from, TrialNumber{7});
  EXPECT_EQ(studies->records.back().order, StudyOrder::kRun);
  EXPECT_EQ(study.data_digests, (std::map<std::string, std::string>{{"train.jsonl", "abc"}}));
  EXPECT_EQ(Studies().StudiesVersion().value(), 3) << "two inserts and an update";
  EXPECT_EQ(Studies().Insert(MakeSpec("t"), kNow).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StoresTest, TheFirstDigestOfAFileStays) {
  ASSERT_TRUE(Studies().PinData(study_id_, "s", "train.jsonl", "abc").ok());
  ASSERT_TRUE(Studies().PinData(study_id_, "s", "train.jsonl", "abc").ok());
  const absl::Status refused = Studies().PinData(study_id_, "s", "train.jsonl", "xyz");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  for (const char* part : {"study s", "train.jsonl", "abc", "xyz"}) {
    EXPECT_THAT(refused.message(), HasSubstr(part));
  }
}

TEST_F(StoresTest, TheDatabaseIsNamedOnce) {
  const std::string id = Studies().DatabaseId().value();
  EXPECT_EQ(id.size(), 32u);
  ASSERT_TRUE(Studies().BeginEpoch(kNow).ok());
  ASSERT_TRUE(Migrate(*database_, EmbeddedMigrations()).ok());
  EXPECT_EQ(Studies().DatabaseId().value(), id);
  const TemporaryDatabase other;
  const auto opened = Database::Open(other.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(Migrate(**opened, EmbeddedMigrations()).ok());
  EXPECT_NE(StudyStore(**opened).DatabaseId().value(), id);
}

TEST_F(StoresTest, ADrainedWorkerStaysUntilItIsRemoved) {
  ASSERT_TRUE(Studies().DrainWorker("a", kNow).ok());
  ASSERT_TRUE(Studies().DrainWorker("b", kNow).ok());
  ASSERT_TRUE(Studies().DrainWorker("a", kNow).ok()) << "once more";
  ASSERT_TRUE(Studies().ResumeWorker("b").ok());
  ASSERT_TRUE(Studies().ResumeWorker("c").ok());
  EXPECT_EQ(*Studies().DrainedWorkers(), std::set<std::string>{"a"});
}

TEST_F(StoresTest, AnswersAreKeptForSevenDays) {
  ASSERT_TRUE(Answers().Record("id", "Finish", "body", "answer", kNow).ok());
  EXPECT_EQ(Answers().Find("id", "Finish", "body").value(), "answer");
  EXPECT_EQ(Answers().Find("other", "Finish", "body").value(), std::nullopt);
  EXPECT_EQ(Answers().Find("id", "Finish", "changed").status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Answers().Find("id", "Release", "body").status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Studies().BeginEpoch(kNow + absl::Hours(7 * 24)).value(), 1);
  EXPECT_EQ(Answers().Find("id", "Finish", "body").value(), "answer");
  EXPECT_EQ(Studies().BeginEpoch(kNow + absl::Hours(7 * 24 + 1)).value(), 2);
  EXPECT_EQ(Answers().Find("id", "Finish", "body").value(), std::nullopt);
}

TEST_F(StoresTest, EveryColumnOfATrialIsReadButWhoseAndWhyItWasPruned) {
  std::vector<std::string> columns = absl::StrSplit(ColumnNames<TrialRecord>(), ", ");
  EXPECT_EQ(columns.front(), "number");
  columns.insert(columns.end(), {"study_id", "prune_reason"});
  EXPECT_THAT(columns, UnorderedElementsAreArray(ColumnsOf("trial")));
}

TEST_F(StoresTest, EveryColumnOfAnAttemptIsReadButWhoseAndHowOftenItMeasured) {
  std::vector<std::string> columns = absl::StrSplit(ColumnNames<AttemptRecord>(), ", ");
  columns.insert(columns.end(), {"study_id", "measured"});
  EXPECT_THAT(columns, UnorderedElementsAreArray(ColumnsOf("attempt")));
}

TEST_F(StoresTest, ATrialComesBackAsItWas) {
  TrialRecord record = NewTrial(0);
  record.trial.admission = false;
  record.trial.forced_micro_batch = 4;
  record.trial.origin = "optuna:old#3";
  record.trial.budgeted = false;
  Insert(record);
  record.trial.state = TrialState::kPruned;
  record.trial.min_capacity = GiB(4);
  record.trial.outcome =
      OutOfMemory{.predicted = true, .limit = GiB(4), .message = "\xff no UTF-8"};
  record.current_attempt = AttemptNumber{2};
  record.result_attempt = AttemptNumber{1};
  record.retries = {1, 2, 3, 4, 5};
  record.oom_met = true;
  record.last_oom = OutOfMemory{.kind = OomKind::kLatePeak, .limit = GiB(2)};
  record.trial.started = kNow + absl::Seconds(1);
  record.trial.ended = kNow + absl::Seconds(2);
  ASSERT_TRUE(Trials().UpdateTrial(record).ok());
  const auto loaded = Trials().LoadTrial(TrialNumber{0});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->trial.params, record.trial.params);
  EXPECT_FALSE(loaded->trial.admission);
  EXPECT_EQ(loaded->trial.forced_micro_batch, 4);
  EXPECT_EQ(loaded->trial.origin, "optuna:old#3");
  EXPECT_FALSE(loaded->trial.budgeted);
  EXPECT_EQ(loaded->trial.min_capacity, GiB(4));
  EXPECT_EQ(std::get<OutOfMemory>(*loaded->trial.outcome).limit, GiB(4));
  EXPECT_EQ(loaded->current_attempt, record.current_attempt);
  EXPECT_EQ(loaded->result_attempt, record.result_attempt);
  EXPECT_EQ(loaded->retries, record.retries);
  EXPECT_TRUE(loaded->oom_met);
  EXPECT_EQ(loaded->last_oom, record.last_oom);
  EXPECT_EQ(loaded->trial.created, kNow);
  EXPECT_EQ(loaded->trial.started, record.trial.started);
  EXPECT_EQ(loaded->trial.ended, record.trial.ended);
  EXPECT_TRUE(absl::IsNotFound(Trials().LoadTrial(TrialNumber{1}).status()));
}

TEST_F(StoresTest, AnOriginIsThereOnceInAStudy) {
  TrialRecord record = NewTrial(0);
  record.trial.origin = "optuna:old#3";
  Insert(record);
  Insert(NewTrial(1));
  Insert(NewTrial(2));
  EXPECT_EQ(Trials().FindByOrigin("optuna:old#3").value()->trial.id.number, TrialNumber{0});
  EXPECT_FALSE(Trials().FindByOrigin("optuna:old#4").value().has_value());
  EXPECT_FALSE(Trials().FindByOrigin("").value().has_value());
  record.trial.id.number = TrialNumber{3};
  EXPECT_TRUE(absl::IsAlreadyExists(Trials().InsertTrial(record)));
}

TEST_F(StoresTest, ATerminalTrialStaysAsItIs) {
  InsertEnded(0, Completed{.metrics = {{"f1", 0.5}}, .model_path = ""}, 0.5);
  TrialRecord record = Trials().LoadTrial(TrialNumber{0}).value();
  record.trial.state = TrialState::kQueued;
  EXPECT_TRUE(absl::IsFailedPrecondition(Trials().UpdateTrial(record)));
  EXPECT_EQ(Trials().LoadTrial(TrialNumber{0})->trial.state, TrialState::kCompleted);
}

TEST_F(StoresTest, AnAttemptComesBackAsItWas) {
  Insert(NewTrial(0));
  AttemptRecord attempt = NewAttempt(0);
  ASSERT_TRUE(Attempts().InsertAttempt(attempt).ok());
  EXPECT_EQ(Attempts().LoadLeases()->size(), 1u);
  EXPECT_FALSE(Attempts().LoadLeases()->front().preempted);
  attempt.preempted = true;
  attempt.stop_order = "by hand";
  attempt.attempt.state = AttemptState::kReleased;
  attempt.attempt.final_plan = MemoryPlan{.effective_batch = 32, .micro_batch = 4};
  attempt.attempt.memory = MemoryReport{.live_peak = GiB(2), .num_ooms = 1};
  attempt.outcome = Failed{.failure_class = FailureClass::kTrainerCrashed, .message = "signal 11"};
  attempt.attempt.end_note = "transient";
  attempt.attempt.ended = kNow + absl::Seconds(5);
  ASSERT_TRUE(Attempts().UpdateAttempt(attempt).ok());
  const auto loaded = Attempts().LoadAttempt(TrialNumber{0}, AttemptNumber{1});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->attempt.plan, attempt.attempt.plan);
  EXPECT_EQ(loaded->attempt.final_plan, attempt.attempt.final_plan);
  EXPECT_EQ(loaded->attempt.memory, attempt.attempt.memory);
  EXPECT_EQ(loaded->attempt.state, AttemptState::kReleased);
  EXPECT_EQ(loaded->attempt.end_note, "transient");
  EXPECT_EQ(loaded->outcome, attempt.outcome);
  EXPECT_EQ(loaded->token_hash, "hash");
  EXPECT_EQ(loaded->required, attempt.required);
  EXPECT_TRUE(loaded->preempted);
  EXPECT_EQ(loaded->stop_order, "by hand");
  EXPECT_EQ(loaded->limit, GiB(7));
  EXPECT_TRUE(Attempts().LoadLeases()->empty());
  EXPECT_TRUE(absl::IsNotFound(Attempts().LoadAttempt(TrialNumber{0}, AttemptNumber{2}).status()));
}

TEST_F(StoresTest, TheTimeOfAttemptsIsSummedAsTheyEnd) {
  const auto sums = [this] {
    std::map<std::string, absl::Duration> by_end;
    const std::vector<AttemptStore::EndedTime> times = Attempts().SumEnded().value();
    for (const AttemptStore::EndedTime& time : times) {
      if (time.duration > absl::ZeroDuration()) {
        by_end[time.state + " " + time.outcome] += time.duration;
      }
    }
    return by_end;
  };
  const struct {
    AttemptState state;
    std::optional<TrialOutcome> outcome;
    int minutes;
  } ends[] = {
      {AttemptState::kFinished, Completed{}, 10},  {AttemptState::kFinished, Completed{}, 5},
      {AttemptState::kFinished, OutOfMemory{}, 1}, {AttemptState::kFinished, StoppedByPruner{}, 2},
      {AttemptState::kFinished, Failed{}, 3},      {AttemptState::kFinished, Cancelled{}, 4},
      {AttemptState::kReleased, std::nullopt, 6},  {AttemptState::kLost, std::nullopt, 7}};
  int64_t number = 0;
  for (const auto& end : ends) {
    Insert(NewTrial(number));
    AttemptRecord attempt = NewAttempt(number++);
    ASSERT_TRUE(Attempts().InsertAttempt(attempt).ok());
    attempt.attempt.state = end.state;
    attempt.outcome = end.outcome;
    attempt.attempt.ended = kNow + absl::Minutes(end.minutes);
    ASSERT_TRUE(Attempts().UpdateAttempt(attempt).ok());
  }
  Insert(NewTrial(number));
  AttemptRecord of_another_program = NewAttempt(number);
  of_another_program.attempt.worker = "imported";
  of_another_program.attempt.state = AttemptState::kFinished;
  of_another_program.attempt.ended = kNow + absl::Hours(9);
  ASSERT_TRUE(Attempts().InsertAttempt(of_another_program).ok());
  const std::map<std::string, absl::Duration> expected = {
      {"FINISHED completed", absl::Minutes(15)},
      {"FINISHED out_of_memory", absl::Minutes(1)},
      {"FINISHED stopped_by_pruner", absl::Minutes(2)},
      {"FINISHED failed", absl::Minutes(3)},
      {"FINISHED cancelled", absl::Minutes(4)},
      {"RELEASED ", absl::Minutes(6)},
      {"LOST ", absl::Minutes(7)}};
  EXPECT_EQ(sums(), expected);
  // A late result of the lost one: its time has another use now, and is counted once.
  AttemptRecord late = Attempts().LoadAttempt(TrialNumber{7}, AttemptNumber{1}).value();
  late.attempt.state = AttemptState::kFinished;
  late.outcome = Completed{};
  ASSERT_TRUE(Attempts().UpdateAttempt(late).ok());
  EXPECT_EQ(sums()["FINISHED completed"], absl::Minutes(22));
  EXPECT_FALSE(sums().contains("LOST "));
}

TEST_F(StoresTest, TheTimeThatATrialWasHeldIsKeptWhileItIsOpen) {
  Insert(NewTrial(0));
  EXPECT_EQ(Trials().LoadTrial(TrialNumber{0})->held, absl::ZeroDuration());
  ASSERT_TRUE(Trials().SetHeld(TrialNumber{0}, absl::Seconds(90)).ok());
  EXPECT_EQ(Trials().LoadTrial(TrialNumber{0})->held, absl::Seconds(90));
}

TEST_F(StoresTest, ALaterMeasurementOfAStepAddsTheMetricsThatAreMissing) {
  Insert(NewTrial(0));
  ASSERT_TRUE(Attempts().InsertAttempt(NewAttempt(0)).ok());
  const Measurement first{.step = 10, .epoch = 0.5, .metrics = {{"lr", 0.1}}};
  const Measurement more{.step = 10, .metrics = {{"lr", 0.2}, {"loss", 0.3}}};
  const Measurement both{.step = 10, .epoch = 0.5, .metrics = {{"lr", 0.1}, {"loss", 0.3}}};
  EXPECT_EQ(Attempts().InsertMeasurements(TrialNumber{0}, AttemptNumber{1}, {first, more})->back(),
            both);
  EXPECT_TRUE(Attempts().InsertMeasurements(TrialNumber{0}, AttemptNumber{1}, {more})->empty());
  EXPECT_EQ(Attempts().LoadMeasurements(TrialNumber{0}, AttemptNumber{1})->size(), 1u);
  EXPECT_EQ(Attempts().LoadMeasurements(TrialNumber{0}, AttemptNumber{1})->front(), both);
  EXPECT_EQ(*Attempts().CountMeasurements(TrialNumber{0}, AttemptNumber{1}), 1);
}

TEST_F(StoresTest, AMeasurementIsStoredOnce) {
  Insert(NewTrial(0));
  ASSERT_TRUE(Attempts().InsertAttempt(NewAttempt(0)).ok());
  const Measurement first{.step = 10, .epoch = 0.5, .metrics = {{"f1", 0.25}, {"loss", 1e-300}}};
  const Measurement changed{.step = 10, .epoch = 0.5, .metrics = {{"f1", 0.99}}};
  const Measurement nan{.step = 5, .epoch = 0.2, .metrics = {{"loss", std::nan("")}}};
  EXPECT_EQ(Attempts().InsertMeasurements(TrialNumber{0}, AttemptNumber{1}, {first, nan})->size(),
            2);
  EXPECT_EQ(Attempts().InsertMeasurements(TrialNumber{0}, AttemptNumber{1}, {changed})->size(), 0u);
  const auto stored = Attempts().LoadMeasurements(TrialNumber{0}, AttemptNumber{1});
  ASSERT_EQ(stored->size(), 2u);
  EXPECT_TRUE(std::isnan(stored->front().metrics.at("loss")));
  EXPECT_EQ(stored->back(), first);
  EXPECT_FALSE(Attempts().InsertMeasurements(TrialNumber{0}, AttemptNumber{9}, {first}).ok())
      << "no such attempt";
}

TEST_F(StoresTest, AMemoryRecordIsStoredOnceAndComesBackInOrder) {
  Insert(NewTrial(0));
  ASSERT_TRUE(Attempts().InsertAttempt(NewAttempt(0)).ok());
  const TrialNumber trial{0};
  const AttemptNumber attempt{1};
  const MemoryRecord start{.stage = "Trial Start", .allocated = MiB(1), .resident = MiB(300)};
  const MemoryRecord end{.stage = "Training End", .allocated = MiB(2), .step = 9, .sequence = 1};
  const MemoryRecord changed{.stage = "other", .sequence = 1};
  ASSERT_TRUE(Attempts().InsertMemoryRecords(trial, attempt, {end}).ok());
  ASSERT_TRUE(Attempts().InsertMemoryRecords(trial, attempt, {start, changed}).ok());
  EXPECT_EQ(Attempts().LoadMemoryRecords(trial, attempt).value(),
            (std::vector<MemoryRecord>{start, end}));
  EXPECT_TRUE(Attempts().LoadMemoryRecords(trial, AttemptNumber{9})->empty());
  EXPECT_FALSE(Attempts().InsertMemoryRecords(trial, AttemptNumber{9}, {start}).ok())
      << "no such attempt";
}

TEST_F(StoresTest, TheLogTailOfAnAttemptIsTheOneThatWasStoredLast) {
  Insert(NewTrial(0));
  ASSERT_TRUE(Attempts().InsertAttempt(NewAttempt(0)).ok());
  const TrialNumber trial{0};
  const AttemptNumber attempt{1};
  EXPECT_EQ(*Attempts().LoadLogTail(trial, attempt), "");
  ASSERT_TRUE(Attempts().StoreLogTail(trial, attempt, "one\n").ok());
  ASSERT_TRUE(Attempts().StoreLogTail(trial, attempt, "größe\n\tend").ok());
  EXPECT_EQ(*Attempts().LoadLogTail(trial, attempt), "größe\n\tend");
  EXPECT_EQ(*Attempts().LoadLogTail(TrialNumber{1}, attempt), "");
  EXPECT_FALSE(Attempts().StoreLogTail(trial, AttemptNumber{9}, "x").ok()) << "no such attempt";
}

TEST_F(StoresTest, EventsCountWithinTheirStudy) {
  Insert(NewTrial(0));
  const int64_t other = Studies().Insert(MakeSpec("t"), kNow).value();
  TrialStore others(*database_, other, "t");
  TrialRecord theirs = NewTrial(0);
  theirs.study_id = other;
  ASSERT_TRUE(others.InsertTrial(theirs).ok());
  EXPECT_EQ(Events().Append(TrialNumber{0}, "queued", kNow).value(), 1);
  EXPECT_EQ(EventLog(*database_, other).Append(TrialNumber{0}, "queued", kNow).value(), 1);
  EXPECT_EQ(Events().Append(TrialNumber{0}, "started", kNow).value(), 2);
  EXPECT_EQ(Events().Append(kNoTrial, "PAUSE", kNow).value(), 3);
  const auto events = Events().After(1, 1);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().kind, "started");
  EXPECT_EQ(Trials().LoadTrial(TrialNumber{0})->last_sequence, 2);
}

TEST_F(StoresTest, CountsByStateAndReason) {
  InsertEnded(0, Completed{}, 0.1);
  InsertEnded(1, OutOfMemory{});
  InsertEnded(2, OutOfMemory{.predicted = true});
  InsertEnded(3, StoppedByPruner{});
  InsertEnded(4, Failed{});
  InsertEnded(5, Cancelled{});
  InsertEnded(6, Completed{}, 0.9, /*demonstration=*/true);
  TrialRecord recovered = NewTrial(7);
  Insert(recovered);
  recovered.trial.state = TrialState::kCompleted;
  recovered.trial.outcome = Completed{};
  recovered.oom_met = true;
  ASSERT_TRUE(Trials().UpdateTrial(recovered).ok());
  Insert(NewTrial(8));
  EXPECT_EQ(Trials().Count().value(), (TrialCounts{.queued = 1,
                                                   .completed = 2,
                                                   .pruned = 3,
                                                   .failed = 1,
                                                   .cancelled = 1,
                                                   .oom_met = 1,
                                                   .oom_predicted = 1,
                                                   .oom_recovered = 1,
                                                   .demonstration = 1}));
  EXPECT_EQ(Studies().LoadAll()->records.front().num_budgeted, 8);
  EXPECT_EQ(Studies().LoadAll()->records.front().next_number, 9);
}

TEST_F(StoresTest, ListsByStateReasonAndOrder) {
  InsertEnded(0, Completed{}, 0.5);
  InsertEnded(1, OutOfMemory{});
  InsertEnded(2, Completed{}, 0.7);
  InsertEnded(3, StoppedByPruner{});
  InsertEnded(4, Completed{}, 0.7);
  InsertEnded(5, Completed{}, 0.9, /*demonstration=*/true);
  InsertEnded(6, Completed{});
  struct Case {
    TrialFilter filter;
    std::optional<TrialNumber> after;
    std::vector<int64_t> numbers;
  };
  const TrialFilter newest{.states = {}, .prune_reasons = {}, .newest_first = true};
  const Case cases[] = {
      {{}, std::nullopt, {0, 1, 2}},
      {{}, TrialNumber{2}, {3, 4, 5}},
      {newest, std::nullopt, {6, 5, 4}},
      {newest, TrialNumber{2}, {1, 0}},
      {{.states = {TrialState::kPruned}, .prune_reasons = {}}, std::nullopt, {1, 3}},
      {{.states = {}, .prune_reasons = {PruneReason::kOutOfMemory}}, std::nullopt, {1}}};
  for (const Case& test : cases) {
    EXPECT_EQ(Numbers(Trials().ListTrials(test.filter, test.after, 3)), test.numbers);
  }
  EXPECT_EQ(Numbers(Trials().ListBest(Direction::kMaximize, -1)), (std::vector<int64_t>{2, 4, 0}));
  EXPECT_EQ(Trials().ListBest(Direction::kMinimize, 1)->front().id.number, TrialNumber{0});
}

TEST_F(StoresTest, ASuggestionIsKeptWithWhatItDependedOn) {
  Insert(NewTrial(0));
  ASSERT_TRUE(Suggestions()
                  .Insert(TrialNumber{0}, {.capacity = GiB(8),
                                           .calibration_version = 7,
                                           .history_sequence = 12,
                                           .sampler = "tpe",
                                           .score = 0.5})
                  .ok());
  EXPECT_EQ(Suggestions().LoadSampler(TrialNumber{0}).value(), "tpe");
  Statement row = database_->Prepare(
      "SELECT capacity, calibration_version, history_sequence, score FROM suggestion");
  ASSERT_TRUE(row.Next().value());
  EXPECT_EQ(row.Size(0), GiB(8));
  EXPECT_EQ(row.Int(1), 7);
  EXPECT_EQ(row.Int(2), 12);
  EXPECT_EQ(row.Real(3), 0.5);
  Insert(NewTrial(1));
  ASSERT_TRUE(Suggestions().Insert(TrialNumber{1}, {.sampler = "random"}).ok());
  EXPECT_EQ(Suggestions().LoadSampler(TrialNumber{1}).value(), "random");
  EXPECT_EQ(Suggestions().LoadSampler(TrialNumber{2}).value(), "") << "enqueued";
}

TEST_F(StoresTest, DamagedColumnsAreDataLoss) {
  Insert(NewTrial(0));
  ASSERT_TRUE(database_->Execute("UPDATE trial SET params = '{'").ok());
  EXPECT_TRUE(absl::IsDataLoss(Trials().LoadTrial(TrialNumber{0}).status()));
  ASSERT_TRUE(database_->Execute("UPDATE trial SET params = '{}', state = 'LOST'").ok());
  EXPECT_TRUE(absl::IsDataLoss(Trials().LoadTrial(TrialNumber{0}).status()));
}

TEST_F(StoresTest, OldChangesAreForgotten) {
  Insert(NewTrial(0));
  std::vector<int64_t> sequences;
  for (const char* kind : {"queued", "started", "finished"}) {
    const auto sequence = Events().Append(TrialNumber{0}, kind, kNow);
    ASSERT_TRUE(sequence.ok()) << sequence.status();
    sequences.push_back(*sequence);
  }
  ASSERT_TRUE(Events().Forget(sequences[1]).ok());
  const auto left = Events().After(0, 10);
  ASSERT_TRUE(left.ok()) << left.status();
  ASSERT_EQ(left->size(), 1);
  EXPECT_EQ(left->front().sequence, sequences[2]);
}

TEST_F(StoresTest, DryRunsAreKeptByNumberAndPosition) {
  DryRunStore dry_runs(*database_, study_id_);
  DryRunRecord own{.params = {{"train.lr", 1e-5}},
                   .worker = "w",
                   .need = {.capability = "8.0",
                            .threads = 221'184,
                            .state = PreflightState::kMeasured,
                            .required = GiB(9),
                            .margin = MiB(300)},
                   .took = absl::Seconds(12),
                   .message = "why",
                   .refused = true,
                   .time = kNow};
  DryRunRecord other = own;
  other.need.state = PreflightState::kFailed;
  other.refused = false;
  EXPECT_EQ(dry_runs.Insert({own, other}).value_or(-1), 0);
  EXPECT_EQ(dry_runs.Insert({own}).value_or(-1), 1);
  const auto loaded = dry_runs.LoadAll();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  other.position = 1;
  DryRunRecord again = own;
  again.number = 1;
  EXPECT_EQ(*loaded, (std::vector<DryRunRecord>{own, other, again}));
}

}  // namespace
}  // namespace hpo::server
