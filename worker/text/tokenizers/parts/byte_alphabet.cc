#include "worker/text/tokenizers/parts/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

constexpr int32_t kFirstShifted = 0x100;
constexpr size_t kNumBytes = 256;

constexpr bool StandsForItself(size_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<int32_t, kNumBytes> Characters() {
  std::array<int32_t, kNumBytes> characters{};
  int32_t shifted = kFirstShifted;
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    characters[byte] = StandsForItself(byte) ? static_cast<int32_t>(byte) : shifted++;
  }
  return characters;
}
constexpr std::array<int32_t, kNumBytes> kCharacterOfByte = Characters();

// -1 for a character that stands for no byte.
int32_t ByteOfCharacter(int32_t character) {
  if (character < kFirstShifted) {
    return StandsForItself(static_cast<size_t>(character)) ? character : -1;
  }
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    if (kCharacterOfByte[byte] == character) return static_cast<int32_t>(byte);
  }
  return -1;
}

}  // namespace

std::optional<std::string> BytesOfToken(absl::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const int32_t byte = ByteOfCharacter(FirstCharacter(token));
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    token.remove_prefix(CharacterSize(token));
  }
  return bytes;
}

std::string TokenOfBytes(absl::string_view bytes) {
  std::string token;
  token.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    AppendCharacter(kCharacterOfByte[static_cast<unsigned char>(byte)], token);
  }
  return token;
}

}  // namespace hpo::text
