// Streams, events and stream capture. All work is done as soon as it is asked for, except on a
// stream that is being captured: there it becomes a node of a graph.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/streams/graph.h"

namespace hpo::emulator {

// CUDA's codes of these errors, the same in the runtime and the driver.
enum StreamCode : int {
  kStreamOk = 0,
  kIllegalState = 401,
  kCaptureUnsupported = 900,  // not allowed while the stream is being captured
  kCaptureInvalidated = 901,  // an earlier call has spoiled the capture
  kCaptureMerge = 902,        // two captures would depend on each other
  kCaptureUnmatched = 903,    // the capture began on another stream
  kCaptureUnjoined = 904,     // work on another stream was not waited for
  kCaptureIsolation = 905,    // the capture would depend on work outside it
  kCaptureImplicit = 906,     // the default stream would wait for a captured stream
  kCapturedEvent = 907,       // the event was recorded by a capture
  kCaptureWrongThread = 908,  // the capture began on another thread
};

enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureStatus { kNone, kActive, kInvalidated };

struct Stream;
struct Capture;

// What a program can ask about a stream's capture.
struct CaptureInfo {
  CaptureStatus status = CaptureStatus::kNone;
  unsigned long long id = 0;  // unique in the process; 0 without a capture
  Graph* graph = nullptr;
  std::vector<GraphNode*> dependencies;  // of the next node
};

// The streams of a process. A handle of a stream is what Create returned, or one of CUDA's own: 0
// and 1 are the legacy default stream, 2 is the default stream of each thread. Safe for threads.
// Source of the rules: CUDA's documentation of cudaStreamBeginCapture, cudaStreamEndCapture and
// cudaThreadExchangeStreamCaptureMode. Functions that return a StreamCode fail as it says there; a
// call that is not allowed spoils the captures that it conflicts with.
class Streams {
 public:
  static constexpr int kGreatestPriority = -5;  // of all GPUs in the table; the least is 0

  static Streams& Get();

  // `is_blocking`: the legacy default stream waits for it. A priority out of range is moved into
  // it.
  void* CreateStream(bool is_blocking, int priority);
  // Nothing happens to CUDA's own streams.
  void DestroyStream(void* stream);
  int Priority(void* stream);
  bool IsBlocking(void* stream);

  // Does `work`, or makes it a node if the stream is being captured.
  StreamCode Enqueue(void* stream, NodeKind kind, std::function<void()> work);
  // A library has computed on a stream that it does not name: a kernel for every capture.
  void NoteLibraryWork();

  // Waiting for a stream, asking whether it has finished, and the same for all streams.
  StreamCode Synchronize(void* stream);
  StreamCode SynchronizeAll();

  void* CreateEvent();
  void DestroyEvent(void* event);
  // `is_external`: the event of another program part, a node of the graph if captured.
  StreamCode Record(void* event, void* stream, bool is_external);
  StreamCode Wait(void* stream, void* event, bool is_external);
  StreamCode SynchronizeEvent(void* event);

  StreamCode BeginCapture(void* stream, CaptureMode mode);
  // The graph is the caller's. Null unless the code is kStreamOk.
  StreamCode EndCapture(void* stream, std::unique_ptr<Graph>& graph);
  StreamCode GetCaptureInfo(void* stream, CaptureInfo& info);

  // Sets the calling thread's mode, and returns the one before.
  static CaptureMode ExchangeMode(CaptureMode mode);
  // For calls that may disturb a capture (such as cudaMalloc): whether the thread may make them.
  StreamCode CheckUnsafeCall();

 private:
  Stream& Find(void* handle);
  // The capture of a blocking stream, for which the legacy default stream would wait; or null.
  Capture* FindConflict(const Stream& stream) const;
  StreamCode CheckUse(const Stream& stream) const;
  static void AddNode(Stream& stream, NodeKind kind, std::function<void()> work);
  void Join(Stream& stream, const std::shared_ptr<Capture>& capture);
  void Leave(Capture& capture);

  std::mutex mutex_;
  std::atomic<int> num_captures_{0};
  unsigned long long last_id_ = 0;
  std::vector<std::shared_ptr<Capture>> captures_;  // that have not ended
};

}  // namespace hpo::emulator
