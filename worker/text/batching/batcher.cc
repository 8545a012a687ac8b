#include "worker/text/batching/batcher.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/random.h"
#include "common/base/status.h"
#include "common/models/workload.h"

namespace hpo::text {
namespace {

// Keeps these draws apart from others made with the trial's seed.
constexpr uint64_t kBatchStream = uint64_t{0x62617463} << 32;

template <typename T>
void Shuffle(std::vector<T>& values, Rng& rng) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<size_t>(rng.Below(i))]);
  }
}

// Equally long rows keep their order.
void SortByLength(const EncodedDataset& data, std::span<int64_t> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return data.Length(a) > data.Length(b); });
}

std::vector<BatchRows> Cut(std::span<const int64_t> rows, int64_t batch_size) {
  std::vector<BatchRows> batches;
  const size_t step = static_cast<size_t>(batch_size);
  for (size_t begin = 0; begin < rows.size(); begin += step) {
    const auto batch = rows.subspan(begin, std::min(step, rows.size() - begin));
    batches.emplace_back(batch.begin(), batch.end());
  }
  return batches;
}

std::vector<int64_t> AllRows(const EncodedDataset& data) {
  std::vector<int64_t> rows(static_cast<size_t>(data.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

void FillLabels(const EncodedDataset& data, std::span<const int64_t> rows, TokenBatch& batch) {
  const size_t num_labels = static_cast<size_t>(data.num_labels);
  if (!data.numbers.empty()) {
    for (const int64_t row : rows) {
      const auto numbers =
          std::span(data.numbers).subspan(static_cast<size_t>(row) * num_labels, num_labels);
      batch.label_matrix.insert(batch.label_matrix.end(), numbers.begin(), numbers.end());
    }
    return;
  }
  if (!data.multi_label) {
    if (num_labels == 0) return;
    for (const int64_t row : rows) batch.labels.push_back(data.Labels(row).front());
    return;
  }
  batch.label_matrix.assign(rows.size() * num_labels, 0.0f);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const int32_t label : data.Labels(rows[i])) {
      batch.label_matrix[i * num_labels + static_cast<size_t>(label)] = 1.0f;
    }
  }
}

}  // namespace

std::vector<BatchRows> TrainingBatches(const EncodedDataset& data, const EpochDraw& draw) {
  HPO_CHECK(draw.batch_size > 0);
  Rng rng(draw.seed, kBatchStream + static_cast<uint64_t>(draw.epoch));
  std::vector<int64_t> rows = AllRows(data);
  Shuffle(rows, rng);
  const int64_t together = draw.group_by_length ? kPoolBatches : 1;
  const size_t pool = static_cast<size_t>(together * draw.batch_size);
  for (size_t begin = 0; begin < rows.size(); begin += pool) {
    SortByLength(data, std::span(rows).subspan(begin, std::min(pool, rows.size() - begin)));
  }
  std::vector<BatchRows> batches = Cut(rows, draw.batch_size);
  Shuffle(batches, rng);
  return batches;
}

std::vector<BatchRows> EvaluationBatches(const EncodedDataset& data, int64_t batch_size) {
  HPO_CHECK(batch_size > 0);
  std::vector<int64_t> rows = AllRows(data);
  SortByLength(data, rows);
  return Cut(rows, batch_size);
}

std::vector<std::span<const int64_t>> SplitBatch(const BatchRows& batch,
                                                 std::span<const int64_t> part_sizes) {
  std::vector<std::span<const int64_t>> parts;
  std::span<const int64_t> rest(batch);
  for (const int64_t size : part_sizes) {
    HPO_CHECK(size > 0 && static_cast<size_t>(size) <= rest.size());
    parts.push_back(rest.first(static_cast<size_t>(size)));
    rest = rest.subspan(static_cast<size_t>(size));
  }
  HPO_CHECK(rest.empty());
  return parts;
}

int64_t PaddedLength(const EncodedDataset& data, std::span<const int64_t> rows,
                     int64_t max_positions) {
  int64_t longest = 0;
  for (const int64_t row : rows) longest = std::max(longest, data.Length(row));
  HPO_CHECK(longest <= max_positions);
  const int64_t rounded = (longest + kPaddingMultiple - 1) / kPaddingMultiple * kPaddingMultiple;
  return std::min(rounded, max_positions);
}

TokenBatch PadBatch(const EncodedDataset& data, std::span<const int64_t> rows,
                    int64_t max_positions) {
  HPO_CHECK(!rows.empty());
  TokenBatch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  batch.length = PaddedLength(data, rows, max_positions);
  const size_t size = static_cast<size_t>(batch.rows * batch.length);
  batch.ids.assign(size, data.pad_id);
  batch.type_ids.assign(size, 0);
  batch.mask.assign(size, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto start = static_cast<std::ptrdiff_t>(i) * batch.length;
    const std::span<const int32_t> ids = data.Ids(rows[i]);
    const std::span<const int32_t> type_ids = data.TypeIds(rows[i]);
    std::copy(ids.begin(), ids.end(), batch.ids.begin() + start);
    std::copy(type_ids.begin(), type_ids.end(), batch.type_ids.begin() + start);
    std::fill_n(batch.mask.begin() + start, ids.size(), int64_t{1});
  }
  FillLabels(data, rows, batch);
  return batch;
}

PackedRows PackedRowsOf(const EncodedDataset& data, std::span<const int64_t> rows) {
  std::vector<int64_t> lengths;
  for (const int64_t row : rows) lengths.push_back(data.Length(row));
  return PackRows(lengths);
}

TokenBatch PackBatch(const EncodedDataset& data, std::span<const int64_t> rows) {
  HPO_CHECK(!rows.empty());
  TokenBatch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  batch.packed = PackedRowsOf(data, rows);
  batch.length = TotalTokens(batch.packed);
  HPO_CHECK(batch.length <= std::numeric_limits<int32_t>::max());
  batch.offsets.push_back(0);
  for (const int64_t row : rows) {
    const std::span<const int32_t> ids = data.Ids(row);
    const std::span<const int32_t> type_ids = data.TypeIds(row);
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.type_ids.insert(batch.type_ids.end(), type_ids.begin(), type_ids.end());
    for (size_t position = 0; position < ids.size(); ++position) {
      batch.positions.push_back(static_cast<int64_t>(position));
    }
    batch.offsets.push_back(static_cast<int32_t>(batch.ids.size()));
  }
  FillLabels(data, rows, batch);
  return batch;
}

}  // namespace hpo::text
