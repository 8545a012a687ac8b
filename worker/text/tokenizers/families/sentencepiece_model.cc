#include "worker/text/tokenizers/families/sentencepiece_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/utf8.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {
namespace {

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field of a message: its number, and its value as a number or as bytes.
struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;
  absl::string_view bytes;

  bool flag() const { return value != 0; }
};

// Reads the fields of one message. Positions in errors count from the start of the file.
class FieldReader {
 public:
  FieldReader(absl::string_view message, const std::string& origin, const char* file)
      : rest_(message), origin_(origin), file_(file) {}

  bool AtEnd() const { return rest_.empty(); }

  absl::StatusOr<Field> Next() {
    Field field;
    HPO_ASSIGN_OR_RETURN(const uint64_t key, Varint());
    field.number = static_cast<uint32_t>(key >> 3);
    field.type = static_cast<WireType>(key & 7);
    switch (field.type) {
      case WireType::kVarint: {
        HPO_ASSIGN_OR_RETURN(field.value, Varint());
        return field;
      }
      case WireType::kFixed64: {
        HPO_ASSIGN_OR_RETURN(field.bytes, Bytes(8));
        return field;
      }
      case WireType::kFixed32: {
        HPO_ASSIGN_OR_RETURN(field.bytes, Bytes(4));
        uint32_t value = 0;
        std::memcpy(&value, field.bytes.data(), sizeof value);
        field.value = value;
        return field;
      }
      case WireType::kBytes: {
        HPO_ASSIGN_OR_RETURN(const uint64_t size, Varint());
        HPO_ASSIGN_OR_RETURN(field.bytes, Bytes(size));
        return field;
      }
    }
    return Broken(absl::StrCat("a wire type of Protobuf, got ", key & 7));
  }

  absl::Status Broken(absl::string_view expected) const {
    return absl::InvalidArgumentError(
        absl::StrCat(origin_, ": byte ", rest_.data() - file_, ": expected ", expected,
                     "; this is not a SentencePiece model, or not all of it"));
  }

 private:
  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return Broken("a number's last byte");
  }

  absl::StatusOr<absl::string_view> Bytes(uint64_t size) {
    if (size > rest_.size()) {
      return Broken(absl::StrCat(size, " bytes more, got ", rest_.size()));
    }
    const absl::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  absl::string_view rest_;
  const std::string& origin_;
  const char* file_;  // where the whole file begins
};

// Calls read(field, reader), which gives a Status, for every field of a message.
template <typename Read>
absl::Status ForEachField(absl::string_view message, const std::string& origin, const char* file,
                          Read read) {
  FieldReader reader(message, origin, file);
  while (!reader.AtEnd()) {
    HPO_ASSIGN_OR_RETURN(const Field field, reader.Next());
    HPO_RETURN_IF_ERROR(read(field, reader));
  }
  return absl::OkStatus();
}

absl::Status ReadPiece(absl::string_view message, const std::string& origin, const char* file,
                       SentencePieceModel& model) {
  SentencePieceModel::Piece piece;
  HPO_RETURN_IF_ERROR(ForEachField(
      message, origin, file, [&](const Field& field, const FieldReader& reader) -> absl::Status {
        if (field.number == 1 && field.type == WireType::kBytes) {
          piece.text = std::string(field.bytes);
        } else if (field.number == 2 && field.type == WireType::kFixed32) {
          piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
        } else if (field.number == 3 && field.type == WireType::kVarint) {
          if (field.value < 1 || field.value > 6) {
            return reader.Broken(absl::StrCat("a type of pieces from 1 to 6, got ", field.value));
          }
          piece.type = static_cast<SentencePieceModel::PieceType>(field.value);
        }
        return absl::OkStatus();
      }));
  model.pieces.push_back(std::move(piece));
  return absl::OkStatus();
}

absl::Status ReadTrainerSpec(absl::string_view message, const std::string& origin, const char* file,
                             SentencePieceModel& model) {
  return ForEachField(message, origin, file, [&](const Field& field, const FieldReader&) {
    if (field.type != WireType::kVarint) return absl::OkStatus();
    if (field.number == 3) {
      if (field.value != 1 && field.value != 2) {
        return absl::UnimplementedError(absl::StrCat(
            origin, ": model_type: expected unigram (1) or BPE (2), got ", field.value));
      }
      model.algorithm = static_cast<SentencePieceModel::Algorithm>(field.value);
    }
    if (field.number == 24) model.treat_whitespace_as_suffix = field.flag();
    if (field.number == 35) model.byte_fallback = field.flag();
    return absl::OkStatus();
  });
}

absl::Status ReadNormalizerSpec(absl::string_view message, const std::string& origin,
                                const char* file, SentencePieceModel& model) {
  return ForEachField(message, origin, file, [&](const Field& field, const FieldReader&) {
    if (field.number == 2 && field.type == WireType::kBytes) {
      model.precompiled_charsmap = std::string(field.bytes);
    }
    if (field.type != WireType::kVarint) return absl::OkStatus();
    if (field.number == 3) model.add_dummy_prefix = field.flag();
    if (field.number == 4) model.remove_extra_whitespaces = field.flag();
    if (field.number == 5) model.escape_whitespaces = field.flag();
    return absl::OkStatus();
  });
}

// Checks one piece, and that none before it had its text.
absl::Status CheckPiece(const SentencePieceModel& model, size_t id, const std::string& origin,
                        absl::flat_hash_map<absl::string_view, size_t>& first) {
  const SentencePieceModel::Piece& piece = model.pieces[id];
  const auto fail = [&](absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": piece ", id, ": expected ", expected));
  };
  if (piece.text.empty()) return fail("text, got none");
  if (FindInvalidUtf8(piece.text) != absl::string_view::npos) return fail("UTF-8, got other bytes");
  if (!std::isfinite(piece.score)) return fail("a finite score");
  const auto [entry, inserted] = first.emplace(piece.text, id);
  if (!inserted) {
    return fail(absl::StrCat("distinct pieces, got '", piece.text, "' again (first as piece ",
                             entry->second, ")"));
  }
  const bool unused = piece.type == SentencePieceModel::PieceType::kUnused;
  if (unused && model.algorithm == SentencePieceModel::Algorithm::kBpe) {
    return absl::UnimplementedError(
        absl::StrCat(origin, ": piece ", id, ": expected no unused pieces in a BPE model"));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const std::string& origin, SentencePieceModel& model) {
  if (model.pieces.size() >= static_cast<size_t>(kMaxVocabulary)) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": expected fewer than ", kMaxVocabulary,
                                                   " pieces, got ", model.pieces.size()));
  }
  absl::flat_hash_map<absl::string_view, size_t> first;
  first.reserve(model.pieces.size());
  int unknown = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    HPO_RETURN_IF_ERROR(CheckPiece(model, id, origin, first));
    if (model.pieces[id].type != SentencePieceModel::PieceType::kUnknown) continue;
    model.unknown_id = static_cast<int32_t>(id);
    ++unknown;
  }
  if (unknown != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": expected one unknown piece, got ", unknown));
  }
  for (int byte = 0; model.byte_fallback && byte < 256; ++byte) {
    const std::string text = absl::StrFormat("<0x%02X>", byte);
    const auto found = first.find(text);
    if (found == first.end() ||
        model.pieces[found->second].type != SentencePieceModel::PieceType::kByte) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": expected a piece ", text, " for byte_fallback, got none"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int32_t SentencePieceModel::IdOf(absl::string_view text) const {
  const auto found = std::find_if(pieces.begin(), pieces.end(),
                                  [&](const Piece& piece) { return piece.text == text; });
  return found == pieces.end() ? -1 : static_cast<int32_t>(found - pieces.begin());
}

absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(absl::string_view content,
                                                           const std::string& origin) {
  SentencePieceModel model;
  HPO_RETURN_IF_ERROR(ForEachField(
      content, origin, content.data(), [&](const Field& field, const FieldReader&) -> absl::Status {
        if (field.type != WireType::kBytes) return absl::OkStatus();
        switch (field.number) {
          case 1:
            return ReadPiece(field.bytes, origin, content.data(), model);
          case 2:
            return ReadTrainerSpec(field.bytes, origin, content.data(), model);
          case 3:
            return ReadNormalizerSpec(field.bytes, origin, content.data(), model);
          default:
            return absl::OkStatus();
        }
      }));
  HPO_RETURN_IF_ERROR(CheckModel(origin, model));
  return model;
}

}  // namespace hpo::text
