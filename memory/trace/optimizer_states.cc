#include "memory/trace/optimizer_states.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

// Elements that a step looks at at once: large enough for a card, small compared with a model.
constexpr int64_t kPiece = int64_t{1} << 18;
constexpr int64_t kMostRowsAtOnce = 16384;
constexpr int64_t kAdamW8bitScalars = 4;

bool IsQuantized(const OptimizerSpec& spec, const ParameterExtent& parameter) {
  return spec.kind == OptimizerKind::kAdamW8bit && parameter.NumElements() >= kLeastQuantized;
}

// AdamW's: the number of steps comes after the first parameter's moments.
void AppendAdamW(std::span<const ParameterExtent> parameters, std::vector<int64_t>& bytes) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    bytes.insert(bytes.end(), 2, kFloatBytes * parameters[i].NumElements());
    if (i == 0) bytes.push_back(kFloatBytes);
  }
}

void AppendAdamW8bit(const OptimizerSpec& spec, std::span<const ParameterExtent> parameters,
                     std::vector<int64_t>& bytes) {
  std::vector<ParameterExtent> small;
  std::vector<ParameterExtent> large;
  int64_t most = 0;
  for (const ParameterExtent& parameter : parameters) {
    (IsQuantized(spec, parameter) ? large : small).push_back(parameter);
    most = std::max(most, parameter.NumElements());
  }
  AppendAdamW(small, bytes);
  if (large.empty()) return;
  bytes.insert(bytes.end(), 2, kFloatBytes * kDynamicCodeFloats);
  bytes.insert(bytes.end(), 3, kFloatBytes * QuantizedPiece(most));
  bytes.push_back(kIntBytes * QuantizedPiece(most));
  bytes.push_back(kFloatBytes * kAdamW8bitScalars);
  for (const ParameterExtent& parameter : large) {
    for (const int64_t size : StateBytes(spec, parameter)) bytes.push_back(size);
  }
}

void AppendAdafactor(const OptimizerSpec& spec, std::span<const ParameterExtent> parameters,
                     std::vector<int64_t>& bytes) {
  for (const ParameterExtent& parameter : parameters) {
    for (const int64_t size : StateBytes(spec, parameter)) bytes.push_back(size);
  }
  const AdafactorScratch scratch = AdafactorScratchOf(parameters);
  for (const int64_t elements : {scratch.squares, scratch.rows, scratch.columns, scratch.columns,
                                 AdafactorScratch::kScalars}) {
    bytes.push_back(kFloatBytes * elements);
  }
}

}  // namespace

absl::string_view Name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kAdamW8bit:
      return "adamw_8bit";
    case OptimizerKind::kAdafactor:
      return "adafactor";
    case OptimizerKind::kSgd:
      return "sgd";
  }
  return "";
}

absl::StatusOr<OptimizerKind> ParseOptimizerKind(absl::string_view name) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kAdamW8bit,
                                   OptimizerKind::kAdafactor, OptimizerKind::kSgd}) {
    if (name == Name(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected adamw, adamw_8bit, adafactor or sgd, got '", name, "'"));
}

std::vector<int64_t> StateBytes(const OptimizerSpec& spec, const ParameterExtent& parameter) {
  const int64_t whole = kFloatBytes * parameter.NumElements();
  switch (spec.kind) {
    case OptimizerKind::kAdamW:
      return {whole, whole};
    case OptimizerKind::kAdamW8bit: {
      if (!IsQuantized(spec, parameter)) return {whole, whole};
      const int64_t codes = RoundUpToBlock(parameter.NumElements());
      const int64_t scales = kFloatBytes * (codes / kQuantizationBlock);
      return {codes, scales, codes, scales};
    }
    case OptimizerKind::kAdafactor:
      if (parameter.columns == 1) return {whole};
      return {kFloatBytes * parameter.rows, kFloatBytes * parameter.columns};
    case OptimizerKind::kSgd:
      return spec.has_momentum ? std::vector<int64_t>{whole} : std::vector<int64_t>{};
  }
  return {};
}

std::vector<int64_t> OptimizerBytes(const OptimizerSpec& spec,
                                    std::span<const ParameterExtent> parameters) {
  std::vector<int64_t> bytes;
  switch (spec.kind) {
    case OptimizerKind::kAdamW:
      AppendAdamW(parameters, bytes);
      break;
    case OptimizerKind::kAdamW8bit:
      AppendAdamW8bit(spec, parameters, bytes);
      break;
    case OptimizerKind::kAdafactor:
      AppendAdafactor(spec, parameters, bytes);
      break;
    case OptimizerKind::kSgd:
      for (const ParameterExtent& parameter : parameters) {
        for (const int64_t size : StateBytes(spec, parameter)) bytes.push_back(size);
      }
      break;
  }
  return bytes;
}

int64_t RoundUpToBlock(int64_t elements) {
  return (elements + kQuantizationBlock - 1) / kQuantizationBlock * kQuantizationBlock;
}

int64_t QuantizedPiece(int64_t most_elements) {
  return std::min(kPiece, RoundUpToBlock(most_elements));
}

int64_t AdafactorScratch::RowsAtOnce(int64_t columns) {
  return std::clamp<int64_t>(kPiece / columns, 1, kMostRowsAtOnce);
}

AdafactorScratch AdafactorScratchOf(std::span<const ParameterExtent> parameters) {
  AdafactorScratch scratch;
  for (const ParameterExtent& parameter : parameters) {
    const bool is_vector = parameter.columns == 1;
    const int64_t rows =
        is_vector ? parameter.rows
                  : std::min(parameter.rows, AdafactorScratch::RowsAtOnce(parameter.columns));
    scratch.squares = std::max(scratch.squares, rows * parameter.columns);
    scratch.rows = std::max(scratch.rows, parameter.rows);
    scratch.columns = std::max(scratch.columns, parameter.columns);
  }
  return scratch;
}

}  // namespace hpo::memory
