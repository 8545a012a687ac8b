// Any bytes as a data file: refused at a line, or rows that fit together; and rows written down as
// CSV are read back unchanged, whichever format they came from.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "worker/text/readers.h"
#include "worker/text/utf8.h"

namespace {

std::string Quoted(absl::string_view field) {
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

// A bar inside a label would be read as two labels.
bool CanBeCsv(const hpo::DataFile& file) {
  for (const hpo::DataFileRow& row : file.rows) {
    for (const std::string& label : row.labels) {
      if (file.multi_label && absl::StrContains(label, "|")) return false;
    }
  }
  return true;
}

std::string WriteCsv(const hpo::DataFile& file) {
  std::string csv = file.multi_label ? "text,labels" : "text,label";
  if (file.pairs) csv += ",pair";
  for (const hpo::DataFileRow& row : file.rows) {
    absl::StrAppend(&csv, "\n", Quoted(row.text), ",", Quoted(absl::StrJoin(row.labels, "|")));
    if (file.pairs) absl::StrAppend(&csv, ",", Quoted(*row.pair));
  }
  return csv;
}

void CheckRows(const hpo::DataFile& file) {
  HPO_CHECK(!file.rows.empty());
  int64_t line = 0;
  for (const hpo::DataFileRow& row : file.rows) {
    HPO_CHECK(row.line > line);
    line = row.line;
    HPO_CHECK(row.pair.has_value() == file.pairs);
    HPO_CHECK(file.multi_label || row.labels.size() == 1);
    HPO_CHECK(hpo::FindInvalidUtf8(row.text) == absl::string_view::npos);
    for (const std::string& label : row.labels) HPO_CHECK(!label.empty());
  }
}

void CheckFile(const absl::StatusOr<hpo::DataFile>& file) {
  if (!file.ok()) {
    HPO_CHECK(absl::IsInvalidArgument(file.status()));
    HPO_CHECK(absl::StartsWith(file.status().message(), "data:"));
    return;
  }
  CheckRows(*file);
  if (!CanBeCsv(*file)) return;
  const auto again = hpo::ParseCsv(WriteCsv(*file), "data");
  HPO_CHECK(again.ok());
  HPO_CHECK(again->rows.size() == file->rows.size());
  for (size_t i = 0; i < file->rows.size(); ++i) {
    HPO_CHECK(again->rows[i].text == file->rows[i].text);
    HPO_CHECK(again->rows[i].pair == file->rows[i].pair);
    HPO_CHECK(again->rows[i].labels == file->rows[i].labels);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view content(reinterpret_cast<const char*>(data), size);
  CheckFile(hpo::ParseJsonLines(content, "data"));
  CheckFile(hpo::ParseCsv(content, "data"));
  return 0;
}
