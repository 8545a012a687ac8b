#include "worker/trainer/memory/error_text.h"

#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

const c10::SourceLocation kThere{"function", "file.cc", 1};

TEST(DescribeError, HasNoStackFrames) {
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 2.00 GiB.");
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("frame #0"), std::string::npos);
    EXPECT_EQ(DescribeError(error), "CUDA out of memory. Tried to allocate 2.00 GiB.");
  }
}

TEST(DescribeError, IsOneLine) {
  c10::Error context(kThere, "expected 3 rows,\ngot 4");
  context.add_context("in row_sum");
  const std::pair<std::string, std::string> cases[] = {
      {DescribeError(context), "expected 3 rows, got 4 (in row_sum)"},
      {DescribeError(c10::AcceleratorError(
           kThere, 700,
           "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
           "asynchronously reported at some other API call.\nFor debugging consider passing "
           "CUDA_LAUNCH_BLOCKING=1\n")),
       "CUDA error: an illegal memory access was encountered"},
      {DescribeError(std::runtime_error("two\nlines\n")), "two lines"},
      {DescribeError(std::runtime_error("")), ""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace hpo::trainer
