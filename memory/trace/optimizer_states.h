// What our trainer's optimizers add to the parameters: the sizes of their states and of the
// scratch in which they compute (worker/trainer/training allocates by these; its steps allocate
// nothing else). Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::memory {

enum class OptimizerKind { kAdamW, kAdamW8bit, kAdafactor, kSgd };

// "adamw", "adamw_8bit", "adafactor", "sgd".
absl::string_view Name(OptimizerKind kind);

//   InvalidArgument  another word; lists those above
absl::StatusOr<OptimizerKind> ParseOptimizerKind(absl::string_view name);

// What of an optimizer memory depends on.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdamW;
  bool has_momentum = true;  // SGD's
};

// A parameter: its first dimension, and the product of the others (1: a vector).
struct ParameterExtent {
  int64_t rows = 0;
  int64_t columns = 1;
  int64_t NumElements() const { return rows * columns; }
};

// Bytes of each tensor that the optimizer of these parameters allocates, in its order.
std::vector<int64_t> OptimizerBytes(const OptimizerSpec& spec,
                                    std::span<const ParameterExtent> parameters);

// Bytes of each tensor that is kept for one parameter alone, scratch and step count left out.
std::vector<int64_t> StateBytes(const OptimizerSpec& spec, const ParameterExtent& parameter);

// ---- AdamW with states of 8 bits ----

constexpr int64_t kQuantizationBlock = 256;
// A parameter of fewer elements keeps states of 32 bits.
constexpr int64_t kLeastQuantized = 4096;
constexpr int64_t kDynamicCodeFloats = 2 * 256 - 1;  // a code's numbers, and the middles between

int64_t RoundUpToBlock(int64_t elements);
// Elements that are computed at once, where the largest parameter has `most_elements`.
int64_t QuantizedPiece(int64_t most_elements);

// ---- Adafactor ----

// Elements of the tensors in which it computes.
struct AdafactorScratch {
  int64_t squares = 0;
  int64_t rows = 0;
  int64_t columns = 0;  // two of these

  static constexpr int64_t kScalars = 6;
  // Elements of a vector that are summed at once.
  static constexpr int64_t kMostSummed = 16384;
  // Rows of a matrix that are squared at once.
  static int64_t RowsAtOnce(int64_t columns);
};
AdafactorScratch AdafactorScratchOf(std::span<const ParameterExtent> parameters);

}  // namespace hpo::memory
