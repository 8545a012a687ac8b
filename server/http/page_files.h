// The files of the page: web/dist, as the program was built with it. In memory, with their gzip
// form and their digest, which are made when a server starts that serves the page.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace hpo::server {

// A file that the program contains.
struct EmbeddedFile {
  absl::string_view path;  // "/assets/index-1a2b3c4d.js"
  absl::string_view content;
};

// All of web/dist.
std::span<const EmbeddedFile> EmbeddedPage();

// Immutable after construction; safe to share between threads.
class PageFiles {
 public:
  explicit PageFiles(std::span<const EmbeddedFile> files);

  // The answer to GET or HEAD of a path that is not the API's: the file; under /assets/, whose
  // names change with their content, 404 where there is none; else index.html, since the page has
  // paths of its own. Nothing is looked up outside of the table.
  HttpAnswer Get(const RequestHead& head) const;

 private:
  struct File {
    absl::string_view content;
    std::string gzip;  // empty: it would not be shorter
    std::string tag;   // ETag
    std::string type;
  };

  std::map<std::string, File, std::less<>> files_;
};

}  // namespace hpo::server
