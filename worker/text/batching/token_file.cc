#include "worker/text/batching/token_file.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/sha256.h"

namespace hpo::text {
namespace {

constexpr size_t kSummedFrom = offsetof(TokenFileHeader, key);

template <typename T>
absl::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Neither count can be right above the bytes that there are; below, no sum overflows.
bool HasSize(const TokenFileHeader& header, size_t size) {
  const auto most = static_cast<int64_t>(size);
  if (header.rows < 0 || header.rows > most || header.tokens < 0 || header.tokens > most) {
    return false;
  }
  const auto offsets = (static_cast<size_t>(header.rows) + 1) * sizeof(int64_t);
  return size ==
         sizeof(header) + offsets + static_cast<size_t>(header.tokens) * 2 * sizeof(int32_t);
}

bool IsPartition(std::span<const int64_t> offsets, int64_t tokens) {
  return offsets.front() == 0 && offsets.back() == tokens &&
         std::is_sorted(offsets.begin(), offsets.end());
}

bool AreBelow(std::span<const int32_t> values, int64_t end) {
  return std::all_of(values.begin(), values.end(),
                     [end](int32_t value) { return value >= 0 && value < end; });
}

}  // namespace

TokenFileHeader DescribeTokens(const TokenRows& rows, absl::string_view key) {
  HPO_CHECK(key.size() == kTokenKeyBytes);
  TokenFileHeader header;
  std::copy(key.begin(), key.end(), header.key);
  header.rows = static_cast<int64_t>(rows.offsets.size()) - 1;
  header.tokens = static_cast<int64_t>(rows.ids.size());
  Sha256 digest;
  digest.Update(BytesOf(std::as_bytes(std::span(&header, 1)).subspan(kSummedFrom)));
  digest.Update(BytesOf(rows.offsets));
  digest.Update(BytesOf(rows.ids));
  digest.Update(BytesOf(rows.type_ids));
  const std::string checksum = digest.HexDigest();
  std::copy(checksum.begin(), checksum.end(), header.checksum);
  return header;
}

absl::StatusOr<TokenRows> ParseTokenFile(std::span<const std::byte> bytes, absl::string_view key,
                                         int64_t vocab_size) {
  TokenFileHeader header;
  if (bytes.size() < sizeof(header)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a header of ", sizeof(header),
                                                   " bytes, got a file of ", bytes.size()));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != TokenFileHeader::kMagic) {
    return absl::InvalidArgumentError("expected tokens of this version, got something else");
  }
  if (absl::string_view(header.key, kTokenKeyBytes) != key) {
    return absl::InvalidArgumentError(absl::StrCat("expected tokens of ", key, ", got others"));
  }
  const absl::string_view checksum(header.checksum, kTokenKeyBytes);
  if (!HasSize(header, bytes.size()) ||
      Sha256Hex(BytesOf(bytes.subspan(kSummedFrom))) != checksum) {
    return absl::InvalidArgumentError("expected the size and checksum of its header, got others");
  }
  const auto num_rows = static_cast<size_t>(header.rows);
  const auto num_tokens = static_cast<size_t>(header.tokens);
  const auto* const offsets = reinterpret_cast<const int64_t*>(bytes.data() + sizeof(header));
  const auto* const ids = reinterpret_cast<const int32_t*>(offsets + num_rows + 1);
  const TokenRows rows{.offsets = {offsets, num_rows + 1},
                       .ids = {ids, num_tokens},
                       .type_ids = {ids + num_tokens, num_tokens}};
  if (!IsPartition(rows.offsets, header.tokens) || !AreBelow(rows.ids, vocab_size) ||
      !AreBelow(rows.type_ids, 2)) {
    return absl::InvalidArgumentError("expected rows of known tokens, got others");
  }
  return rows;
}

}  // namespace hpo::text
