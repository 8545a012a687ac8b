// libcudart: errors, and what a thread remembers.
#include "emulator/cudart/cudart.h"

namespace hpo::emulator {
namespace {

thread_local cudaError_t t_last_error = cudaSuccess;

}  // namespace

cudaError_t Done(cudaError_t code) {
  if (code != cudaSuccess) t_last_error = code;
  return code;
}

cudaError_t LastError(bool take) {
  if (const int sticky = Machine::Get().sticky(); sticky != 0) {
    return static_cast<cudaError_t>(sticky);
  }
  const cudaError_t last = t_last_error;
  if (take) t_last_error = cudaSuccess;
  return last;
}

cudaError_t EnterCall(const char* call) {
  Machine& machine = Machine::Get();
  if (const int sticky = machine.sticky(); sticky != 0) {
    return Done(static_cast<cudaError_t>(sticky));
  }
  return Done(static_cast<cudaError_t>(machine.CountCall(call)));
}

}  // namespace hpo::emulator

extern "C" {

cudaError_t cudaGetLastError() { return hpo::emulator::LastError(/*take=*/true); }

cudaError_t cudaPeekAtLastError() { return hpo::emulator::LastError(/*take=*/false); }

// The words are this project's own. Programs tell errors apart by their codes.
const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "emulated: no error";
    case cudaErrorInvalidValue:
      return "emulated: a bad argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "emulated: a bad shape of a launch";
    case cudaErrorNoDevice:
      return "emulated: the machine has no card";
    case cudaErrorInvalidDevice:
      return "emulated: no card of this number";
    case cudaErrorECCUncorrectable:
      return "emulated: memory that ECC cannot repair";
    case cudaErrorIllegalAddress:
      return "emulated: an address that is nobody's";
    case cudaErrorAssert:
      return "emulated: an assertion on the device";
    case cudaErrorLaunchFailure:
      return "emulated: a launch that failed";
    case cudaErrorNotReady:
      return "emulated: not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "emulated: not allowed while a stream is being captured";
    case cudaErrorStreamCaptureInvalidated:
      return "emulated: the capture was spoiled by an earlier error";
    case cudaErrorStreamCaptureUnjoined:
      return "emulated: the captured stream does not wait for all streams of its capture";
    case cudaErrorStreamCaptureIsolation:
      return "emulated: a captured stream cannot wait for work outside its capture";
    case cudaErrorCapturedEvent:
      return "emulated: the event was recorded in a stream that is being captured";
    default:
      return "emulated: another error";
  }
}

// Torch names it in a link to the documentation.
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaSuccess ? "cudaSuccess" : "an error of the emulated card";
}

}  // extern "C"
