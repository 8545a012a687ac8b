#include "worker/text/tokenizers/pipeline/truncation.h"

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"

namespace hpo::text {
namespace {

TEST(TruncateLongestFirst, ShortensTheLongerOneFirst) {
  struct Case {
    KeptTokens tokens;
    int64_t room;
    KeptTokens expected;
  };
  const Case cases[] = {
      {{5, 4}, 9, {5, 4}}, {{5, 4}, 100, {5, 4}},
      {{9, 2}, 8, {6, 2}}, {{2, 9}, 8, {2, 6}},
      {{9, 9}, 8, {4, 4}}, {{9, 8}, 7, {4, 3}},
      {{8, 9}, 7, {3, 4}}, {{9, 9}, 7, {3, 4}},
      {{9, 0}, 4, {4, 0}}, {{3, 0}, 4, {3, 0}},
      {{9, 9}, 1, {0, 1}}, {{9, 9}, 0, {0, 0}},
      {{0, 0}, 0, {0, 0}}, {{7, 7}, std::numeric_limits<int64_t>::max(), {7, 7}},
  };
  for (const auto& [tokens, room, expected] : cases) {
    SCOPED_TRACE(testing::Message() << tokens.text << "+" << tokens.pair << " in " << room);
    EXPECT_EQ(TruncateLongestFirst(tokens, room), expected);
  }
}

// One token at a time off the longer one gives the same lengths, up to which gets the odd token.
TEST(TruncateLongestFirst, EqualsRemovingTokensOneByOne) {
  for (int64_t text = 0; text < 12; ++text) {
    for (int64_t pair = 0; pair < 12; ++pair) {
      for (int64_t room = 0; room < 24; ++room) {
        KeptTokens slow{text, pair};
        while (slow.text + slow.pair > room) --(slow.text > slow.pair ? slow.text : slow.pair);
        const KeptTokens fast = TruncateLongestFirst({text, pair}, room);
        EXPECT_EQ(fast.text + fast.pair, slow.text + slow.pair);
        EXPECT_EQ(std::min(fast.text, fast.pair), std::min(slow.text, slow.pair));
        EXPECT_LE(fast.text, text);
        EXPECT_LE(fast.pair, pair);
      }
    }
  }
}

}  // namespace
}  // namespace hpo::text
