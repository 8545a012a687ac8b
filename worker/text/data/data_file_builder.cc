// Tested by tests/worker/text/data/readers_test.cc.
#include "worker/text/data/data_file_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"

namespace hpo::text {
namespace {

absl::Status CheckLabels(const std::vector<std::string>& labels, absl::string_view origin,
                         int64_t line) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) {
      return DataError(origin, line, "labels: expected a label, got an empty string");
    }
    if (static_cast<int64_t>(labels[i].size()) > kTextLimit.most) {
      return DataError(origin, line,
                       absl::StrCat("label: expected at most ", kTextLimit.most, " bytes, got ",
                                    labels[i].size(), ": ", Quoted(labels[i]),
                                    "; are text and label exchanged?"));
    }
    if (std::find(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i), labels[i]) !=
        labels.begin() + static_cast<std::ptrdiff_t>(i)) {
      return DataError(
          origin, line,
          absl::StrCat("labels: expected each label once, got ", Quoted(labels[i]), " twice"));
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
  file_.rows.push_back({.text = std::move(fields.text),
                        .pair = std::move(fields.pair),
                        .labels = std::move(labels),
                        .line = fields.line,
                        .numbers = std::move(fields.numbers)});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DataFileBuilder::TakeLabels(RowFields& fields) const {
  if (fields.label.has_value() == fields.labels.has_value()) {
    return DataError(
        file_.path, fields.line,
        fields.label.has_value()
            ? "expected one of 'label' and 'labels', got both; remove one of them"
            : absl::StrCat("expected a field 'label' or 'labels', got ", fields.found,
                           file_.rows.empty() ? "; name the field of the label 'label', or, if it "
                                                "has this name, give the row a label, or remove it"
                                              : "; give the row a label, or remove it"));
  }
  if (fields.labels.has_value()) return *fields.labels;
  if (absl::StripAsciiWhitespace(*fields.label).empty()) {
    return DataError(file_.path, fields.line,
                     absl::StrCat("label: expected a label, got ",
                                  fields.label->empty() ? "an empty string" : "spaces alone",
                                  "; give the row a label, or remove it"));
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

absl::StatusOr<DataFile> DataFileBuilder::Finish(absl::string_view instead) {
  if (file_.rows.empty()) {
    return DataError(file_.path, 1,
                     absl::StrCat("expected rows, got none; the file has ", instead,
                                  ": write it again, or name another file in the study"));
  }
  return std::move(file_);
}

}  // namespace hpo::text
