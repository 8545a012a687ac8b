#include "worker/agent/attempt/attempt_log.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/command_line/terminal_text.h"
#include "common/files/log_tail.h"
#include "common/files/read_file.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {
namespace {

// Progress bars and colours are left out of what is told: more is read than that.
constexpr int64_t kMostRead = 128 << 10;

int64_t FileSize(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

AttemptLog::AttemptLog(std::string path)
    : path_(std::move(path)), start_(FileSize(path_)), told_size_(start_) {}

std::string AttemptLog::Tail() const {
  const UniqueFd log(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.ok()) return "";
  const int64_t from = std::max(start_, FileSize(path_) - kMostRead);
  std::string text;
  std::array<char, size_t{1} << 14> piece;
  for (;;) {
    const ssize_t count =
        pread(log.get(), piece.data(), piece.size(), from + static_cast<off_t>(text.size()));
    if (count <= 0 || static_cast<int64_t>(text.size()) > 2 * kMostRead) break;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  // What is left of a line that began before; where it is all there is, it is shown.
  const size_t newline = from > start_ ? text.find('\n') : std::string::npos;
  if (newline != std::string::npos && newline + 1 < text.size()) text.erase(0, newline + 1);
  return CheckedLogTail(ShownLines(text));
}

std::optional<std::string> AttemptLog::News(absl::Duration now) {
  if (now < next_news_) return std::nullopt;
  next_news_ = now + kTellEach;
  const int64_t size = FileSize(path_);
  if (size == told_size_) return std::nullopt;
  told_size_ = size;
  return Tail();
}

std::string AttemptLog::LastLines(int max_lines) const {
  return ShownLines(LogTail(path_, start_, max_lines));
}

absl::Status AttemptLog::CopyTo(const std::string& folder) const {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  const std::string copy_path = absl::StrCat(folder, "/", kTrainerLog);
  const UniqueFd log(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.ok()) return FileError(errno, path_);
  const UniqueFd copy(open(copy_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!copy.ok()) return FileError(errno, copy_path);
  off_t at = start_;
  ssize_t count = 0;
  do {
    count = sendfile(copy.get(), log.get(), &at, kMostAtOnce);
  } while (count > 0);
  if (count == 0) return absl::OkStatus();
  const int error = errno;
  unlink(copy_path.c_str());
  return FileError(error, copy_path);
}

}  // namespace hpo::agent
