#include "cli/client/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace hpo::cli {
namespace {

TEST(Terminal, CutsBetweenCharacters) {
  EXPECT_EQ(FitTo("model", 5), "model");
  EXPECT_EQ(FitTo("models", 5), "mode…");
  EXPECT_EQ(FitTo("größer", 4), "grö…");
  EXPECT_EQ(FitTo("日本語", 4), "日…");
  EXPECT_EQ(FitTo("abc", 1), "…");
}

TEST(Terminal, NothingCanSteerTheTerminal) {
  EXPECT_EQ(Printable("plain größe 日本"), "plain größe 日本");
  EXPECT_EQ(Printable("\x1b[2Jgone\nline\t"), "?[2Jgone?line?");
  EXPECT_EQ(Printable("\u202Eabc"), "?abc");  // right-to-left override
  EXPECT_EQ(Printable("\xc3"), "?");          // cut in half
  EXPECT_EQ(Printable("\xff\xfe"), "??");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a?b");
}

TEST(Terminal, APipeIsNotInteractiveAndColumnsCanBeSet) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  unsetenv("COLUMNS");
  EXPECT_FALSE(DetectTerminal(ends[1]).interactive);
  EXPECT_EQ(DetectTerminal(ends[1]).columns, 0);
  setenv("COLUMNS", "72", 1);
  EXPECT_EQ(DetectTerminal(ends[1]).columns, 72);
  setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(DetectTerminal(ends[1]).columns, 0);
  unsetenv("COLUMNS");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hpo::cli
