#include "cli/dryrun/gpu_document.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using memory::FrontierVerdict;

TEST(GpuDocument, ReadsEachGpu) {
  const auto found = ReadGpuDocuments(R"(a warning
{"gpus": [
 {"gpu": "t4", "verdict": "tight", "total_bytes": 16, "margin_bytes": 2, "required_bytes": 15,
  "needs_bytes": null, "retries": 3},
 {"gpu": "l4", "verdict": "does not fit", "total_bytes": 24, "margin_bytes": 2,
  "required_bytes": 30, "needs_bytes": 31, "retries": 3},
 {"gpu": "v100", "verdict": "unknown", "total_bytes": 32, "margin_bytes": 2}]})");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].name, "t4");
  EXPECT_EQ((*found)[0].gpu.total, Bytes{16});
  EXPECT_EQ((*found)[0].gpu.margin, Bytes{2});
  EXPECT_EQ((*found)[0].measured.verdict, FrontierVerdict::kTight);
  EXPECT_EQ((*found)[0].measured.required, Bytes{15});
  EXPECT_TRUE((*found)[0].measured.freed_cache);
  EXPECT_EQ((*found)[1].measured.required, Bytes{31});
  EXPECT_FALSE((*found)[1].measured.freed_cache) << "what it needs is of a run with ample memory";
  EXPECT_EQ((*found)[2].measured.verdict, FrontierVerdict::kNotKnown);
  EXPECT_EQ((*found)[2].measured.required, Bytes{});
}

TEST(GpuDocument, ElseTheLastLineSaysWhy) {
  const auto why = [](const char* output) {
    return std::string(ReadGpuDocuments(output).status().message());
  };
  EXPECT_EQ(why("line\nhpo memory dry-run: it failed\n\n"), "it failed");
  EXPECT_EQ(why("{\"gpus\": []}"), "{\"gpus\": []}");
  EXPECT_EQ(why("{broken"), "{broken");
  EXPECT_EQ(why(""), "it printed nothing");
}

}  // namespace
}  // namespace hpo::cli
