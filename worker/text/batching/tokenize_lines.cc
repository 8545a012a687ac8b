#include "worker/text/batching/tokenize_lines.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/readers.h"

namespace hpo::text {
namespace {

struct Row {
  std::string text;
  std::optional<std::string> pair;
};

absl::StatusOr<Row> ParseRow(const std::string& line) {
  if (static_cast<int64_t>(line.size()) > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMaxRecordBytes, " bytes, got ", line.size()));
  }
  HPO_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(line));
  Row row;
  std::string pair;
  JsonReader reader(object, "");
  if (reader.status().ok() && reader.Has("pair") && !object.at("pair").is_null()) {
    reader.Required("pair", pair);
    row.pair = pair;
  }
  reader.Required("text", row.text);
  HPO_RETURN_IF_ERROR(reader.status());
  return row;
}

std::string Written(const Encoding& encoding) {
  return absl::StrCat("{\"ids\":[", absl::StrJoin(encoding.ids, ","), "],\"type_ids\":[",
                      absl::StrJoin(encoding.type_ids, ","), "]}\n");
}

}  // namespace

absl::Status TokenizeLines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out) {
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const absl::StatusOr<Row> row = ParseRow(line);
    if (!row.ok()) return Annotate(row.status(), absl::StrCat("standard input:", number));
    std::optional<absl::string_view> pair;
    if (row->pair.has_value()) pair = *row->pair;
    out << Written(tokenizer.Encode(row->text, pair, kNoTruncation));
  }
  if (in.bad()) return absl::UnavailableError("standard input: reading failed");
  if (!out.flush()) return absl::UnavailableError("standard output: writing failed");
  return absl::OkStatus();
}

}  // namespace hpo::text
