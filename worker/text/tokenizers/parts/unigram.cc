#include "worker/text/tokenizers/parts/unigram.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "common/base/utf8.h"

namespace hpo::text {
namespace {

constexpr int32_t kUnreached = -1;

// Words up to so many bytes cost no allocation.
constexpr size_t kShortUnigramWord = 64;

std::vector<std::string> TextsOf(const std::vector<UnigramVocabulary::Piece>& pieces) {
  std::vector<std::string> texts;
  texts.reserve(pieces.size());
  for (const UnigramVocabulary::Piece& piece : pieces) texts.push_back(piece.text);
  return texts;
}

}  // namespace

UnigramModel::UnigramModel(const UnigramVocabulary& vocabulary)
    : precision_(vocabulary.precision),
      unknown_score_(vocabulary.unknown_score),
      unknown_id_(vocabulary.unknown_id),
      byte_tokens_(vocabulary.byte_tokens),
      trie_(TextsOf(vocabulary.pieces)) {
  pieces_.reserve(vocabulary.pieces.size());
  for (const UnigramVocabulary::Piece& piece : vocabulary.pieces) {
    pieces_.push_back({piece.score, piece.id});
  }
}

void UnigramModel::Append(absl::string_view word, std::vector<int32_t>& ids) const {
  if (precision_ == UnigramVocabulary::Precision::kSingle) {
    AppendBest<float>(word, ids);
  } else {
    AppendBest<double>(word, ids);
  }
}

template <typename Score>
void UnigramModel::AppendBest(absl::string_view word, std::vector<int32_t>& ids) const {
  // The best path that ends before byte i.
  struct End {
    Score score = 0;
    int32_t size = kUnreached;  // bytes of the path's last piece
    int32_t piece = -1;         // its index; -1: an unknown character
  };
  absl::InlinedVector<End, kShortUnigramWord> ends(word.size() + 1);
  for (size_t begin = 0; begin < word.size();) {
    const absl::string_view rest = word.substr(begin);
    const size_t character = CharacterSize(rest);
    const Score before = ends[begin].score;
    const auto offer = [&](size_t size, double score, int32_t piece) {
      End& end = ends[begin + size];
      const Score sum = static_cast<Score>(score) + before;
      if (end.size == kUnreached || sum > end.score) {
        end = {sum, static_cast<int32_t>(size), piece};
      }
    };
    bool has_character = false;
    trie_.ForEachMatch(VocabTrie::kRoot, rest, [&](const VocabTrie::Match& match) {
      offer(match.length, pieces_[static_cast<size_t>(match.id)].score, match.id);
      has_character |= match.length == character;
    });
    if (!has_character) offer(character, unknown_score_, -1);
    begin += character;
  }
  const size_t first = ids.size();
  size_t run_end = 0;  // of unknown characters; 0: none
  for (size_t end = word.size(); end > 0;) {
    const End& best = ends[end];
    const size_t begin = end - static_cast<size_t>(best.size);
    if (best.piece < 0) {
      if (run_end == 0) run_end = end;
      if (begin == 0 || ends[begin].piece >= 0) {
        AppendUnknown(word.substr(begin, run_end - begin), ids);
        run_end = 0;
      }
    } else {
      ids.push_back(pieces_[static_cast<size_t>(best.piece)].id);
    }
    end = begin;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

// Last byte first: the caller walks the word from its end.
void UnigramModel::AppendUnknown(absl::string_view run, std::vector<int32_t>& ids) const {
  const bool as_bytes = std::all_of(run.begin(), run.end(), [&](char byte) {
    return byte_tokens_[static_cast<unsigned char>(byte)] >= 0;
  });
  if (!as_bytes) {
    ids.push_back(unknown_id_);
    return;
  }
  for (auto byte = run.rbegin(); byte != run.rend(); ++byte) {
    ids.push_back(byte_tokens_[static_cast<unsigned char>(*byte)]);
  }
}

}  // namespace hpo::text
