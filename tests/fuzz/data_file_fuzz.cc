// Any bytes as a data file of each task: refused at a line, or rows that fit together; and rows of
// labels written down as CSV are read back unchanged, whichever format they came from.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/data/aspect_file.h"
#include "worker/text/data/json_lines.h"
#include "worker/text/data/readers.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace {

std::string Quoted(absl::string_view field) {
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

// A bar inside a label would be read as two labels.
bool CanBeCsv(const hpo::text::DataFile& file) {
  for (const hpo::text::DataFileRow& row : file.rows) {
    for (const std::string& label : row.labels) {
      if (file.multi_label && absl::StrContains(label, "|")) return false;
    }
  }
  return true;
}

std::string WriteCsv(const hpo::text::DataFile& file) {
  std::string csv = file.multi_label ? "text,labels" : "text,label";
  if (file.pairs) csv += ",pair";
  for (const hpo::text::DataFileRow& row : file.rows) {
    absl::StrAppend(&csv, "\n", Quoted(row.text), ",", Quoted(absl::StrJoin(row.labels, "|")));
    if (file.pairs) absl::StrAppend(&csv, ",", Quoted(*row.pair));
  }
  return csv;
}

void CheckStatus(const absl::Status& status) {
  HPO_CHECK(absl::IsInvalidArgument(status));
  HPO_CHECK(absl::StartsWith(status.message(), "data:"));
}

void CheckTexts(const hpo::text::DataFile& file) {
  HPO_CHECK(!file.rows.empty());
  int64_t line = 0;
  for (const hpo::text::DataFileRow& row : file.rows) {
    HPO_CHECK(row.line >= line);  // an array may have several in a line
    line = row.line;
    HPO_CHECK(row.pair.has_value() == file.pairs);
    HPO_CHECK(hpo::text::FindInvalidUtf8(row.text) == absl::string_view::npos);
  }
}

void CheckRows(const hpo::text::DataFile& file) {
  CheckTexts(file);
  for (const hpo::text::DataFileRow& row : file.rows) {
    HPO_CHECK(file.multi_label || row.labels.size() == 1);
    for (const std::string& label : row.labels) HPO_CHECK(!label.empty());
  }
}

// Of a regression, and of a language model.
void CheckTargets(const absl::StatusOr<hpo::text::DataFile>& file, size_t numbers) {
  if (!file.ok()) return CheckStatus(file.status());
  CheckTexts(*file);
  for (const hpo::text::DataFileRow& row : file->rows) {
    HPO_CHECK(row.labels.empty());
    HPO_CHECK(row.numbers.size() == numbers);
    for (const double number : row.numbers) HPO_CHECK(std::isfinite(number));
  }
}

void CheckAspects(const absl::StatusOr<hpo::text::AspectFile>& file) {
  if (!file.ok()) return CheckStatus(file.status());
  HPO_CHECK(!file->rows.empty());
  size_t aspects = 0;
  for (const hpo::text::AspectRow& row : file->rows) {
    HPO_CHECK(hpo::text::FindInvalidUtf8(row.text) == absl::string_view::npos);
    HPO_CHECK(!row.aspects.empty());
    aspects += row.aspects.size();
    for (const hpo::text::Aspect& aspect : row.aspects) {
      HPO_CHECK(!aspect.category.empty());
      HPO_CHECK(std::isfinite(aspect.valence) && std::isfinite(aspect.arousal));
    }
  }
  const size_t classes = hpo::text::ClassesOf(*file).size();
  HPO_CHECK(classes >= 1 && classes <= aspects);
}

void CheckFile(const absl::StatusOr<hpo::text::DataFile>& file) {
  if (!file.ok()) return CheckStatus(file.status());
  CheckRows(*file);
  if (!CanBeCsv(*file)) return;
  const auto again = hpo::text::ParseCsv(WriteCsv(*file), "data");
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
  CheckFile(hpo::text::ParseJsonLines(content, "data"));
  CheckFile(hpo::text::ParseCsv(content, "data"));
  const hpo::text::RowTargets numbers = {hpo::text::RowTargets::Kind::kNumbers, {"label", "x"}};
  const hpo::text::RowTargets nothing = {hpo::text::RowTargets::Kind::kNothing, {}};
  CheckTargets(hpo::text::ParseJsonLines(content, "data", numbers), 2);
  CheckTargets(hpo::text::ParseCsv(content, "data", numbers), 2);
  CheckTargets(hpo::text::ParseJsonLines(content, "data", nothing), 0);
  CheckTargets(hpo::text::ParseCsv(content, "data", nothing), 0);
  CheckAspects(hpo::text::ParseAspectLines(content, "data"));
  return 0;
}
