#include "worker/text/files/text_encoding.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ASCII and one character above, as UTF-16.
std::string Utf16(const std::string& ascii, bool big, bool mark) {
  std::string bytes = mark ? (big ? "\xFE\xFF" : "\xFF\xFE") : "";
  for (const char c : ascii) bytes += big ? std::string{'\0', c} : std::string{c, '\0'};
  return bytes;
}

std::string Repeated(const std::string& line, int times) {
  std::string lines;
  for (int i = 0; i < times; ++i) lines += line;
  return lines;
}

TEST(DecodeText, TakesUtf8AndUtf16) {
  const std::string text = "text,label\na,x\n";
  for (const std::string& content :
       {text, "\xEF\xBB\xBF" + text, Utf16(text, false, true), Utf16(text, true, true),
        Utf16(text, false, false), Utf16(text, true, false)}) {
    const auto decoded = DecodeText(content, "f");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->text(), text);
    EXPECT_THAT(decoded->warnings, IsEmpty());
  }
  const auto pair = DecodeText(std::string("\xFF\xFE\x3D\xD8\x00\xDE\xE9\x00", 8), "f");
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->text(), "😀é");
}

TEST(DecodeText, HalvesOfUtf16AreReplaced) {
  for (const auto& [tail, expected] : {std::pair{std::string("\x3D\xD8"), "a\uFFFD"},
                                       {std::string("b"), "a\uFFFD"},
                                       {std::string("\x3D\xD8\x62\x00", 4), "a\uFFFDb"}}) {
    const auto decoded = DecodeText(Utf16("a", false, true) + tail, "f");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->text(), expected);
    EXPECT_THAT(decoded->warnings, ElementsAre(HasSubstr("f:1:2: half of a character of UTF-16")));
  }
}

TEST(DecodeText, OneLineInAHundredMayHaveCharactersThatAreNone) {
  const std::string good = "good é\n";
  const std::string bad = "caf\xE9 \xE9\n";
  const auto decoded = DecodeText(Repeated(good, 198) + Repeated(bad, 2), "f");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->text(), Repeated(good, 198) + Repeated("caf\uFFFD \uFFFD\n", 2));
  EXPECT_THAT(decoded->warnings, ElementsAre("f:199:4: byte 0xe9, which is no text in UTF-8, was "
                                             "replaced by U+FFFD, as were 3 more of this file"));
  EXPECT_FALSE(DecodeText(Repeated(good, 198) + Repeated(bad, 3), "f").ok());
}

TEST(DecodeText, TakesUtf16WithoutAMarkInOtherScripts) {
  // "文本,好\n电影,一\n"
  const std::string little(
      "\x87\x65\x2C\x67\x2C\x00\x7D\x59\x0A\x00\x35\x75\x71\x5F\x2C\x00\x00\x4E\x0A\x00", 20);
  std::string big = little;
  for (size_t i = 0; i < big.size(); i += 2) std::swap(big[i], big[i + 1]);
  for (const std::string& content : {little, big}) {
    const auto decoded = DecodeText(content, "f");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->text(), "文本,好\n电影,一\n");
  }
}

TEST(DecodeText, NulsInTextAreNoUtf16) {
  EXPECT_FALSE(DecodeText(Repeated(std::string("t\0001,b\n", 6), 20), "f").ok());
  const auto decoded = DecodeText(Repeated(std::string("the\0film was\0good,pos\n", 22), 20), "f");
  EXPECT_THAT(std::string(decoded.status().message()),
              HasSubstr("f:1:4: expected text in UTF-8, got a NUL"));
}

TEST(DecodeText, ALineThatIsBadAltogetherIsNoSlip) {
  EXPECT_FALSE(DecodeText("text,label\n\xC4\xE3\xBA\xC3\xCA\xC0\xBD\xE7,x\n", "f").ok());
}

TEST(DecodeText, PlusSignsAreNoEncoding) {
  for (const char* const text : {"1+1\n2+2-\n3+3-\n", "C+Foo-bar\n", "+-\n+-\n+-\n"}) {
    EXPECT_TRUE(DecodeText(text, "f").ok()) << text;
  }
}

TEST(DecodeText, OtherEncodingsAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {Repeated("caf\xE9\n", 3),
       "f:1:4: expected text in UTF-8, got byte 0xe9 here, and characters that are not UTF-8 in 3 "
       "of "
       "3 lines; it looks like Latin-1 or Windows-1252 (Western European); convert it, in its "
       "folder: iconv -f WINDOWS-1252 -t UTF-8 f > f.utf8"},
      {Repeated("\x80 5\n", 3), "it looks like Windows-1252 (Western European)"},
      {"é\n" + Repeated("caf\xE9\n", 3),
       "f:2:4: expected text in UTF-8, got byte 0xe9 here, and "
       "characters that are not UTF-8 in 3 of 4 lines; other characters are UTF-8"},
      {Repeated(std::string("a\0\n", 3), 3), "f:1:2: expected text in UTF-8, got a NUL here"},
      {std::string("\xFF\xFE\0\0a\0\0\0", 8),
       "f:1: expected text in UTF-8 or UTF-16, got UTF-32; convert it, in its folder: iconv -f "
       "UTF-32 -t UTF-8 f > f.utf8"},
      {std::string("a\0\0\0,\0\0\0", 8), "iconv -f UTF-32LE"},
      {std::string("\0\0\0a\0\0\0,", 8), "iconv -f UTF-32BE"},
      {"text\n\x1B$B$3$N\x1B(B\n", "f:2:1: expected text in UTF-8; it looks like ISO-2022-JP"},
      {"caf+AOk-\ntr+AOg-s\n+AMk-t+AOk-\n", "f:1:4: expected text in UTF-8; it looks like UTF-7"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 4\n",
       "f:1: expected rows of text, got a pointer of Git LFS, not the file itself; fetch it"},
      {"PK\x03\x04", "got a ZIP archive or an Excel workbook"},
      {"\x1F\x8B\x08", "compressed by gzip"},
      {"PAR1", "a Parquet file"},
      {"\n<!DOCTYPE HTML>", "a page of HTML"},
  };
  for (const auto& [content, expected] : cases) {
    SCOPED_TRACE(expected);
    const auto decoded = DecodeText(content, "f");
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace hpo::text
