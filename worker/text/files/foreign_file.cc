#include "worker/text/files/foreign_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace hpo::text {
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
    {"BZh", "compressed by bzip2; unpack it with bunzip2"},
    {"\x04\x22\x4D\x18", "compressed by lz4; unpack it with unlz4"},
    {"7z\xBC\xAF\x27\x1C", "a 7-Zip archive; unpack it with 7z x"},
    {"Rar!\x1A\x07", "a RAR archive; unpack it with unrar x"},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
     "an old Excel workbook (.xls); save it as CSV in the UTF-8 encoding"},
    {"FEA1",
     "a Feather file; write it as JSON lines: "
     "pandas.read_feather(FILE).to_json(NEW, orient='records', lines=True)"},
    {"ORC",
     "an ORC file; write it as JSON lines: "
     "pandas.read_orc(FILE).to_json(NEW, orient='records', lines=True)"},
    {"Obj\x01", "an Avro file; write it as JSON lines, as fastavro --json does"},
    {"\x89HDF\r\n\x1A\n", "an HDF5 file; export its data as CSV or JSON lines"},
    {"\x93NUMPY", "an array of NumPy (.npy); write its data as CSV or JSON lines"},
    {"%PDF-", "a PDF document; export its table as CSV"},
    {"{\\rtf", "a document in rich text; save it as plain text"},
    {"\x89PNG\r\n\x1A\n", "a picture; name a file of rows"},
    {"\x7F"
     "ELF",
     "a program; name a file of rows"},
    {"<?xml", "an XML file; write its rows as CSV or JSON lines"},
};

}  // namespace

std::optional<std::string> ForeignFile(string_view start) {
  for (const KnownStart& known : kKnownStarts) {
    if (absl::StartsWith(start, known.start)) return std::string(known.what);
  }
  // A pickle of protocol 2 to 5 begins with its number.
  if (start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) {
    return "a pickle of Python; write its data as CSV or JSON lines, as pandas' to_csv does";
  }
  constexpr size_t kTarMark = 257;
  if (start.size() > kTarMark && absl::StartsWith(start.substr(kTarMark), "ustar")) {
    return "a tar archive; unpack it with tar xf";
  }
  const string_view page = absl::StripLeadingAsciiWhitespace(start);
  for (const string_view tag : {"<!doctype html", "<html", "<head", "<body", "<!--"}) {
    if (!absl::StartsWithIgnoreCase(page, tag)) continue;
    return "a page of HTML, as a failed download leaves it; download the file again";
  }
  return std::nullopt;
}

}  // namespace hpo::text
