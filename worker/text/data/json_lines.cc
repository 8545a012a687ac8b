// Tested by tests/worker/text/data/readers_test.cc.
#include "worker/text/data/json_lines.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/data_file_builder.h"
#include "worker/text/data/json_rows.h"
#include "worker/text/data/readers.h"
#include "worker/text/files/text_encoding.h"

namespace hpo::text {
namespace {

// Typed access to the fields of a row's object.
class JsonRow {
 public:
  JsonRow(const nlohmann::json& object, const std::string& origin, int64_t line)
      : object_(object), origin_(origin), line_(line) {}

  absl::StatusOr<std::string> Text() const {
    absl::StatusOr<std::string> text = RowText(object_);
    if (!text.ok()) return DataError(origin_, line_, text.status().message());
    return text;
  }

  absl::StatusOr<std::optional<std::string>> Pair() const {
    const nlohmann::json* const found = FindField(object_, "pair");
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) return WrongType("pair", "a string", *found);
    return found->get<std::string>();
  }

  absl::StatusOr<std::optional<std::string>> Label(const char* key) const {
    const nlohmann::json* const found = FindField(object_, key);
    if (found == nullptr) return std::nullopt;
    return LabelOf(key, *found);
  }

  absl::StatusOr<std::optional<std::vector<std::string>>> Labels(const char* key) const {
    const nlohmann::json* const found = FindField(object_, key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_array()) return WrongType(key, "an array of labels", *found);
    std::vector<std::string> labels;
    for (const nlohmann::json& element : *found) {
      HPO_ASSIGN_OR_RETURN(std::optional<std::string> label, LabelOf(key, element));
      labels.push_back(*std::move(label));
    }
    return labels;
  }

  absl::StatusOr<double> Number(const std::string& key) const {
    const nlohmann::json* const found = FindField(object_, key);
    if (found == nullptr) {
      return DataError(
          origin_, line_,
          absl::StrCat("expected a field '", key, "' of a number, got ", FieldNames(object_)));
    }
    if (!found->is_number()) {
      return WrongType(key.c_str(), "a number", *found,
                       found->is_string() ? "; write it without quotes" : "");
    }
    return found->get<double>();
  }

 private:
  absl::Status WrongType(const char* key, absl::string_view expected, const nlohmann::json& value,
                         absl::string_view cure = "") const {
    return DataError(
        origin_, line_,
        absl::StrCat(key, ": expected ", expected, ", got ", DescribeJson(value), cure));
  }

  absl::StatusOr<std::optional<std::string>> LabelOf(const char* key,
                                                     const nlohmann::json& value) const {
    if (value.is_number_integer() || value.is_boolean()) return value.dump();
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) {
      return WrongType(
          key, "a string, an integer, true or false", value,
          "; write a class as an integer or in quotes, or set the study's trainer.task "
          "to text-regression");
    }
    return WrongType(key, "a string, an integer, true or false", value);
  }

  const nlohmann::json& object_;
  const std::string& origin_;
  int64_t line_;
};

absl::Status AddRow(const JsonRowText& text, const RowTargets& targets, const std::string& origin,
                    ReplacedCharacters& replaced, DataFileBuilder& builder) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJsonRow(text, origin, replaced));
  const JsonRow row(object, origin, text.begin.line);
  RowFields fields{.line = text.begin.line};
  HPO_ASSIGN_OR_RETURN(fields.text, row.Text());
  HPO_ASSIGN_OR_RETURN(fields.pair, row.Pair());
  if (targets.kind == RowTargets::Kind::kLabels) {
    HPO_ASSIGN_OR_RETURN(fields.label, row.Label("label"));
    HPO_ASSIGN_OR_RETURN(fields.labels, row.Labels("labels"));
  }
  const bool labelled = fields.label.has_value() || fields.labels.has_value();
  if (targets.kind == RowTargets::Kind::kLabels && !labelled) fields.found = FieldNames(object);
  for (const std::string& name : targets.numbers) {
    HPO_ASSIGN_OR_RETURN(const double number, row.Number(name));
    fields.numbers.push_back(number);
  }
  return builder.Add(std::move(fields));
}

}  // namespace

absl::StatusOr<DataFile> ParseJsonLines(absl::string_view content, const std::string& origin,
                                        const RowTargets& targets) {
  HPO_ASSIGN_OR_RETURN(DecodedText decoded, DecodeText(content, origin));
  DataFileBuilder builder(origin, targets.kind);
  for (std::string& warning : decoded.warnings) builder.Warn(std::move(warning));
  JsonRowSplitter rows(decoded.text(), origin);
  ReplacedCharacters replaced;
  JsonRowText row;
  while (true) {
    HPO_ASSIGN_OR_RETURN(const bool more, rows.Next(row));
    if (!more) break;
    HPO_RETURN_IF_ERROR(AddRow(row, targets, origin, replaced, builder));
  }
  if (replaced.count > 0) builder.Warn(replaced.Warning());
  return builder.Finish(content.empty() ? "no bytes" : "no text but empty lines");
}

}  // namespace hpo::text
