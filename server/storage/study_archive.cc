// Tested by tests/server/scheduler/archive_test.cc.
#include "server/storage/study_archive.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "nlohmann/json.hpp"
#include "server/storage/row_codec.h"

namespace hpo::server {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "hpo-study";
constexpr int64_t kVersion = 1;
constexpr char kStudy[] = "study";
constexpr char kStudyId[] = "study_id";
constexpr char kInstanceKey[] = "instance_key";
constexpr char kHashed[] = "sha256:";

absl::StatusOr<int64_t> SchemaOf(Database& database) {
  Statement version = database.Prepare("PRAGMA user_version");
  HPO_RETURN_IF_ERROR(version.Next().status());
  return version.Int(0);
}

Json ValueOf(const Statement& row, int column) {
  switch (row.TypeOf(column)) {
    case Statement::Type::kNull:
      return nullptr;
    case Statement::Type::kInteger:
      return row.Int(column);
    case Statement::Type::kReal: {
      const double value = row.Real(column);
      if (std::isfinite(value)) return value;
      return {{"real", value > 0.0 ? "inf" : "-inf"}};
    }
    case Statement::Type::kText:
      break;
  }
  return row.Text(column);
}

// Whoever has the key of a worker's process can take its session. So an archive, which readers get,
// has a hash, by which processes differ as well. An archive that is archived again keeps it.
Json HashOfKey(const std::string& key) {
  if (absl::StartsWith(key, kHashed)) return key;
  return absl::StrCat(kHashed, Sha256Hex(key));
}

// Writes lines and keeps count and digest of them.
class LineWriter {
 public:
  explicit LineWriter(const ArchiveSink& take) : take_(take) {}

  absl::Status Write(const Json& json) {
    const std::string line = JsonText(json) + "\n";
    digest_.Update(line);
    return take_(line);
  }

  absl::Status WriteRows(Statement& rows, const char* table, const std::string& without) {
    for (;;) {
      HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) return absl::OkStatus();
      Json values = Json::object();
      for (int i = 0; i < rows.num_columns(); ++i) {
        const std::string column = rows.ColumnName(i);
        if (column == kStudyId || column == without) continue;
        values[column] = column == kInstanceKey ? HashOfKey(rows.Text(i)) : ValueOf(rows, i);
      }
      HPO_RETURN_IF_ERROR(Write({{"table", table}, {"row", std::move(values)}}));
      ++num_rows_;
    }
  }

  int64_t num_rows() const { return num_rows_; }
  std::string TakeDigest() { return digest_.HexDigest(); }

 private:
  const ArchiveSink& take_;
  Sha256 digest_;
  int64_t num_rows_ = 0;
};

absl::Status Bad(int64_t line, absl::string_view expected, absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("archive, line ", line, ": expected ", expected, ", got ", got));
}

// One line, which may be anything.
absl::StatusOr<Json> ParseLine(absl::string_view text, int64_t line) {
  absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return Annotate(json.status(), absl::StrCat("archive, line ", line));
  return json;
}

absl::StatusOr<std::vector<std::string>> ColumnsOf(Database& database, const std::string& table) {
  Statement rows = database.Prepare(absl::StrCat("PRAGMA table_info(", table, ")"));
  std::vector<std::string> columns;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return columns;
    columns.push_back(rows.Text(1));
  }
}

absl::Status BindJson(Statement& statement, int index, const Json& value) {
  if (value.is_null()) {
    statement.BindAt(index, std::optional<int64_t>());
  } else if (value.is_number_integer()) {
    statement.BindAt(index, value.get<int64_t>());
  } else if (value.is_number_float()) {
    statement.BindAt(index, value.get<double>());
  } else if (value.is_string()) {
    statement.BindAt(index, value.get<std::string>());
  } else if (value.is_object() && value.contains("real")) {
    const double infinity = std::numeric_limits<double>::infinity();
    statement.BindAt(index, value["real"] == "-inf" ? -infinity : infinity);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number, a text or null, got ", DescribeJson(value)));
  }
  return absl::OkStatus();
}

// Puts the rows of an archive into the database.
class RowReader {
 public:
  RowReader(Database& database, std::string name) : database_(database), name_(std::move(name)) {}

  absl::Status Take(const Json& line) {
    if (!line.is_object() || !line.contains("table") || !line["table"].is_string() ||
        !line.contains("row") || !line["row"].is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a row of a table, got ", DescribeJson(line)));
    }
    const auto table = line["table"].get<std::string>();
    if (study_.id == 0) return TakeStudy(table, line["row"]);
    const auto* const known =
        std::find_if(std::begin(kStudyTables), std::end(kStudyTables),
                     [&](const StudyTable& one) { return one.name == table; });
    if (known == std::end(kStudyTables)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a table of a study, got '", table, "'"));
    }
    return Insert(table, line["row"], /*of_study=*/true);
  }

  const RestoredStudy& study() const { return study_; }

 private:
  absl::Status TakeStudy(const std::string& table, Json row) {
    if (table != kStudy) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected the study's own row first, got one of '", table, "'"));
    }
    for (const char* column : {"spec", "stated"}) {
      if (!row.contains(column) || !row[column].is_string()) {
        return absl::InvalidArgumentError(absl::StrCat("expected the column ", column));
      }
      HPO_ASSIGN_OR_RETURN(Json spec, ParseJson(row[column].get<std::string>()));
      if (!spec.is_object()) return absl::InvalidArgumentError("expected a study in spec");
      if (!name_.empty()) spec["name"] = name_;
      row[column] = spec.dump();
    }
    if (!name_.empty()) row["name"] = name_;
    row.erase("id");
    HPO_RETURN_IF_ERROR(Insert(kStudy, row, /*of_study=*/false));
    study_.id = database_.LastInsertId();
    if (row["name"].is_string()) study_.name = row["name"].get<std::string>();
    return absl::OkStatus();
  }

  absl::Status Insert(const std::string& table, const Json& row, bool of_study) {
    auto known = columns_.find(table);
    if (known == columns_.end()) {
      HPO_ASSIGN_OR_RETURN(std::vector<std::string> columns, ColumnsOf(database_, table));
      known = columns_.emplace(table, std::move(columns)).first;
    }
    std::vector<std::string> names;
    std::vector<std::string> places;
    if (of_study) {
      names.emplace_back(kStudyId);
      places.emplace_back("?1");
    }
    for (const auto& [name, value] : row.items()) {
      const auto& columns = known->second;
      if (name == kStudyId || std::find(columns.begin(), columns.end(), name) == columns.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("table ", table, ": expected one of its columns, got '", name, "'"));
      }
      names.push_back(name);
      places.push_back(absl::StrCat("?", names.size()));
    }
    Statement statement =
        database_.Prepare(absl::StrCat("INSERT INTO ", table, " (", absl::StrJoin(names, ", "),
                                       ") VALUES (", absl::StrJoin(places, ", "), ")"));
    int index = 0;
    if (of_study) statement.BindAt(++index, study_.id);
    for (const auto& [name, value] : row.items()) {
      HPO_RETURN_IF_ERROR(Annotate(BindJson(statement, ++index, value), name));
    }
    return statement.Run();
  }

  Database& database_;
  const std::string name_;
  RestoredStudy study_;
  std::map<std::string, std::vector<std::string>> columns_;  // by table
};

absl::Status CheckHeader(const Json& header, int64_t schema) {
  const bool is_archive = header.is_object() && header.value("format", Json()) == kFormat;
  if (!is_archive) return Bad(1, absl::StrCat("an archive (", kFormat, ")"), DescribeJson(header));
  const Json version = header.value("version", Json());
  if (version != kVersion) return Bad(1, absl::StrCat("version ", kVersion), DescribeJson(version));
  const Json made_with = header.value("schema", Json());
  if (made_with.is_number_integer() && made_with.get<int64_t>() <= schema) return absl::OkStatus();
  return Bad(1, absl::StrCat("a database's schema up to ", schema, ", as this hpo-server knows"),
             DescribeJson(made_with));
}

// All lines but the first and this one, the last, are rows.
absl::Status CheckEnd(const Json& end, int64_t line, const std::string& sha256) {
  const int64_t num_rows = line - 2;
  const bool same = end.is_object() && end.value("rows", Json()) == num_rows &&
                    end.value("sha256", Json()) == sha256;
  if (same) return absl::OkStatus();
  return Bad(line, absl::StrCat("the end of ", num_rows, " rows with the digest ", sha256),
             DescribeJson(end));
}

// Those between the first line and the last, of an archive that is whole: what is not never gets to
// the database, which would only say that some row does not fit.
absl::StatusOr<absl::string_view> RowLines(absl::string_view archive, int64_t schema) {
  const int64_t num_lines = std::count(archive.begin(), archive.end(), '\n');
  const size_t rows = archive.find('\n') + 1;
  if (num_lines > 0) {
    HPO_ASSIGN_OR_RETURN(const Json header, ParseLine(archive.substr(0, rows), 1));
    HPO_RETURN_IF_ERROR(CheckHeader(header, schema));
  }
  if (!archive.empty() && archive.back() != '\n') {
    return Bad(num_lines + 1, "a whole line", "a part of one");
  }
  const size_t last = num_lines < 2 ? rows : archive.rfind('\n', archive.size() - 2) + 1;
  const absl::StatusOr<Json> end = ParseJson(archive.substr(last));
  if (!end.ok() || !end->is_object() || !end->contains("end")) {
    return Bad(num_lines + 1, "more lines, the last one with the end", "nothing: it is not whole");
  }
  Sha256 digest;
  digest.Update(archive.substr(0, last));
  HPO_RETURN_IF_ERROR(CheckEnd((*end)["end"], num_lines, digest.HexDigest()));
  return archive.substr(rows, last - rows);
}

}  // namespace

absl::StatusOr<int64_t> WriteStudyArchive(Database& database, int64_t study_id,
                                          const std::string& study, const ArchiveSink& take) {
  HPO_ASSIGN_OR_RETURN(const int64_t schema, SchemaOf(database));
  LineWriter writer(take);
  HPO_RETURN_IF_ERROR(writer.Write(
      {{"format", kFormat}, {"version", kVersion}, {"schema", schema}, {"study", study}}));
  {
    Statement row = database.Prepare("SELECT * FROM study WHERE id = ?1");
    row.Bind(study_id);
    HPO_RETURN_IF_ERROR(writer.WriteRows(row, kStudy, "id"));
  }
  int64_t num_trials = 0;
  for (const StudyTable& table : kStudyTables) {
    const int64_t before = writer.num_rows();
    Statement rows = database.Prepare(
        absl::StrCat("SELECT * FROM ", table.name, " WHERE study_id = ?1 ORDER BY ", table.order));
    rows.Bind(study_id);
    HPO_RETURN_IF_ERROR(writer.WriteRows(rows, table.name, table.without));
    if (std::string(table.name) == "trial") num_trials = writer.num_rows() - before;
  }
  const Json end = {
      {"rows", writer.num_rows()}, {"trials", num_trials}, {"sha256", writer.TakeDigest()}};
  HPO_RETURN_IF_ERROR(take(JsonText({{"end", end}}) + "\n"));
  return num_trials;
}

absl::StatusOr<RestoredStudy> InsertStudyArchive(Database& database, const std::string& name,
                                                 absl::string_view archive) {
  HPO_ASSIGN_OR_RETURN(const int64_t schema, SchemaOf(database));
  HPO_ASSIGN_OR_RETURN(absl::string_view lines, RowLines(archive, schema));
  RowReader rows(database, name);
  for (int64_t number = 2; !lines.empty(); ++number) {
    const size_t size = lines.find('\n') + 1;
    HPO_ASSIGN_OR_RETURN(const Json json, ParseLine(lines.substr(0, size), number));
    lines.remove_prefix(size);
    const absl::Status taken = rows.Take(json);
    if (absl::IsInvalidArgument(taken)) {
      return Annotate(taken, absl::StrCat("archive, line ", number));
    }
    HPO_RETURN_IF_ERROR(taken);
  }
  if (rows.study().id == 0) return Bad(2, "a study", "none");
  // Archives of earlier versions do not say.
  HPO_RETURN_IF_ERROR(
      database
          .Prepare("UPDATE attempt SET measured = (SELECT COUNT(*) FROM measurement AS m WHERE "
                   "m.study_id = ?1 AND m.number = attempt.number AND m.attempt = "
                   "attempt.attempt) WHERE study_id = ?1")
          .Bind(rows.study().id)
          .Run());
  HPO_RETURN_IF_ERROR(
      database.Prepare("UPDATE server SET studies_version = studies_version + 1").Run());
  return rows.study();
}

absl::Status DeleteStudyRows(Database& database, int64_t study_id) {
  for (auto table = std::rbegin(kStudyTables); table != std::rend(kStudyTables); ++table) {
    HPO_RETURN_IF_ERROR(
        database.Prepare(absl::StrCat("DELETE FROM ", table->name, " WHERE study_id = ?1"))
            .Bind(study_id)
            .Run());
  }
  HPO_RETURN_IF_ERROR(database.Prepare("DELETE FROM study WHERE id = ?1").Bind(study_id).Run());
  return database.Prepare("UPDATE server SET studies_version = studies_version + 1").Run();
}

}  // namespace hpo::server
