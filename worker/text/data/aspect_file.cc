#include "worker/text/data/aspect_file.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/json_rows.h"
#include "worker/text/files/text_encoding.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {
namespace {

// Of an opinion, or of an aspect, that the text does not spell out.
constexpr const char* kNotSaid = "NULL";

std::string OrNotSaid(const std::string& phrase) { return phrase.empty() ? kNotSaid : phrase; }

// "7.05#5.56".
absl::Status ReadValenceAndArousal(const std::string& text, Aspect& aspect) {
  const std::vector<absl::string_view> numbers = absl::StrSplit(text, '#');
  if (numbers.size() == 2 && absl::SimpleAtof(numbers[0], &aspect.valence) &&
      absl::SimpleAtof(numbers[1], &aspect.arousal) && std::isfinite(aspect.valence) &&
      std::isfinite(aspect.arousal)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("VA: expected valence and arousal such as \"7.05#5.56\", got '", text, "'"));
}

absl::StatusOr<Aspect> AspectFromJson(const nlohmann::json& json) {
  JsonReader reader(json, "");
  Aspect aspect;
  aspect.opinion = kNotSaid;
  std::string valence_and_arousal;
  reader.Required("Aspect", aspect.name);
  reader.Required("Category", aspect.category);
  reader.Optional("Opinion", aspect.opinion);
  reader.Required("VA", valence_and_arousal);
  HPO_RETURN_IF_ERROR(reader.status());
  if (aspect.category.empty()) {
    return absl::InvalidArgumentError("Category: expected a class, got an empty string");
  }
  if (aspect.name == kNotSaid) aspect.name.clear();
  if (aspect.opinion == kNotSaid) aspect.opinion.clear();
  aspect.question = ClassQuestion(aspect.name, aspect.opinion);
  HPO_RETURN_IF_ERROR(ReadValenceAndArousal(valence_and_arousal, aspect));
  return aspect;
}

absl::StatusOr<AspectRow> RowFromJson(const nlohmann::json& json, int64_t line) {
  AspectRow row{.line = line};
  if (json.contains("ID")) row.id = json["ID"].dump();
  HPO_ASSIGN_OR_RETURN(row.text, RowText(json));
  const bool own_name = FindField(json, "Quadruplet") != nullptr;
  const char* const list = own_name ? "Quadruplet" : "aspects";
  const nlohmann::json* const found = FindField(json, list);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Quadruplet: expected a list of aspects, got ", FieldNames(json)));
  }
  absl::StatusOr<std::vector<Aspect>> aspects = ArrayFromJson<Aspect>(*found, AspectFromJson);
  if (!aspects.ok()) return Annotate(aspects.status(), list);
  if (aspects->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(list, ": expected at least one aspect, got none"));
  }
  row.aspects = *std::move(aspects);
  return row;
}

}  // namespace

std::string ClassQuestion(const std::string& aspect, const std::string& opinion) {
  const std::string name = OrNotSaid(aspect);
  return opinion.empty() ? name : absl::StrCat(name, " , ", opinion);
}

std::string FormatAspectLine(const AspectRow& row, std::span<const Aspect> aspects) {
  nlohmann::ordered_json line;
  if (!row.id.empty()) line["ID"] = nlohmann::ordered_json::parse(row.id);
  line["Text"] = row.text;
  line["Quadruplet"] = nlohmann::ordered_json::array();
  for (const Aspect& aspect : aspects) {
    line["Quadruplet"].push_back(
        {{"Aspect", OrNotSaid(aspect.name)},
         {"Category", aspect.category},
         {"Opinion", OrNotSaid(aspect.opinion)},
         {"VA", absl::StrFormat("%.2f#%.2f", aspect.valence, aspect.arousal)}});
  }
  return line.dump() + "\n";
}

absl::StatusOr<AspectFile> ParseAspectLines(absl::string_view content, const std::string& origin) {
  HPO_ASSIGN_OR_RETURN(DecodedText decoded, DecodeText(content, origin));
  AspectFile file{.path = origin, .warnings = std::move(decoded.warnings)};
  JsonRowSplitter texts(decoded.text(), origin);
  ReplacedCharacters replaced;
  JsonRowText text;
  while (true) {
    HPO_ASSIGN_OR_RETURN(const bool more, texts.Next(text));
    if (!more) break;
    HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonRow(text, origin, replaced));
    absl::StatusOr<AspectRow> row = RowFromJson(json, text.begin.line);
    if (!row.ok()) return DataError(origin, text.begin.line, row.status().message());
    file.rows.push_back(*std::move(row));
  }
  if (replaced.count > 0) file.warnings.push_back(replaced.Warning());
  if (file.rows.empty()) return DataError(origin, 1, "expected rows, got none");
  return file;
}

std::vector<std::string> ClassesOf(const AspectFile& file) {
  std::set<std::string> classes;
  for (const AspectRow& row : file.rows) {
    for (const Aspect& aspect : row.aspects) classes.insert(aspect.category);
  }
  return {classes.begin(), classes.end()};
}

absl::StatusOr<AspectFile> ReadAspectFile(const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return ParseAspectLines(content, path);
}

}  // namespace hpo::text
