#include "server/api/page_token.h"

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

const TrialFilter kAll;

TEST(PageToken, ComesBack) {
  for (const int64_t number : {0, 7, 1'000'000}) {
    const std::string token = MakePageToken("s", kAll, TrialNumber{number});
    EXPECT_EQ(ReadPageToken("s", kAll, token).value(), TrialNumber{number});
  }
}

TEST(PageToken, BelongsToItsListing) {
  const std::string token = MakePageToken("s", kAll, TrialNumber{7});
  const TrialFilter newest{.states = {}, .prune_reasons = {}, .newest_first = true};
  const TrialFilter pruned{.states = {TrialState::kPruned}, .prune_reasons = {}};
  const TrialFilter oom{.states = {}, .prune_reasons = {PruneReason::kOutOfMemory}};
  EXPECT_TRUE(absl::IsInvalidArgument(ReadPageToken("t", kAll, token).status()));
  for (const TrialFilter& other : {newest, pruned, oom}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPageToken("s", other, token).status()));
  }
}

TEST(PageToken, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "7", "!!!", "Nzo=", "Nzp4", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPageToken("s", kAll, text).status())) << text;
  }
}

}  // namespace
}  // namespace hpo::server
