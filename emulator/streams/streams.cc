#include "emulator/streams/streams.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "emulator/device_values.h"

namespace hpo::emulator {

struct Capture {
  unsigned long long id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  bool is_invalid = false;
  bool has_ended = false;
  std::vector<Stream*> streams;
};

struct Stream {
  bool is_legacy = false;
  bool is_blocking = true;
  int priority = 0;
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> last;  // what the next node depends on
};

struct Event {
  bool is_recorded = false;
  std::shared_ptr<Capture> capture;  // of the stream where it was recorded
  std::vector<GraphNode*> last;
};

namespace {

constexpr uintptr_t kLastOwnHandle = 2;  // of CUDA's own streams

thread_local CaptureMode t_mode = CaptureMode::kGlobal;

void AddMissing(std::vector<GraphNode*>& nodes, const std::vector<GraphNode*>& more) {
  for (GraphNode* const node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

StreamCode Spoil(Capture& capture, StreamCode code) {
  capture.is_invalid = true;
  return code;
}

// Whether nothing of the capture is left that its first stream does not wait for.
bool IsJoined(const Capture& capture) {
  const auto& last = capture.origin->last;
  return std::all_of(capture.graph->nodes().begin(), capture.graph->nodes().end(),
                     [&](const auto& node) {
                       return node->has_dependents ||
                              std::find(last.begin(), last.end(), node.get()) != last.end();
                     });
}

}  // namespace

Streams& Streams::Get() {
  static Streams* const streams = new Streams;
  return *streams;
}

void* Streams::CreateStream(bool is_blocking, int priority) {
  return new Stream{.is_blocking = is_blocking,
                    .priority = std::clamp(priority, kGreatestPriority, 0),
                    .capture = nullptr,
                    .last = {}};
}

void Streams::DestroyStream(void* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= kLastOwnHandle) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream& found = Find(stream);
  if (found.capture != nullptr) {
    const std::shared_ptr<Capture> capture = found.capture;
    capture->is_invalid = true;
    std::erase(capture->streams, &found);
    if (capture->origin == &found) Leave(*capture);
  }
  delete &found;
}

Stream& Streams::Find(void* handle) {
  static Stream* const legacy = new Stream{.is_legacy = true, .capture = nullptr, .last = {}};
  static thread_local Stream* const of_thread = new Stream{.capture = nullptr, .last = {}};
  switch (reinterpret_cast<uintptr_t>(handle)) {
    case 0:
    case 1:
      return *legacy;
    case 2:
      return *of_thread;
    default:
      return *static_cast<Stream*>(handle);
  }
}

int Streams::Priority(void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(stream).priority;
}

bool Streams::IsBlocking(void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(stream).is_blocking;
}

Capture* Streams::FindConflict(const Stream& stream) const {
  if (!stream.is_legacy) return nullptr;
  for (const auto& capture : captures_) {
    const bool conflicts = std::any_of(capture->streams.begin(), capture->streams.end(),
                                       [](const Stream* other) { return other->is_blocking; });
    if (conflicts) return capture.get();
  }
  return nullptr;
}

StreamCode Streams::CheckUse(const Stream& stream) const {
  if (Capture* const conflict = FindConflict(stream)) return Spoil(*conflict, kCaptureImplicit);
  return stream.capture != nullptr && stream.capture->is_invalid ? kCaptureInvalidated : kStreamOk;
}

void Streams::AddNode(Stream& stream, NodeKind kind, std::function<void()> work) {
  stream.last = {stream.capture->graph->Add(kind, std::move(work), stream.last)};
}

StreamCode Streams::Enqueue(void* stream, NodeKind kind, std::function<void()> work) {
  if (num_captures_ > 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Stream& found = Find(stream);
    if (const StreamCode code = CheckUse(found); code != kStreamOk) return code;
    if (found.capture != nullptr) {
      AddNode(found, kind, std::move(work));
      return kStreamOk;
    }
  }
  work();
  return kStreamOk;
}

void Streams::NoteLibraryWork() {
  if (num_captures_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& capture : captures_) {
    AddNode(*capture->origin, NodeKind::kKernel, [] { Values().ForgetAll(); });
  }
}

StreamCode Streams::Synchronize(void* stream) {
  if (num_captures_ == 0) return kStreamOk;
  const std::lock_guard<std::mutex> lock(mutex_);
  const Stream& found = Find(stream);
  if (found.capture != nullptr) return Spoil(*found.capture, kCaptureUnsupported);
  return CheckUse(found);
}

StreamCode Streams::SynchronizeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& capture : captures_) capture->is_invalid = true;
  return captures_.empty() ? kStreamOk : kCaptureUnsupported;
}

void* Streams::CreateEvent() { return new Event; }

void Streams::DestroyEvent(void* event) { delete static_cast<Event*>(event); }

StreamCode Streams::Record(void* event, void* stream, bool is_external) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream& found = Find(stream);
  if (const StreamCode code = CheckUse(found); code != kStreamOk) return code;
  auto& recorded = *static_cast<Event*>(event);
  if (found.capture != nullptr && is_external) {
    AddNode(found, NodeKind::kEvent, [] {});
    return kStreamOk;
  }
  recorded = {.is_recorded = true, .capture = found.capture, .last = found.last};
  return kStreamOk;
}

StreamCode Streams::Wait(void* stream, void* event, bool is_external) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream& found = Find(stream);
  const Event& awaited = *static_cast<Event*>(event);
  if (const StreamCode code = CheckUse(found); code != kStreamOk) return code;
  if (found.capture != nullptr && is_external) {
    AddNode(found, NodeKind::kEvent, [] {});
    return kStreamOk;
  }
  if (!awaited.is_recorded || (awaited.capture == nullptr && found.capture == nullptr)) {
    return kStreamOk;
  }
  if (awaited.capture == nullptr) return Spoil(*found.capture, kCaptureIsolation);
  if (awaited.capture->has_ended) {
    if (found.capture != nullptr) found.capture->is_invalid = true;
    return kCapturedEvent;
  }
  if (awaited.capture->is_invalid) return kCaptureInvalidated;
  if (found.is_legacy) return Spoil(*awaited.capture, kCaptureUnsupported);
  if (found.capture == nullptr) Join(found, awaited.capture);
  if (found.capture != awaited.capture) {
    found.capture->is_invalid = true;
    return Spoil(*awaited.capture, kCaptureMerge);
  }
  AddMissing(found.last, awaited.last);
  return kStreamOk;
}

StreamCode Streams::SynchronizeEvent(void* event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto& capture = static_cast<Event*>(event)->capture;
  return capture == nullptr ? kStreamOk : Spoil(*capture, kCapturedEvent);
}

void Streams::Join(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.last.clear();
  capture->streams.push_back(&stream);
}

void Streams::Leave(Capture& capture) {
  capture.has_ended = true;
  for (Stream* const stream : capture.streams) {
    stream->last.clear();
    stream->capture = nullptr;
  }
  capture.streams.clear();
  std::erase_if(captures_, [&](const auto& other) { return other.get() == &capture; });
  num_captures_ = static_cast<int>(captures_.size());
}

StreamCode Streams::BeginCapture(void* stream, CaptureMode mode) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream& found = Find(stream);
  if (found.is_legacy) return kCaptureUnsupported;
  if (found.capture != nullptr) return kIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->id = ++last_id_;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &found;
  Join(found, capture);
  captures_.push_back(std::move(capture));
  num_captures_ = static_cast<int>(captures_.size());
  return kStreamOk;
}

StreamCode Streams::EndCapture(void* stream, std::unique_ptr<Graph>& graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  graph = nullptr;
  Stream& found = Find(stream);
  if (found.capture == nullptr) return kIllegalState;
  const std::shared_ptr<Capture> capture = found.capture;
  if (capture->origin != &found) return Spoil(*capture, kCaptureUnmatched);
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != std::this_thread::get_id()) {
    return Spoil(*capture, kCaptureWrongThread);
  }
  const StreamCode code = capture->is_invalid   ? kCaptureInvalidated
                          : !IsJoined(*capture) ? kCaptureUnjoined
                                                : kStreamOk;
  if (code == kStreamOk) graph = std::move(capture->graph);
  Leave(*capture);
  return code;
}

StreamCode Streams::GetCaptureInfo(void* stream, CaptureInfo& info) {
  info = {};
  if (num_captures_ == 0) return kStreamOk;
  const std::lock_guard<std::mutex> lock(mutex_);
  const Stream& found = Find(stream);
  if (FindConflict(found) != nullptr) return kCaptureImplicit;
  if (found.capture == nullptr) return kStreamOk;
  info = {
      .status = found.capture->is_invalid ? CaptureStatus::kInvalidated : CaptureStatus::kActive,
      .id = found.capture->id,
      .graph = found.capture->graph.get(),
      .dependencies = found.last};
  return kStreamOk;
}

CaptureMode Streams::ExchangeMode(CaptureMode mode) { return std::exchange(t_mode, mode); }

StreamCode Streams::CheckUnsafeCall() {
  if (num_captures_ == 0 || t_mode == CaptureMode::kRelaxed) return kStreamOk;
  const std::lock_guard<std::mutex> lock(mutex_);
  StreamCode code = kStreamOk;
  for (const auto& capture : captures_) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool conflicts =
        is_own ? capture->mode != CaptureMode::kRelaxed
               : capture->mode == CaptureMode::kGlobal && t_mode == CaptureMode::kGlobal;
    if (conflicts) code = Spoil(*capture, kCaptureUnsupported);
  }
  return code;
}

}  // namespace hpo::emulator
