// A SentencePiece model file (spm.model, tokenizer.model and the like), read without Protobuf.
// Format: sentencepiece_model.proto of Kudo's SentencePiece, in Protobuf's wire format; what this
// library does not need is skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

struct SentencePieceModel {
  enum class Algorithm { kUnigram = 1, kBpe = 2 };
  enum class PieceType {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,      // never matches text: <s>
    kUserDefined = 4,  // always taken whole
    kUnused = 5,       // never matches text
    kByte = 6,         // "<0x00>" to "<0xFF>"
  };
  struct Piece {
    std::string text;
    float score = 0.0F;
    PieceType type = PieceType::kNormal;
    bool operator==(const Piece&) const = default;
  };

  std::vector<Piece> pieces;  // by id
  int32_t unknown_id = 0;
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;  // then every byte has its piece
  bool treat_whitespace_as_suffix = false;

  std::string precompiled_charsmap;  // see Charsmap; empty: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  // -1 when there is none of that text. O(pieces).
  int32_t IdOf(absl::string_view text) const;
};

// `origin` is what errors begin with.
//   InvalidArgument  not such a file: names the byte where it breaks off, or the piece that is
//                    empty, not UTF-8, there twice, without finite score, or missing (unknown,
//                    bytes)
//   Unimplemented    an algorithm other than unigram and BPE; unused pieces in a BPE model
absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(absl::string_view content,
                                                           const std::string& origin);

}  // namespace hpo::text
