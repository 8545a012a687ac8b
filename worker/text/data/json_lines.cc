#include "worker/text/data/json_lines.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/data_file_builder.h"
#include "worker/text/data/readers.h"

namespace hpo {
namespace {

// Longest stretch of a wrong value that an error repeats.
constexpr size_t kMaxShown = 60;

std::string Shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

// A line's object and where it stands, with typed access to its fields.
class JsonRow {
 public:
  JsonRow(nlohmann::json object, const std::string& origin, int64_t line)
      : object_(std::move(object)), origin_(origin), line_(line) {}

  absl::StatusOr<std::optional<std::string>> Text(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return std::nullopt;
    if (!found->is_string()) return WrongType(key, "a string", *found);
    return CheckedText(key, found->get_ref<const std::string&>());
  }

  absl::StatusOr<std::optional<std::string>> Label(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return std::nullopt;
    return LabelOf(key, *found);
  }

  absl::StatusOr<std::optional<std::vector<std::string>>> Labels(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return std::nullopt;
    if (!found->is_array()) return WrongType(key, "an array of labels", *found);
    std::vector<std::string> labels;
    for (const nlohmann::json& element : *found) {
      HPO_ASSIGN_OR_RETURN(std::optional<std::string> label, LabelOf(key, element));
      labels.push_back(*std::move(label));
    }
    return labels;
  }

  absl::StatusOr<double> Number(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) {
      return DataError(origin_, line_, absl::StrCat("expected a field '", key, "', got none"));
    }
    if (!found->is_number()) return WrongType(key.c_str(), "a number", *found);
    return found->get<double>();
  }

 private:
  absl::Status WrongType(const char* key, absl::string_view expected,
                         const nlohmann::json& value) const {
    return DataError(origin_, line_,
                     absl::StrCat(key, ": expected ", expected, ", got ", Shown(value)));
  }

  absl::StatusOr<std::optional<std::string>> LabelOf(const char* key,
                                                     const nlohmann::json& value) const {
    if (value.is_number_integer()) return value.dump();
    if (!value.is_string()) return WrongType(key, "a string or an integer", value);
    return CheckedText(key, value.get_ref<const std::string&>());
  }

  // JSON can write a NUL as an escape, which the check of the line does not see.
  absl::StatusOr<std::optional<std::string>> CheckedText(const char* key,
                                                         const std::string& text) const {
    if (text.find('\0') == std::string::npos) return text;
    return DataError(origin_, line_, absl::StrCat(key, ": expected text, got a NUL (\\u0000)"));
  }

  nlohmann::json object_;
  const std::string& origin_;
  int64_t line_;
};

absl::StatusOr<JsonRow> ParseRow(absl::string_view text, const std::string& origin, int64_t line) {
  std::set<std::string> keys;
  std::optional<std::string> repeated;
  const auto note_keys = [&](int depth, nlohmann::json::parse_event_t event,
                             nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(text.begin(), text.end(), note_keys);
  } catch (const nlohmann::json::parse_error& error) {
    return DataError(origin, line,
                     absl::StrCat("expected a JSON object, got broken JSON at byte ", error.byte,
                                  " of the line"));
  } catch (const nlohmann::json::out_of_range&) {
    return DataError(origin, line, "expected a JSON object, got a number out of range");
  }
  if (!object.is_object()) {
    return DataError(origin, line, absl::StrCat("expected a JSON object, got ", Shown(object)));
  }
  if (repeated.has_value()) {
    return DataError(origin, line, absl::StrCat(*repeated, ": expected each field once"));
  }
  return JsonRow(std::move(object), origin, line);
}

absl::Status AddLine(absl::string_view text, int64_t line, const std::string& origin,
                     const RowTargets& targets, DataFileBuilder& builder) {
  HPO_RETURN_IF_ERROR(CheckRecord(text, origin, line));
  if (absl::StripAsciiWhitespace(text).empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const JsonRow row, ParseRow(text, origin, line));
  RowFields fields{.line = line};
  HPO_ASSIGN_OR_RETURN(fields.text, row.Text("text"));
  HPO_ASSIGN_OR_RETURN(fields.pair, row.Text("pair"));
  if (targets.kind == RowTargets::Kind::kLabels) {
    HPO_ASSIGN_OR_RETURN(fields.label, row.Label("label"));
    HPO_ASSIGN_OR_RETURN(fields.labels, row.Labels("labels"));
  }
  for (const std::string& name : targets.numbers) {
    HPO_ASSIGN_OR_RETURN(const double number, row.Number(name));
    fields.numbers.push_back(number);
  }
  return builder.Add(std::move(fields));
}

}  // namespace

absl::StatusOr<DataFile> ParseJsonLines(absl::string_view content, const std::string& origin,
                                        const RowTargets& targets) {
  content = WithoutByteOrderMark(content);
  DataFileBuilder builder(origin, targets.kind);
  for (int64_t line = 1; !content.empty(); ++line) {
    const size_t end = std::min(content.find('\n'), content.size());
    HPO_RETURN_IF_ERROR(AddLine(content.substr(0, end), line, origin, targets, builder));
    content.remove_prefix(std::min(end + 1, content.size()));
  }
  return builder.Finish();
}

}  // namespace hpo
