#include "common/files/checksum.h"

#include <string>

#include "gtest/gtest.h"

namespace hpo {
namespace {

// Of the list that FNV's authors publish with their reference code.
static_assert(Fnv1a("") == 0xcbf29ce484222325u);
static_assert(Fnv1a("a") == 0xaf63dc4c8601ec8cu);
static_assert(Fnv1a("foobar") == 0x85944171f73967e8u);

TEST(Checksum, TellsEveryFlippedBitOfAShortTextFromIt) {
  const std::string text = "{\"finish\":\"a-1\"}\xff";
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(Fnv1a(other), Fnv1a(text)) << bit;
  }
}

}  // namespace
}  // namespace hpo
