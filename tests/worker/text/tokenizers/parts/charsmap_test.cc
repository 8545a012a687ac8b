#include "worker/text/tokenizers/parts/charsmap.h"

#include <cstring>
#include <string>
#include <utility>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/tokenizers/families/sentencepiece_model.h"

namespace hpo::text {
namespace {

using ::testing::HasSubstr;

// The map of a golden model.
Charsmap MapOf(const std::string& model) {
  const std::string path = GoldenTokenizersPath(model);
  const auto parsed = ParseSentencePieceModel(*ReadFile(path), path);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  auto map = Charsmap::Parse(parsed->precompiled_charsmap);
  EXPECT_TRUE(map.ok()) << map.status();
  return *std::move(map);
}

TEST(Charsmap, FindsTheLongestAndTheShortestRule) {
  const Charsmap map = MapOf("deberta-like/spm.model");
  const Charsmap::Rewrite longest = map.Longest("abcd");
  EXPECT_EQ(longest.size, 3);
  EXPECT_EQ(longest.text, "C");
  const Charsmap::Rewrite shortest = map.Shortest("abcd");
  EXPECT_EQ(shortest.size, 2);
  EXPECT_EQ(shortest.text, "AB");
  EXPECT_EQ(map.Longest("a").size, 0);
  EXPECT_EQ(map.Longest("A\u030Ax").text, "\u00C5");
  const Charsmap::Rewrite deleted = map.Longest("\u200Bx");
  EXPECT_EQ(deleted.size, 3);
  EXPECT_EQ(deleted.text, "");
}

TEST(Charsmap, UntouchedAsciiEndsWhereARuleMayBegin) {
  const Charsmap map = MapOf("deberta-like/spm.model");
  EXPECT_EQ(map.UntouchedAscii("xyz"), 3);
  EXPECT_EQ(map.UntouchedAscii("xyzab"), 3);
  EXPECT_EQ(map.UntouchedAscii("xyA"), 3);
  EXPECT_EQ(map.UntouchedAscii("xyA\u030A"), 2);
  EXPECT_EQ(map.UntouchedAscii("xye\u0301"), 2);
  EXPECT_EQ(map.UntouchedAscii("x\ty"), 1);
  EXPECT_EQ(map.UntouchedAscii(""), 0);
  EXPECT_EQ(Charsmap().UntouchedAscii("any\tthing\u00E9"), 9);
}

TEST(Charsmap, WithoutRulesNothingChanges) {
  EXPECT_EQ(Charsmap().Longest("\uFF21").size, 0);
  EXPECT_EQ(Charsmap().RewriteGraphemes("a\uFF21e\u0301"), "a\uFF21e\u0301");
}

TEST(Charsmap, GraphemesTakeTheirShortestRule) {
  const Charsmap map = MapOf("sentencepiece-test/test_model.model");
  EXPECT_EQ(map.RewriteGraphemes("\uFF21\uFB01 \u2026 \u2460"), "Afi ... 1");
  EXPECT_EQ(map.RewriteGraphemes("cafe\u0301!"), "caf\u00E9!");
  EXPECT_EQ(map.RewriteGraphemes("plain"), "plain");
}

TEST(Charsmap, NamesWhatIsWrong) {
  const auto blob = [](uint32_t size, const std::string& rest) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &size, 4);
    return bytes + rest;
  };
  const std::pair<std::string, const char*> cases[] = {
      {"abc", "byte 0: expected a size of 4 bytes, got 3"},
      {blob(0, "abcd"), "byte 0: expected the size of a trie in the 4 bytes after it, got 0"},
      {blob(4, "abcd"), "got 4"},
      {blob(6, std::string(8, '\0')), "got 6"},
      {blob(4, "abcdx"), "byte 8: expected the NUL that ends a string"},
      {blob(4, std::string("abcd\xFF\0", 6)), "byte 8: expected UTF-8"},
  };
  for (const auto& [bytes, expected] : cases) {
    SCOPED_TRACE(expected);
    const auto map = Charsmap::Parse(bytes);
    EXPECT_EQ(map.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(map.status().message()), HasSubstr(expected));
  }
}

// A trie that points outside of itself ends there.
TEST(Charsmap, BrokenTriesFindNothing) {
  std::string bytes(4, '\0');
  bytes[0] = 4;
  bytes += "\xFF\xFF\xFF\xFF";
  bytes += std::string("a\0", 2);
  const auto map = Charsmap::Parse(bytes);
  ASSERT_TRUE(map.ok()) << map.status();
  for (int c = 0; c < 128; ++c)
    EXPECT_EQ(map->Longest(std::string(3, static_cast<char>(c))).size, 0);
}

}  // namespace
}  // namespace hpo::text
