// Any bytes as a file of tokens: an error, or rows that tile the file. What a fuzzer cannot guess,
// the magic number, the key and the checksum, is put in its place first.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/files/sha256.h"
#include "worker/text/batching/token_file.h"

namespace {

constexpr int64_t kVocabulary = 100;

void Check(std::span<const std::byte> bytes, const std::string& key) {
  const auto rows = hpo::text::ParseTokenFile(bytes, key, kVocabulary);
  if (!rows.ok()) return;
  HPO_CHECK(rows->ids.size() == rows->type_ids.size());
  HPO_CHECK(rows->offsets.front() == 0);
  HPO_CHECK(rows->offsets.back() == static_cast<int64_t>(rows->ids.size()));
  for (size_t i = 1; i < rows->offsets.size(); ++i) {
    HPO_CHECK(rows->offsets[i - 1] <= rows->offsets[i]);
  }
  for (const int32_t id : rows->ids) HPO_CHECK(id >= 0 && id < kVocabulary);
  for (const int32_t type : rows->type_ids) HPO_CHECK(type == 0 || type == 1);
  HPO_CHECK(sizeof(hpo::text::TokenFileHeader) + rows->offsets.size_bytes() +
                rows->ids.size_bytes() + rows->type_ids.size_bytes() ==
            bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string key(hpo::text::kTokenKeyBytes, 'k');
  std::vector<uint64_t> aligned((size + 7) / 8);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto bytes = std::as_writable_bytes(std::span(aligned)).first(size);
  Check(bytes, key);
  hpo::text::TokenFileHeader header;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, bytes.data(), size_t{sizeof(header)});
  header.magic = hpo::text::TokenFileHeader::kMagic;
  std::copy(key.begin(), key.end(), header.key);
  std::memcpy(bytes.data(), &header, sizeof(header));
  const size_t summed_from = offsetof(hpo::text::TokenFileHeader, key);
  const std::string checksum = hpo::Sha256Hex(
      {reinterpret_cast<const char*>(bytes.data()) + summed_from, size - summed_from});
  std::copy(checksum.begin(), checksum.end(), header.checksum);
  std::memcpy(bytes.data(), &header, sizeof(header));
  Check(bytes, key);
  return 0;
}
