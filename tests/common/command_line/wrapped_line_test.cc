#include "common/command_line/wrapped_line.h"

#include <gtest/gtest.h>

namespace hpo {
namespace {

TEST(WrappedLine, ColumnsAreCountedNotBytes) {
  const std::pair<const char*, int> cases[] = {
      {"", 0},
      {"größe", 5},
      {"日本", 4},
      {"e\u0301", 1},
      {"\u2026", 1},
      {"😀", 2},
      {"\x1b[32mok\x1b[0m", 2},
      {"\r\x1b[Know", 3},
  };
  for (const auto& [text, width] : cases) EXPECT_EQ(DisplayWidth(text), width) << text;
}

TEST(WrappedLine, IsBrokenAtBlanksAndHangsBelowItsLabel) {
  const struct {
    const char* line;
    int columns;
    const char* wrapped;
  } cases[] = {
      {"it fits", 7, "it fits"},
      {"", 5, ""},
      {"       ", 3, "       "},
      {"one two three four", 13, "one two three\n  four"},
      {"  one two three", 9, "  one two\n  three"},
      {"  one two three four five six", 20, "  one two three four\n      five six"},
      {"label     some long text", 20, "label     some long\n          text"},
      {"a   日本 日本 日本", 13, "a   日本 日本\n    日本"},
      {"averylongwordindeed and more", 10, "averylongwordindeed\n  and more"},
      {"                              help of an option", 40, "  help of an option"},
      {"\x1b[32mone two\x1b[0m three", 13, "\x1b[32mone two\x1b[0m three"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(WrappedLine(test.line, test.columns), test.wrapped) << test.line;
  }
}

TEST(WrappedLine, ACommandStaysWholeSoThatItCanBeCopied) {
  EXPECT_EQ(WrappedLine("to go on: hpo run study.yaml --add 20; it is kept", 24),
            "to go on:\n  hpo run study.yaml --add 20;\n  it is kept");
  EXPECT_EQ(WrappedLine("  hpo --db a.db trial logs 3 --study toy  # what it printed", 30),
            "  hpo --db a.db trial logs 3 --study toy\n      # what it printed");
  EXPECT_EQ(WrappedLine("  hpo status  # all of them", 24), "  hpo status\n      # all of them");
  EXPECT_EQ(WrappedLine("    --compare a b \\", 9), "    --compare a b \\");
  EXPECT_EQ(WrappedLines("a b c\nd e f", 4), "a b\n  c\nd e\n  f");
}

}  // namespace
}  // namespace hpo
