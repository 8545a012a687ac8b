#include "common/base/limits.h"

#include <fstream>
#include <sstream>

#include "common/base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"

namespace hpo {
namespace {

using testing::HasSubstr;

TEST(Limits, TheDocumentHasTheTableOfTheCode) {
  std::ifstream file(SourcePath("docs/limits.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(LimitsTable()));
}

TEST(Limits, ALongTextLosesItsMiddle) {
  constexpr Limit kShort = {.most = 100, .unit = "", .what = "", .beyond = "", .why = ""};
  EXPECT_EQ(Shortened("all of it", kShort), "all of it");
  const std::string text = "Traceback:" + std::string(4 << 20, '.') + "ValueError: no";
  const std::string shortened = Shortened(text, kShort);
  EXPECT_LE(shortened.size(), 100);
  EXPECT_THAT(shortened, testing::StartsWith("Traceback:....."));
  EXPECT_THAT(shortened, testing::EndsWith("...ValueError: no"));
  EXPECT_THAT(shortened, HasSubstr(" bytes left out "));
}

TEST(Limits, CharactersStayWhole) {
  constexpr Limit kShort = {.most = 101, .unit = "", .what = "", .beyond = "", .why = ""};
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xE2\x82\xAC";  // a euro sign, three bytes
  for (int cut = 0; cut < 3; ++cut) {
    const std::string shortened = Shortened(text.substr(0, 300) + std::string(cut, 'x'), kShort);
    EXPECT_EQ(ValidUtf8Prefix(shortened), shortened.size()) << cut;
    const std::string quoted = Quoted(std::string(cut, 'x') + text);
    EXPECT_EQ(ValidUtf8Prefix(quoted), quoted.size()) << cut;
  }
}

}  // namespace
}  // namespace hpo
