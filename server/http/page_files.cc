#include "server/http/page_files.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "server/http/gzip.h"
#include "server/http/http_error.h"

namespace hpo::server {
namespace {

constexpr char kIndex[] = "/index.html";
constexpr char kHashedFolder[] = "/assets/";
constexpr size_t kTagLetters = 32;

std::string TypeOf(absl::string_view path) {
  constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".json", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".png", "image/png"},
      {".ico", "image/vnd.microsoft.icon"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"}};
  for (const auto& [suffix, type] : kTypes) {
    if (absl::EndsWith(path, suffix)) return std::string(type);
  }
  return "application/octet-stream";
}

}  // namespace

PageFiles::PageFiles(std::span<const EmbeddedFile> files) {
  for (const EmbeddedFile& file : files) {
    std::string packed = Gzip(file.content, kSmallest);
    if (packed.size() >= file.content.size()) packed.clear();
    files_[std::string(file.path)] = {
        .content = file.content,
        .gzip = std::move(packed),
        .tag = absl::StrCat("\"", Sha256Hex(file.content).substr(0, kTagLetters), "\""),
        .type = TypeOf(file.path)};
  }
}

HttpAnswer PageFiles::Get(const RequestHead& head) const {
  const bool is_hashed = absl::StartsWith(head.path, kHashedFolder);
  auto found = files_.find(head.path);
  if (found == files_.end() && !is_hashed) found = files_.find(kIndex);
  if (found == files_.end()) {
    return ErrorResponse(404, "NOT_FOUND",
                         "this server has no such file of the page; load the page again");
  }
  const File& file = found->second;
  HttpAnswer response;
  response.headers = {
      {"Cache-Control", is_hashed ? "public, max-age=31536000, immutable" : "no-cache"},
      {"ETag", file.tag},
      {"Vary", "Accept-Encoding"}};
  if (absl::StrContains(head.Header("if-none-match"), file.tag)) {
    response.status = 304;
    return response;
  }
  response.content_type = file.type;
  const bool packed = !file.gzip.empty() && AcceptsGzip(head.Header("accept-encoding"));
  if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = packed ? file.gzip : std::string(file.content);
  return response;
}

}  // namespace hpo::server
