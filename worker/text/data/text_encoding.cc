#include "worker/text/data/text_encoding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "worker/text/data/foreign_file.h"
#include "worker/text/data/text_place.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo {
namespace {

using absl::string_view;

constexpr string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr int32_t kUnknownCharacter = 0xFFFD;
constexpr size_t kSampledBytes = 4096;
constexpr char kNotUtf16[] = "half of a character of UTF-16, or a NUL,";

enum class Utf16 { kLittleEndian, kBigEndian };

uint8_t ByteAt(string_view content, size_t at) { return static_cast<uint8_t>(content[at]); }

// Text of UTF-16 is told by its byte order mark, or by the zeros that are every second byte of
// ASCII characters.
std::optional<Utf16> FindUtf16(string_view content) {
  if (absl::StartsWith(content, "\xFF\xFE")) return Utf16::kLittleEndian;
  if (absl::StartsWith(content, "\xFE\xFF")) return Utf16::kBigEndian;
  const string_view sample = content.substr(0, kSampledBytes);
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < sample.size(); ++i) zeros[i % 2] += sample[i] == '\0';
  const size_t many = sample.size() * 2 / 5;  // of half as many characters
  if (sample.size() < 8) return std::nullopt;
  if (zeros[1] >= many && zeros[0] == 0) return Utf16::kLittleEndian;
  if (zeros[0] >= many && zeros[1] == 0) return Utf16::kBigEndian;
  return std::nullopt;
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

bool HasLongCharacters(string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (ByteAt(text, at) < 0x80) continue;
    const size_t size = CharacterSize(text.substr(at));
    if (size >= 2 && FindInvalidUtf8(text.substr(at, size)) == string_view::npos) return true;
  }
  return false;
}

std::string ShownByte(uint8_t byte) {
  return byte == 0 ? "a NUL" : absl::StrCat("byte 0x", absl::Hex(byte, absl::kZeroPad2));
}

// The cause, and what to do about a file of which `bad` in `lines` lines have such characters.
absl::Status OtherEncoding(string_view text, size_t first, int64_t bad, int64_t lines,
                           const std::string& origin) {
  const uint8_t byte = ByteAt(text, first);
  std::string message =
      absl::StrCat("expected text in UTF-8, got ", ShownByte(byte), " here, and ",
                   "characters that are not UTF-8 in ", bad, " of ", lines, " lines; ");
  if (byte == 0) {
    absl::StrAppend(&message, "the file is binary, or damaged: write it again as text in UTF-8");
  } else if (HasLongCharacters(text)) {
    absl::StrAppend(&message, "other characters are UTF-8, so the file mixes encodings: ",
                    "write it again in UTF-8");
  } else {
    const bool windows = std::any_of(text.begin(), text.end(), [](char c) {
      return static_cast<uint8_t>(c) >= 0x80 && static_cast<uint8_t>(c) < 0xA0;
    });
    absl::StrAppend(&message, "the file is perhaps ", windows ? "" : "Latin-1 or ",
                    "Windows-1252; convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW");
  }
  return DataError(origin, PlaceOf(text, first), message);
}

// `text` with U+FFFD for what is bad in it, if that is little. first: where the first bad byte is.
absl::StatusOr<DecodedText> Repaired(string_view text, size_t first, const std::string& origin) {
  int64_t lines = 0;
  int64_t bad_lines = 0;
  std::string repaired;
  ReplacedCharacters replaced;
  replaced.Add(origin, PlaceOf(text, first),
               absl::StrCat(ShownByte(ByteAt(text, first)), ", which is no text in UTF-8,"));
  replaced.count = 0;
  for (string_view rest = text; !rest.empty(); ++lines) {
    const string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest.remove_prefix(line.size());
    if (FindBad(line) == string_view::npos) {
      absl::StrAppend(&repaired, line);
      continue;
    }
    ++bad_lines;
    replaced.count += AppendRepaired(line, repaired);
  }
  if (bad_lines > std::max<int64_t>(1, lines / 100)) {
    return OtherEncoding(text, first, bad_lines, lines, origin);
  }
  DecodedText decoded(std::move(repaired));
  decoded.warnings.push_back(replaced.Warning());
  return decoded;
}

}  // namespace

absl::StatusOr<DecodedText> DecodeText(string_view content, const std::string& origin) {
  if (const std::optional<std::string> what = ForeignFile(content); what.has_value()) {
    return DataError(origin, 1, absl::StrCat("expected rows of text, got ", *what));
  }
  if (absl::StartsWith(content, string_view("\xFF\xFE\0\0", 4)) ||
      absl::StartsWith(content, string_view("\0\0\xFE\xFF", 4))) {
    return DataError(origin, 1,
                     "expected text in UTF-8 or UTF-16, got UTF-32; convert it: iconv -f UTF-32 -t "
                     "UTF-8 FILE > NEW");
  }
  if (const std::optional<Utf16> order = FindUtf16(content); order.has_value()) {
    return FromUtf16(content, *order, origin);
  }
  if (absl::StartsWith(content, kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  const size_t bad = FindBad(content);
  if (bad == string_view::npos) return DecodedText(content);
  return Repaired(content, bad, origin);
}

}  // namespace hpo
