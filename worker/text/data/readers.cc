#include "worker/text/data/readers.h"

#include <fstream>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "worker/text/data/json_lines.h"
#include "worker/text/files/foreign_file.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {

namespace {

// `unknown` is what there is to say of the file's name; what the file is says more.
absl::Status OtherFormat(const std::string& path, const absl::Status& unknown) {
  std::string start(kForeignStart, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  const std::optional<std::string> what = ForeignFile(start);
  if (!what.has_value()) return unknown;
  return DataError(path, 1, absl::StrCat("expected rows of text, got ", *what));
}

}  // namespace

absl::StatusOr<DataFormat> DataFormatOf(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  const std::string extension =
      dot == std::string::npos ? "" : absl::AsciiStrToLower(path.substr(dot));
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return DataFormat::kJson;
  }
  if (extension == ".csv" || extension == ".tsv") return DataFormat::kCsv;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected a file name ending in .jsonl, .ndjson, .json, .csv or .tsv; ",
                   "rename the file, or convert it to one of them"));
}

absl::StatusOr<DataFile> ReadDataFile(const std::string& path, const RowTargets& targets) {
  const absl::StatusOr<DataFormat> format = DataFormatOf(path);
  if (!format.ok()) return OtherFormat(path, format.status());
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  switch (*format) {
    case DataFormat::kJson:
      return ParseJsonLines(content, path, targets);
    case DataFormat::kCsv:
      return ParseCsv(content, path, targets);
  }
  return absl::InternalError("unreachable");
}

}  // namespace hpo::text
