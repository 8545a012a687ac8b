// Tested by tests/worker/text/tokenizers/families/sentencepiece_tokenizer_test.cc.
#include "worker/text/tokenizers/families/sentencepiece_subwords.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/bpe.h"
#include "worker/text/tokenizers/parts/unigram.h"

namespace hpo::text {
namespace {

using PieceType = SentencePieceModel::PieceType;
using IdInModel = std::function<int32_t(int32_t)>;

// A user-defined piece is worth more than any other.
constexpr double kUserDefinedPenalty = 0.1;

bool MatchesText(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined;
}

ByteTokens ByteTokensOf(const SentencePieceModel& model, const IdInModel& id_of) {
  ByteTokens tokens = NoByteTokens();
  if (!model.byte_fallback) return tokens;
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    ids.emplace(model.pieces[id].text, static_cast<int32_t>(id));
  }
  for (size_t byte = 0; byte < tokens.size(); ++byte) {
    tokens[byte] = id_of(ids.at(absl::StrFormat("<0x%02X>", byte)));
  }
  return tokens;
}

UnigramVocabulary UnigramOf(const SentencePieceModel& model, const IdInModel& id_of) {
  UnigramVocabulary vocabulary;
  vocabulary.precision = UnigramVocabulary::Precision::kSingle;
  float worst = std::numeric_limits<float>::max();
  float best = std::numeric_limits<float>::min();
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    worst = std::min(worst, piece.score);
    best = std::max(best, piece.score);
  }
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    if (!MatchesText(piece.type)) continue;
    double score = piece.score;
    if (piece.type == PieceType::kUserDefined) {
      score =
          static_cast<double>(static_cast<float>(piece.text.size()) * best) - kUserDefinedPenalty;
    }
    vocabulary.pieces.push_back({piece.text, score, id_of(static_cast<int32_t>(id))});
  }
  vocabulary.unknown_score = worst - static_cast<float>(kUnknownPenalty);
  vocabulary.unknown_id = id_of(model.unknown_id);
  vocabulary.byte_tokens = ByteTokensOf(model, id_of);
  return vocabulary;
}

// Every way to make a piece of two others is a merge, whose rank is that of the piece's score.
std::vector<BpeVocabulary::Merge> MergesOf(const SentencePieceModel& model,
                                           const IdInModel& id_of) {
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  std::map<float, uint32_t, std::greater<>> ranks;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != PieceType::kNormal) continue;
    ids.emplace(model.pieces[id].text, id_of(static_cast<int32_t>(id)));
    ranks.emplace(model.pieces[id].score, 0);
  }
  uint32_t rank = 0;
  for (auto& [score, of_score] : ranks) of_score = rank++;
  std::vector<BpeVocabulary::Merge> merges;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    const absl::string_view text = piece.text;
    for (size_t cut = CharacterSize(text); cut < text.size();
         cut += CharacterSize(text.substr(cut))) {
      const auto left = ids.find(text.substr(0, cut));
      const auto right = ids.find(text.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({left->second, right->second, ids.at(text), ranks.at(piece.score)});
    }
  }
  return merges;
}

BpeVocabulary BpeOf(const SentencePieceModel& model, const IdInModel& id_of) {
  BpeVocabulary vocabulary;
  vocabulary.unit = BpeVocabulary::Unit::kCharacter;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    if (!MatchesText(piece.type)) continue;
    const int32_t id = id_of(static_cast<int32_t>(i));
    const size_t needed = static_cast<size_t>(id) + 1;
    if (vocabulary.tokens.size() < needed) vocabulary.tokens.resize(needed);
    vocabulary.tokens[static_cast<size_t>(id)] = piece.text;
    if (piece.type == PieceType::kUserDefined) vocabulary.frozen.push_back(id);
  }
  vocabulary.merges = MergesOf(model, id_of);
  vocabulary.byte_tokens = ByteTokensOf(model, id_of);
  vocabulary.unknown_id = id_of(model.unknown_id);
  vocabulary.fuse_unknown = true;
  return vocabulary;
}

}  // namespace

absl::StatusOr<SentencePieceNormalizer> NormalizerOf(const SentencePieceModel& model,
                                                     const std::string& origin) {
  SentencePieceNormalization options;
  absl::StatusOr<Charsmap> charsmap = Charsmap::Parse(model.precompiled_charsmap);
  if (!charsmap.ok()) {
    return Annotate(charsmap.status(), absl::StrCat(origin, ": precompiled_charsmap"));
  }
  options.charsmap = *std::move(charsmap);
  options.add_dummy_prefix = model.add_dummy_prefix;
  options.remove_extra_whitespaces = model.remove_extra_whitespaces;
  options.escape_whitespaces = model.escape_whitespaces;
  options.blank_as_suffix = model.treat_whitespace_as_suffix;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type == PieceType::kUserDefined) options.user_defined.push_back(piece.text);
  }
  return SentencePieceNormalizer(std::move(options));
}

std::unique_ptr<const SubwordModel> SubwordsOf(const SentencePieceModel& model,
                                               const IdInModel& id_of) {
  if (model.algorithm == SentencePieceModel::Algorithm::kBpe) {
    return std::make_unique<BpeModel>(BpeOf(model, id_of));
  }
  return std::make_unique<UnigramModel>(UnigramOf(model, id_of));
}

}  // namespace hpo::text
