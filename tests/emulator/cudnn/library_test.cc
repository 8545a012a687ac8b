// cuDNN's handles, version and errors.
#include <cstddef>

#include "gtest/gtest.h"

extern "C" {
size_t cudnnGetVersion();
int cudnnGetProperty(int property, int* value);
int cudnnCreate(void** handle);
int cudnnDestroy(void* handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnGetStream(void* handle, void** stream);
const char* cudnnGetErrorString(int status);
}

namespace hpo::emulator::cudnn {
namespace {

TEST(Library, AHandleKeepsItsStream) {
  void* handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), 0);
  void* stream = &handle;
  EXPECT_EQ(cudnnGetStream(handle, &stream), 0);
  EXPECT_EQ(stream, nullptr);
  int marker = 0;
  EXPECT_EQ(cudnnSetStream(handle, &marker), 0);
  EXPECT_EQ(cudnnGetStream(handle, &stream), 0);
  EXPECT_EQ(stream, &marker);
  EXPECT_EQ(cudnnDestroy(handle), 0);
  EXPECT_DEATH(cudnnSetStream(handle, nullptr), "cudnnSetStream of an object that does not exist");
}

TEST(Library, TheVersionIsItsProperties) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  cudnnGetProperty(0, &major);
  cudnnGetProperty(1, &minor);
  cudnnGetProperty(2, &patch);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(cudnnGetVersion(), static_cast<size_t>(10000 * major + 100 * minor + patch));
  EXPECT_DEATH(cudnnGetProperty(3, &major), "cudnnGetProperty of another property");
}

TEST(Library, NamesErrorsAsCudnnDoes) {
  EXPECT_STREQ(cudnnGetErrorString(4004), "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED");
  EXPECT_STREQ(cudnnGetErrorString(5000), "CUDNN_STATUS_EXECUTION_FAILED");
  EXPECT_STREQ(cudnnGetErrorString(1234), "emulated: an error of cuDNN");
}

}  // namespace
}  // namespace hpo::emulator::cudnn
