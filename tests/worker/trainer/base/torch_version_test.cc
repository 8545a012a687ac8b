#include "worker/trainer/base/torch_version.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

TEST(TorchVersion, TheLoadedLibraryIsTheOneOfTheHeaders) {
  const auto build = LoadedTorchBuild();
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE(absl::StartsWith(*build, HPO_TORCH_VERSION)) << *build;
  EXPECT_TRUE(CheckTorchVersion(HPO_TORCH_VERSION, *build).ok());
}

TEST(TorchVersion, IsReadFromTheBuildSettings) {
  EXPECT_EQ(*ParseTorchBuild("PyTorch built with:\n  - GCC 13\n  - Build settings: A=b=c, "
                             "CUDA_VERSION=13.0, TORCH_VERSION=2.11.0, USE_CUDA=1,\n"),
            "2.11.0+cu130");
  EXPECT_EQ(*ParseTorchBuild("Build settings: X=1, TORCH_VERSION=2.12.1, USE_CUDA=0"), "2.12.1");
  EXPECT_EQ(ParseTorchBuild("nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST(TorchVersion, OnlyTheMinorVersionMustAgree) {
  EXPECT_TRUE(CheckTorchVersion("2.11.0", "2.11.3+cu130").ok());
  for (const char* loaded : {"2.12.0", "2.1.0", "3.11.0", "2", ""}) {
    const absl::Status status = CheckTorchVersion("2.11.0", loaded);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << loaded;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected torch 2.11"));
  }
}

}  // namespace
}  // namespace hpo::trainer
