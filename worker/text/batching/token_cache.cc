#include "worker/text/batching/token_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/mapped_file.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "common/files/write_file.h"
#include "spdlog/spdlog.h"

namespace hpo::text {
namespace {

namespace fs = std::filesystem;

constexpr char kExtension[] = ".tokens";

// Texts are told apart by their lengths, whatever is in them.
std::string KeyOf(const Dataset& dataset, const Tokenizer& tokenizer, int64_t max_length) {
  Sha256 digest;
  digest.Update(absl::StrCat(tokenizer.digest(), " ", max_length, " ", dataset.pairs, "\n"));
  for (const DatasetRow& row : dataset.rows) {
    digest.Update(absl::StrCat(row.text.size(), "\n"));
    digest.Update(row.text);
    if (!row.pair.has_value()) continue;
    digest.Update(absl::StrCat(" ", row.pair->size(), "\n"));
    digest.Update(*row.pair);
  }
  return digest.HexDigest();
}

template <typename T>
absl::Status Write(DurableFile& file, std::span<const T> values) {
  return file.Write(values.data(), values.size_bytes());
}

struct CachedFile {
  fs::file_time_type used;
  Bytes size;
  fs::path path;
};

// Those of the cache, half-written ones too, the one not used for the longest time first.
std::vector<CachedFile> FilesOf(const std::string& folder) {
  std::vector<CachedFile> files;
  std::error_code ignored;  // another process may remove any of them meanwhile
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (!absl::StrContains(entry->path().filename().string(), kExtension)) continue;
    std::error_code gone;
    const fs::file_time_type used = entry->last_write_time(gone);
    const uintmax_t size = gone ? 0 : entry->file_size(gone);
    if (!gone) files.push_back({used, Bytes{static_cast<int64_t>(size)}, entry->path()});
  }
  std::sort(files.begin(), files.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.used < b.used; });
  return files;
}

}  // namespace

absl::StatusOr<EncodedDataset> TokenCache::Encode(const Dataset& dataset,
                                                  const Tokenizer& tokenizer,
                                                  int64_t max_length) const {
  if (folder_.empty()) return EncodeDataset(dataset, tokenizer, max_length);
  const std::string key = KeyOf(dataset, tokenizer, max_length);
  const std::string path = PathOf(key);
  if (const absl::StatusOr<MappedFile> file = MappedFile::Open(path); file.ok()) {
    const auto rows = ParseTokenFile(file->bytes(), key, tokenizer.vocab_size());
    if (rows.ok() && rows->offsets.size() == dataset.rows.size() + 1) {
      ::utimensat(AT_FDCWD, path.c_str(), /*times=*/nullptr, /*flags=*/0);  // used now
      return WithTokens(dataset, *rows, tokenizer.pad_id());
    }
    spdlog::info("cached tokens {} are not used: {}", path,
                 rows.ok() ? "they are of other rows" : std::string(rows.status().message()));
  }
  HPO_ASSIGN_OR_RETURN(EncodedDataset encoded, EncodeDataset(dataset, tokenizer, max_length));
  if (const absl::Status stored = Store(key, TokensOf(encoded)); !stored.ok()) {
    spdlog::warn("tokens of {} are not cached: {}", dataset.path, std::string(stored.message()));
  }
  return encoded;
}

absl::Status TokenCache::Store(const std::string& key, const TokenRows& rows) const {
  const Bytes size{static_cast<int64_t>(sizeof(TokenFileHeader) + rows.offsets.size_bytes() +
                                        rows.ids.size_bytes() + rows.type_ids.size_bytes())};
  if (size > limit_) {
    return absl::ResourceExhaustedError(absl::StrCat("expected at most ", FormatBytes(limit_),
                                                     " (HPO_TOKEN_CACHE_SIZE), got ",
                                                     FormatBytes(size)));
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return FileError(error.value(), folder_);
  MakeRoom(size);
  const TokenFileHeader header = DescribeTokens(rows, key);
  DurableFile file(PathOf(key));
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(&header, sizeof(header)));
  HPO_RETURN_IF_ERROR(Write(file, rows.offsets));
  HPO_RETURN_IF_ERROR(Write(file, rows.ids));
  HPO_RETURN_IF_ERROR(Write(file, rows.type_ids));
  return file.Commit();
}

void TokenCache::MakeRoom(Bytes size) const {
  const std::vector<CachedFile> files = FilesOf(folder_);
  Bytes total = size;
  for (const CachedFile& file : files) total = total + file.size;
  for (const CachedFile& file : files) {
    if (total <= limit_) return;
    std::error_code ignored;
    fs::remove(file.path, ignored);
    total = total - file.size;
  }
}

std::string TokenCache::PathOf(const std::string& key) const {
  return absl::StrCat(folder_, "/", key, kExtension);
}

}  // namespace hpo::text
