// Tested by tests/worker/text/tokenizers/families/tokenizer_json_parts_test.cc.
#include "worker/text/tokenizers/parts/text_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/character_class.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

constexpr int32_t kDotAbove = 0x307;

// Text below this is in form C already: the first combining mark.
constexpr unsigned char kLeadOfFirstMark = 0xCC;
// And below this in every form.
constexpr unsigned char kFirstNotAscii = 0x80;

bool IsBelow(absl::string_view text, unsigned char lead) {
  return std::all_of(text.begin(), text.end(),
                     [lead](char c) { return static_cast<unsigned char>(c) < lead; });
}

template <typename Keep>
std::string MapCharacters(absl::string_view text, Keep append) {
  std::string mapped;
  mapped.reserve(text.size());
  while (!text.empty()) {
    append(FirstCharacter(text), mapped);
    text.remove_prefix(CharacterSize(text));
  }
  return mapped;
}

std::string Apply(NormalForm form, absl::string_view text) {
  const bool unchanged =
      IsBelow(text, form == NormalForm::kNfc ? kLeadOfFirstMark : kFirstNotAscii);
  if (unchanged) return std::string(text);
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                             static_cast<utf8proc_option_t>(options));
  HPO_CHECK(size >= 0);  // well-formed text fails for want of memory only
  std::string result(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return result;
}

std::string Apply(const Lowercase&, absl::string_view text) {
  return MapCharacters(text, [](int32_t character, std::string& lowered) {
    if (character == kCapitalIWithDot) {
      lowered.push_back('i');
      AppendCharacter(kDotAbove, lowered);
    } else {
      AppendCharacter(utf8proc_tolower(character), lowered);
    }
  });
}

std::string Apply(const StripAccents&, absl::string_view text) {
  return MapCharacters(text, [](int32_t character, std::string& stripped) {
    if (!IsMark(character)) AppendCharacter(character, stripped);
  });
}

std::string Apply(const StripBlanks& strip, absl::string_view text) {
  while (strip.left && !text.empty() && ClassOfFirst(text) == CharacterClass::kSpace) {
    text.remove_prefix(CharacterSize(text));
  }
  while (strip.right && !text.empty()) {
    const size_t last = CharacterBegin(text, text.size() - 1);
    if (ClassOfFirst(text.substr(last)) != CharacterClass::kSpace) break;
    text.remove_suffix(text.size() - last);
  }
  return std::string(text);
}

std::string Apply(const ReplaceLiteral& replace, absl::string_view text) {
  return absl::StrReplaceAll(text, {{replace.from, replace.to}});
}

bool IsReplaced(ReplaceBlanks::What what, absl::string_view run, size_t characters) {
  switch (what) {
    case ReplaceBlanks::What::kBlankRuns:
      return characters >= 2;
    case ReplaceBlanks::What::kSpaceRuns:
      return true;
    case ReplaceBlanks::What::kRunsAndControl:
      return characters >= 2 || run == "\n" || run == "\r" || run == "\t";
  }
  return false;
}

std::string Apply(const ReplaceBlanks& replace, absl::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  const auto in_run = [&](absl::string_view rest) {
    return replace.what == ReplaceBlanks::What::kBlankRuns
               ? rest[0] == ' '
               : ClassOfFirst(rest) == CharacterClass::kSpace;
  };
  while (!text.empty()) {
    size_t size = 0;
    size_t characters = 0;
    while (size < text.size() && in_run(text.substr(size))) {
      size += CharacterSize(text.substr(size));
      ++characters;
    }
    const absl::string_view run = text.substr(0, size);
    if (size > 0 && IsReplaced(replace.what, run, characters)) {
      replaced.append(replace.to);
    } else {
      if (size == 0) size = CharacterSize(text);
      replaced.append(text.data(), size);
    }
    text.remove_prefix(size);
  }
  return replaced;
}

std::string Apply(const Prepend& prepend, absl::string_view text) {
  return text.empty() ? std::string() : absl::StrCat(prepend.text, text);
}

std::string Apply(const Charsmap& map, absl::string_view text) {
  return map.RewriteGraphemes(text);
}

std::string Apply(const SentencePieceNormalizer& normalizer, absl::string_view text) {
  return normalizer.Normalize(text);
}

std::string Apply(const BertText& bert, absl::string_view text) {
  return bert.normalizer.Text(text);
}

std::string Apply(const BertNormalizer& normalizer, absl::string_view text) {
  return normalizer.Words(text);
}

}  // namespace

std::string Normalize(const std::vector<NormalizerStep>& steps, absl::string_view text) {
  std::string normalized;
  for (const NormalizerStep& step : steps) {
    normalized = std::visit([&](const auto& applied) { return Apply(applied, text); }, step);
    text = normalized;
  }
  return steps.empty() ? std::string(text) : normalized;
}

}  // namespace hpo::text
