#include "worker/text/encoded_dataset.h"

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

std::span<const int32_t> Slice(const std::vector<int32_t>& values,
                               const std::vector<int64_t>& offsets, int64_t row) {
  const size_t begin = static_cast<size_t>(offsets[static_cast<size_t>(row)]);
  const size_t end = static_cast<size_t>(offsets[static_cast<size_t>(row) + 1]);
  return std::span<const int32_t>(values).subspan(begin, end - begin);
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

absl::StatusOr<EncodedDataset> EncodeDataset(const Dataset& dataset, const Tokenizer& tokenizer,
                                             int64_t max_length) {
  const int64_t specials = tokenizer.NumSpecialTokens(dataset.pairs);
  if (max_length <= specials) {
    return absl::InvalidArgumentError(absl::StrCat("tok.max_length: expected more than the ",
                                                   specials, " special tokens of a row of ",
                                                   dataset.path, ", got ", max_length));
  }
  EncodedDataset encoded;
  encoded.num_labels = static_cast<int64_t>(dataset.label_names.size());
  encoded.multi_label = dataset.multi_label;
  encoded.pad_id = tokenizer.pad_id();
  encoded.token_offsets.reserve(dataset.rows.size() + 1);
  encoded.label_offsets.reserve(dataset.rows.size() + 1);
  encoded.token_offsets.push_back(0);
  encoded.label_offsets.push_back(0);
  for (const DatasetRow& row : dataset.rows) {
    std::optional<absl::string_view> pair;
    if (row.pair.has_value()) pair = *row.pair;
    const Encoding encoding = tokenizer.Encode(row.text, pair, max_length);
    encoded.ids.insert(encoded.ids.end(), encoding.ids.begin(), encoding.ids.end());
    encoded.type_ids.insert(encoded.type_ids.end(), encoding.type_ids.begin(),
                            encoding.type_ids.end());
    encoded.labels.insert(encoded.labels.end(), row.labels.begin(), row.labels.end());
    encoded.numbers.insert(encoded.numbers.end(), row.numbers.begin(), row.numbers.end());
    encoded.token_offsets.push_back(static_cast<int64_t>(encoded.ids.size()));
    encoded.label_offsets.push_back(static_cast<int64_t>(encoded.labels.size()));
  }
  return encoded;
}

}  // namespace hpo
