#include "server/storage/calibration_store.h"

#include "gtest/gtest.h"
#include "server/storage/sqlite/migrations.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

const absl::Time kCalibrated = absl::FromUnixSeconds(1'700'000'000);

class CalibrationStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    database_ = Database::Open(file_.path(), Database::Access::kReadWrite).value();
    ASSERT_TRUE(Migrate(*database_, EmbeddedMigrations()).ok());
    StudySpec spec;
    spec.name = "s";
    study_id_ = StudyStore(*database_).Insert(spec, kCalibrated).value();
    TrialStore trials(*database_, study_id_, "s");
    for (int64_t number = 0; number < 3; ++number) {
      TrialRecord trial{.study_id = study_id_};
      trial.trial.id = TrialId{"s", TrialNumber{number}};
      trial.trial.created = kCalibrated;
      ASSERT_TRUE(trials.InsertTrial(trial).ok());
      AttemptRecord attempt{.study_id = study_id_, .trial = TrialNumber{number}};
      attempt.attempt.number = AttemptNumber{1};
      attempt.attempt.started = kCalibrated;
      ASSERT_TRUE(AttemptStore(*database_, study_id_, "s").InsertAttempt(attempt).ok());
    }
  }

  static ResidualRecord Record(int64_t trial, double score) {
    ResidualRecord record{.trial = TrialNumber{trial}, .attempt = AttemptNumber{1}};
    record.plan = {.effective_batch = 32, .micro_batch = 8};
    record.predicted.needed_limit = GiB(3);
    record.predicted.live_peak = GiB(1);
    record.predicted.reserved_peak = GiB(2);
    record.predicted.fragile = true;
    record.used = {.live_peak = MiB(1), .reserved_peak = MiB(2), .device_peak = MiB(3)};
    record.limit = GiB(4);
    record.device = {.kind = "cuda", .name = "H200", .driver = "580"};
    record.torch_build = "2.11.0+cu130";
    record.residual = {
        .residual_class = {.device_kind = "cuda", .band = memory::NeedBand::kFrom2To10GiB},
        .score = score,
        .censored = trial == 1};
    return record;
  }

  CalibrationStore Residuals() { return CalibrationStore(*database_); }

  TemporaryDatabase file_;
  std::unique_ptr<Database> database_;
  int64_t study_id_ = 0;
};

TEST_F(CalibrationStoreTest, ResidualsComeBackInTheirOrder) {
  for (const int64_t trial : {2, 1, 0}) {
    const auto version = Residuals().Insert(study_id_, Record(trial, 0.25 * trial), kCalibrated);
    ASSERT_TRUE(version.ok()) << version.status();
    EXPECT_EQ(*version, 3 - trial);
  }
  const auto all = Residuals().LoadAll();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*all)[static_cast<size_t>(i)].version, i + 1);
    EXPECT_EQ((*all)[static_cast<size_t>(i)].residual, Record(2 - i, 0.25 * (2 - i)).residual);
  }
  // What calibration knew at version 2.
  const auto earlier = Residuals().LoadAll(/*last=*/2);
  ASSERT_EQ(earlier->size(), 2u);
  EXPECT_EQ(earlier->back().version, 2);
}

TEST_F(CalibrationStoreTest, AnAttemptTeachesOnce) {
  ASSERT_TRUE(Residuals().Insert(study_id_, Record(0, 0.5), kCalibrated).ok());
  EXPECT_TRUE(
      absl::IsAlreadyExists(Residuals().Insert(study_id_, Record(0, 0.5), kCalibrated).status()));
  EXPECT_EQ(Residuals().LoadAll()->size(), 1u);
}

TEST_F(CalibrationStoreTest, TheRowTellsWhatWasPredictedAndUsedAndWhere) {
  ASSERT_TRUE(Residuals().Insert(study_id_, Record(0, 0.5), kCalibrated).ok());
  Statement row = database_->Prepare(
      "SELECT predicted, predicted_live, predicted_reserved, live, reserved, device_used, usable, "
      "device, driver, torch_build, time FROM memory_residual");
  ASSERT_TRUE(row.Next().value());
  const Bytes sizes[] = {GiB(3), GiB(1), GiB(2), MiB(1), MiB(2), MiB(3), GiB(4)};
  for (int column = 0; column < 7; ++column) EXPECT_EQ(row.Size(column), sizes[column]) << column;
  EXPECT_EQ(row.Text(7), "H200");
  EXPECT_EQ(row.Text(8), "580");
  EXPECT_EQ(row.Text(9), "2.11.0+cu130");
  EXPECT_EQ(row.Time(10), kCalibrated);
}

TEST(MemoryResidualMigration, KeepsTheAttemptsOfADatabaseOfVersion1) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite).value();
  ASSERT_TRUE(Migrate(*database, EmbeddedMigrations().first(1)).ok());
  ASSERT_TRUE(database
                  ->Execute("INSERT INTO study (id, name, spec, stated, created) VALUES (1, 's', "
                            "'{}', '{}', 0);"
                            "INSERT INTO trial VALUES (1, 0, 'RUNNING', NULL, '{}', 0, 1, 0, 0, "
                            "NULL, NULL, 1, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, 1);"
                            "INSERT INTO attempt VALUES (1, 0, 1, 'LEASED', 'w', 'k', 't', 8, 7, "
                            "6, '{\"effective_batch\":2,\"micro_batch\":1}', NULL, NULL, NULL, "
                            "'', 0, NULL)")
                  .ok());
  ASSERT_TRUE(Migrate(*database, EmbeddedMigrations()).ok());
  const auto attempt =
      AttemptStore(*database, 1, "s").LoadAttempt(TrialNumber{0}, AttemptNumber{1});
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  EXPECT_EQ(attempt->attempt.predicted, Bytes{6});
  EXPECT_EQ(attempt->required, Bytes{0});
}

}  // namespace
}  // namespace hpo::server
