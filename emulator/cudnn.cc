// libcudnn: there, of a version with which torch does not take cuDNN's attention. It computes
// nothing else that this project uses.
#include <cstddef>

#include "emulator/library_call.h"

namespace {

using hpo::emulator::Machine;

constexpr size_t kBuiltWith = 91900;         // what torch 2.11 brings
constexpr size_t kWithoutAttention = 91002;  // torch prefers cuDNN's attention from 9.15

bool AnyTakesCudnnAttention() {
  for (const auto& card : Machine::Get().settings().cards) {
    if (card.takes_cudnn_attention) return true;
  }
  return false;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return AnyTakesCudnnAttention() ? kWithoutAttention : kBuiltWith; }

size_t cudnnGetCudartVersion() { return 13000; }

int cudnnCreate(void** handle) {
  HPO_LIBRARY_CALL(cudnnCreate);
  *handle = new char;
  return 0;
}

int cudnnDestroy(void* handle) {
  HPO_LIBRARY_CALL(cudnnDestroy);
  delete static_cast<char*>(handle);
  return 0;
}

const char* cudnnGetErrorString(int) { return "emulated: an error of cuDNN"; }

}  // extern "C"
