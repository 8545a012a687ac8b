#include "common/command_line/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/command_line/bounds.h"

namespace hpo {
namespace {

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() : app_("Talks to a server", "hpo") {
    app_.add_option("--server", server_, "Where the server listens");
    app_.set_version_flag("--version", "hpo 1.2.3");
    app_.require_subcommand(1);
    CLI::App* trial = app_.add_subcommand("trial", "Trials");
    trial->require_subcommand(1);
    CLI::App* show = trial->add_subcommand("show", "One trial");
    show->add_option("number", number_, "The trial's number")->required();
    trial->add_subcommand("list", "Trials by page");
  }

  std::optional<int> Parse(std::vector<const char*> words) {
    words.insert(words.begin(), "hpo");
    return ParseCommandLine(app_, static_cast<int>(words.size()), words.data(), out_, err_);
  }

  CLI::App app_;
  std::string server_;
  int64_t number_ = 0;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CommandLineTest, FillsTheVariables) {
  EXPECT_EQ(Parse({"--server", "localhost:1", "trial", "show", "7"}), std::nullopt);
  EXPECT_EQ(server_, "localhost:1");
  EXPECT_EQ(number_, 7);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CommandLineTest, HelpAndVersionEndWell) {
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_.str(), "hpo 1.2.3\n");
  EXPECT_EQ(Parse({"trial", "show", "--help"}), 0);
  EXPECT_NE(out_.str().find("The trial's number"), std::string::npos);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CommandLineTest, AWrongLineIsOneLineWithASuggestion) {
  const struct {
    std::vector<const char*> words;
    const char* line;
  } cases[] = {
      {{"--sever", "x"}, "hpo: no option --sever; did you mean '--server'? (see hpo --help)\n"},
      {{"trail"}, "hpo: no command 'trail'; did you mean 'trial'? (see hpo --help)\n"},
      {{"trial", "lst"},
       "hpo trial: no command 'lst'; did you mean 'list'? (see hpo trial --help)\n"},
      {{"trial", "list", "x"},
       "hpo trial list: unexpected argument 'x' (see hpo trial list --help)\n"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.line);
    err_.str("");
    EXPECT_EQ(Parse(test.words), kUsageExit);
    EXPECT_EQ(err_.str(), test.line);
  }
}

TEST_F(CommandLineTest, AMissingOrWrongValueIsNamed) {
  EXPECT_EQ(Parse({"trial", "show"}), kUsageExit);
  EXPECT_NE(err_.str().find("number"), std::string::npos) << err_.str();
  err_.str("");
  EXPECT_EQ(Parse({"trial", "show", "seven"}), kUsageExit);
  EXPECT_NE(err_.str().find("seven"), std::string::npos) << err_.str();
  const std::string line = err_.str();
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
}

TEST_F(CommandLineTest, AFractionIsNoWholeNumber) {
  int limit = 0;
  app_.add_option("--limit", limit, "At most")->type_name("N")->check(AtLeast(0));
  EXPECT_EQ(Parse({"--limit", "1.5", "trial", "list"}), kUsageExit);
  EXPECT_NE(err_.str().find("--limit: expected a whole number, got '1.5'"), std::string::npos)
      << err_.str();
}

TEST_F(CommandLineTest, ALeadingZeroIsNotReadAsOctal) {
  uint64_t seed = 0;
  int64_t limit = 0;
  app_.add_option("--seed", seed, "Seed")->type_name("N")->check(Unsigned64());
  app_.add_option("--limit", limit, "At most")->type_name("N")->check(AtLeast(-100));
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"trial", "show", "010"},
        std::vector<const char*>{"--seed", "010", "trial", "list"},
        std::vector<const char*>{"--limit=-010", "trial", "list"}}) {
    err_.str("");
    EXPECT_EQ(Parse(words), kUsageExit);
    EXPECT_NE(err_.str().find("expected a number without a leading zero, got '"), std::string::npos)
        << err_.str();
  }
  EXPECT_EQ(Parse({"--limit", "0", "--seed", "0", "trial", "show", "10"}), std::nullopt);
  EXPECT_EQ(number_, 10);
}

TEST_F(CommandLineTest, AnIntegerThatNoneHoldsIsNoOther) {
  int64_t limit = 0;
  app_.add_option("--limit", limit, "At most")->type_name("N")->check(AtLeast(0));
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"trial", "show", "99999999999999999999"},
        std::vector<const char*>{"--limit", "99999999999999999999", "trial", "list"}}) {
    err_.str("");
    EXPECT_EQ(Parse(words), kUsageExit);
    EXPECT_NE(err_.str().find("from -9223372036854775808 to 9223372036854775807, got "
                              "'99999999999999999999'"),
              std::string::npos)
        << err_.str();
  }
  EXPECT_EQ(number_, 0);
  EXPECT_EQ(limit, 0);
  EXPECT_EQ(Parse({"trial", "show", "9223372036854775807"}), std::nullopt);
}

}  // namespace
}  // namespace hpo
