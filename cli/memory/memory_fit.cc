// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_fit.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/memory/memory_params.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "memory/offline/offline_model.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostRows = 1 << 16;

struct FitMatrix {
  std::string model;
  memory::OfflineDevice device;
  memory::Basis basis;
  std::vector<int64_t> lengths;
  // By length, then card; nullopt: not even one row.
  std::vector<std::vector<std::optional<memory::ConfigVerdict>>> cells;
};

Json CellJson(int64_t length, Bytes card, const std::optional<memory::ConfigVerdict>& cell) {
  Json json = {{"length", length}, {"card_bytes", card.count}, {"micro_batch", nullptr}};
  if (!cell.has_value()) return json;
  json["micro_batch"] = cell->planned.plan.micro_batch;
  json["required_bytes"] = cell->required.count;
  json["usable_bytes"] = cell->usable.count;
  return json;
}

Json MatrixJson(const FitMatrix& matrix) {
  Json cells = Json::array();
  for (size_t row = 0; row < matrix.lengths.size(); ++row) {
    for (size_t column = 0; column < matrix.device.cards.size(); ++column) {
      cells.push_back(
          CellJson(matrix.lengths[row], matrix.device.cards[column], matrix.cells[row][column]));
    }
  }
  return {{"model", matrix.model},
          {"basis", memory::BasisJson(matrix.basis)},
          {"most_rows", kMostRows},
          {"cells", std::move(cells)}};
}

std::string CellText(const std::optional<memory::ConfigVerdict>& cell) {
  if (!cell.has_value()) return "none";
  const int64_t rows = cell->planned.plan.micro_batch;
  return absl::StrCat(rows == kMostRows ? ">= " : "", rows);
}

std::string MatrixText(const FitMatrix& matrix, int width) {
  std::vector<Column> columns = {{"LENGTH", Align::kRight}};
  for (const Bytes card : matrix.device.cards) {
    columns.push_back({FormatBytes(card), Align::kRight});
  }
  Table table(std::move(columns));
  for (size_t row = 0; row < matrix.lengths.size(); ++row) {
    std::vector<std::string> cells = {absl::StrCat(matrix.lengths[row])};
    for (const auto& cell : matrix.cells[row]) cells.push_back(CellText(cell));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat("Largest micro-batch of ", matrix.model, "\n\n", table.Render(width), "\n",
                      memory::BasisText(matrix.basis), "\n");
}

absl::Status CheckLengths(const ModelFacts& model, const std::vector<int64_t>& lengths) {
  for (const int64_t length : lengths) {
    if (length <= model.shape.max_positions) continue;
    return absl::InvalidArgumentError(absl::StrCat("--lengths: ", model.name, " takes at most ",
                                                   model.shape.max_positions, " tokens, got ",
                                                   length));
  }
  return absl::OkStatus();
}

// What options say.
absl::Status CheckParams(const ParamMap& params) {
  const std::pair<const char*, const char*> reasons[] = {
      {"model.name", "--model says it"},
      {"tok.max_length", "--lengths says it"},
      {"train.grad_accum", "--grad-accum says it"},
      {"train.batch_size", "it is the answer"}};
  for (const auto& [name, reason] : reasons) {
    if (!params.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected none, as ", reason));
  }
  return absl::OkStatus();
}

bool HasCell(const FitMatrix& matrix) {
  for (const auto& row : matrix.cells) {
    for (const auto& cell : row) {
      if (cell.has_value()) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> ShowMemoryFit(Session& session, const MemoryFitOptions& options) {
  FitMatrix matrix{.lengths = options.lengths};
  HPO_ASSIGN_OR_RETURN(ParamMap params, ParseMemoryParams(options.params));
  HPO_RETURN_IF_ERROR(CheckParams(params));
  HPO_ASSIGN_OR_RETURN(matrix.device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(const memory::OfflineModel model,
                       memory::OfflineModel::Create(options.model, options.task, matrix.device));
  matrix.model = model.facts().name;
  HPO_RETURN_IF_ERROR(CheckLengths(model.facts(), options.lengths));
  params["train.grad_accum"] = options.grad_accum;
  params["train.batch_size"] = int64_t{1};
  for (const int64_t length : options.lengths) {
    params["tok.max_length"] = length;
    HPO_ASSIGN_OR_RETURN(matrix.basis, model.BasisOf(params));
    auto& row = matrix.cells.emplace_back();
    for (const Bytes card : matrix.device.cards) {
      HPO_ASSIGN_OR_RETURN(row.emplace_back(), model.Largest(params, card, kMostRows));
    }
  }
  if (session.json) {
    PrintJson(MatrixJson(matrix), session.out);
  } else {
    session.out << MatrixText(matrix, session.terminal.columns);
  }
  return HasCell(matrix);
}

}  // namespace hpo::cli
