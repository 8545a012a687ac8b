#include "worker/trainer/checkpoints/checkpoint_store.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "worker/trainer/checkpoints/checkpoint_manifest.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";
constexpr char kUnfinished[] = ".unfinished-";

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::StatusOr<FileSum> Sum(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return FileError(errno, path);
  constexpr size_t kPiece = size_t{1} << 20;
  const auto piece = std::make_unique<std::array<unsigned char, kPiece>>();
  FileSum sum;
  uLong crc = ::crc32(0, nullptr, 0);
  for (size_t count = 0; (count = std::fread(piece->data(), 1, kPiece, file.get())) > 0;) {
    crc = ::crc32(crc, piece->data(), static_cast<uInt>(count));
    sum.size += static_cast<int64_t>(count);
  }
  if (std::ferror(file.get()) != 0) return FileError(errno, path);
  sum.crc32 = static_cast<int64_t>(crc);
  return sum;
}

// Every file below `folder` but the manifest, by its path in there.
absl::StatusOr<CheckpointManifest> SumFiles(const fs::path& folder) {
  CheckpointManifest sums;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory()) continue;
    const std::string name = fs::relative(entry->path(), folder).string();
    if (name == kManifest) continue;
    HPO_ASSIGN_OR_RETURN(sums[name], Sum(entry->path().string()));
  }
  if (error) return FileError(error.value(), folder.string());
  return sums;
}

// Whoever wrote the files: copies are not synced.
absl::Status SyncTree(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    HPO_RETURN_IF_ERROR(Sync(entry->path().string()));
  }
  if (error) return FileError(error.value(), folder.string());
  return Sync(folder.string());
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  auto manifest = DecodeManifest(text);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

// "000150-2".
std::string FolderName(int64_t step, AttemptNumber attempt) {
  return absl::StrFormat("%08d-%d", step, attempt.value);
}

std::optional<Checkpoint> ParseFolder(const fs::path& path) {
  const std::vector<std::string> parts = absl::StrSplit(path.filename().string(), '-');
  Checkpoint checkpoint{.folder = path.string()};
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &checkpoint.step) ||
      !absl::SimpleAtoi(parts[1], &checkpoint.attempt.value)) {
    return std::nullopt;
  }
  return checkpoint;
}

Bytes SizeOfTree(const fs::path& folder) {
  Bytes total;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const auto size = entry->is_directory(gone) ? 0 : entry->file_size(gone);
    if (!gone) total += Bytes{static_cast<int64_t>(size)};
  }
  return total;
}

void RemoveTree(const std::string& folder) {
  std::error_code ignored;  // what stays is passed over by its manifest, or tried again later
  fs::remove_all(folder, ignored);
}

}  // namespace

std::vector<Checkpoint> CheckpointStore::List() const {
  std::vector<Checkpoint> found;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, absent)) {
    if (auto checkpoint = ParseFolder(entry.path())) found.push_back(*std::move(checkpoint));
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::tie(a.step, a.attempt) > std::tie(b.step, b.attempt);
  });
  return found;
}

absl::Status CheckpointStore::Verify(const Checkpoint& checkpoint) const {
  const auto expected = ReadManifest(checkpoint.folder + "/" + kManifest);
  if (!expected.ok()) return absl::DataLossError(expected.status().message());
  for (const auto& [name, sum] : *expected) {
    const absl::StatusOr<FileSum> found = Sum(checkpoint.folder + "/" + name);
    if (!found.ok()) return absl::DataLossError(found.status().message());
    if (*found == sum) continue;
    return absl::DataLossError(
        absl::StrFormat("%s/%s: expected %d bytes with checksum %08x, got %d with %08x",
                        checkpoint.folder, name, sum.size, sum.crc32, found->size, found->crc32));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> CheckpointStore::Write(
    int64_t step, Bytes size, absl::FunctionRef<absl::Status(const std::string& folder)> fill,
    CheckpointNotes& notes) {
  HPO_RETURN_IF_ERROR(CheckQuota(size));
  RemoveRemains();
  const std::vector<Checkpoint> older = OwnOrEarlier();
  absl::StatusOr<Checkpoint> written = WriteOnce(step, fill);
  if (absl::IsResourceExhausted(written.status()) && MakeRoom(notes)) {
    written = WriteOnce(step, fill);
  }
  HPO_RETURN_IF_ERROR(written.status());
  for (const Checkpoint& checkpoint : older) {
    if (checkpoint.folder != written->folder) RemoveTree(checkpoint.folder);
  }
  return written;
}

bool CheckpointStore::MakeRoom(CheckpointNotes& notes) const {
  std::vector<Checkpoint> removable = OwnOrEarlier();
  const auto kept =
      std::find_if(removable.begin(), removable.end(),
                   [this](const Checkpoint& checkpoint) { return Verify(checkpoint).ok(); });
  if (kept != removable.end()) removable.erase(kept);
  for (const Checkpoint& checkpoint : removable) {
    RemoveTree(checkpoint.folder);
    notes.push_back(
        absl::StrCat("removed the checkpoint of step ", checkpoint.step, " to make room"));
  }
  return !removable.empty();
}

// What this attempt will remove after writing does not count: it is in the way for a moment only.
absl::Status CheckpointStore::CheckQuota(Bytes size) const {
  if (quota_ == Bytes{}) return absl::OkStatus();
  Bytes others = SizeOfTree(fs::path(folder_).parent_path());
  for (const Checkpoint& checkpoint : OwnOrEarlier()) {
    others = others - SizeOfTree(checkpoint.folder);
  }
  if (others + size <= quota_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the study's checkpoints may take ", FormatBytes(quota_),
                   " (--checkpoint-quota), those of other trials take ", FormatBytes(others),
                   ", this one needs ", FormatBytes(size)));
}

absl::StatusOr<Checkpoint> CheckpointStore::WriteOnce(
    int64_t step, absl::FunctionRef<absl::Status(const std::string& folder)> fill) {
  const fs::path made = fs::path(folder_) / absl::StrCat(kUnfinished, attempt_.value);
  const Checkpoint checkpoint{.folder = (fs::path(folder_) / FolderName(step, attempt_)).string(),
                              .step = step,
                              .attempt = attempt_};
  const auto write = [&]() -> absl::Status {
    std::error_code error;
    fs::create_directories(made, error);
    if (error) return FileError(error.value(), made.string());
    HPO_RETURN_IF_ERROR(fill(made.string()));
    HPO_RETURN_IF_ERROR(SyncTree(made));
    HPO_ASSIGN_OR_RETURN(const auto sums, SumFiles(made));
    HPO_RETURN_IF_ERROR(WriteFileDurably((made / kManifest).string(), EncodeManifest(sums)));
    return ReplaceFolder(made.string(), checkpoint.folder);
  };
  const absl::Status written = write();
  if (written.ok()) return checkpoint;
  RemoveTree(made.string());
  return written;
}

std::vector<Checkpoint> CheckpointStore::OwnOrEarlier() const {
  std::vector<Checkpoint> found = List();
  std::erase_if(found,
                [this](const Checkpoint& checkpoint) { return checkpoint.attempt > attempt_; });
  return found;
}

// Of attempts that were ended while they wrote; this one's own too.
void CheckpointStore::RemoveRemains() const {
  std::error_code absent;
  std::vector<std::string> remains;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, absent)) {
    const std::string name = entry.path().filename().string();
    int64_t attempt = 0;
    if (absl::StartsWith(name, kUnfinished) &&
        absl::SimpleAtoi(name.substr(sizeof kUnfinished - 1), &attempt) &&
        attempt <= attempt_.value) {
      remains.push_back(entry.path().string());
    }
  }
  for (const std::string& folder : remains) RemoveTree(folder);
}

}  // namespace hpo::trainer
