#include "cli/dryrun/study_dry_run_words.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hpo::cli {
namespace {

TEST(StudyDryRunWords, AStudyIsTheFirstWordThatIsNoOption) {
  const std::pair<std::vector<std::string>, bool> cases[] = {
      {{"study.yaml", "--gpu", "t4"}, true},
      {{"--gpu", "t4", "--json", "a/study.yml"}, true},
      {{"--gpu=t4", "study.yaml", "--", "python3", "train.py"}, true},
      {{"--gpu", "t4", "--", "train.sh", "config.yaml"}, false},
      {{"--gpu", "t4", "train.sh", "config.yaml"}, false},
      {{"--gpu", "t4", "--", "config.yaml"}, false},
      {{"--help"}, false},
      {{}, false}};
  for (const auto& [words, is_for_study] : cases) {
    EXPECT_EQ(IsForStudy(words), is_for_study) << (words.empty() ? "" : words[0]);
  }
}

TEST(StudyDryRunWords, Reads) {
  std::ostringstream out;
  std::ostringstream err;
  const auto read = ReadStudyDryRunWords(
      {"s.yaml", "--card", "t4,l4", "--timeout", "60", "--sample", "all", "--parameters",
       "batch,width", "--jobs", "3", "--seed", "7", "--", "a.sh", "--json"},
      out, err, 80);
  const auto* const options = std::get_if<StudyDryRunOptions>(&read);
  ASSERT_NE(options, nullptr) << err.str();
  EXPECT_EQ(options->study, "s.yaml");
  EXPECT_EQ(options->passed_on, (std::vector<std::string>{"--gpu", "t4,l4", "--timeout", "60"}));
  EXPECT_TRUE(options->runs_all);
  EXPECT_EQ(options->parameters, (std::vector<std::string>{"batch", "width"}));
  EXPECT_EQ(options->jobs, 3);
  EXPECT_EQ(options->seed, 7u);
  EXPECT_FALSE(options->json);
  EXPECT_EQ(options->command, (std::vector<std::string>{"a.sh", "--json"}));
}

TEST(StudyDryRunWords, HelpHasLinesOf80Columns) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(std::get<int>(ReadStudyDryRunWords({"s.yaml", "--help"}, out, err, 80)), 0);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace hpo::cli
