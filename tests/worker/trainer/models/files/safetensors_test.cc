#include "worker/trainer/models/files/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/trainer/models/files/safetensors_writer.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

// The bytes of a file with this header and `data_bytes` zeroes.
std::string FileWith(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(file.data(), &size, sizeof(size));
  return file + header + std::string(data_bytes, '\0');
}

absl::StatusOr<SafetensorsFile> Parse(const std::string& file) {
  return SafetensorsFile::Parse(std::as_bytes(std::span(file)), "test.safetensors");
}

std::string TestPath(const std::string& name) {
  const std::string folder = testing::TempDir() + "/safetensors_test_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  return folder + "/" + name;
}

TEST(SafetensorsReader, ReadsTensorsAndMetadata) {
  const auto file = FileWith(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[16,16]}}  )",
      16);
  const auto parsed = Parse(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->metadata().at("format"), "pt");
  ASSERT_EQ(parsed->tensors().size(), 3u);
  const TensorView* a = parsed->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, TensorType::kFloat32);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(a->bytes.size(), 8u);
  EXPECT_EQ(parsed->Find("b")->bytes.data(), a->bytes.data() + 8);
  EXPECT_EQ(parsed->Find("c"), nullptr);
}

struct Corruption {
  const char* what;
  std::string file;
  const char* message;
};

std::vector<Corruption> Corruptions() {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  std::string huge_header = FileWith("{}", 0);
  huge_header[7] = 1;
  std::string long_header = FileWith("{}", 0);
  long_header[0] = 100;
  return {
      {"empty", "", "truncated"},
      {"seven bytes", std::string(7, '\0'), "truncated"},
      {"header over 100 MB", huge_header, "expected at most 100000000"},
      {"text", R"({"error":"Access to model x is restricted. Log in."})",
       R"(expected safetensors, got text: '{"error":"Access to model)"},
      {"header past the end", long_header, "truncated: header of 100 bytes"},
      {"not JSON", FileWith("{\"a\":", 0), "not JSON"},
      {"not an object", FileWith("[]", 0), "expected a JSON object"},
      {"invalid UTF-8", FileWith("{\"\xff\":{}}", 0), "not JSON"},
      {"duplicate tensor", FileWith("{" + a + "," + a + "}", 8), "'a' appears twice"},
      {"duplicate key", FileWith(R"({"a":{"dtype":"F32","dtype":"F16"}})", 8), "'dtype' appears"},
      {"metadata not strings", FileWith(R"({"__metadata__":{"n":1}})", 0), "strings only"},
      {"tensor not an object", FileWith(R"({"a":1})", 0), "tensor 'a': expected an object"},
      {"no dtype", FileWith(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "got none"},
      {"unknown dtype",
       FileWith(R"({"a":{"dtype":"F6_E3M2","shape":[8],"data_offsets":[0,8]}})", 8), "F6_E3M2"},
      {"no shape", FileWith(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "'shape'"},
      {"negative dimension",
       FileWith(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
       "bad dimension -2"},
      {"fractional dimension",
       FileWith(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8), "bad dimension"},
      {"overflowing shape",
       FileWith(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
       "more than 2^63"},
      {"three offsets", FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8),
       "expected 'data_offsets'"},
      {"offsets backwards",
       FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
       "end before they begin"},
      {"offsets differ from shape",
       FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
       "needs 8 bytes, data_offsets [0, 4] hold 4"},
      {"past the end", FileWith("{" + a + "}", 7), "ends at offset 8 of 7"},
      {"bytes left over", FileWith("{" + a + "}", 9), "the file holds 9 bytes"},
      {"hole",
       FileWith("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16),
       "tensor 'b': leaves a hole before it: expected offset 8, got 12"},
      {"hole at the start",
       FileWith(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "leaves a hole"},
      {"overlap",
       FileWith("{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
       "tensor 'b': overlaps the tensor before it: expected offset 8, got 4"},
  };
}

TEST(SafetensorsReader, RefusesCorruptFiles) {
  for (const Corruption& corruption : Corruptions()) {
    SCOPED_TRACE(corruption.what);
    const auto parsed = Parse(corruption.file);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(corruption.message));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("test.safetensors"));
  }
}

TEST(SafetensorsReader, EveryTruncationIsRefused) {
  const std::string whole =
      FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Parse(whole.substr(0, size)).ok()) << size;
  }
}

TEST(SafetensorsReader, OpenSaysWhichFile) {
  const auto missing = SafetensorsFile::Open("/nonexistent/model.safetensors");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nonexistent/model.safetensors"));
  EXPECT_FALSE(SafetensorsFile::Open(testing::TempDir()).ok());
}

TEST(SafetensorsWriter, WhatIsWrittenIsRead) {
  const std::string path = TestPath("written.safetensors");
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  const std::vector<int64_t> ids = {7};
  const std::vector<TensorSource> sources = {
      {"x", TensorType::kFloat32, {3, 1}, [&] { return std::as_bytes(std::span(values)); }},
      {"ids", TensorType::kInt64, {1}, [&] { return std::as_bytes(std::span(ids)); }},
  };
  ASSERT_TRUE(WriteSafetensors(path, sources, {{"format", "pt"}}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->Find("x"), nullptr);
  EXPECT_EQ(file->Find("x")->shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(std::memcmp(file->Find("x")->bytes.data(), values.data(), 12), 0);
  EXPECT_EQ(std::memcmp(file->Find("ids")->bytes.data(), ids.data(), 8), 0);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->Find("x")->bytes.data()) % 8, 0u);
}

TEST(SafetensorsWriter, AFailedWriteLeavesTheOldFileAndNoLitter) {
  const std::string path = TestPath("kept.safetensors");
  const std::vector<float> values = {1.0f};
  const auto bytes = [&] { return std::as_bytes(std::span(values)); };
  const std::vector<TensorSource> good = {{"x", TensorType::kFloat32, {1}, bytes}};
  ASSERT_TRUE(WriteSafetensors(path, good, {}).ok());
  const std::vector<std::vector<TensorSource>> bad = {
      {{"x", TensorType::kFloat32, {2}, bytes}},
      {{"x", TensorType::kFloat32, {1}, bytes}, {"x", TensorType::kFloat32, {1}, bytes}},
      {{"x", TensorType::kFloat32, {-1}, bytes}},
  };
  for (const auto& sources : bad) {
    EXPECT_EQ(WriteSafetensors(path, sources, {}).code(), absl::StatusCode::kInvalidArgument);
  }
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Find("x")->shape, (std::vector<int64_t>{1}));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_FALSE(absl::StrContains(entry.path().string(), ".tmp-")) << entry.path();
  }
  EXPECT_FALSE(WriteSafetensors("/nonexistent/x.safetensors", good, {}).ok());
}

}  // namespace
}  // namespace hpo::trainer
