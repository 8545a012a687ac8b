// Tested by tests/common/interop/optuna/optuna_study_test.cc.
#include "common/interop/optuna/optuna_source.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_database.h"
#include "common/interop/optuna/optuna_distribution.h"

namespace hpo {
namespace {

using Json = nlohmann::json;

absl::StatusOr<ParamValue> ChoiceOf(const Json& attributes, double index) {
  const auto choices = attributes.find("choices");
  const bool is_list = choices != attributes.end() && choices->is_array();
  if (!is_list || !(index >= 0.0 && index < static_cast<double>(choices->size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected the index of a choice, got ", index, " of ",
                     is_list ? DescribeJson(*choices) : "no choices"));
  }
  return OptunaChoice((*choices)[static_cast<size_t>(index)]);
}

}  // namespace

std::string OptunaRow::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? "" : text;
}

absl::StatusOr<OptunaSource> OptunaSource::Open(const std::string& path, const std::string& name) {
  OptunaSource source(path);
  HPO_RETURN_IF_ERROR(source.OpenFile());
  HPO_RETURN_IF_ERROR(source.FindStudy(name));
  return source;
}

absl::Status OptunaSource::Select(const char* sql, const Json& values, const TakeRow& take) const {
  const StatementPointer statement = BindStatement(database_.get(), sql, values);
  int code = statement == nullptr ? SQLITE_ERROR : sqlite3_step(statement.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(statement.get())) {
    HPO_RETURN_IF_ERROR(take(OptunaRow(statement.get())));
  }
  if (code == SQLITE_DONE) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path_, ": ", sqlite3_errmsg(database_.get())));
}

absl::Status OptunaSource::OpenFile() {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path_, ": ", sqlite3_errmsg(opened)));
  }
  sqlite3_busy_timeout(opened, 5000);
  int64_t schema = 0;
  const absl::Status read =
      Select("SELECT schema_version FROM version_info", Json::array(), [&](const OptunaRow& row) {
        schema = row.Int(0);
        return absl::OkStatus();
      });
  if (read.ok() && schema == kOptunaSchema) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": expected a database of Optuna's with schema ", kOptunaSchema, ", got ",
      read.ok() ? absl::StrCat("schema ", schema, "; `optuna storage upgrade` brings older ones up")
                : "another file"));
}

absl::Status OptunaSource::FindStudy(const std::string& name) {
  std::map<std::string, int64_t> studies;
  HPO_RETURN_IF_ERROR(
      Select("SELECT study_id, study_name FROM studies", Json::array(), [&](const OptunaRow& row) {
        studies[row.Text(1)] = row.Int(0);
        return absl::OkStatus();
      }));
  const auto found = name.empty() && studies.size() == 1 ? studies.begin() : studies.find(name);
  if (found == studies.end()) {
    const std::string names = absl::StrJoin(
        studies, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
    return absl::NotFoundError(absl::StrCat(path_, ": expected one of its studies (", names,
                                            "), got ", name.empty() ? "no name" : name));
  }
  name_ = found->first;
  study_id_ = found->second;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> OptunaSource::Directions() const {
  std::vector<std::string> directions;
  HPO_RETURN_IF_ERROR(
      Select("SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective",
             Json::array({study_id_}), [&](const OptunaRow& row) {
               directions.push_back(row.Text(0));
               return absl::OkStatus();
             }));
  return directions;
}

absl::StatusOr<std::optional<Json>> OptunaSource::MetricNames() const {
  std::optional<Json> names;
  HPO_RETURN_IF_ERROR(
      Select("SELECT value_json FROM study_system_attributes WHERE study_id = ? AND \"key\" = "
             "'study:metric_names'",
             Json::array({study_id_}), [&](const OptunaRow& row) -> absl::Status {
               HPO_ASSIGN_OR_RETURN(names, ParseJson(row.Text(0)));
               return absl::OkStatus();
             }));
  return names;
}

absl::StatusOr<ParamValue> OptunaValue(double stored, const Json& json) {
  const bool known = json.is_object() && json.value("name", Json()).is_string() &&
                     json.value("attributes", Json()).is_object();
  const std::string name = known ? json["name"].get<std::string>() : "";
  if (name == "CategoricalDistribution") return ChoiceOf(json["attributes"], stored);
  if (name == "IntDistribution") {
    if (std::abs(stored) <= 0x1p53) return static_cast<int64_t>(std::llround(stored));
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a whole number within -2^53 and 2^53, got %.0f, which Optuna's "
                        "database does not keep exactly",
                        stored));
  }
  if (name == "FloatDistribution") return stored;
  return absl::InvalidArgumentError(
      absl::StrCat("expected an IntDistribution, a FloatDistribution or a CategoricalDistribution "
                   "and its value, got ",
                   stored, " of ", DescribeJson(json)));
}

}  // namespace hpo
