#include "worker/text/batching/encoded_dataset.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::text {
namespace {

std::span<const int32_t> Slice(const std::vector<int32_t>& values,
                               const std::vector<int64_t>& offsets, int64_t row) {
  const size_t begin = static_cast<size_t>(offsets[static_cast<size_t>(row)]);
  const size_t end = static_cast<size_t>(offsets[static_cast<size_t>(row) + 1]);
  return std::span<const int32_t>(values).subspan(begin, end - begin);
}

template <typename From, typename To>
void Append(const From& values, std::vector<To>& all) {
  all.insert(all.end(), values.begin(), values.end());
}

Encoding EncodeRow(const DatasetRow& row, const Tokenizer& tokenizer, int64_t max_length) {
  std::optional<absl::string_view> pair;
  if (row.pair.has_value()) pair = *row.pair;
  return tokenizer.Encode(row.text, pair, max_length);
}

EncodedDataset WithoutTokens(const Dataset& dataset, int32_t pad_id) {
  EncodedDataset encoded;
  encoded.num_labels = static_cast<int64_t>(dataset.label_names.size());
  encoded.multi_label = dataset.multi_label;
  encoded.pad_id = pad_id;
  encoded.label_offsets.reserve(dataset.rows.size() + 1);
  encoded.label_offsets.push_back(0);
  for (const DatasetRow& row : dataset.rows) {
    Append(row.labels, encoded.labels);
    Append(row.numbers, encoded.numbers);
    encoded.label_offsets.push_back(static_cast<int64_t>(encoded.labels.size()));
  }
  return encoded;
}

}  // namespace

std::span<const int32_t> EncodedDataset::Ids(int64_t row) const {
  return Slice(ids, token_offsets, row);
}

std::span<const int32_t> EncodedDataset::TypeIds(int64_t row) const {
  return Slice(type_ids, token_offsets, row);
}

std::span<const int32_t> EncodedDataset::Labels(int64_t row) const {
  return Slice(labels, label_offsets, row);
}

void AddTokens(const Encoding& row, EncodedDataset& data) {
  Append(row.ids, data.ids);
  Append(row.type_ids, data.type_ids);
  data.token_offsets.push_back(static_cast<int64_t>(data.ids.size()));
}

absl::StatusOr<EncodedDataset> EncodeDataset(const Dataset& dataset, const Tokenizer& tokenizer,
                                             int64_t max_length) {
  const int64_t specials = tokenizer.NumSpecialTokens(dataset.pairs);
  if (max_length <= specials) {
    return absl::InvalidArgumentError(absl::StrCat("tok.max_length: expected more than the ",
                                                   specials, " special tokens of a row of ",
                                                   dataset.path, ", got ", max_length));
  }
  EncodedDataset encoded = WithoutTokens(dataset, tokenizer.pad_id());
  encoded.token_offsets.reserve(dataset.rows.size() + 1);
  encoded.token_offsets.push_back(0);
  for (const DatasetRow& row : dataset.rows) {
    AddTokens(EncodeRow(row, tokenizer, max_length), encoded);
  }
  return encoded;
}

int64_t CountTruncated(const Dataset& dataset, const EncodedDataset& encoded,
                       const Tokenizer& tokenizer, int64_t max_length) {
  int64_t count = 0;
  for (int64_t row = 0; row < encoded.num_rows(); ++row) {
    if (encoded.Length(row) < max_length) continue;
    const DatasetRow& whole = dataset.rows[static_cast<size_t>(row)];
    const Encoding longer = EncodeRow(whole, tokenizer, max_length + 1);
    if (static_cast<int64_t>(longer.ids.size()) > max_length) ++count;
  }
  return count;
}

EncodedDataset WithTokens(const Dataset& dataset, const TokenRows& tokens, int32_t pad_id) {
  HPO_CHECK(tokens.offsets.size() == dataset.rows.size() + 1);
  EncodedDataset encoded = WithoutTokens(dataset, pad_id);
  Append(tokens.offsets, encoded.token_offsets);
  Append(tokens.ids, encoded.ids);
  Append(tokens.type_ids, encoded.type_ids);
  return encoded;
}

TokenRows TokensOf(const EncodedDataset& data) {
  return {.offsets = data.token_offsets, .ids = data.ids, .type_ids = data.type_ids};
}

std::vector<int32_t> AbsentLabels(const EncodedDataset& data) {
  std::vector<bool> present(static_cast<size_t>(data.num_labels), false);
  for (const int32_t label : data.labels) present[static_cast<size_t>(label)] = true;
  std::vector<int32_t> absent;
  for (int32_t label = 0; label < data.num_labels; ++label) {
    if (!present[static_cast<size_t>(label)]) absent.push_back(label);
  }
  return absent;
}

EncodedDataset SelectRows(const EncodedDataset& data, std::span<const int64_t> rows) {
  EncodedDataset selected{.token_offsets = {0},
                          .label_offsets = {0},
                          .num_labels = data.num_labels,
                          .multi_label = data.multi_label,
                          .pad_id = data.pad_id};
  const auto width = data.numbers.empty() ? size_t{0} : static_cast<size_t>(data.num_labels);
  for (const int64_t row : rows) {
    Append(data.Ids(row), selected.ids);
    Append(data.TypeIds(row), selected.type_ids);
    Append(data.Labels(row), selected.labels);
    Append(std::span(data.numbers).subspan(static_cast<size_t>(row) * width, width),
           selected.numbers);
    selected.token_offsets.push_back(static_cast<int64_t>(selected.ids.size()));
    selected.label_offsets.push_back(static_cast<int64_t>(selected.labels.size()));
  }
  return selected;
}

}  // namespace hpo::text
