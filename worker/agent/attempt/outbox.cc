#include "worker/agent/attempt/outbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/checksum.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "common/protocol/worker_exchange_fields.h"
#include "nlohmann/json.hpp"
#include "worker/agent/attempt/trainer_job.h"

namespace hpo::agent {

void VisitFields(Is<OutboxEntry> auto& entry, auto visit) {
  visit({"finish"}, entry.request_id);
  VisitFields(entry.request, visit);
}

namespace {

using Json = nlohmann::json;

constexpr int kMaxDeadRecords = 64;
constexpr size_t kChecksumDigits = 16;
constexpr char kSetAsideFolder[] = "set_aside";

// Tells a torn record from a whole one.
std::string Checksum(absl::string_view text) {
  return absl::StrCat(absl::Hex(Fnv1a(text), absl::kZeroPad16));
}

absl::Status OutboxError(absl::string_view action, const std::string& path) {
  const int error = errno;
  return absl::Status(
      hpo::MayPass(error) ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal,
      absl::StrCat("outbox ", path, ": ", action, ": ", strerror(error)));
}

absl::Status WriteAll(int fd, absl::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t count = write(fd, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return OutboxError("write", path);
    data.remove_prefix(static_cast<size_t>(count));
  }
  return fdatasync(fd) == 0 ? absl::OkStatus() : OutboxError("fdatasync", path);
}

// Needs no free space, unlike a new file.
absl::Status Truncate(int fd, size_t size, const std::string& path) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return OutboxError("truncate", path);
  return fdatasync(fd) == 0 ? absl::OkStatus() : OutboxError("fdatasync", path);
}

absl::Status SyncDirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::absolute(path).parent_path().string();
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok() || fsync(fd.get()) != 0) return OutboxError("fsync of its directory", path);
  return absl::OkStatus();
}

std::string Framed(const std::string& body) {
  return absl::StrCat(Checksum(body), " ", body, "\n");
}

absl::StatusOr<std::string> ReadWhole(int fd, const std::string& path) {
  std::string text;
  char buffer[16 << 10];
  for (;;) {
    const ssize_t count = pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return OutboxError("read", path);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

absl::StatusOr<Outbox> Outbox::Open(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.ok()) return OutboxError("open", path);
  HPO_RETURN_IF_ERROR(SyncDirectoryOf(path));
  Outbox outbox(path, std::move(file));
  HPO_RETURN_IF_ERROR(outbox.Load());
  outbox.ListSetAside();
  return outbox;
}

void Outbox::ListSetAside() {
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(set_aside_folder(), error)) {
    set_aside_.push_back(file.path().filename().string());
  }
  std::sort(set_aside_.begin(), set_aside_.end());
}

absl::Status Outbox::Load() {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadWhole(file_.get(), path_));
  size_t begin = 0;
  bool damaged = false;
  while (begin < text.size()) {
    const size_t newline = text.find('\n', begin);
    const bool last = newline == std::string::npos || newline + 1 == text.size();
    const absl::Status taken = newline == std::string::npos
                                   ? absl::DataLossError("no end of line")
                                   : TakeRecord(text.substr(begin, newline - begin));
    if (!taken.ok() && !last) {
      HPO_RETURN_IF_ERROR(SetDamagedAside(text.substr(begin, newline - begin), taken));
      damaged = true;
    }
    if (!taken.ok() && last) return Truncate(file_.get(), begin, path_);
    ++num_records_;
    begin = newline + 1;
  }
  return damaged ? Compact() : absl::OkStatus();
}

// What the others hold is whole; what this one held, a person may still read.
absl::Status Outbox::SetDamagedAside(const std::string& record, const absl::Status& damage) {
  std::error_code error;
  std::filesystem::create_directories(set_aside_folder(), error);
  const std::string file = absl::StrCat(set_aside_folder(), "/damaged-", Checksum(record));
  const absl::Status written = WriteFileDurably(file, record + "\n");
  if (written.ok()) return written;
  return absl::DataLossError(absl::StrCat("outbox ", path_, ":", num_records_ + 1,
                                          ": damaged record: ", damage.message(),
                                          "; it cannot be set aside: ", written.message()));
}

absl::Status Outbox::TakeRecord(const std::string& record) {
  if (record.size() < kChecksumDigits + 1 || record[kChecksumDigits] != ' ' ||
      Checksum(absl::string_view(record).substr(kChecksumDigits + 1)) !=
          record.substr(0, kChecksumDigits)) {
    return absl::DataLossError("its checksum does not match");
  }
  HPO_ASSIGN_OR_RETURN(const Json body, ParseJson(record.substr(kChecksumDigits + 1)));
  std::string done;
  JsonReader reader(body, "");
  reader.Optional("done", done);
  HPO_RETURN_IF_ERROR(reader.status());
  if (!done.empty()) {
    std::erase_if(pending_, [&](const OutboxEntry& entry) { return entry.request_id == done; });
    return absl::OkStatus();
  }
  HPO_ASSIGN_OR_RETURN(OutboxEntry entry, FromJson<OutboxEntry>(body));
  pending_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status Outbox::WriteRecord(const std::string& body) {
  const off_t size = lseek(file_.get(), 0, SEEK_END);
  if (const absl::Status written = WriteAll(file_.get(), Framed(body), path_); !written.ok()) {
    // A full disk must not leave half a record in the middle of what is appended later.
    if (ftruncate(file_.get(), size) != 0) return OutboxError("truncate", path_);
    return written;
  }
  ++num_records_;
  return absl::OkStatus();
}

absl::Status Outbox::Append(const OutboxEntry& entry) {
  pending_.push_back(entry);
  unsaved_.insert(entry.request_id);
  return Save();
}

absl::Status Outbox::Save() {
  for (const OutboxEntry& entry : pending_) {
    if (!unsaved_.contains(entry.request_id)) continue;
    HPO_RETURN_IF_ERROR(WriteRecord(DumpJson(ToJson(entry))));
    unsaved_.erase(entry.request_id);
  }
  return absl::OkStatus();
}

absl::Status Outbox::Acknowledge(const std::string& request_id) {
  const auto removed =
      std::erase_if(pending_, [&](const OutboxEntry& e) { return e.request_id == request_id; });
  if (removed == 0 || unsaved_.erase(request_id) > 0) return absl::OkStatus();
  const auto num_saved = static_cast<int>(pending_.size() - unsaved_.size());
  if (num_saved == 0) {
    HPO_RETURN_IF_ERROR(Truncate(file_.get(), 0, path_));
    num_records_ = 0;
    return absl::OkStatus();
  }
  if (num_records_ - num_saved >= kMaxDeadRecords) return Compact();
  return WriteRecord(DumpJson({{"done", request_id}}));
}

std::string Outbox::set_aside_folder() const {
  return (std::filesystem::absolute(path_).parent_path() / kSetAsideFolder).string();
}

absl::StatusOr<std::string> Outbox::SetAside(const std::string& request_id) {
  const auto entry = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const OutboxEntry& e) { return e.request_id == request_id; });
  if (entry == pending_.end()) {
    return absl::NotFoundError(absl::StrCat("outbox ", path_, ": no entry ", request_id));
  }
  std::error_code error;
  std::filesystem::create_directories(set_aside_folder(), error);
  const std::string name = absl::StrCat(
      absl::StrReplaceAll(AttemptFolder(entry->request.lease), {{"/", "-"}}), "-", request_id);
  // Where the folder could not be made, the write says why.
  const absl::Status written = WriteFileDurably(absl::StrCat(set_aside_folder(), "/", name),
                                                Framed(DumpJson(ToJson(*entry))));
  if (!written.ok()) return absl::InternalError(written.message());
  set_aside_.push_back(name);
  HPO_RETURN_IF_ERROR(Acknowledge(request_id));
  return name;
}

absl::Status Outbox::Compact() {
  const std::string temporary = path_ + ".new";
  UniqueFd file(open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file.ok()) return OutboxError("open", temporary);
  std::string text;
  for (const OutboxEntry& entry : pending_) {
    text += Framed(DumpJson(ToJson(entry)));
  }
  HPO_RETURN_IF_ERROR(WriteAll(file.get(), text, temporary));
  if (rename(temporary.c_str(), path_.c_str()) != 0) return OutboxError("rename", temporary);
  HPO_RETURN_IF_ERROR(SyncDirectoryOf(path_));
  file_ = std::move(file);
  num_records_ = static_cast<int>(pending_.size());
  unsaved_.clear();
  return absl::OkStatus();
}

}  // namespace hpo::agent
