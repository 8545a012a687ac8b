// `hpo memory fit`.
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/json.h"
#include "cli/memory_commands.h"
#include "cli/model_step.h"
#include "cli/offline_card.h"
#include "cli/table.h"
#include "common/memory/config_advice.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostRows = 1 << 16;

struct FitMatrix {
  ModelFacts model;
  OfflineDevice device;
  Basis basis;
  std::vector<int64_t> lengths;
  // By length, then card; nullopt: not even one row.
  std::vector<std::vector<std::optional<ConfigVerdict>>> cells;
};

Json CellJson(int64_t length, Bytes card, const std::optional<ConfigVerdict>& cell) {
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
  return {{"model", matrix.model.name},
          {"basis", BasisJson(matrix.basis)},
          {"most_rows", kMostRows},
          {"cells", std::move(cells)}};
}

std::string CellText(const std::optional<ConfigVerdict>& cell) {
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
  return absl::StrCat("Largest micro-batch of ", matrix.model.name, "\n\n", table.Render(width),
                      "\n", BasisText(matrix.basis), "\n");
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

// One row of the matrix by hpo-trainer's decisions.
absl::Status AddTrainerRow(const FitDecider& strict, const MemoryFitOptions& options,
                           int64_t length, FitMatrix& matrix) {
  const ParamMap params = {{"model.name", matrix.model.name},
                           {"tok.max_length", length},
                           {"train.grad_accum", options.grad_accum}};
  auto& row = matrix.cells.emplace_back();
  for (const Bytes card : matrix.device.cards) {
    HPO_ASSIGN_OR_RETURN(row.emplace_back(), LargestBatchSize(strict, params, card, kMostRows));
  }
  return absl::OkStatus();
}

absl::Status AddStepRow(const MemoryFitOptions& options, int64_t length, FitMatrix& matrix) {
  const TrainingConfig config{
      .batch_size = 1, .grad_accum = options.grad_accum, .max_length = length};
  HPO_ASSIGN_OR_RETURN(const StepDescription step,
                       MakeModelStep(matrix.model, options.kernels, matrix.device, config));
  matrix.basis = BasisOf(step, options.kernels);
  auto& row = matrix.cells.emplace_back();
  for (const Bytes card : matrix.device.cards) {
    row.push_back(LargestStep(step, matrix.device, card, kMostRows));
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
  HPO_ASSIGN_OR_RETURN(matrix.model, FindModel(options.model));
  HPO_ASSIGN_OR_RETURN(matrix.device, ParseDevice(options.device));
  HPO_RETURN_IF_ERROR(CheckLengths(matrix.model, options.lengths));
  HPO_ASSIGN_OR_RETURN(const bool trainer, UsesTrainer(options.kernels, matrix.model.shape));
  matrix.basis = TrainerBasis(matrix.device);
  const FitDecider strict =
      OfflineDecider({}, MemoryPolicy::kStrict, {&matrix.model, 1}, matrix.device);
  for (const int64_t length : options.lengths) {
    HPO_RETURN_IF_ERROR(trainer ? AddTrainerRow(strict, options, length, matrix)
                                : AddStepRow(options, length, matrix));
  }
  if (session.json) {
    PrintJson(MatrixJson(matrix), session.out);
  } else {
    session.out << MatrixText(matrix, session.terminal.columns);
  }
  return HasCell(matrix);
}

}  // namespace hpo
