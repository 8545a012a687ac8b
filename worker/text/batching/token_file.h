// Tokenized rows as one file, made to be mapped into memory: what
// worker/text/batching/token_cache.h keeps.
//
// Layout, in the byte order and types of this machine, which the magic number tells:
// TokenFileHeader, then offsets int64 [rows + 1], ids int32 [tokens], type ids int32 [tokens].
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

// Row i's tokens are [offsets[i], offsets[i + 1]) of both others.
struct TokenRows {
  std::span<const int64_t> offsets;  // rows + 1 entries; the first is 0, the last both others' size
  std::span<const int32_t> ids;
  std::span<const int32_t> type_ids;
};

// A digest in hexadecimal.
constexpr size_t kTokenKeyBytes = 64;

struct TokenFileHeader {
  static constexpr uint64_t kMagic = 0x31534e4b544f5048;  // "HPOTKNS1": the version is its last
  uint64_t magic = kMagic;
  char checksum[kTokenKeyBytes] = {};  // SHA-256 of everything after it
  char key[kTokenKeyBytes] = {};
  int64_t rows = 0;
  int64_t tokens = 0;
};

// The header of `rows`, checksum and all; the file is it and the three arrays. `key` names what the
// rows are tokens of, in kTokenKeyBytes characters.
TokenFileHeader DescribeTokens(const TokenRows& rows, absl::string_view key);

// The rows in `bytes`, which the result points into; aligned to 8 bytes. Every id is in
// [0, vocab_size), every type id 0 or 1.
//   InvalidArgument  no whole file of this version, or of another key, or with an id out of range
absl::StatusOr<TokenRows> ParseTokenFile(std::span<const std::byte> bytes, absl::string_view key,
                                         int64_t vocab_size);

}  // namespace hpo::text
