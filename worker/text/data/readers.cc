#include "worker/text/data/readers.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status.h"
#include "worker/text/data/json_lines.h"

namespace hpo {

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
  HPO_ASSIGN_OR_RETURN(const DataFormat format, DataFormatOf(path));
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  switch (format) {
    case DataFormat::kJson:
      return ParseJsonLines(content, path, targets);
    case DataFormat::kCsv:
      return ParseCsv(content, path, targets);
  }
  return absl::InternalError("unreachable");
}

}  // namespace hpo
