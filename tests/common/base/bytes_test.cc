#include "common/base/bytes.h"

#include <utility>

#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(Bytes, ParsesSizesWithUnits) {
  const std::pair<const char*, Bytes> cases[] = {
      {"0", Bytes{0}},         {"1073741824", GiB(1)}, {"2GiB", GiB(2)},
      {" 512 MiB ", MiB(512)}, {"1.5gib", MiB(1536)},  {"8GB", Bytes{8'000'000'000}},
      {"100B", Bytes{100}},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    const auto parsed = ParseBytes(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, expected);
  }
}

TEST(Bytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "-1GiB", "2 gigs", "1e400", "9000000TiB", "1.2.3MiB"}) {
    SCOPED_TRACE(text);
    const auto parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(parsed.status().message().find(text), absl::string_view::npos);
  }
}

TEST(Bytes, FormatsInTheLargestUnit) {
  EXPECT_EQ(FormatBytes(Bytes{512}), "512 B");
  EXPECT_EQ(FormatBytes(KiB(1)), "1.00 KiB");
  EXPECT_EQ(FormatBytes(MiB(360)), "360.00 MiB");
  EXPECT_EQ(FormatBytes(Bytes{18790481920}), "17.50 GiB");
}

TEST(Bytes, RoundsUpToTheUnit) {
  EXPECT_EQ(RoundUp(Bytes{1}, Bytes{512}), Bytes{512});
  EXPECT_EQ(RoundUp(Bytes{512}, Bytes{512}), Bytes{512});
  EXPECT_EQ(RoundUp(Bytes{0}, Bytes{512}), Bytes{0});
}

}  // namespace
}  // namespace hpo
