#include "common/command_line/terminal_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hpo {
namespace {

TEST(ShownLine, KeepsWhatPeopleRead) {
  for (const char* line :
       {"", "  File \"train.py\", line 3", "a\ttab", "größe 日本 😀", "100%|███| 3/3"}) {
    EXPECT_EQ(ShownLine(line), line);
  }
}

TEST(ShownLine, OfAProgressBarTheLastStateIsLeft) {
  const std::pair<const char*, const char*> cases[] = {
      {"\r  0%|   |\r 50%|# |\r100%|##|", "100%|##|"},
      {"\r 50%|# |\r                \rdone", "done"},  // wiped, then a message
      {"100%|##|\r", "100%|##|"},                      // Windows' end of a line
      {"1/2\b\b\b2/2", "2/2"},                         // Keras
      {"\x1b[2K\r 50%\x1b[2K\r100%", "100%"},          // rich
      {"\x1b[A 50%", " 50%"},                          // several bars
      {"\r\r", ""},
  };
  for (const auto& [line, shown] : cases) EXPECT_EQ(ShownLine(line), shown) << shown;
}

TEST(ShownLine, NothingSteersTheTerminal) {
  const std::pair<std::string, const char*> cases[] = {
      {"\x1b[2J\x1b[1;1Hgone", "gone"},
      {"\x1b]0;title\a!", "!"},
      {"\x1b]52;c;cm0gLXJm\x1b\\!", "!"},  // writes the clipboard
      {"\x1b]8;;http://x\x1b\\a link\x1b]8;;\x1b\\", "a link"},
      {"\x1bPq#0\x1b\\sixel", "sixel"},
      {"\x1b]0;never ends", "]0;never ends"},
      {"\x1b[5", "[5"},
      {"\x1b", ""},
      {"\x1b"
       "c\x1b(0x",
       "x"},  // resets; changes the letters
      {"\xc2\x9b"
       "2J",
       "?2J"},  // C1 in UTF-8, and as a byte
      {"\x9b"
       "2J",
       "?2J"},
      {"\u202E"
       "abc\x07\x00\x7f",
       "?abc"},
      {"\xff\xc3", "??"},
  };
  for (const auto& [line, shown] : cases) {
    EXPECT_EQ(ShownLine(line), shown);
    EXPECT_EQ(ShownLine(line, PrintedColors::kKept), shown);
  }
}

TEST(ShownLine, ColoursStayWhereTheyAreAskedFor) {
  const std::string red = "\x1b[1;31mbad\x1b[0m";
  EXPECT_EQ(ShownLine(red), "bad");
  EXPECT_EQ(ShownLine(red, PrintedColors::kKept), red + "\x1b[0m");
  EXPECT_EQ(ShownLine("\x1b[38;5;208mx\x1b[m", PrintedColors::kKept),
            "\x1b[38;5;208mx\x1b[m\x1b[0m");
  EXPECT_EQ(ShownLine("\x1b[8mhidden\x1b[5m", PrintedColors::kKept), "hidden");
}

TEST(ShownLines, EachLineIsReadByItself) {
  EXPECT_EQ(ShownLines("\r 1%\r 2%\nTraceback:\n  \x1b[31mx\n"), " 2%\nTraceback:\n  x\n");
}

}  // namespace
}  // namespace hpo
