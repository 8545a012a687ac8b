// libcuda: streams and events (streams.h has the rules). They are the runtime's.
#include "emulator/streams/streams.h"

#include "emulator/driver/calls.h"

namespace {

using hpo::emulator::Streams;

CUresult Result(int code) { return static_cast<CUresult>(code); }

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  HPO_DRIVER_CALL(cuStreamCreate);
  const bool is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  *stream = static_cast<CUstream>(Streams::Get().CreateStream(is_blocking, 0));
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  HPO_DRIVER_CALL(cuStreamCreateWithPriority);
  const bool is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  *stream = static_cast<CUstream>(Streams::Get().CreateStream(is_blocking, priority));
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  HPO_DRIVER_CALL(cuStreamDestroy_v2);
  Streams::Get().DestroyStream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  HPO_DRIVER_CALL(cuStreamSynchronize);
  return Result(Streams::Get().Synchronize(stream));
}

CUresult cuStreamQuery(CUstream stream) {
  HPO_DRIVER_CALL(cuStreamQuery);
  return Result(Streams::Get().Synchronize(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  HPO_DRIVER_CALL(cuStreamWaitEvent);
  return Result(Streams::Get().Wait(stream, event, (flags & CU_EVENT_WAIT_EXTERNAL) != 0));
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  HPO_DRIVER_CALL(cuStreamIsCapturing);
  hpo::emulator::CaptureInfo info;
  const int code = Streams::Get().GetCaptureInfo(stream, info);
  *status = static_cast<CUstreamCaptureStatus>(info.status);
  return Result(code);
}

CUresult cuEventCreate(CUevent* event, unsigned int) {
  HPO_DRIVER_CALL(cuEventCreate);
  *event = static_cast<CUevent>(Streams::Get().CreateEvent());
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  HPO_DRIVER_CALL(cuEventDestroy_v2);
  Streams::Get().DestroyEvent(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  HPO_DRIVER_CALL(cuEventRecord);
  return Result(Streams::Get().Record(event, stream, /*is_external=*/false));
}

CUresult cuEventSynchronize(CUevent event) {
  HPO_DRIVER_CALL(cuEventSynchronize);
  return Result(Streams::Get().SynchronizeEvent(event));
}

CUresult cuEventQuery(CUevent event) {
  HPO_DRIVER_CALL(cuEventQuery);
  return Result(Streams::Get().SynchronizeEvent(event));
}

}  // extern "C"
