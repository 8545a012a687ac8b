// docs/study-file.md says of each key what common/study/study_fields.h does. HPO_WRITE_GOLDEN=1 in
// the environment writes the page's rows; where a row is missing, put one with its key there.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/read_file.h"
#include "common/study/study_fields.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"

namespace hpo {
namespace {

// What the page calls a member's type.
template <typename T>
std::string TypeOf() {
  if constexpr (kIsOptional<T>) {
    return TypeOf<typename T::value_type>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return "flag";
  } else if constexpr (std::is_integral_v<T>) {
    return "whole";
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, RegretBound>) {
    return "number";
  } else if constexpr (std::is_same_v<T, std::string> || std::is_enum_v<T>) {
    return "text";
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return "list of texts";
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    return "duration";
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return "size";
  } else if constexpr (std::is_same_v<T, ParamMap>) {
    return "mapping of values";
  } else if constexpr (kIsVector<T>) {
    return "mapping, or a list of them";
  } else {
    return "mapping";
  }
}

// `standard`: the member in a spec that says nothing.
template <typename T>
std::string DefaultOf(const Field& field, const T& standard) {
  if (field.presence == kMandatory) return "required";
  if constexpr (HasFields<const T>) return "";
  const nlohmann::json json = ToJson(standard);
  if (json.is_null() || json.empty() || json == "") {
    const bool word = absl::string_view(field.if_unset) == kAutoWord;
    return word ? absl::StrCat("`", kAutoWord, "`") : field.if_unset;
  }
  const bool plain = json.is_number();
  return plain ? absl::StrCat(json.get<double>())
               : absl::StrCat("`", json.is_string() ? json.get<std::string>() : json.dump(), "`");
}

template <typename T>
std::string RowOf(const Field& field, const T& standard) {
  std::string type = TypeOf<T>();
  if (*field.range != '\0') absl::StrAppend(&type, ", ", field.range);
  if (absl::string_view(field.if_unset) == kAutoWord) absl::StrAppend(&type, ", or `auto`");
  std::string row = "|";
  for (const std::string& cell : {absl::StrCat("`", field.key, "`"), type,
                                  DefaultOf(field, standard), std::string(field.means)}) {
    absl::StrAppend(&row, " ", cell, cell.empty() ? "|" : " |");
  }
  return row;
}

// Rows by their key, by the heading that they stand under.
using Rows = std::map<std::string, std::map<std::string, std::string>>;

template <typename Spec>
void AddRows(const std::string& heading, const Spec& standard, Rows& rows) {
  VisitFields(standard, [&](const Field& field, const auto& member) {
    rows[heading].emplace(field.key, RowOf(field, member));
  });
}

Rows AllRows() {
  Rows rows;
  AddRows("## Top level", StudySpec(), rows);
  AddRows("## `objective`", Objective(), rows);
  AddRows("## `trainer`", TrainerSpec(), rows);
  AddRows("## `budget`", Budget(), rows);
  AddRows("## `memory`", MemorySpec(), rows);
  AddRows("## `sampler`", SamplerSpec(), rows);
  AddRows("## `constraints`", MetricConstraint(), rows);
  for (const char* type :
       {"median", "percentile", "threshold", "patient", "asha", "hyperband", "wilcoxon"}) {
    AddRows("## `pruner`", PrunerSpec{.type = type}, rows);
  }
  rows["## `pruner`"].erase("type");  // has a table of its own
  return rows;
}

std::string KeyOf(const std::string& line) {
  const std::vector<std::string> parts = absl::StrSplit(line, '`');
  return absl::StartsWith(line, "| `") && parts.size() > 2 ? parts[1] : "";
}

TEST(StudyFilePage, SaysWhatTheFieldsSay) {
  const std::string path = SourcePath("docs/study-file.md");
  const std::string page = ReadFile(path).value();
  Rows rows = AllRows();
  std::vector<std::string> lines = absl::StrSplit(page, '\n');
  std::string heading;
  bool of_keys = false;  // not the table of the pruner's types
  for (std::string& line : lines) {
    if (absl::StartsWith(line, "## ")) heading = line;
    if (absl::StartsWith(line, "|---")) continue;
    if (!absl::StartsWith(line, "| `")) of_keys = absl::StartsWith(line, "| key |");
    if (!of_keys) continue;
    const auto row = rows[heading].find(KeyOf(line));
    if (row == rows[heading].end()) continue;
    EXPECT_EQ(line, row->second);
    line = row->second;
    rows[heading].erase(row);
  }
  if (std::getenv("HPO_WRITE_GOLDEN") != nullptr) std::ofstream(path) << absl::StrJoin(lines, "\n");
  for (const auto& [where, missing] : rows) {
    for (const auto& [key, row] : missing) ADD_FAILURE() << where << " lacks " << row;
  }
}

}  // namespace
}  // namespace hpo
