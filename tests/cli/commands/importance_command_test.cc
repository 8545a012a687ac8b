#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

class ImportanceTest : public server::CoordinatorFixture {
 protected:
  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"study", "importance"});
    words.insert(words.end(), {"--server", coordinator_->address()});
    return RunProgram(std::move(words));
  }
};

TEST_F(ImportanceTest, AssessesCompletedTrials) {
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  for (const double score : {0.5, 0.9, 0.7}) {
    Complete(Acquire(session, absl::StrCat("a", score)).assignment(), score);
  }
  for (const char* method : {"ped-anova", "fanova"}) {
    SCOPED_TRACE(method);
    const ProgramResult table = Run({"plain", "--method", method});
    EXPECT_EQ(table.status, 0) << table.err;
    EXPECT_THAT(table.out, HasSubstr(absl::StrCat("plain: what moved score, by ", method,
                                                  " of 3 completed trials\n")));
    EXPECT_THAT(table.out, HasSubstr("train.batch_size"));
    const auto json = ParsedOutput(Run({"--method", method, "--output", "json"}));
    EXPECT_EQ(json["study"], "plain");
    EXPECT_EQ(json["metric"], "score");
    EXPECT_EQ(json["trials"], 3);
    ASSERT_EQ(json["importance"].size(), 3u);
    double sum = 0.0;
    for (const auto& parameter : json["importance"]) {
      sum += parameter["share"].get<double>();
      EXPECT_LE(0.0, parameter["low"].get<double>());
      EXPECT_LE(parameter["low"].get<double>(), parameter["high"].get<double>());
      EXPECT_LE(parameter["high"].get<double>(), 1.0);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
  }
}

TEST_F(ImportanceTest, WhatIsNotModelledIsNotImportant) {
  ASSERT_TRUE(
      Create(absl::StrCat(server::kPlainStudy, "  seed: {int: [1, 65535], model: false}\n")).ok());
  const std::string session = Register();
  for (const double score : {0.5, 0.9, 0.7}) {
    Complete(Acquire(session, absl::StrCat("a", score)).assignment(), score);
  }
  for (const char* method : {"ped-anova", "fanova"}) {
    const auto json = ParsedOutput(Run({"--method", method, "--output", "json"}));
    EXPECT_EQ(json["importance"].size(), 3u);
    EXPECT_THAT(json["importance"].dump(), testing::Not(HasSubstr("seed")));
  }
}

TEST_F(ImportanceTest, NamesWhatIsMissing) {
  EXPECT_EQ(Run({"absent"}).status, 3);
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string session = Register();
  Complete(Acquire(session, "a1").assignment(), 0.5);
  const ProgramResult few = Run({"plain"});
  EXPECT_EQ(few.status, 4);
  EXPECT_THAT(few.err, HasSubstr("study plain: importance: expected at least 2 completed trials"));
  Complete(Acquire(session, "a2").assignment(), 0.5);
  EXPECT_THAT(Run({"plain"}).err, HasSubstr("2 with the same value"));
  const ProgramResult metric = Run({"--metric", "loss"});
  EXPECT_EQ(metric.status, 2);
  EXPECT_THAT(metric.err, HasSubstr("--metric: expected an objective of plain, score; got 'loss'"));
  EXPECT_EQ(Run({"--method", "shap"}).status, 2);
}

}  // namespace
}  // namespace hpo::cli
