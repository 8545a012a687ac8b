// The bytes of a data file as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

// UTF-8 without a byte order mark and without NUL characters. Valid while the content is that it
// was made of.
class DecodedText {
 public:
  explicit DecodedText(absl::string_view content) : content_(content) {}
  explicit DecodedText(std::string converted) : converted_(std::move(converted)) {}

  absl::string_view text() const { return converted_.has_value() ? *converted_ : content_; }

  std::vector<std::string> warnings;  // complete sentences that name file, line and column

 private:
  absl::string_view content_;
  std::optional<std::string> converted_;
};

// Decodes UTF-8 and UTF-16, with or without a byte order mark. Where at most one line in a hundred
// (or one line) has characters that are not UTF-8, or NULs, they become U+FFFD, with a warning.
//   InvalidArgument  the file is no text: a pointer of Git LFS, an archive, a page of HTML; UTF-32;
//                    more lines than those have such characters: names the first one's place, the
//                    encoding that it may be, and how to convert it
absl::StatusOr<DecodedText> DecodeText(absl::string_view content, const std::string& origin);

}  // namespace hpo::text
