// A database of every earlier version, with rows in all its tables, becomes what a new one with the
// same rows is.
#include "server/storage/sqlite/migrations.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/study/study_json.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "server/storage/store.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kPlan[] =
    R"({"checkpointing":false,"effective_batch":8,"micro_batch":4,"precision":"float32"})";

// Rows that a server of `version` writes, by column names, so that later columns get their
// defaults.
std::string RowsOf(int64_t version) {
  std::string sql = absl::StrCat(
      "UPDATE server SET epoch = 3, studies_version = 2;"
      "INSERT INTO study (id, name, spec, stated, created, next_number, num_budgeted, "
      "last_sequence, wall_clock) VALUES (1, 's', '",
      StudyToJson([] {
        StudySpec spec;
        spec.name = "s";
        spec.objectives = {Objective{.metric = "score", .direction = Direction::kMaximize}};
        spec.space.parameters = {Parameter{.name = "train.batch_size",
                                           .domain = IntDomain{.low = 1, .high = 64},
                                           .when = {},
                                           .default_value = {}}};
        return spec;
      }())
          .dump(),
      "', '{}', 10, 2, 2, 5, 1000);"
      "INSERT INTO study_data (study_id, file, digest) VALUES (1, 'train.jsonl', 'abc');"
      "INSERT INTO trial (study_id, number, state, params, demonstration, admission, "
      "forced_micro_batch, min_capacity, outcome, value, current_attempt, result_attempt, "
      "preemptions, worker_losses, transient_failures, device_ooms, host_ooms, oom_met, created, "
      "started, ended, last_sequence) VALUES "
      "(1, 0, 'COMPLETED', '{\"train.batch_size\":8}', 0, 1, 0, 0, "
      "'{\"kind\":\"completed\",\"metrics\":{\"score\":0.5},\"model_path\":\"\"}', 0.5, 1, 1, 0, "
      "0, "
      "0, 0, 0, 0, 10, 11, 12, 4),"
      "(1, 1, 'RUNNING', '{\"train.batch_size\":16}', 0, 1, 0, 0, NULL, NULL, 1, 0, 0, 0, 0, 0, 0, "
      "0, 10, 13, NULL, 5);"
      "INSERT INTO attempt (study_id, number, attempt, state, worker, instance_key, token, "
      "capacity, usable, predicted, plan, end_note, started, ended) VALUES "
      "(1, 0, 1, 'FINISHED', 'w', 'k', 't', 100, 90, 80, '",
      kPlan, "', '', 11, 12), (1, 1, 1, 'LEASED', 'w', 'k', 'u', 100, 90, 80, '", kPlan,
      "', '', 13, NULL);"
      "INSERT INTO measurement (study_id, number, attempt, step, epoch, metrics) VALUES "
      "(1, 0, 1, 7, 1.0, '{\"score\":0.5}');"
      "INSERT INTO event (study_id, sequence, number, kind, time) VALUES (1, 4, 0, 'finished', "
      "12), (1, 5, 1, 'started', 13);"
      "INSERT INTO idempotency (request_id, method, body_hash, response, time) VALUES "
      "('r', 'FinishTrial', 1, '{}', 12);"
      "INSERT INTO worker (name, instance_key, version, torch_build, trainer, device, capacity, "
      "registered) VALUES ('w', 'k', '1', '', 'custom', '{}', 100, 9);"
      "INSERT INTO suggestion (study_id, number, capacity, calibration_version, history_sequence, "
      "sampler, score) VALUES (1, 0, 100, 0, 0, 'random', NULL);");
  if (version == 1) {
    absl::StrAppend(&sql,
                    "INSERT INTO memory_observation VALUES (1, 0, 1, 'PEAK', 70, 90, 80, '{}', "
                    "'cpu', 12);");
  }
  if (version >= 2) {
    absl::StrAppend(&sql,
                    "INSERT INTO memory_residual VALUES (1, 1, 0, 1, '{}', 80, 70, 75, 0, 71, 76, "
                    "77, 90, 0.5, 0, 'cpu', 'test', '', '', 12);");
  }
  if (version >= 3) absl::StrAppend(&sql, "INSERT INTO memory_record VALUES (1, 0, 1, 0, '{}');");
  if (version >= 6) {
    absl::StrAppend(&sql, "INSERT INTO study_prior VALUES (1, 0, 'earlier', '[1]', 0, '');");
  }
  if (version >= 22) absl::StrAppend(&sql, "INSERT INTO attempt_log VALUES (1, 0, 1, 'epoch 1');");
  return sql;
}

std::vector<std::string> Rows(Database& database, const std::string& sql, int columns) {
  std::vector<std::string> rows;
  Statement statement = database.Prepare(sql);
  for (;;) {
    const absl::StatusOr<bool> row = statement.Next();
    EXPECT_TRUE(row.ok()) << row.status();
    if (!row.ok() || !*row) return rows;
    std::vector<std::string> cells;
    for (int i = 0; i < columns; ++i) {
      cells.push_back(statement.IsNull(i) ? "NULL" : statement.Text(i));
    }
    rows.push_back(absl::StrJoin(cells, "|"));
  }
}

// The schema and every row, as text. `without`: tables whose rows depend on the version.
std::vector<std::string> Dump(Database& database) {
  std::vector<std::string> dump =
      Rows(database, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name", 4);
  for (const std::string& table :
       Rows(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", 1)) {
    const auto columns =
        Rows(database, absl::StrCat("SELECT name FROM pragma_table_info('", table, "')"), 1);
    for (std::string& row : Rows(database, absl::StrCat("SELECT * FROM ", table, " ORDER BY 1, 2"),
                                 static_cast<int>(columns.size()))) {
      dump.push_back(absl::StrCat(table, ": ", row));
    }
  }
  return dump;
}

std::unique_ptr<Database> MustOpenFile(const std::string& path) {
  auto database = Database::Open(path, Database::Access::kReadWrite);
  EXPECT_TRUE(database.ok()) << database.status();
  return *std::move(database);
}

// Version 11 hashed what proves a lease.
constexpr int64_t kFirstHashed = 11;
constexpr char kHash[] =
    "UPDATE attempt SET token = sha256(token);"
    "UPDATE idempotency SET request_id = sha256(request_id)";
// Version 16 counted measurements.
constexpr int64_t kFirstCounted = 16;
constexpr char kCount[] =
    "UPDATE attempt SET measured = (SELECT COUNT(*) FROM measurement AS m WHERE m.number = "
    "attempt.number)";
// Of 128 random bits each, once they are made.
constexpr char kForgetRandom[] =
    "UPDATE server SET database = length(database), token_secret = length(token_secret)";

class MigrationFrom : public ::testing::TestWithParam<int64_t> {};

TEST_P(MigrationFrom, AnEarlierVersionEqualsAFreshDatabaseWithItsRows) {
  const std::span<const Migration> all = EmbeddedMigrations();
  const int64_t version = GetParam();
  TemporaryDatabase fresh_file;
  const auto fresh = MustOpenFile(fresh_file.path());
  ASSERT_TRUE(Migrate(*fresh, all).ok());
  // memory_observation is gone since version 2, with its rows.
  const std::string kept =
      version == 1 ? RowsOf(1).substr(0, RowsOf(1).rfind("INSERT")) : RowsOf(version);
  const absl::Status filled = fresh->Execute(kept);
  ASSERT_TRUE(filled.ok()) << filled;
  if (version < kFirstHashed) {
    ASSERT_TRUE(fresh->Execute(kHash).ok());
  }
  if (version < kFirstCounted) {
    ASSERT_TRUE(fresh->Execute(kCount).ok());
  }
  ASSERT_TRUE(fresh->Execute(kForgetRandom).ok());

  TemporaryDatabase file;
  {
    const auto old = MustOpenFile(file.path());
    ASSERT_TRUE(Migrate(*old, all.first(static_cast<size_t>(version))).ok());
    const absl::Status inserted = old->Execute(RowsOf(version));
    ASSERT_TRUE(inserted.ok()) << inserted;
    const absl::Status migrated = Migrate(*old, all);
    ASSERT_TRUE(migrated.ok()) << migrated;
    ASSERT_TRUE(old->Execute(kForgetRandom).ok());
    EXPECT_EQ(Dump(*old), Dump(*fresh));
    EXPECT_THAT(Rows(*old, "PRAGMA foreign_key_check", 1), IsEmpty());
    EXPECT_THAT(Rows(*old, "PRAGMA quick_check", 1), ElementsAre("ok"));
  }

  auto store = Store::Open(file.path());
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::Status read = (*store)->Read([](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const StudyStore::Studies studies, StudyStore(database).LoadAll());
    EXPECT_EQ(studies.records.size(), 1u);
    EXPECT_THAT(studies.unreadable, IsEmpty());
    const TrialStore trials(database, 1, "s");
    HPO_ASSIGN_OR_RETURN(const TrialRecord done, trials.LoadTrialWithAttempts(TrialNumber{0}));
    EXPECT_EQ(done.trial.value, 0.5);
    EXPECT_EQ(done.trial.attempts.size(), 1u);
    EXPECT_TRUE(done.trial.budgeted);
    HPO_ASSIGN_OR_RETURN(
        const AttemptRecord leased,
        AttemptStore(database, 1, "s").LoadAttempt(TrialNumber{1}, AttemptNumber{1}));
    EXPECT_TRUE(leased.HoldsLease());
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
}

INSTANTIATE_TEST_SUITE_P(Versions, MigrationFrom,
                         ::testing::Range<int64_t>(1, EmbeddedMigrations().back().version));

}  // namespace
}  // namespace hpo::server
