#include "common/files/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// What is not UTF-8 (such as a letter cut in two) is replaced: the text goes into protobuf strings.
std::string ValidUtf8(const std::string& text) {
  const absl::StatusOr<nlohmann::json> valid = ParseJson(DumpJson(text));
  return valid.ok() ? valid->get<std::string>() : std::string();
}

}  // namespace

absl::Status FileError(int error, const std::string& path) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  if (error == EISDIR || error == ELOOP || error == ENAMETOOLONG) {
    return absl::InvalidArgumentError(message);
  }
  return absl::UnavailableError(message);
}

bool MayPass(int error) {
  switch (error) {
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EIO:
      return true;
    default:
      return false;
  }
}

absl::Status ReadFileInPieces(const std::string& path, size_t most,
                              absl::FunctionRef<absl::Status(absl::string_view piece)> take) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(errno, path);
  std::vector<char> piece(most);
  size_t count = 0;
  while ((count = std::fread(piece.data(), 1, piece.size(), file.get())) > 0) {
    HPO_RETURN_IF_ERROR(take(absl::string_view(piece.data(), count)));
  }
  return std::ferror(file.get()) == 0 ? absl::OkStatus() : FileError(errno, path);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string content;
  HPO_RETURN_IF_ERROR(ReadFileInPieces(path, size_t{1} << 16, [&](absl::string_view piece) {
    content.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return content;
}

std::string LogTail(const std::string& path, int64_t from, int max_lines) {
  constexpr std::streamoff kMaxBytes = 4096;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::min(size, std::max<std::streamoff>(from, size - kMaxBytes)));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() > static_cast<size_t>(max_lines)) {
    lines.erase(lines.begin(), lines.end() - max_lines);
  }
  return ValidUtf8(absl::StrJoin(lines, "\n"));
}

}  // namespace hpo
