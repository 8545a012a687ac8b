// Cuts an encoded data set into batches: which rows learn together (a function of the seed alone),
// and how a part of them is padded (a function of its rows alone). Pure; any thread.
//
// Each epoch the rows are shuffled and cut into batches; inside a batch the longest comes first.
// Grouped by length, they are shuffled, cut into pools of kPoolBatches batches (50,
// common/models/workload.h), sorted by length within a pool, cut into batches, and the batches are
// shuffled: rows of like length meet.
//
// Padding: a part is padded to its own longest row, rounded up to kPaddingMultiple (16,
// common/models/workload.h) and no further than the model has positions:
//   padded = min(round_up(longest, 16), max_positions),  longest <= tok.max_length
// so it never exceeds LongestPadded(lengths, tok.max_length), by which memory is estimated.
// Packing (memory.unpadded) leaves the padding out: a part is as many tokens as its rows have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/models/packed_rows.h"
#include "worker/text/batching/encoded_dataset.h"

namespace hpo::text {

// Row numbers of one (effective) batch.
using BatchRows = std::vector<int64_t>;

// How the batches of one epoch are drawn.
struct EpochDraw {
  int64_t batch_size = 0;  // > 0; the effective batch E
  bool group_by_length = false;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// The training batches of one epoch: every row once, `batch_size` rows each, one of them possibly
// shorter. Equal (data, draw) give equal batches on every machine.
std::vector<BatchRows> TrainingBatches(const EncodedDataset& data, const EpochDraw& draw);

// Batches for evaluation: every row once, longest rows first. batch_size > 0.
std::vector<BatchRows> EvaluationBatches(const EncodedDataset& data, int64_t batch_size);

// Cuts a batch into consecutive parts of the given sizes (PartSizes of
// memory/plan/memory_plan.h), which add up to the batch. The spans point into `batch`.
std::vector<std::span<const int64_t>> SplitBatch(const BatchRows& batch,
                                                 std::span<const int64_t> part_sizes);

// One part as dense row-major arrays, ready to be wrapped as tensors: padded, every row of `length`
// tokens, or packed, the rows one behind the other in the place of a single one.
struct TokenBatch {
  int64_t rows = 0;
  int64_t length = 0;             // of every row; packed: of all of them together
  std::vector<int64_t> ids;       // [rows, length], pad_id after each row's end; packed: [length]
  std::vector<int64_t> type_ids;  // as ids, 0 after each row's end
  std::vector<int64_t> mask;      // as ids, 1 = token, 0 = padding; packed: empty
  // Of a packed batch alone.
  PackedRows packed;
  std::vector<int64_t> positions;  // as ids: of each token in its row, from 0
  std::vector<int32_t> offsets;    // [rows + 1]: where each row begins, and where the last ends
  std::vector<int64_t> labels;     // single-label: [rows]; else empty
  // [rows, num_labels]: multi-label of 0 and 1, a regression's numbers; else empty.
  std::vector<float> label_matrix;
  // Of a set with span queries, else empty.
  std::vector<float> span_targets;  // [rows, length, 2]: 1 where a span begins, and where one ends
  std::vector<float> span_weights;  // [rows, length]: of both in the loss; 0: not asked
};

// `rows` must not be empty; max_positions >= the longest row.
TokenBatch PadBatch(const EncodedDataset& data, std::span<const int64_t> rows,
                    int64_t max_positions);

// `rows` must not be empty, each of one token or more, together fewer than 2^31.
TokenBatch PackBatch(const EncodedDataset& data, std::span<const int64_t> rows);

// The rows as PackBatch packs them.
PackedRows PackedRowsOf(const EncodedDataset& data, std::span<const int64_t> rows);

// The length PadBatch pads to.
int64_t PaddedLength(const EncodedDataset& data, std::span<const int64_t> rows,
                     int64_t max_positions);

}  // namespace hpo::text
