#include "worker/trainer/models/files/safetensors.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kShownText = 61;  // of a file that is text; a byte more than is quoted

absl::Status Corrupt(absl::string_view origin, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", what, "; download the file again"));
}

absl::Status CorruptTensor(absl::string_view origin, absl::string_view name,
                           absl::string_view what) {
  return Corrupt(origin, absl::StrCat("tensor '", name, "': ", what));
}

struct KnownType {
  TensorType type;
  absl::string_view name;
  int64_t element_bytes;
};

constexpr KnownType kKnownTypes[] = {
    {TensorType::kFloat32, "F32", 4},        {TensorType::kFloat16, "F16", 2},
    {TensorType::kBfloat16, "BF16", 2},      {TensorType::kFloat64, "F64", 8},
    {TensorType::kFloat8E4m3, "F8_E4M3", 1}, {TensorType::kFloat8E5m2, "F8_E5M2", 1},
    {TensorType::kInt64, "I64", 8},          {TensorType::kInt32, "I32", 4},
    {TensorType::kInt16, "I16", 2},          {TensorType::kInt8, "I8", 1},
    {TensorType::kUint8, "U8", 1},           {TensorType::kBool, "BOOL", 1},
};

const KnownType& Known(TensorType type) {
  return *std::find_if(std::begin(kKnownTypes), std::end(kKnownTypes),
                       [type](const KnownType& known) { return known.type == type; });
}

std::optional<TensorType> ParseTensorType(absl::string_view name) {
  for (const KnownType& known : kKnownTypes) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

// JSON of the header. A key given twice in one object is an error: parsers disagree on which wins.
absl::StatusOr<Json> ParseHeader(absl::string_view text, absl::string_view origin) {
  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto [at, inserted] = open_objects.back().insert(parsed.get<std::string>());
      if (!inserted && duplicate.empty()) duplicate = *at;
    }
    return true;
  };
  try {
    Json header = Json::parse(text.begin(), text.end(), watch);
    if (!duplicate.empty()) {
      return Corrupt(origin, absl::StrCat("header: key '", duplicate, "' appears twice"));
    }
    if (!header.is_object()) return Corrupt(origin, "header: expected a JSON object");
    return header;
  } catch (const Json::parse_error& error) {
    return Corrupt(origin, absl::StrCat("header: not JSON from its byte ", error.byte));
  } catch (const Json::exception&) {
    return Corrupt(origin, "header: not JSON: a number out of range");
  }
}

// Product of the dimensions times the element size; nullopt on overflow.
std::optional<uint64_t> NumBytes(const std::vector<int64_t>& shape, TensorType type) {
  uint64_t total = static_cast<uint64_t>(ElementSize(type));
  for (const int64_t dimension : shape) {
    const auto factor = static_cast<uint64_t>(dimension);
    if (factor != 0 && total > std::numeric_limits<int64_t>::max() / factor) return std::nullopt;
    total *= factor;
  }
  return total;
}

absl::StatusOr<std::vector<int64_t>> ParseShape(const Json& entry, absl::string_view name,
                                                absl::string_view origin) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) {
    return CorruptTensor(origin, name, "expected an array 'shape'");
  }
  std::vector<int64_t> shape;
  for (const Json& dimension : *found) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return CorruptTensor(origin, name,
                           absl::StrCat("bad dimension ", dimension.dump(), " in 'shape'"));
    }
    shape.push_back(dimension.get<int64_t>());
  }
  return shape;
}

struct Extent {
  uint64_t begin = 0;  // relative to the first byte after the header
  uint64_t end = 0;
  std::string name;
};

absl::StatusOr<Extent> ParseOffsets(const Json& entry, const std::string& name,
                                    absl::string_view origin) {
  const auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned()) {
    return CorruptTensor(origin, name, "expected 'data_offsets' as [begin, end]");
  }
  const Extent extent{(*found)[0].get<uint64_t>(), (*found)[1].get<uint64_t>(), name};
  if (extent.begin > extent.end) {
    return CorruptTensor(
        origin, name,
        absl::StrCat("data_offsets end before they begin: [", extent.begin, ", ", extent.end, "]"));
  }
  return extent;
}

// The extents, sorted, must tile [0, data_bytes) exactly.
absl::Status CheckTiling(std::vector<Extent> extents, uint64_t data_bytes,
                         absl::string_view origin) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != expected) {
      return CorruptTensor(origin, extent.name,
                           absl::StrCat(extent.begin < expected ? "overlaps the tensor before it"
                                                                : "leaves a hole before it",
                                        ": expected offset ", expected, ", got ", extent.begin));
    }
    expected = extent.end;
  }
  if (expected != data_bytes) {
    return Corrupt(origin, absl::StrCat("tensors end at offset ", expected, ", but the file holds ",
                                        data_bytes, " bytes after its header"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ElementSize(TensorType type) { return Known(type).element_bytes; }

absl::string_view Name(TensorType type) { return Known(type).name; }

bool IsFloat(TensorType type) {
  return type == TensorType::kFloat32 || type == TensorType::kFloat16 ||
         type == TensorType::kBfloat16 || type == TensorType::kFloat64;
}

std::string FormatShape(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape.begin(), shape.end(), ", "), "]");
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<MappedFile> mapping = MappedFile::Open(path);
  if (absl::IsInvalidArgument(mapping.status())) {
    return absl::NotFoundError(absl::StrCat(path, ": not a regular file"));
  }
  if (!mapping.ok()) {
    const absl::string_view reason =
        absl::StripPrefix(mapping.status().message(), absl::StrCat(path, ": "));
    return absl::NotFoundError(absl::StrCat(path, ": cannot open: ", reason));
  }
  if (mapping->bytes().empty()) return Corrupt(path, "the file is empty");
  HPO_ASSIGN_OR_RETURN(SafetensorsFile file, Parse(mapping->bytes(), path));
  file.mapping_ = *std::move(mapping);
  return file;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes,
                                                       absl::string_view origin) {
  if (bytes.size() < kLengthBytes) {
    return Corrupt(origin,
                   absl::StrCat("truncated: expected at least 8 bytes, got ", bytes.size()));
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  }
  if (header_bytes > kMaxHeaderBytes) {
    const absl::string_view start(reinterpret_cast<const char*>(bytes.data()),
                                  std::min<size_t>(bytes.size(), kShownText));
    if (std::all_of(start.begin(), start.begin() + kLengthBytes, absl::ascii_isprint)) {
      return Corrupt(origin, absl::StrCat("expected safetensors, got text: ", Quoted(start)));
    }
    return Corrupt(origin, absl::StrCat("header of ", header_bytes, " bytes, expected at most ",
                                        kMaxHeaderBytes));
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    return Corrupt(origin, absl::StrCat("truncated: header of ", header_bytes,
                                        " bytes in a file of ", bytes.size()));
  }
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                               header_bytes);
  HPO_ASSIGN_OR_RETURN(const Json header, ParseHeader(text, origin));
  const auto data = bytes.subspan(kLengthBytes + header_bytes);

  SafetensorsFile file;
  file.origin_ = std::string(origin);
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (!entry.is_object()) return CorruptTensor(origin, name, "expected an object");
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Corrupt(origin, "__metadata__: expected strings only");
        file.metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto dtype = entry.find("dtype");
    const auto type = dtype != entry.end() && dtype->is_string()
                          ? ParseTensorType(dtype->get<std::string>())
                          : std::nullopt;
    if (!type.has_value()) {
      return CorruptTensor(origin, name,
                           absl::StrCat("expected a dtype such as F32, F16 or BF16, got ",
                                        dtype != entry.end() ? dtype->dump() : "none"));
    }
    HPO_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ParseShape(entry, name, origin));
    HPO_ASSIGN_OR_RETURN(const Extent extent, ParseOffsets(entry, name, origin));
    const std::optional<uint64_t> expected = NumBytes(shape, *type);
    if (!expected.has_value() || *expected != extent.end - extent.begin) {
      return CorruptTensor(
          origin, name,
          absl::StrCat("shape ", FormatShape(shape), " of ", Name(*type), " needs ",
                       expected.has_value() ? absl::StrCat(*expected) : "more than 2^63",
                       " bytes, data_offsets [", extent.begin, ", ", extent.end, "] hold ",
                       extent.end - extent.begin));
    }
    if (extent.end > data.size()) {
      return CorruptTensor(origin, name,
                           absl::StrCat("truncated: ends at offset ", extent.end, " of ",
                                        data.size(), " data bytes"));
    }
    extents.push_back(extent);
    file.tensors_[name] =
        TensorView{*type, std::move(shape), data.subspan(extent.begin, extent.end - extent.begin)};
  }
  HPO_RETURN_IF_ERROR(CheckTiling(std::move(extents), data.size(), origin));
  return file;
}

const TensorView* SafetensorsFile::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void SafetensorsFile::RemovePrefix(absl::string_view prefix) {
  std::map<std::string, TensorView> renamed;
  for (auto& [name, view] : tensors_) {
    renamed.emplace(absl::StripPrefix(name, prefix), std::move(view));
  }
  tensors_ = std::move(renamed);
}

}  // namespace hpo::trainer
