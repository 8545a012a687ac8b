#include "worker/text/data/data_file_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/status.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

absl::Status CheckLabels(const std::vector<std::string>& labels, absl::string_view origin,
                         int64_t line) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) {
      return DataError(origin, line, "labels: expected a label, got an empty string");
    }
    if (std::find(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i), labels[i]) !=
        labels.begin() + static_cast<std::ptrdiff_t>(i)) {
      return DataError(
          origin, line,
          absl::StrCat("labels: expected each label once, got '", labels[i], "' twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DataError(absl::string_view origin, int64_t line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ":", line, ": ", message));
}

absl::Status CheckRecord(absl::string_view record, absl::string_view origin, int64_t line) {
  if (static_cast<int64_t>(record.size()) > kMaxRecordBytes) {
    return DataError(
        origin, line,
        absl::StrCat("expected at most ", kMaxRecordBytes, " bytes in a row, got ", record.size()));
  }
  const size_t invalid = FindInvalidUtf8(record);
  if (invalid != absl::string_view::npos) {
    return DataError(origin, line,
                     absl::StrCat("expected UTF-8, got byte 0x",
                                  absl::Hex(static_cast<unsigned char>(record[invalid])),
                                  " at byte ", invalid + 1, " of the row"));
  }
  const size_t nul = record.find('\0');
  if (nul != absl::string_view::npos) {
    return DataError(origin, line,
                     absl::StrCat("expected text, got a NUL at byte ", nul + 1, " of the row"));
  }
  return absl::OkStatus();
}

absl::string_view WithoutByteOrderMark(absl::string_view content) {
  if (absl::StartsWith(content, kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  return content;
}

absl::Status DataFileBuilder::Add(RowFields fields) {
  if (!fields.text.has_value()) {
    return DataError(file_.path, fields.line, "expected a field 'text', got none");
  }
  std::vector<std::string> labels;
  if (kind_ == RowTargets::Kind::kLabels) {
    HPO_ASSIGN_OR_RETURN(labels, TakeLabels(fields));
  }
  if (file_.rows.empty()) {
    file_.multi_label = fields.labels.has_value();
    file_.pairs = fields.pair.has_value();
  }
  HPO_RETURN_IF_ERROR(CheckLikeFirstRow(fields));
  HPO_RETURN_IF_ERROR(CheckLabels(labels, file_.path, fields.line));
  file_.rows.push_back({.text = *std::move(fields.text),
                        .pair = std::move(fields.pair),
                        .labels = std::move(labels),
                        .line = fields.line,
                        .numbers = std::move(fields.numbers)});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DataFileBuilder::TakeLabels(RowFields& fields) const {
  if (fields.label.has_value() == fields.labels.has_value()) {
    return DataError(file_.path, fields.line,
                     fields.label.has_value()
                         ? "expected one of 'label' and 'labels', got both"
                         : "expected a field 'label' or 'labels', got neither");
  }
  if (fields.labels.has_value()) return *fields.labels;
  if (fields.label->empty()) {
    return DataError(file_.path, fields.line, "label: expected a label, got an empty string");
  }
  return std::vector<std::string>{*std::move(fields.label)};
}

absl::Status DataFileBuilder::CheckLikeFirstRow(const RowFields& fields) const {
  const int64_t first = file_.rows.empty() ? fields.line : file_.rows.front().line;
  if (fields.pair.has_value() != file_.pairs) {
    return DataError(file_.path, fields.line,
                     absl::StrCat("pair: expected a pair in every row or in none, got ",
                                  file_.pairs ? "none" : "one", " here unlike in line ", first));
  }
  if (fields.labels.has_value() != file_.multi_label) {
    return DataError(
        file_.path, fields.line,
        absl::StrCat("expected '", file_.multi_label ? "labels" : "label", "' as in line ", first,
                     ", got '", file_.multi_label ? "label" : "labels", "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataFile> DataFileBuilder::Finish() {
  if (file_.rows.empty()) return DataError(file_.path, 1, "expected rows, got an empty file");
  return std::move(file_);
}

}  // namespace hpo
