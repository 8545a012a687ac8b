#include "server/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr int kModeOfLog = 0600;
constexpr absl::Duration kBetweenEqual = absl::Seconds(1);
constexpr size_t kMostRecent = 1024;
constexpr size_t kMostText = 500;  // of one member

std::string LineOf(const AuditEvent& event, absl::Time now, int64_t left_out) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone());
  const std::pair<const char*, const std::string&> members[] = {
      {"event", event.event},   {"who", event.who},       {"role", event.role},
      {"from", event.from},     {"method", event.method}, {"what", event.what},
      {"result", event.result}, {"why", event.why}};
  for (const auto& [name, text] : members) {
    if (!text.empty()) line[name] = text.substr(0, kMostText);
  }
  if (left_out > 0) line["left_out_before"] = left_out;
  return line.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace) + "\n";
}

// An address without its port, which differs with each connection.
absl::string_view HostOf(absl::string_view from) { return from.substr(0, from.rfind(':')); }

}  // namespace

AuditLog::AuditLog(std::string path, const Clock& clock, int64_t most_bytes)
    : path_(std::move(path)), clock_(clock), most_bytes_(most_bytes) {}

void AuditLog::Write(const AuditEvent& event) {
  absl::MutexLock lock(&mutex_);
  Append(event, /*left_out=*/0);
}

void AuditLog::WriteSparingly(const AuditEvent& event) {
  const absl::Time now = clock_.Now();
  const std::string key = absl::StrCat(event.event, "\n", event.who, "\n", HostOf(event.from), "\n",
                                       event.method, "\n", event.result, "\n", event.why);
  absl::MutexLock lock(&mutex_);
  if (recent_.size() >= kMostRecent && !recent_.contains(key)) recent_.clear();
  Recent& recent = recent_[key];
  if (now - recent.written < kBetweenEqual && now >= recent.written) {
    ++recent.left_out;
    return;
  }
  Append(event, std::exchange(recent.left_out, 0));
  recent.written = now;
}

bool AuditLog::Open() {
  if (file_ != nullptr && bytes_ < most_bytes_) return true;
  if (file_ != nullptr) {
    file_.reset();
    std::rename(path_.c_str(), absl::StrCat(path_, ".1").c_str());
  }
  const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kModeOfLog);
  if (descriptor < 0) return false;
  struct stat status {};
  fstat(descriptor, &status);
  bytes_ = status.st_size;
  file_.reset(fdopen(descriptor, "a"));
  return file_ != nullptr;
}

void AuditLog::Append(const AuditEvent& event, int64_t left_out) {
  if (path_.empty()) return;
  const std::string line = LineOf(event, clock_.Now(), left_out);
  const bool written =
      Open() && std::fputs(line.c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0;
  if (written) {
    bytes_ += static_cast<int64_t>(line.size());
  } else if (!has_failed_) {
    spdlog::error("the audit log {} cannot be written: {}", path_, std::strerror(errno));
  }
  has_failed_ = !written;
}

}  // namespace hpo::server
