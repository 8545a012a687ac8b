// Studies are archived, deleted and restored.
#include <gmock/gmock.h>

#include "common/files/sha256.h"
#include "nlohmann/json.hpp"
#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ArchiveTest : public SchedulerFixture {
 protected:
  StudyApi Api() { return StudyApi(*scheduler_); }

  std::string Archive(const std::string& name, std::string* sha256 = nullptr) {
    std::string archive;
    const auto end = Api().ArchiveStudy(name, [&archive](absl::string_view bytes) {
      archive.append(bytes.data(), bytes.size());
      return true;
    });
    EXPECT_TRUE(end.ok()) << end.status();
    if (end.ok() && sha256 != nullptr) *sha256 = end->sha256;
    return archive;
  }

  // A study with everything that one can have.
  void AddFullStudy() {
    StudySpec spec = PlainStudy();
    spec.memory.policy = MemoryPolicy::kOff;
    spec.constraints = {{.metric = "latency", .at_most = 1.0}};
    AddStudy(spec);
    const std::string session = Register(MakeWorker("a"));
    const LeaseRef first = MustAcquire(session).lease;
    ASSERT_TRUE(scheduler_->results()
                    .ReportMeasurements(
                        {.lease = first,
                         .measurements = {{.step = 3, .metrics = {{"score", 0.1 + 0.2}}}},
                         .memory_records = {{.stage = "Training Start", .allocated = GiB(1)}},
                         .attributes = {{"rows", "12"}}})
                    .ok());
    FinishRequest result{.lease = first,
                         .outcome = Completed{.metrics = {{"score", 0.1 + 0.2}}, .model_path = ""}};
    result.log_tail = "the last line\n";
    ASSERT_TRUE(scheduler_->results().FinishTrial("", result).ok());  // no latency: violated
    Finish(MustAcquire(session).lease, OutOfMemory{.limit = GiB(8), .message = "too big"});
    Finish(MustAcquire(session).lease,
           Failed{.failure_class = FailureClass::kBadData, .message = "line 7\nbroken"});
    ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
    ASSERT_TRUE(Api().ChangeAttributes("plain", std::nullopt, {.note = "all of it"}).ok());
  }

  std::vector<std::string> Shown(const std::string& name) {
    std::vector<std::string> shown;
    const auto page = Api().queries().ListTrials(name, {});
    EXPECT_TRUE(page.ok()) << page.status();
    for (const Trial& listed : page->trials) {
      const auto view = Api().queries().GetTrial(name, listed.id.number);
      EXPECT_TRUE(view.ok()) << view.status();
      const Trial& trial = view->trial;
      std::string text = absl::StrCat(
          Name(trial.state), " ", FormatParams(trial.params), " ", trial.value.value_or(-1.0), " ",
          trial.violation, " ", absl::FormatTime(trial.created), absl::FormatTime(trial.ended), " ",
          view->sampler, " ", view->measurements.size(), " ", trial.attempts.size());
      if (trial.outcome) absl::StrAppend(&text, OutcomeToJson(*trial.outcome).dump());
      for (const auto& [key, value] : trial.attributes) absl::StrAppend(&text, key, value);
      for (const Attempt& attempt : trial.attempts) {
        absl::StrAppend(&text, attempt.worker, attempt.memory_records.size(), attempt.log_tail);
      }
      shown.push_back(text);
    }
    return shown;
  }
};

TEST_F(ArchiveTest, TheKeyOfAWorkersProcessIsNotInIt) {
  AddStudy(PlainStudy());
  WorkerFacts facts = MakeWorker("a");
  facts.instance_key = "0123456789abcdef";
  MustAcquire(Register(facts));
  const std::string archive = Archive("plain");
  EXPECT_THAT(archive, Not(HasSubstr(facts.instance_key)));
  EXPECT_THAT(archive, HasSubstr("\"instance_key\":\"sha256:"));
}

TEST_F(ArchiveTest, WhatIsDeletedComesBackAsItWas) {
  AddFullStudy();
  const std::vector<std::string> before = Shown("plain");
  EXPECT_THAT(before.front(), HasSubstr("the last line"));
  const StudyStatus status = Status("plain");
  std::string sha256;
  const std::string archive = Archive("plain", &sha256);
  EXPECT_EQ(sha256, Sha256Hex(archive));
  EXPECT_EQ(*Api().DeleteStudy("plain", sha256), 4);
  EXPECT_THAT(scheduler_->state().studies.Names(), IsEmpty());
  Restart();
  EXPECT_THAT(scheduler_->state().studies.Names(), IsEmpty());
  ASSERT_TRUE(Api().RestoreStudy("", archive).ok());
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(Shown("plain"), before);
    const StudyStatus now = Status("plain");
    EXPECT_EQ(now.spec, status.spec);
    EXPECT_EQ(now.counts, status.counts);
    EXPECT_EQ(now.attributes, status.attributes);
    EXPECT_EQ(now.best_value, status.best_value);
    EXPECT_EQ(now.created, status.created);
    EXPECT_EQ(now.sequence, status.sequence);
    EXPECT_EQ(Archive("plain"), archive) << "an archive of it is the same";
    Restart();
  }
  EXPECT_EQ(MustAcquire(Register(MakeWorker("b"))).lease.trial.number, TrialNumber{3})
      << "it goes on";
}

TEST_F(ArchiveTest, ARestoredStudyCanStandBesideItsOriginal) {
  AddFullStudy();
  const std::string archive = Archive("plain");
  EXPECT_TRUE(absl::IsAlreadyExists(Api().RestoreStudy("", archive).status()));
  ASSERT_TRUE(Api().RestoreStudy("other", archive).ok());
  EXPECT_THAT(scheduler_->state().studies.Names(), ElementsAre("plain", "other"));
  EXPECT_EQ(Shown("other"), Shown("plain"));
  Restart();
  EXPECT_EQ(Status("other").spec.name, "other");
}

TEST_F(ArchiveTest, ANameOfAnOptunaClientsStudyIsTaken) {
  AddFullStudy();
  const auto database = Database::Open(database_.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE(
      (*database)
          ->Prepare("INSERT INTO optuna_study (name, directions) VALUES ('theirs', 'MINIMIZE')")
          .Run()
          .ok());
  const absl::Status restored = Api().RestoreStudy("theirs", Archive("plain")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(restored)) << restored;
  EXPECT_THAT(scheduler_->state().studies.Names(), ElementsAre("plain"));
}

TEST_F(ArchiveTest, OnlyWhatIsArchivedAndStillIsDeleted) {
  AddFullStudy();
  std::string sha256;
  Archive("plain", &sha256);
  ASSERT_TRUE(Api().ChangeAttributes("plain", TrialNumber{0}, {.note = "since"}).ok());
  const auto refused = Api().DeleteStudy("plain", sha256);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("got later changes"));
  const LeaseRef running = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_THAT(Api().DeleteStudy("plain", "").status().message(),
              HasSubstr("expected one without running trials, got trial #3 on a"));
  Complete(running, 0.5);
  StudySpec heir = PlainStudy("heir");
  heir.warm_start = {"plain"};
  heir.sampler.type = "tpe";
  heir.constraints = {{.metric = "latency", .at_most = 1.0}};
  AddStudy(heir);
  EXPECT_THAT(Api().DeleteStudy("plain", "").status().message(),
              HasSubstr("expected one that no other study has for its warm start, got heir"));
  ASSERT_TRUE(Api().DeleteStudy("heir", "").ok());
  ASSERT_TRUE(Api().DeleteStudy("plain", "").ok());
  EXPECT_TRUE(absl::IsNotFound(Api().DeleteStudy("plain", "").status()));
  AddStudy(PlainStudy());
  EXPECT_EQ(Status("plain").counts.Finished(), 0) << "the name is free";
}

TEST_F(ArchiveTest, WhatIsNoWholeArchiveIsRefusedAndNothingStays) {
  AddFullStudy();
  const std::string archive = Archive("plain");
  ASSERT_TRUE(Api().DeleteStudy("plain", "").ok());
  const size_t last = archive.rfind('\n', archive.size() - 2);
  std::string changed = archive;
  changed.replace(changed.find("too big"), 7, "too few");
  std::string newer = archive;
  newer.replace(newer.find("\"schema\":"), 10, "\"schema\":9");
  std::string torn = archive;  // without a trial that has attempts
  const size_t trial = torn.rfind('\n', torn.find("\"table\":\"trial\"")) + 1;
  torn.erase(trial, torn.find('\n', trial) + 1 - trial);
  const std::pair<std::string, const char*> cases[] = {
      {"", "nothing: it is not whole"},
      {"not JSON\n", "line 1: expected JSON, got something else at byte "},
      {"{\"format\":\"other\"}\n", "line 1: expected an archive (hpo-study)"},
      {newer, "expected a database's schema up to"},
      {archive.substr(0, last + 1), "nothing: it is not whole"},
      {archive.substr(0, archive.size() - 1), "expected a whole line"},
      {changed, "with the digest"},
      {torn, "with the digest"},
      {archive + archive, "with the digest"},
  };
  for (const auto& [text, why] : cases) {
    const auto refused = Api().RestoreStudy("", text);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().message(), HasSubstr(why));
    EXPECT_THAT(scheduler_->state().studies.Names(), IsEmpty());
  }
  EXPECT_TRUE(Api().RestoreStudy("", archive).ok());
}

// A table of a later migration is no less of a study.
TEST_F(ArchiveTest, EveryTableOfAStudyIsArchived) {
  std::vector<std::string> tables;
  const auto read = [&](Database& database) -> absl::Status {
    Statement rows = database.Prepare(
        "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' "
        "AND c.name = 'study_id' AND m.name NOT LIKE 'optuna%' "  // those are Optuna's
        "AND m.name <> 'attempt_time' ORDER BY 1");               // sums, which triggers keep
    for (;;) {
      HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) return absl::OkStatus();
      tables.push_back(rows.Text(0));
    }
  };
  ASSERT_TRUE(scheduler_->state().store->Read(read).ok());
  std::vector<std::string> archived;
  for (const StudyTable& table : kStudyTables) archived.emplace_back(table.name);
  EXPECT_THAT(archived, ::testing::UnorderedElementsAreArray(tables));
}

}  // namespace
}  // namespace hpo::server
