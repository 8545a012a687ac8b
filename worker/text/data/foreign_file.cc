#include "worker/text/data/foreign_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace hpo {
namespace {

using absl::string_view;

struct KnownStart {
  string_view start;
  string_view what;
};

constexpr KnownStart kKnownStarts[] = {
    {"version https://git-lfs.github.com/spec/",
     "a pointer of Git LFS, not the file itself; fetch it, in its folder: git lfs pull"},
    {"PK\x03\x04",
     "a ZIP archive or an Excel workbook; unpack it, or save it as CSV in the UTF-8 encoding"},
    {"\x1F\x8B", "compressed by gzip; unpack it with gunzip"},
    {"\x28\xB5\x2F\xFD", "compressed by zstd; unpack it with unzstd"},
    {"\xFD"
     "7zXZ",
     "compressed by xz; unpack it with unxz"},
    {"PAR1",
     "a Parquet file; write it as JSON lines: "
     "pandas.read_parquet(FILE).to_json(NEW, orient='records', lines=True)"},
    {"ARROW1",
     "an Arrow file; write it as JSON lines: datasets.Dataset.from_file(FILE)"
     ".to_json(NEW)"},
    {"SQLite format 3", "an SQLite database; export its table as CSV"},
};

}  // namespace

std::optional<std::string> ForeignFile(string_view start) {
  for (const KnownStart& known : kKnownStarts) {
    if (absl::StartsWith(start, known.start)) return std::string(known.what);
  }
  const string_view page = absl::StripLeadingAsciiWhitespace(start);
  if (absl::StartsWithIgnoreCase(page, "<!doctype html") ||
      absl::StartsWithIgnoreCase(page, "<html")) {
    return "a page of HTML, as a failed download leaves it; download the file again";
  }
  return std::nullopt;
}

}  // namespace hpo
