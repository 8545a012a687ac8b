#include "worker/text/data/data_file_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {
namespace {

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

absl::Status CheckRecordSize(absl::string_view record, absl::string_view origin, int64_t line) {
  if (static_cast<int64_t>(record.size()) <= kMaxRecordBytes) return absl::OkStatus();
  return DataError(
      origin, line,
      absl::StrCat("expected at most ", kMaxRecordBytes, " bytes in a row, got ", record.size()));
}

absl::Status DataFileBuilder::Add(RowFields fields) {
  if (!fields.text.has_value()) {
    return DataError(file_.path, fields.line,
                     absl::StrCat("expected a field 'text', got ", fields.found,
                                  "; name the field of the text 'text'"));
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
                         ? "expected one of 'label' and 'labels', got both; remove one of them"
                         : absl::StrCat("expected a field 'label' or 'labels', got ", fields.found,
                                        "; give the row a label, or remove it"));
  }
  if (fields.labels.has_value()) return *fields.labels;
  if (fields.label->empty()) {
    return DataError(file_.path, fields.line,
                     "label: expected a label, got an empty string; give the row a label, or "
                     "remove it");
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
  if (file_.rows.empty()) return DataError(file_.path, 1, "expected rows, got none");
  return std::move(file_);
}

}  // namespace hpo
