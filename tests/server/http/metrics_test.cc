#include "server/http/metrics.h"

#include "gmock/gmock.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ServerStatus Well() { return ServerStatus{.version = "1.2.3", .epoch = 4}; }

TEST(Metrics, OfAServerThatWorks) {
  const std::string text = MetricsText(Well(), {});
  EXPECT_THAT(text, HasSubstr("# TYPE hpo_database_usable gauge\nhpo_database_usable 1\n"));
  EXPECT_THAT(text, HasSubstr("\nhpo_database_damaged 0\n"));
  EXPECT_THAT(text, HasSubstr("\nhpo_build_info{version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nhpo_server_starts 4\n"));
}

TEST(Metrics, OfAServerThatCannotStore) {
  ServerStatus server = Well();
  server.trouble = "the disk is full";
  server.damage = {"a page"};
  const std::string text = MetricsText(server, {});
  EXPECT_THAT(text, HasSubstr("\nhpo_database_usable 0\n"));
  EXPECT_THAT(text, HasSubstr("\nhpo_database_damaged 1\n"));
}

StudyStatus SomeStudy() {
  StudyStatus study;
  study.spec.name = "criteria";
  study.counts = {.queued = 1, .running = 2, .completed = 30, .pruned = 4, .failed = 5};
  study.counts.oom_recovered = 6;
  study.best_value = 0.1;
  study.wall_clock_used = absl::Milliseconds(1500);
  study.runnable = 12;
  WorkerStatus busy{.name = "w0", .alive = true, .trial = TrialId{"criteria", TrialNumber{7}}};
  WorkerStatus gone{.name = "w1", .alive = false};
  study.workers = {busy, gone, gone};
  study.time_by_use = TimeByUse{.useful = absl::Hours(2),
                                .out_of_memory = absl::Minutes(1),
                                .pruned = absl::Minutes(2),
                                .failed = absl::Minutes(3),
                                .cancelled = absl::Minutes(4),
                                .preempted = absl::Minutes(5),
                                .lost = absl::Milliseconds(1500)};
  study.dry_runs =
      DryRunCounts{.made = 9, .refused = 4, .failed = 2, .saved = absl::Minutes(2), .trouble = ""};
  return study;
}

TEST(Metrics, OfAStudy) {
  const std::string text = MetricsText(Well(), {SomeStudy()});
  for (const char* line : {"hpo_trials{study=\"criteria\",state=\"completed\"} 30",
                           "hpo_trials{study=\"criteria\",state=\"cancelled\"} 0",
                           "hpo_trials_out_of_memory{study=\"criteria\",how=\"recovered\"} 6",
                           "hpo_workers{study=\"criteria\",state=\"busy\"} 1",
                           "hpo_workers{study=\"criteria\",state=\"idle\"} 0",
                           "hpo_workers{study=\"criteria\",state=\"gone\"} 2",
                           "hpo_study_best_value{study=\"criteria\"} 0.10000000000000001",
                           "hpo_study_wall_clock_seconds{study=\"criteria\"} 1.5",
                           "hpo_dry_runs{study=\"criteria\",result=\"fits\"} 3",
                           "hpo_dry_runs{study=\"criteria\",result=\"does_not_fit\"} 4",
                           "hpo_dry_runs_saved_gpu_seconds{study=\"criteria\"} 120",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"useful\"} 7200",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"out_of_memory\"} 60",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"pruned\"} 120",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"failed\"} 180",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"cancelled\"} 240",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"preempted\"} 300",
                           "hpo_gpu_seconds{study=\"criteria\",use=\"lost\"} 1.5",
                           "hpo_trials_runnable{study=\"criteria\"} 12",
                           "hpo_study_finished{study=\"criteria\"} 0",
                           "hpo_study_failed{study=\"criteria\"} 0"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + line + "\n"));
  }
}

TEST(Metrics, AStudyThatNoNumberBoundsTakesAnyWorker) {
  StudyStatus study = SomeStudy();
  study.runnable.reset();
  EXPECT_THAT(MetricsText(Well(), {study}),
              HasSubstr("\nhpo_trials_runnable{study=\"criteria\"} +Inf\n"));
}

TEST(Metrics, ABestThatViolatesAConstraintIsNone) {
  StudyStatus study = SomeStudy();
  study.best_violation = 0.5;
  EXPECT_THAT(MetricsText(Well(), {study}), Not(HasSubstr("hpo_study_best_value{")));
}

// The format's three escapes; names of studies hold none of them today, versions might.
TEST(Metrics, EscapesWhatStandsInQuotes) {
  ServerStatus server = Well();
  server.version = "a\"b\\c\nd";
  EXPECT_THAT(MetricsText(server, {}), HasSubstr(R"({version="a\"b\\c\nd"})"));
}

TEST(Metrics, SaysEachNameOnceAndAllItsSamplesAfterIt) {
  StudyStatus other = SomeStudy();
  other.spec.name = "other";
  const std::string text = MetricsText(Well(), {SomeStudy(), other});
  const size_t type = text.find("# TYPE hpo_trials gauge");
  ASSERT_NE(type, std::string::npos);
  EXPECT_EQ(text.find("# TYPE hpo_trials gauge", type + 1), std::string::npos);
  EXPECT_LT(text.find("hpo_trials{study=\"other\""), text.find("# HELP hpo_trials_out_of_memory"));
}

}  // namespace
}  // namespace hpo::server
