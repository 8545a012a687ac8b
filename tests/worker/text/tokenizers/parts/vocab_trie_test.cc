#include "worker/text/tokenizers/parts/vocab_trie.h"

#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

TEST(VocabTrie, FindsTheLongestTokenThatATextBeginsWith) {
  const std::vector<std::string> tokens = {"a", "abc", "b", "\xff\xfe", "abcde", "##x", "##"};
  const VocabTrie trie(tokens);
  const std::pair<const char*, VocabTrie::Match> cases[] = {
      {"abcd", {1, 3}}, {"abcde", {4, 5}}, {"ab", {0, 1}},        {"xab", {-1, 0}},
      {"", {-1, 0}},    {"bb", {2, 1}},    {"\xff\xfe!", {3, 2}}, {"\xff", {-1, 0}},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(trie.LongestMatch(VocabTrie::kRoot, text), expected);
  }
}

TEST(VocabTrie, SearchesFromBehindAPrefix) {
  const std::vector<std::string> tokens = {"x", "##x", "##xy"};
  const VocabTrie trie(tokens);
  const VocabTrie::Node behind = trie.Descend("##");
  ASSERT_NE(behind, VocabTrie::kNowhere);
  EXPECT_EQ(trie.LongestMatch(behind, "xyz"), (VocabTrie::Match{2, 2}));
  EXPECT_EQ(trie.LongestMatch(behind, "y"), VocabTrie::Match{});
  EXPECT_EQ(trie.Descend("#x"), VocabTrie::kNowhere);
  EXPECT_EQ(trie.LongestMatch(VocabTrie::kNowhere, "x"), VocabTrie::Match{});
}

TEST(VocabTrie, EmptySetMatchesNothing) {
  const VocabTrie trie({});
  EXPECT_EQ(trie.LongestMatch(VocabTrie::kRoot, "a"), VocabTrie::Match{});
}

// Against a plain map, on random tokens over few and over all bytes.
TEST(VocabTrie, AgreesWithASearchByHand) {
  Rng rng(11, 4);
  for (const uint64_t alphabet : {2, 5, 256}) {
    SCOPED_TRACE(alphabet);
    const auto draw = [&](uint64_t longest) {
      std::string text(1 + rng.Below(longest), ' ');
      for (char& c : text) c = static_cast<char>(rng.Below(alphabet));
      return text;
    };
    std::map<std::string, int32_t> ids;
    std::vector<std::string> tokens;
    for (int i = 0; i < 3'000; ++i) {
      const std::string token = draw(12);
      if (ids.emplace(token, static_cast<int32_t>(tokens.size())).second) tokens.push_back(token);
    }
    const VocabTrie trie(tokens);
    for (int i = 0; i < 3'000; ++i) {
      const std::string text = draw(16);
      VocabTrie::Match expected;
      for (size_t length = 1; length <= text.size(); ++length) {
        const auto found = ids.find(text.substr(0, length));
        if (found != ids.end()) expected = {found->second, length};
      }
      ASSERT_EQ(trie.LongestMatch(VocabTrie::kRoot, text), expected);
    }
  }
}

}  // namespace
}  // namespace hpo::text
