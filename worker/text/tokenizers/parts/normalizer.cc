#include "worker/text/tokenizers/parts/normalizer.h"

#include <utf8proc.h>

#include "absl/strings/ascii.h"
#include "worker/text/tokenizers/parts/character_class.h"

namespace hpo::text {
namespace {

constexpr int32_t kReplacementCharacter = 0xFFFD;
// The longest canonical decomposition of one character has four.
constexpr int kMaxDecomposed = 8;

// The blocks BERT sets apart. The gap from U+2B820 is Hugging Face's, kept so that ids agree.
bool IsCjkIdeograph(int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

bool IsDropped(int32_t c, utf8proc_category_t category) {
  return c == kReplacementCharacter || category == UTF8PROC_CATEGORY_CC ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool IsBlank(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool IsPunctuation(utf8proc_category_t category) {
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

}  // namespace

// Writes characters as words. In a struct of its own, so that "am I inside a word" has one home.
class BertNormalizer::Writer {
 public:
  // `cuts`: blanks only end words, and punctuation is a word. Else blanks and punctuation are
  // written as they come.
  Writer(const BertNormalizer& normalizer, bool cuts, std::string& words)
      : normalizer_(normalizer), cuts_(cuts), words_(words) {}

  void EndWord() {
    if (cuts_ && !in_word_) return;
    words_.push_back(' ');
    in_word_ = false;
  }

  void WriteAscii(unsigned char c) {
    switch (normalizer_.ascii_class_[c]) {
      case AsciiClass::kLetter:
        words_.push_back(normalizer_.ascii_written_[c]);
        in_word_ = true;
        return;
      case AsciiClass::kBlank:
        EndWord();
        return;
      case AsciiClass::kAlone:
        if (cuts_) EndWord();
        words_.push_back(static_cast<char>(c));
        if (cuts_) words_.push_back(' ');
        return;
      case AsciiClass::kDropped:
        return;
    }
  }

  void WriteWide(int32_t c) {
    const utf8proc_category_t category = utf8proc_category(c);
    if (IsDropped(c, category)) return;
    if (IsBlank(category)) return EndWord();
    const bool alone = normalizer_.options_.split_cjk && IsCjkIdeograph(c);
    if (alone) EndWord();
    if (normalizer_.options_.strip_accents) {
      WriteWithoutAccents(c);
    } else {
      WriteLowered(c);
    }
    if (alone) EndWord();
  }

 private:
  // The decomposition's canonical reordering is left out: it moves marks only, and those that may
  // be out of order are dropped here (but for a dozen musical signs that no vocabulary has).
  void WriteWithoutAccents(int32_t c) {
    utf8proc_int32_t parts[kMaxDecomposed];
    int boundary_class = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(c, parts, kMaxDecomposed, UTF8PROC_DECOMPOSE, &boundary_class);
    for (utf8proc_ssize_t i = 0; i < count && i < kMaxDecomposed; ++i) {
      if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN) WriteLowered(parts[i]);
    }
  }

  void WriteLowered(int32_t c) {
    if (normalizer_.options_.lowercase) {
      if (c == kCapitalIWithDot) {
        WriteAscii('i');
        return Append(0x307);
      }
      c = utf8proc_tolower(c);
    }
    if (c < 0x80) return WriteAscii(static_cast<unsigned char>(c));
    const bool alone = cuts_ && IsPunctuation(utf8proc_category(c));
    if (alone) EndWord();
    Append(c);
    if (alone) EndWord();
  }

  void Append(int32_t c) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char(c, bytes);
    words_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    in_word_ = true;
  }

  const BertNormalizer& normalizer_;
  const bool cuts_;
  std::string& words_;
  bool in_word_ = false;
};

BertNormalizer::BertNormalizer(BertNormalization options) : options_(options) {
  for (size_t i = 0; i < ascii_class_.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(i);
    ascii_written_[i] = static_cast<char>(options.lowercase ? absl::ascii_tolower(c) : c);
    ascii_class_[i] = AsciiClass::kLetter;
    if (absl::ascii_ispunct(c)) ascii_class_[i] = AsciiClass::kAlone;
    if (absl::ascii_iscntrl(c)) ascii_class_[i] = AsciiClass::kDropped;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') ascii_class_[i] = AsciiClass::kBlank;
  }
}

std::string BertNormalizer::Words(absl::string_view text) const {
  std::string words;
  words.reserve(text.size() + text.size() / 4 + 1);
  Writer writer(*this, /*cuts=*/true, words);
  Write(text, writer);
  writer.EndWord();
  return words;
}

std::string BertNormalizer::Text(absl::string_view text) const {
  std::string normalized;
  normalized.reserve(text.size());
  Writer writer(*this, /*cuts=*/false, normalized);
  Write(text, writer);
  return normalized;
}

void BertNormalizer::Write(absl::string_view text, Writer& writer) const {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = at + text.size();
  while (at != end) {
    if (*at < 0x80) {
      writer.WriteAscii(*at++);
      continue;
    }
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t size = utf8proc_iterate(at, end - at, &c);
    if (size > 0) writer.WriteWide(c);
    // A byte that is not UTF-8 counts as U+FFFD, which is dropped.
    at += size > 0 ? size : 1;
  }
}

}  // namespace hpo::text
