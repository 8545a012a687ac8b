#include "worker/text/files/encoding_guess.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hpo::text {
namespace {

using absl::string_view;

// Characters above ASCII below which bytes say nothing.
constexpr size_t kFewestCharacters = 4;
// Part of the sequences of a text that may be broken: a line that was cut, a stray byte.
constexpr size_t kSequencesPerBroken = 200;

bool Within(uint8_t byte, uint8_t low, uint8_t high) { return byte >= low && byte <= high; }
bool IsHigh(uint8_t byte) { return byte >= 0x80; }

// ---- Encodings of two bytes a character ----

// How the bytes of a text read as pairs of an encoding.
struct Pairs {
  size_t count = 0;
  size_t broken = 0;        // bytes that begin no character
  size_t singles = 0;       // characters of one byte above ASCII
  size_t quads = 0;         // characters of four bytes
  size_t ascii_trails = 0;  // second bytes below 0x80
  size_t low_trails = 0;    // second bytes below 0xC0
  size_t odd_trails = 0;    // second bytes in 0x80..0xA0
  size_t kana = 0;          // of Shift-JIS
  size_t chained = 0;       // pairs that follow another one
  std::array<size_t, 256> leads = {};

  // Latin letters with accents stand apart from each other.
  bool Fits() const {
    return count >= kFewestCharacters && 3 * chained >= count &&
           broken <= (count + singles) / kSequencesPerBroken;
  }
  // Share of the pairs whose first byte is in [low, high].
  double Share(uint8_t low, uint8_t high) const {
    size_t sum = 0;
    for (size_t lead = low; lead <= high; ++lead) sum += leads[lead];
    return Of(sum);
  }
  double Of(size_t part) const {
    return static_cast<double>(part) / static_cast<double>(std::max<size_t>(count + singles, 1));
  }
};

// Which bytes an encoding puts where.
struct PairForm {
  bool (*lead)(uint8_t byte);
  bool (*trail)(uint8_t byte);
  bool (*single)(uint8_t byte);
  bool quads = false;  // GB18030: four bytes, the second and the fourth digits
};

bool IsQuad(string_view text, size_t at) {
  return at + 3 < text.size() && Within(ByteAt(text, at + 1), '0', '9') &&
         Within(ByteAt(text, at + 2), 0x81, 0xFE) && Within(ByteAt(text, at + 3), '0', '9');
}

Pairs ReadPairs(string_view text, const PairForm& form) {
  Pairs pairs;
  size_t end = 0;  // of the last pair
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t byte = ByteAt(text, at);
    if (!IsHigh(byte)) continue;
    const uint8_t next = at + 1 < text.size() ? ByteAt(text, at + 1) : 0;
    if (form.lead(byte) && form.trail(next)) {
      ++pairs.count;
      ++pairs.leads[byte];
      pairs.ascii_trails += !IsHigh(next);
      pairs.low_trails += next < 0xC0;
      pairs.odd_trails += Within(next, 0x80, 0xA0);
      pairs.kana += (byte == 0x82 && next >= 0x9F) || byte == 0x83;
      pairs.chained += end == at;
      end = at + 2;
      ++at;
    } else if (form.quads && form.lead(byte) && IsQuad(text, at)) {
      ++pairs.count;
      ++pairs.quads;
      at += 3;
    } else if (form.single(byte)) {
      ++pairs.singles;
    } else {
      ++pairs.broken;
    }
  }
  return pairs;
}

bool None(uint8_t) { return false; }
bool IsEucByte(uint8_t byte) { return Within(byte, 0xA1, 0xFE); }

constexpr PairForm kShiftJis = {
    [](uint8_t byte) { return Within(byte, 0x81, 0x9F) || Within(byte, 0xE0, 0xFC); },
    [](uint8_t byte) { return Within(byte, 0x40, 0xFC) && byte != 0x7F; },
    [](uint8_t byte) { return Within(byte, 0xA1, 0xDF); }};
constexpr PairForm kEucJp = {[](uint8_t byte) { return byte == 0x8E || IsEucByte(byte); },
                             IsEucByte, None};
constexpr PairForm kEucKr = {[](uint8_t byte) { return Within(byte, 0x81, 0xFD); },
                             [](uint8_t byte) {
                               return Within(byte, 0x41, 0x5A) || Within(byte, 0x61, 0x7A) ||
                                      Within(byte, 0x81, 0xFE);
                             },
                             None};
constexpr PairForm kBig5 = {
    [](uint8_t byte) { return Within(byte, 0xA1, 0xF9); },
    [](uint8_t byte) { return Within(byte, 0x40, 0x7E) || Within(byte, 0xA1, 0xFE); }, None};
constexpr PairForm kGbk = {[](uint8_t byte) { return Within(byte, 0x81, 0xFE); },
                           [](uint8_t byte) { return Within(byte, 0x40, 0xFE) && byte != 0x7F; },
                           None, /*quads=*/true};

// Japanese is known by its kana, Korean by its syllables, which lie in a quarter of the table, and
// Chinese by the half of it that holds the frequent characters, which other scripts leave out.
std::vector<EncodingGuess> GuessPairs(string_view text) {
  std::vector<EncodingGuess> guesses;
  constexpr double kKana = 0.15;
  const Pairs shift_jis = ReadPairs(text, kShiftJis);
  if (shift_jis.Fits() && shift_jis.Of(shift_jis.kana) >= kKana) {
    guesses.push_back({"Shift-JIS (Japanese)", "CP932", true});
  }
  const Pairs euc_jp = ReadPairs(text, kEucJp);
  const bool japanese = euc_jp.Fits() && euc_jp.Share(0xA4, 0xA5) >= kKana;
  if (japanese) guesses.push_back({"EUC-JP (Japanese)", "EUC-JP", true});
  const Pairs korean = ReadPairs(text, kEucKr);
  if (korean.Fits() && korean.Share(0xB0, 0xC8) >= 0.85 && korean.Of(korean.low_trails) >= 0.1 &&
      korean.Of(korean.odd_trails + korean.ascii_trails) <= 0.1) {
    guesses.push_back({"EUC-KR (Korean)", "CP949", true});
  }
  const Pairs big5 = ReadPairs(text, kBig5);
  if (big5.Fits() && big5.Share(0xA4, 0xC6) >= 0.5 && big5.Of(big5.ascii_trails) >= 0.12 &&
      big5.Of(big5.ascii_trails) <= 0.8) {
    guesses.push_back({"Big5 (Chinese)", "BIG5", true});
  }
  const Pairs gbk = ReadPairs(text, kGbk);
  if (gbk.Fits() && !japanese && gbk.Share(0xB0, 0xD7) >= 0.5 && gbk.Share(0xC9, 0xF7) >= 0.1 &&
      gbk.Of(gbk.low_trails) >= 0.1 && gbk.Of(gbk.ascii_trails + gbk.odd_trails) <= 0.12) {
    guesses.push_back(gbk.quads > 0 ? EncodingGuess{"GB18030 (Chinese)", "GB18030", true}
                                    : EncodingGuess{"GBK (Chinese)", "GBK", true});
  }
  return guesses;
}

// ---- Encodings of one byte a character, of scripts that are not Latin ----

struct Script {
  EncodingGuess guess;
  string_view commonest;      // the letters that come most often, as bytes
  string_view capitals = {};  // of the commonest encoding alone: texts without small letters
  string_view never = {};     // bytes that are common in another script, and not in this one
};

constexpr Script kScripts[] = {
    {{"Windows-1251 (Cyrillic)", "WINDOWS-1251"},
     "\xEE\xE5\xE0\xE8\xED\xF2\xF1\xF0\xE2\xEB\xEA\xEC\xB3",
     "\xCE\xC5\xC0\xC8\xCD\xD2\xD1\xD0\xC2\xCB\xCA\xCC"},
    {{"KOI8-R (Cyrillic)", "KOI8-R"}, "\xCF\xC5\xC1\xC9\xCE\xD4\xD3\xD2\xD7\xCC\xCB\xCD"},
    {{"ISO-8859-5 (Cyrillic)", "ISO-8859-5"}, "\xDE\xD5\xD0\xD8\xDD\xE2\xE1\xE0\xD2\xDB\xDA\xDC"},
    {{"CP866 (Cyrillic)", "CP866"}, "\xAE\xA5\xA0\xA8\xAD\xE2\xE1\xE0\xA2\xAB\xAA\xAC"},
    {{"Windows-1253 or ISO-8859-7 (Greek)", "WINDOWS-1253"},
     "\xE1\xEF\xE9\xE5\xF4\xF3\xED\xE7\xF5\xF1\xF0\xEA\xF2"},
    {{"Windows-1255 (Hebrew)", "WINDOWS-1255"},
     "\xE9\xE5\xE4\xEC\xE0\xF8\xFA\xE1\xF9\xEE\xF0\xED",
     {},
     "\xB3\xBF\xBA\xFF\xFC\xFB\xD0\xD1\xD2\xD3\xD4\xD5\xD6\xD7\xD8"},
    {{"Windows-1256 (Arabic)", "WINDOWS-1256"},
     "\xC7\xE1\xED\xE3\xE4\xE6\xD1\xCA\xC8\xE5\xC9\xCF",
     {},
     "\xE7\xE8\xE9\xEA\xEB"},
    {{"ISO-8859-6 (Arabic)", "ISO-8859-6"},
     "\xC7\xE4\xEA\xE5\xE6\xE8\xD1\xCA\xC8\xE7\xC9\xCF",
     {},
     "\xED\xEC\xEE\xEF\xDD\xDE\xDF"},
    {{"TIS-620 (Thai)", "CP874"},
     "\xD2\xB9\xC3\xCD\xA1\xE0\xA7\xC1\xC2\xC5\xC7\xB4\xB7\xB5\xCA\xE8\xE9\xD1\xD5\xD4"},
};

using Counts = std::array<size_t, 256>;

size_t Sum(const Counts& counts, string_view bytes) {
  size_t sum = 0;
  for (size_t at = 0; at < bytes.size(); ++at) sum += counts[ByteAt(bytes, at)];
  return sum;
}

std::vector<EncodingGuess> GuessScript(const Counts& counts, size_t total) {
  constexpr double kLeast = 0.5;    // share of the commonest letters; 0.6 to 0.8 in most texts
  constexpr double kAsGood = 0.08;  // difference that says nothing
  constexpr double kCapital = 0.95;
  constexpr double kFew = 0.02;  // share of foreign bytes that says nothing
  std::vector<std::pair<double, EncodingGuess>> found;
  const auto share_of = [&](string_view bytes) {
    return static_cast<double>(Sum(counts, bytes)) / static_cast<double>(total);
  };
  for (const Script& script : kScripts) {
    const double share = share_of(script.commonest) + kCapital * share_of(script.capitals);
    if (share >= kLeast && share_of(script.never) <= kFew) found.emplace_back(share, script.guess);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<EncodingGuess> guesses;
  for (const auto& [share, guess] : found) {
    if (share >= found.front().first - kAsGood) guesses.push_back(guess);
  }
  return guesses;
}

// ---- Latin letters with accents ----

constexpr EncodingGuess kWindows1252 = {"Windows-1252 (Western European)", "WINDOWS-1252"};
constexpr EncodingGuess kLatin1 = {"Latin-1 or Windows-1252 (Western European)", "WINDOWS-1252"};
constexpr EncodingGuess kWindows1250 = {"Windows-1250 (Central European)", "WINDOWS-1250"};
constexpr EncodingGuess kLatin2 = {"Latin-2, ISO-8859-2 (Central European)", "ISO-8859-2"};
constexpr EncodingGuess kTurkish = {"Windows-1254 (Turkish)", "WINDOWS-1254"};
constexpr EncodingGuess kDos = {"CP850 (Western European, of DOS)", "CP850"};
constexpr EncodingGuess kMac = {"MacRoman (Western European)", "MACINTOSH"};

// The encoding that few Western texts are in, by the bytes beside letters; nothing where they speak
// for none.
std::vector<EncodingGuess> GuessRarer(const Counts& inside) {
  size_t total = 0;
  for (size_t byte = 0x80; byte < 0x100; ++byte) total += inside[byte];
  if (total < kFewestCharacters) return {};
  const auto share = [&](string_view bytes) {
    return static_cast<double>(Sum(inside, bytes)) / static_cast<double>(total);
  };
  // Without the dashes, dots and quotes of Windows-1252, which stand beside letters too.
  const bool dos = share("\x81\x82\x83\x84\x87\x88\x8A\x94\xA0\xA1\xA2\xA3\xA4\xC6") >= 0.6 &&
                   share("\x81\x82\x87\xA2\xA4\xC6") >= 0.15;
  const bool mac =
      share("\x87\x88\x89\x8A\x8B\x8C\x8D\x8E\x8F\x90\x92\x96\x99\x9A\x9C\x9F") >= 0.6 &&
      share("\x87\x88\x89\x8A\x8D\x8E\x8F\x9F") >= 0.15;
  if (dos || mac) {
    std::vector<EncodingGuess> guesses;
    if (dos) guesses.push_back(kDos);
    if (mac) guesses.push_back(kMac);
    return guesses;
  }
  const bool czech = share("\xE8\xEC\xF8") >= 0.15 && share("\xEC\xF8") > 0.0;
  // In a word, ± ¶ ¼ ¹ ¾ are none but ą ś ź š ž.
  if (share("\xB1\xB6\xBC") >= 0.05 || (czech && share("\xB9\xBE") >= 0.05)) return {kLatin2};
  if (share("\xB3\xB9\x9F") >= 0.08 || (czech && share("\x9A\x9E") > 0.0)) return {kWindows1250};
  // Hungarian: ő and ű, with none of Portuguese.
  if (share("\xF5\xFB") >= 0.1 && share("\xE1\xE9\xF3") >= 0.1 && share("\xE3\xE7") == 0.0) {
    return {kWindows1250};
  }
  if (share("\xF0\xFD\xFE") >= 0.25 && share("\xE6\xE1") == 0.0) return {kTurkish};
  return {};
}

std::vector<EncodingGuess> GuessLatin(const Counts& counts, const Counts& inside) {
  std::vector<EncodingGuess> guesses = GuessRarer(inside);
  if (!guesses.empty()) return guesses;
  size_t unused = 0;  // by Windows-1252
  for (const uint8_t byte : {0x81, 0x8D, 0x8F, 0x90, 0x9D}) unused += counts[byte];
  if (unused > 0) return {};
  size_t windows = 0;
  for (size_t byte = 0x80; byte < 0xA0; ++byte) windows += counts[byte];
  return {windows > 0 ? kWindows1252 : kLatin1};
}

std::vector<EncodingGuess> GuessSingle(string_view text) {
  Counts counts = {};
  Counts inside = {};  // those beside letters
  size_t total = 0;
  size_t beside = 0;  // those beside another one
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t byte = ByteAt(text, at);
    if (!IsHigh(byte)) continue;
    const uint8_t before = at > 0 ? ByteAt(text, at - 1) : 0;
    const uint8_t after = at + 1 < text.size() ? ByteAt(text, at + 1) : 0;
    ++total;
    ++counts[byte];
    beside += IsHigh(before) || IsHigh(after);
    inside[byte] += IsHigh(before) || IsHigh(after) || absl::ascii_isalpha(before) ||
                    absl::ascii_isalpha(after);
  }
  if (static_cast<double>(beside) < 0.7 * static_cast<double>(total)) {
    return GuessLatin(counts, inside);
  }
  if (total < 2 * kFewestCharacters) return {};
  return GuessScript(counts, total);
}

// The value of a digit of base64; -1: it is none.
int ValueOf(char c) {
  if (absl::ascii_isupper(c)) return c - 'A';
  if (absl::ascii_islower(c)) return c - 'a' + 26;
  if (absl::ascii_isdigit(c)) return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Whether `digits` are UTF-16 in base64, of characters that are not all ASCII, without a rest.
// Digits without letters are rather a telephone number.
bool IsUtf7Sequence(string_view digits) {
  constexpr uint32_t kUnitBits = 16;
  uint32_t bits = 0;
  uint32_t held = 0;  // bits that are no unit yet
  bool beyond_ascii = false;
  for (const char digit : digits) {
    bits = (bits << 6) | static_cast<uint32_t>(ValueOf(digit));
    held += 6;
    if (held < kUnitBits) continue;
    held -= kUnitBits;
    const uint32_t unit = bits >> held;
    if (unit == 0) return false;
    beyond_ascii = beyond_ascii || unit >= 0x80;
    bits &= (1u << held) - 1;
  }
  const bool letters = std::any_of(digits.begin(), digits.end(), absl::ascii_isupper);
  return beyond_ascii && letters && held < 6 && bits == 0;
}

bool IsUtf7(string_view text) {
  constexpr size_t kFewest = 3;
  size_t sequences = 0;
  for (size_t at = text.find('+'); at < text.size(); at = text.find('+', at)) {
    size_t end = at + 1;
    while (end < text.size() && ValueOf(text[end]) >= 0) ++end;
    const string_view digits = text.substr(at + 1, end - at - 1);
    const bool plus_sign = digits.empty() && end < text.size() && text[end] == '-';
    if (!plus_sign && !IsUtf7Sequence(digits)) return false;
    sequences += !plus_sign;
    at = end;
  }
  return sequences >= kFewest;
}

}  // namespace

std::vector<EncodingGuess> GuessEncodings(string_view text) {
  std::vector<EncodingGuess> guesses = GuessPairs(text);
  return guesses.empty() ? GuessSingle(text) : guesses;
}

std::vector<EncodingGuess> GuessSevenBitEncoding(string_view text) {
  if (text.find("\x1B$B") != text.npos || text.find("\x1B$@") != text.npos) {
    return {{"ISO-2022-JP (Japanese)", "ISO-2022-JP", true}};
  }
  if (text.find("\x1B$)C") != text.npos) return {{"ISO-2022-KR (Korean)", "ISO-2022-KR", true}};
  if (IsUtf7(text)) return {{"UTF-7", "UTF-7"}};
  return {};
}

std::string ConvertCommand(string_view iconv_name, string_view path) {
  const string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = std::min(name.rfind('.'), name.size());
  const auto quoted = [](const std::string& word) {
    const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
    });
    const std::string safe = absl::StrCat(word.front() == '-' ? "./" : "", word);
    return plain ? safe : absl::StrCat("'", absl::StrReplaceAll(safe, {{"'", "'\\''"}}), "'");
  };
  return absl::StrCat("iconv -f ", iconv_name, " -t UTF-8 ", quoted(std::string(name)), " > ",
                      quoted(absl::StrCat(name.substr(0, dot), ".utf8", name.substr(dot))));
}

}  // namespace hpo::text
