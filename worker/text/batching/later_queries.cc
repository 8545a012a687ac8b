#include "worker/text/batching/later_queries.h"

#include <algorithm>
#include <numeric>

#include "common/base/status.h"

namespace hpo::text {

void QueryRoom::Add(int64_t rows, int64_t tokens) {
  int64_t& most = rows_[tokens];
  most = std::max(most, rows);
}

int64_t QueryRoom::RowsOf(int64_t tokens) const {
  int64_t most = 0;
  for (auto shape = rows_.lower_bound(tokens); shape != rows_.end(); ++shape) {
    most = std::max(most, shape->second);
  }
  return most;
}

LaterQueries EncodeLater(std::span<const LaterQuestion> questions, const Tokenizer& tokenizer,
                         int64_t max_length, bool one_type) {
  LaterQueries later;
  EncodedDataset& queries = later.queries;
  queries.pad_id = tokenizer.pad_id();
  queries.token_offsets = {0};
  for (const LaterQuestion& question : questions) {
    const Encoding encoding = tokenizer.Encode(question.words, question.text, max_length);
    AddTokens(encoding, queries);
    later.texts.push_back(encoding.pair);
  }
  if (one_type) std::fill(queries.type_ids.begin(), queries.type_ids.end(), 0);
  return later;
}

std::vector<BatchRows> PiecesWithin(const QueryRoom& room, const EncodedDataset& queries,
                                    int64_t max_positions) {
  BatchRows rows(static_cast<size_t>(queries.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return queries.Length(a) > queries.Length(b); });
  std::vector<BatchRows> pieces;
  for (size_t begin = 0; begin < rows.size();) {
    const int64_t tokens = PaddedLength(queries, std::span(rows).subspan(begin, 1), max_positions);
    const auto most = static_cast<size_t>(room.RowsOf(tokens));
    HPO_CHECK(most > 0);
    const auto piece = std::span(rows).subspan(begin, std::min(most, rows.size() - begin));
    pieces.emplace_back(piece.begin(), piece.end());
    begin += piece.size();
  }
  return pieces;
}

}  // namespace hpo::text
