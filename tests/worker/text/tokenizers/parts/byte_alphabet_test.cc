#include "worker/text/tokenizers/parts/byte_alphabet.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace hpo::text {
namespace {

TEST(ByteAlphabet, WritesEveryByteAsOneCharacterAndBack) {
  std::set<std::string> written;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string token = TokenOfBytes(bytes);
    EXPECT_EQ(BytesOfToken(token), bytes);
    written.insert(token);
  }
  EXPECT_EQ(written.size(), 256);
}

TEST(ByteAlphabet, IsGpt2s) {
  EXPECT_EQ(TokenOfBytes(" a\n\t"), "\u0120a\u010A\u0109");
  EXPECT_EQ(TokenOfBytes("\xE7\x94\x9F"), "\u00E7\u0136\u0141");
  EXPECT_EQ(TokenOfBytes("\x7F\xAD\xFF"), "\u0121\u0143\u00FF");
}

TEST(ByteAlphabet, OtherCharactersStandForNoBytes) {
  for (const char* token : {" ", "a b", "\n", "\u0144", "\u00AD", "\u751F", "\U0001F600"}) {
    SCOPED_TRACE(token);
    EXPECT_EQ(BytesOfToken(token), std::nullopt);
  }
  EXPECT_EQ(BytesOfToken(""), "");
}

}  // namespace
}  // namespace hpo::text
