// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_table.h"

#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/memory/memory_params.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "memory/offline/offline_model.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/csv.h"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

// A column that is shown as it is.
constexpr char kNote[] = "note";

struct TableRow {
  std::vector<std::string> fields;
  ParamMap params;
  memory::Basis basis;
  memory::ConfigAdvice advice;
};

struct ConfigTable {
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
};

absl::StatusOr<std::string> ReadTable(const std::string& path) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// What the record's fields say, of the columns that are parameters.
absl::StatusOr<ParamMap> ParamsOf(const std::vector<std::string>& columns,
                                  const text::CsvRecord& record) {
  if (record.fields.size() != columns.size()) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", columns.size(), " fields (",
                                                   absl::StrJoin(columns, ", "), "), got ",
                                                   record.fields.size()));
  }
  std::vector<std::string> words;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == kNote || record.fields[i].empty()) continue;
    words.push_back(absl::StrCat(columns[i], "=", record.fields[i]));
  }
  HPO_ASSIGN_OR_RETURN(ParamMap params, ParseMemoryParams(words));
  if (params.contains(kModelNameParameter)) return params;
  return absl::InvalidArgumentError(
      absl::StrCat(kModelNameParameter, ": expected a name, got none"));
}

absl::StatusOr<TableRow> Answer(const std::vector<std::string>& columns,
                                const text::CsvRecord& record, const std::string& task,
                                const memory::OfflineDevice& device) {
  TableRow row{.fields = record.fields};
  HPO_ASSIGN_OR_RETURN(row.params, ParamsOf(columns, record));
  HPO_ASSIGN_OR_RETURN(
      const memory::OfflineModel model,
      memory::OfflineModel::Create(*FindString(row.params, kModelNameParameter), task, device));
  HPO_ASSIGN_OR_RETURN(row.basis, model.BasisOf(row.params));
  HPO_ASSIGN_OR_RETURN(row.advice, model.Advise(row.params, device.cards.front()));
  return row;
}

absl::StatusOr<ConfigTable> Answers(const std::string& text, const std::string& origin,
                                    const std::string& task, const memory::OfflineDevice& device) {
  ConfigTable table;
  text::CsvScanner scanner(text, origin);
  text::CsvRecord record;
  HPO_ASSIGN_OR_RETURN(const bool has_header, scanner.Next(record));
  if (has_header) table.columns = record.fields;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool more, has_header ? scanner.Next(record) : false);
    if (!more) break;
    absl::StatusOr<TableRow> row = Answer(table.columns, record, task, device);
    if (!row.ok()) {
      return Annotate(row.status(), absl::StrCat(origin, ": line ", record.line));
    }
    table.rows.push_back(*std::move(row));
  }
  if (!table.rows.empty()) return table;
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ": expected a header of parameters (model.name,train.batch_size,...) and ",
      "a configuration a line, got ", has_header ? "the header alone" : "nothing"));
}

// What makes it fit, and what it needs then.
std::string PlanText(const memory::ConfigAdvice& advice) {
  if (advice.literal.planned.fits) return "as it is";
  if (advice.changes.empty()) return "nothing helps";
  std::vector<std::string> changes;
  for (const memory::ConfigChange& change : advice.changes) changes.push_back(change.what);
  return absl::StrCat(absl::StrJoin(changes, ", "), ": ",
                      FormatBytes(advice.changes.back().verdict.required),
                      advice.fits ? "" : ", which does not fit");
}

Json TableJson(const ConfigTable& table, const memory::OfflineDevice& device) {
  Json rows = Json::array();
  for (const TableRow& row : table.rows) {
    Json changes = Json::array();
    for (const memory::ConfigChange& change : row.advice.changes) changes.push_back(change.what);
    const memory::ConfigAdvice& advice = row.advice;
    rows.push_back({{"params", Json::parse(ParamsToJson(row.params).dump())},
                    {"basis", memory::BasisJson(row.basis)},
                    {"required_bytes", advice.literal.required.count},
                    {"runs_from_bytes", memory::CardFor(device, advice.literal.required).count},
                    {"fits", advice.literal.planned.fits},
                    {"changes", std::move(changes)},
                    {"fits_with_changes", advice.fits}});
  }
  return {{"card_bytes", device.cards.front().count}, {"rows", std::move(rows)}};
}

std::string TableText(const ConfigTable& answers, const memory::OfflineDevice& device, int width) {
  std::vector<Column> columns;
  for (const std::string& name : answers.columns) {
    const bool is_text = name == kNote || name == kModelNameParameter;
    columns.push_back({name, is_text ? Align::kLeft : Align::kRight});
  }
  columns.insert(
      columns.end(),
      {{"NEEDED", Align::kRight}, {"RUNS FROM", Align::kRight}, {"FITS"}, {"WITH WHAT IT FITS"}});
  Table table(std::move(columns));
  for (const TableRow& row : answers.rows) {
    std::vector<std::string> cells = row.fields;
    const memory::ConfigVerdict& literal = row.advice.literal;
    cells.insert(cells.end(), {FormatBytes(literal.required),
                               FormatBytes(memory::CardFor(device, literal.required)),
                               literal.planned.fits ? "yes" : "no", PlanText(row.advice)});
    table.AddRow(std::move(cells));
  }
  const Bytes card = device.cards.front();
  std::string text = absl::StrCat(table.Render(width), "\non ", FormatBytes(card), ", of which ",
                                  FormatBytes(memory::UsableOf(device, card)), " may be used\n");
  for (const TableRow& row : answers.rows) {
    const std::string basis = memory::BasisText(row.basis);
    if (absl::StrContains(text, basis)) continue;
    absl::StrAppend(&text, basis, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<bool> ShowMemoryTable(Session& session, const MemoryTableOptions& options) {
  HPO_ASSIGN_OR_RETURN(const memory::OfflineDevice device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadTable(options.file));
  const std::string origin = options.file == "-" ? "standard input" : options.file;
  HPO_ASSIGN_OR_RETURN(const ConfigTable table, Answers(text, origin, options.task, device));
  if (session.json) {
    PrintJson(TableJson(table, device), session.out);
  } else {
    session.out << TableText(table, device, session.terminal.columns);
  }
  bool fits = true;
  for (const TableRow& row : table.rows) fits = fits && row.advice.literal.planned.fits;
  return fits;
}

}  // namespace hpo::cli
