// Published tables of training runs, format hpo-table/1: a folder of space.json and table.csv.
// space.json: `params` in order, each with `name`, `kind` (categorical, or ordinal with a `scale`),
// `values`, and where it is conditional `active_if: {param, in}`; `objective` (`goal` min or max,
// `columns`, one a training seed); `constraints`: `{column, max, ...}`; `fidelity` (table_curve.h).
// table.csv: a header, then a row a configuration. The parameters' columns hold indices into
// `values`, empty where the parameter is inactive; an empty objective is a seed that was not run.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/sampler/problem.h"
#include "bench/sampler/table_curve.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/space/search_space_validation.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr double kBytesPerUnit = 1e6;  // of a constraint's column, whatever its unit

using Indices = std::vector<int>;  // into each parameter's values; -1: inactive

struct Row {
  std::vector<double> objectives;  // at least one; empty: the run failed
  std::map<int64_t, double> curve;
  double constraint = 0.0;
};

struct Table {
  std::vector<std::string> parameters;
  std::map<Indices, std::vector<Row>> rows;
  double sign = 1.0;
};

Bytes BytesOf(double constraint) {
  return Bytes{static_cast<int64_t>(std::llround(constraint * kBytesPerUnit))};
}

std::string SpaceFile(const TableSource& source) {
  return absl::StrCat(source.folder, "/space.json");
}

absl::StatusOr<nlohmann::json> ReadSpace(const std::string& file) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_table = json.is_object() && json.value("format", "") == "hpo-table/1" &&
                        json.contains("params") && json.contains("objective");
  if (!is_table) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": expected a space of hpo-table/1"));
  }
  return json;
}

// A parameter's values by index: an ordinal one as a range, a categorical one as names of indices.
Domain DomainOf(const nlohmann::json& json) {
  const int64_t count = static_cast<int64_t>(json["values"].size());
  if (json["kind"] == "ordinal") return IntDomain{0, count - 1};
  CategoricalDomain domain;
  for (int64_t i = 0; i < count; ++i) domain.choices.emplace_back(std::to_string(i));
  return domain;
}

ParamValue ValueAt(const Domain& domain, int64_t index) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    return choices->choices[static_cast<size_t>(index)];
  }
  return index;
}

SearchSpace SpaceOf(const nlohmann::json& json) {
  SearchSpace space;
  std::map<std::string, const nlohmann::json*> by_name;
  for (const nlohmann::json& parameter : json["params"]) {
    by_name[parameter["name"]] = &parameter;
    space.parameters.push_back(sampler::MakeParameter(parameter["name"], DomainOf(parameter)));
    if (!parameter.contains("active_if")) continue;
    const nlohmann::json& active = parameter["active_if"];
    Condition condition{.name = active["param"]};
    const nlohmann::json& values = (*by_name.at(condition.name))["values"];
    for (const nlohmann::json& value : active["in"]) {
      const auto index = std::find(values.begin(), values.end(), value) - values.begin();
      condition.values.push_back(ValueAt(space.Find(condition.name)->domain, index));
    }
    space.parameters.back().when = {condition};
  }
  return space;
}

class RowReader {
 public:
  // Without `curve` rows have none.
  RowReader(const std::vector<std::string>& header, const nlohmann::json& space,
            const std::string& constraint, std::optional<CurveReader> curve)
      : num_parameters_(space["params"].size()),
        num_columns_(header.size()),
        curve_(std::move(curve)) {
    const auto column = [&header](const std::string& name) {
      return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    for (const std::string name : space["objective"]["columns"]) {
      objectives_.push_back(column(name));
    }
    status_ = column("status");
    constraint_ = column(constraint);
  }

  absl::Status Read(absl::string_view line, Table& table) const {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() != num_columns_) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ", num_columns_, " cells, got ", cells.size()));
    }
    Indices indices;
    for (size_t i = 0; i < num_parameters_; ++i) {
      int index = -1;
      if (!cells[i].empty() && !absl::SimpleAtoi(cells[i], &index)) {
        return absl::InvalidArgumentError(absl::StrCat("expected an index, got ", cells[i]));
      }
      indices.push_back(index);
    }
    Row row;
    const bool ran = status_ >= cells.size() || cells[status_] == "ok";
    for (const size_t column : objectives_) {
      double value = 0.0;
      if (ran && column < cells.size() && absl::SimpleAtod(cells[column], &value)) {
        row.objectives.push_back(table.sign * value);
      }
    }
    if (curve_.has_value() && !row.objectives.empty()) {
      HPO_ASSIGN_OR_RETURN(row.curve, curve_->Read(cells));
      for (auto& [step, value] : row.curve) value *= table.sign;
    }
    if (constraint_ < cells.size()) {
      row.constraint = std::strtod(cells[constraint_].c_str(), nullptr);
    }
    table.rows[indices].push_back(std::move(row));
    return absl::OkStatus();
  }

 private:
  size_t num_parameters_;
  size_t num_columns_;
  std::optional<CurveReader> curve_;
  std::vector<size_t> objectives_;
  size_t status_ = 0;  // past the end where there is no such column, as constraint_
  size_t constraint_ = 0;
};

absl::StatusOr<Table> ReadRows(const TableSource& source, const nlohmann::json& space) {
  const std::string file = absl::StrCat(source.folder, "/table.csv");
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": expected a table with a header"));
  }
  const std::vector<std::string> header = absl::StrSplit(line, ',');
  Table table;
  table.sign = space["objective"].value("goal", "min") == "max" ? -1.0 : 1.0;
  for (const nlohmann::json& parameter : space["params"]) {
    table.parameters.push_back(parameter["name"]);
  }
  std::optional<CurveReader> curve;
  if (source.reports) {
    absl::StatusOr<CurveReader> created = CurveReader::Create(space, header);
    if (!created.ok()) return Annotate(created.status(), SpaceFile(source));
    curve = *std::move(created);
  }
  const RowReader reader(header, space, source.constraint, std::move(curve));
  for (int64_t number = 2; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    HPO_RETURN_IF_ERROR(Annotate(reader.Read(line, table), absl::StrCat(file, ":", number)));
  }
  return table;
}

Indices IndicesOf(const Table& table, const ParamMap& params) {
  Indices indices;
  for (const std::string& name : table.parameters) {
    const auto found = params.find(name);
    int index = -1;
    if (found != params.end()) {
      const auto* text = std::get_if<std::string>(&found->second);
      index =
          text != nullptr ? std::stoi(*text) : static_cast<int>(std::get<int64_t>(found->second));
    }
    indices.push_back(index);
  }
  return indices;
}

sampler::SimulatedResult Evaluate(const Table& table, bool constrained, const ParamMap& params,
                                  Rng& noise) {
  sampler::SimulatedResult result(std::nullopt);
  result.failed = true;
  const auto found = table.rows.find(IndicesOf(table, params));
  if (found == table.rows.end()) return result;
  const Row& row = found->second[noise.Below(found->second.size())];
  if (row.objectives.empty()) return result;
  result.failed = false;
  result.loss = row.objectives[noise.Below(row.objectives.size())];
  result.reports = row.curve;
  if (constrained) result.used = BytesOf(row.constraint);
  return result;
}

Bytes NeedOf(const Table& table, const ParamMap& params) {
  const auto found = table.rows.find(IndicesOf(table, params));
  return found == table.rows.end() ? Bytes{} : BytesOf(found->second.front().constraint);
}

}  // namespace

absl::StatusOr<SamplerProblem> ReadTableProblem(const TableSource& source) {
  const std::string file = SpaceFile(source);
  HPO_ASSIGN_OR_RETURN(const nlohmann::json space, ReadSpace(file));
  HPO_ASSIGN_OR_RETURN(Table read, ReadRows(source, space));
  const auto table = std::make_shared<const Table>(std::move(read));
  SamplerProblem problem;
  problem.name = space["name"];
  problem.space = SpaceOf(space);
  HPO_RETURN_IF_ERROR(Annotate(ValidateSpace(problem.space), file));
  const bool constrained = !source.constraint.empty();
  problem.run = [table, constrained](const ParamMap& params, Rng& noise) {
    return Evaluate(*table, constrained, params, noise);
  };
  if (!constrained) return problem;
  std::optional<double> limit;
  for (const nlohmann::json& entry : space.value("constraints", nlohmann::json::array())) {
    if (entry["column"] != source.constraint) continue;
    const double its_limit = entry["max"];
    limit = std::min(limit.value_or(its_limit), its_limit);
  }
  if (!limit.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": no constraint on ", source.constraint));
  }
  problem.capacity = BytesOf(*limit);
  if (!source.known) return problem;
  problem.memory = SamplerProblem::Memory::kKnown;
  problem.need = [table](const ParamMap& params) { return NeedOf(*table, params); };
  return problem;
}

}  // namespace hpo
