#include "worker/text/files/text_encoding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/files/encoding_guess.h"
#include "worker/text/files/foreign_file.h"
#include "worker/text/files/text_place.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

using absl::string_view;

constexpr string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr string_view kEndOfFile = "\x1A";  // of DOS
constexpr int32_t kUnknownCharacter = 0xFFFD;
constexpr size_t kSampledBytes = 4096;
constexpr char kNotUtf16[] = "half of a character of UTF-16, or a NUL,";

enum class Utf16 { kLittleEndian, kBigEndian };

bool IsAsciiText(char c) { return absl::ascii_isprint(c) || absl::ascii_isspace(c); }

// Characters of a sample in UTF-16.
struct Units {
  size_t ascii = 0;    // printed ones, tabs and line ends
  size_t doubled = 0;  // those that are two characters of ASCII to UTF-8
  bool text = true;    // no NUL, no control character, no half of a surrogate pair
};

Units CountUnits(string_view sample, Utf16 order) {
  const size_t high = order == Utf16::kBigEndian ? 0 : 1;
  Units units;
  bool leads = false;
  for (size_t at = 0; at + 1 < sample.size(); at += 2) {
    const int32_t unit = ByteAt(sample, at + high) * 256 + ByteAt(sample, at + 1 - high);
    const bool trails = unit >= 0xDC00 && unit < 0xE000;
    const bool printed = unit >= 0x20 || unit == '\t' || unit == '\n' || unit == '\r';
    units.ascii += printed && unit < 0x7F;
    units.doubled += IsAsciiText(sample[at]) && IsAsciiText(sample[at + 1]);
    units.text = units.text && printed && trails == leads;
    leads = unit >= 0xD800 && unit < 0xDC00;
  }
  return units;
}

// Text of UTF-16 is told by its byte order mark, or by its separators, which are ASCII: with the
// bytes in the other order they would be rare characters.
std::optional<Utf16> FindUtf16(string_view content) {
  if (absl::StartsWith(content, "\xFF\xFE")) return Utf16::kLittleEndian;
  if (absl::StartsWith(content, "\xFE\xFF")) return Utf16::kBigEndian;
  const string_view sample = content.substr(0, kSampledBytes);
  if (sample.size() < 8 || sample.find('\0') == string_view::npos) return std::nullopt;
  const Units little = CountUnits(sample, Utf16::kLittleEndian);
  const Units big = CountUnits(sample, Utf16::kBigEndian);
  const size_t few = std::max<size_t>(2, sample.size() / 100);
  const auto is_text = [&](const Units& units, const Units& other) {
    return units.text && units.ascii >= few && units.ascii >= 3 * other.ascii &&
           40 * units.doubled <= 13 * sample.size();  // 65 % of half as many
  };
  if (is_text(little, big)) return Utf16::kLittleEndian;
  if (is_text(big, little)) return Utf16::kBigEndian;
  return std::nullopt;
}

// The name of the form of UTF-32 that all of `content` is; empty: it is none.
string_view FindUtf32(string_view content) {
  if (absl::StartsWith(content, string_view("\xFF\xFE\0\0", 4)) ||
      absl::StartsWith(content, string_view("\0\0\xFE\xFF", 4))) {
    return "UTF-32";
  }
  const string_view sample = content.substr(0, kSampledBytes);
  bool little = sample.size() >= 8 && content.size() % 4 == 0;
  bool big = little;
  for (size_t at = 0; at + 3 < sample.size() && (little || big); at += 4) {
    const string_view unit = sample.substr(at, 4);
    little = little && unit[3] == '\0' && ByteAt(unit, 2) <= 0x10 && (unit[0] | unit[1]) != 0;
    big = big && unit[0] == '\0' && ByteAt(unit, 1) <= 0x10 && (unit[2] | unit[3]) != 0;
  }
  return little ? "UTF-32LE" : big ? "UTF-32BE" : "";
}

// UTF-16 as UTF-8. Half of a surrogate pair, half of a unit and a NUL become U+FFFD.
DecodedText FromUtf16(string_view content, Utf16 order, const std::string& origin) {
  const size_t high = order == Utf16::kBigEndian ? 0 : 1;
  const auto unit = [&](size_t at) {
    return int32_t{ByteAt(content, at + high)} * 256 + ByteAt(content, at + 1 - high);
  };
  std::string text;
  ReplacedCharacters replaced;
  const auto replace = [&] {
    replaced.Add(origin, PlaceOf(text, replaced.count == 0 ? text.size() : 0), kNotUtf16);
    AppendCharacter(kUnknownCharacter, text);
  };
  text.reserve(content.size());
  size_t at = 0;
  while (at + 1 < content.size()) {
    const int32_t first = unit(at);
    at += 2;
    if (first == 0xFEFF && at == 2) continue;
    const bool leads = first >= 0xD800 && first < 0xDC00;
    const int32_t next = leads && at + 1 < content.size() ? unit(at) : 0;
    if (next >= 0xDC00 && next < 0xE000) {
      AppendCharacter(0x10000 + (first - 0xD800) * 0x400 + (next - 0xDC00), text);
      at += 2;
    } else if (first == 0 || (first >= 0xD800 && first < 0xE000)) {
      replace();
    } else {
      AppendCharacter(first, text);
    }
  }
  if (at < content.size()) replace();
  DecodedText decoded(std::move(text));
  if (replaced.count > 0) decoded.warnings.push_back(replaced.Warning());
  return decoded;
}

// Where the first byte is that is not UTF-8, or a NUL; npos: none.
size_t FindBad(string_view text) { return std::min(FindInvalidUtf8(text), text.find('\0')); }

// Appends `line` with U+FFFD for each such byte; returns their number.
int64_t AppendRepaired(string_view line, std::string& text) {
  const std::string repaired =
      absl::StrReplaceAll(ReplaceInvalidUtf8(line), {{string_view("\0", 1), "\uFFFD"}});
  text += repaired;
  return static_cast<int64_t>(repaired.size() - line.size()) / 2;  // three bytes for one
}

bool HasHighBytes(string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
}

std::string ShownByte(uint8_t byte) {
  return byte == 0 ? "a NUL" : absl::StrCat("byte 0x", absl::Hex(byte, absl::kZeroPad2));
}

// Lines by what is above ASCII in them.
struct LineCounts {
  int64_t all = 0;
  int64_t bad = 0;   // with bytes that are not UTF-8, or NULs
  int64_t good = 0;  // with characters of UTF-8
};

// "it looks like GBK (Chinese); convert it, in its folder: iconv ...".
std::string Cure(const std::vector<EncodingGuess>& guesses, const std::string& origin) {
  if (guesses.empty()) {
    return absl::StrCat("its bytes do not tell the encoding; convert it from that in which it was ",
                        "saved, in its folder: ", ConvertCommand("ENCODING", origin));
  }
  const std::string names = absl::StrJoin(
      guesses, " or ",
      [](std::string* out, const EncodingGuess& guess) { absl::StrAppend(out, guess.name); });
  return absl::StrCat(guesses.size() == 1 ? "it looks like " : "it could be ", names,
                      guesses.size() == 1 ? "; convert it" : "; convert it from that which it is",
                      ", in its folder: ", ConvertCommand(guesses.front().iconv, origin));
}

// The cause, and what to do.
absl::Status OtherEncoding(string_view text, size_t first, const LineCounts& lines,
                           const std::string& origin) {
  constexpr int64_t kMixed = 5;  // one in so many; fewer are chance
  const uint8_t byte = ByteAt(text, first);
  std::string message =
      absl::StrCat("expected text in UTF-8, got ", ShownByte(byte), " here, and ",
                   "characters that are not UTF-8 in ", lines.bad, " of ", lines.all, " lines; ");
  const std::vector<EncodingGuess> guesses = GuessEncodings(text);
  const bool pairs = !guesses.empty() && guesses.front().multi_byte;
  if (byte == 0) {
    absl::StrAppend(&message, "the file is binary, or damaged: write it again as text in UTF-8");
  } else if (!pairs && kMixed * lines.good >= lines.good + lines.bad) {
    absl::StrAppend(&message, "other characters are UTF-8, so the file mixes encodings: ",
                    "write it again in UTF-8");
  } else {
    absl::StrAppend(&message, Cure(guesses, origin));
  }
  return DataError(origin, PlaceOf(text, first), message);
}

// `text` with U+FFFD for what is bad in it, if that is little. first: where the first bad byte is.
absl::StatusOr<DecodedText> Repaired(string_view text, size_t first, const std::string& origin) {
  LineCounts lines;
  std::string repaired;
  ReplacedCharacters replaced;
  replaced.Add(origin, PlaceOf(text, first),
               absl::StrCat(ShownByte(ByteAt(text, first)), ", which is no text in UTF-8,"));
  replaced.count = 0;
  for (string_view rest = text; !rest.empty(); ++lines.all) {
    const string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest.remove_prefix(line.size());
    if (FindBad(line) == string_view::npos) {
      lines.good += HasHighBytes(line);
      absl::StrAppend(&repaired, line);
      continue;
    }
    ++lines.bad;
    replaced.count += AppendRepaired(line, repaired);
  }
  constexpr int64_t kFew = 10;  // one byte in so many
  if (lines.bad > std::max<int64_t>(1, lines.all / 100) ||
      kFew * replaced.count > static_cast<int64_t>(text.size())) {
    return OtherEncoding(text, first, lines, origin);
  }
  DecodedText decoded(std::move(repaired));
  decoded.warnings.push_back(replaced.Warning());
  return decoded;
}

// Text of seven bits can be of another encoding too.
absl::Status CheckSevenBits(string_view text, const std::string& origin) {
  const std::vector<EncodingGuess> guesses = GuessSevenBitEncoding(text);
  if (guesses.empty()) return absl::OkStatus();
  return DataError(origin, PlaceOf(text, std::min(text.find('\x1B'), text.find('+'))),
                   absl::StrCat("expected text in UTF-8; ", Cure(guesses, origin)));
}

}  // namespace

absl::StatusOr<DecodedText> DecodeText(string_view content, const std::string& origin) {
  if (const std::optional<std::string> what = ForeignFile(content); what.has_value()) {
    return DataError(origin, 1, absl::StrCat("expected rows of text, got ", *what));
  }
  if (const string_view form = FindUtf32(content); !form.empty()) {
    return DataError(origin, 1,
                     absl::StrCat("expected text in UTF-8 or UTF-16, got UTF-32; convert it, in ",
                                  "its folder: ", ConvertCommand(form, origin)));
  }
  if (const std::optional<Utf16> order = FindUtf16(content); order.has_value()) {
    return FromUtf16(content, *order, origin);
  }
  while (absl::ConsumePrefix(&content, kByteOrderMark)) {
  }
  while (absl::ConsumeSuffix(&content, kEndOfFile)) {
  }
  const size_t bad = FindBad(content);
  if (bad == string_view::npos) {
    HPO_RETURN_IF_ERROR(CheckSevenBits(content, origin));
    return DecodedText(content);
  }
  return Repaired(content, bad, origin);
}

}  // namespace hpo::text
