#include "emulator/streams/streams.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/device_values.h"
#include "emulator/machine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void* const kDefault = nullptr;

class StreamsTest : public ::testing::Test {
 protected:
  StreamsTest()
      : stream_(streams_.CreateStream(/*is_blocking=*/false, 0)),
        other_(streams_.CreateStream(/*is_blocking=*/false, 0)),
        event_(streams_.CreateEvent()) {}
  ~StreamsTest() override {
    streams_.DestroyStream(stream_);
    streams_.DestroyStream(other_);
    streams_.DestroyEvent(event_);
  }

  StreamCode Note(void* stream, const std::string& word) {
    return streams_.Enqueue(stream, NodeKind::kKernel, [this, word] { done_.push_back(word); });
  }
  StreamCode Begin(CaptureMode mode = CaptureMode::kGlobal) {
    return streams_.BeginCapture(stream_, mode);
  }
  StreamCode End() { return streams_.EndCapture(stream_, graph_); }
  CaptureInfo Info(void* stream) {
    CaptureInfo info;
    EXPECT_EQ(streams_.GetCaptureInfo(stream, info), kStreamOk);
    return info;
  }

  Streams streams_;
  void* const stream_;
  void* const other_;
  void* const event_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::string> done_;
};

TEST_F(StreamsTest, WorkIsDoneAtOnceUnlessItsStreamIsCaptured) {
  EXPECT_EQ(Note(stream_, "before"), kStreamOk);
  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_EQ(Info(stream_).status, CaptureStatus::kActive);
  EXPECT_EQ(Info(other_).status, CaptureStatus::kNone);
  Note(stream_, "captured");
  Note(other_, "elsewhere");
  Note(kDefault, "on the default stream");
  EXPECT_THAT(done_, ElementsAre("before", "elsewhere", "on the default stream"));
  ASSERT_EQ(End(), kStreamOk);
  EXPECT_EQ(Info(stream_).status, CaptureStatus::kNone);
  done_.clear();
  const ExecutableGraph executable(*graph_);
  graph_ = nullptr;
  executable.Run();
  executable.Run();
  EXPECT_THAT(done_, ElementsAre("captured", "captured"));
}

TEST_F(StreamsTest, ACaptureSpreadsThroughEvents) {
  ASSERT_EQ(Begin(), kStreamOk);
  Note(stream_, "first");
  EXPECT_EQ(streams_.Record(event_, stream_, false), kStreamOk);
  EXPECT_EQ(streams_.Wait(other_, event_, false), kStreamOk);
  EXPECT_EQ(Info(other_).id, Info(stream_).id);
  EXPECT_EQ(Info(other_).dependencies, Info(stream_).dependencies);
  Note(other_, "on the other");
  Note(stream_, "meanwhile");
  EXPECT_EQ(streams_.Record(event_, other_, false), kStreamOk);
  EXPECT_EQ(streams_.Wait(stream_, event_, false), kStreamOk);
  EXPECT_EQ(Info(stream_).dependencies.size(), 2u);
  Note(stream_, "last");
  ASSERT_EQ(End(), kStreamOk);
  EXPECT_EQ(Info(other_).status, CaptureStatus::kNone);
  ASSERT_EQ(graph_->nodes().size(), 4u);
  EXPECT_THAT(graph_->nodes()[3]->dependencies,
              ElementsAre(graph_->nodes()[2].get(), graph_->nodes()[1].get()));
  EXPECT_THAT(graph_->Dot(), HasSubstr("node0 -> node1"));
}

TEST_F(StreamsTest, EachCaptureHasAnIdOfItsOwn) {
  ASSERT_EQ(Begin(), kStreamOk);
  const auto first = Info(stream_).id;
  ASSERT_EQ(End(), kStreamOk);
  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_NE(Info(stream_).id, first);
  ASSERT_EQ(End(), kStreamOk);
  EXPECT_EQ(Info(stream_).id, 0u);
}

TEST_F(StreamsTest, WorkThatIsNotWaitedForEndsACaptureWithAnError) {
  ASSERT_EQ(Begin(), kStreamOk);
  streams_.Record(event_, stream_, false);
  streams_.Wait(other_, event_, false);
  Note(other_, "left alone");
  EXPECT_EQ(End(), kCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(Info(stream_).status, CaptureStatus::kNone);
  EXPECT_EQ(Info(other_).status, CaptureStatus::kNone);
}

TEST_F(StreamsTest, WaitingForACapturedStreamSpoilsTheCapture) {
  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_EQ(streams_.Synchronize(other_), kStreamOk);
  EXPECT_EQ(streams_.Synchronize(stream_), kCaptureUnsupported);
  EXPECT_EQ(Info(stream_).status, CaptureStatus::kInvalidated);
  EXPECT_EQ(Note(stream_, "too late"), kCaptureInvalidated);
  EXPECT_EQ(End(), kCaptureInvalidated);
  EXPECT_EQ(graph_, nullptr);

  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_EQ(streams_.SynchronizeAll(), kCaptureUnsupported);
  EXPECT_EQ(End(), kCaptureInvalidated);

  ASSERT_EQ(Begin(), kStreamOk);
  streams_.Record(event_, stream_, false);
  EXPECT_EQ(streams_.SynchronizeEvent(event_), kCapturedEvent);
  EXPECT_EQ(End(), kCaptureInvalidated);
  EXPECT_EQ(streams_.SynchronizeEvent(event_), kCapturedEvent) << "until it is recorded again";
  streams_.Record(event_, stream_, false);
  EXPECT_EQ(streams_.SynchronizeEvent(event_), kStreamOk);
  EXPECT_THAT(done_, ElementsAre());
}

TEST_F(StreamsTest, ACaptureDependsOnNothingOutside) {
  EXPECT_EQ(streams_.Wait(stream_, event_, false), kStreamOk);
  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_EQ(streams_.Wait(stream_, event_, false), kStreamOk) << "it was never recorded";
  streams_.Record(event_, other_, false);
  EXPECT_EQ(streams_.Wait(stream_, event_, true), kStreamOk) << "an external event is a node";
  EXPECT_EQ(streams_.Wait(stream_, event_, false), kCaptureIsolation);
  EXPECT_EQ(End(), kCaptureInvalidated);

  ASSERT_EQ(Begin(), kStreamOk);
  ASSERT_EQ(streams_.BeginCapture(other_, CaptureMode::kGlobal), kStreamOk);
  streams_.Record(event_, other_, false);
  EXPECT_EQ(streams_.Wait(stream_, event_, false), kCaptureMerge);
  EXPECT_EQ(End(), kCaptureInvalidated);
  EXPECT_EQ(streams_.EndCapture(other_, graph_), kCaptureInvalidated);
}

TEST_F(StreamsTest, ACaptureBeginsAndEndsInOnePlace) {
  EXPECT_EQ(streams_.BeginCapture(kDefault, CaptureMode::kGlobal), kCaptureUnsupported);
  EXPECT_EQ(End(), kIllegalState);
  ASSERT_EQ(Begin(), kStreamOk);
  EXPECT_EQ(Begin(), kIllegalState);
  streams_.Record(event_, stream_, false);
  streams_.Wait(other_, event_, false);
  EXPECT_EQ(streams_.EndCapture(other_, graph_), kCaptureUnmatched);
  EXPECT_EQ(End(), kCaptureInvalidated);

  StreamCode code = kStreamOk;
  ASSERT_EQ(Begin(CaptureMode::kThreadLocal), kStreamOk);
  std::thread([&] { code = End(); }).join();
  EXPECT_EQ(code, kCaptureWrongThread);
  EXPECT_EQ(End(), kCaptureInvalidated);
  ASSERT_EQ(Begin(CaptureMode::kRelaxed), kStreamOk);
  std::thread([&] { code = End(); }).join();
  EXPECT_EQ(code, kStreamOk);
}

TEST_F(StreamsTest, TheDefaultStreamDoesNotWaitForACapturedStream) {
  void* const blocking = streams_.CreateStream(/*is_blocking=*/true, 0);
  ASSERT_EQ(streams_.BeginCapture(blocking, CaptureMode::kGlobal), kStreamOk);
  CaptureInfo info;
  EXPECT_EQ(streams_.GetCaptureInfo(kDefault, info), kCaptureImplicit);
  EXPECT_EQ(Info(blocking).status, CaptureStatus::kActive) << "asking spoils nothing";
  EXPECT_EQ(Note(kDefault, "never"), kCaptureImplicit);
  EXPECT_EQ(streams_.EndCapture(blocking, graph_), kCaptureInvalidated);
  streams_.DestroyStream(blocking);
  EXPECT_THAT(done_, ElementsAre());
}

// What cudaThreadExchangeStreamCaptureMode's documentation says of each mode.
TEST_F(StreamsTest, UnsafeCallsAreForbiddenByTheModesOfCaptureAndThread) {
  struct Case {
    CaptureMode capture;
    CaptureMode thread;
    StreamCode same_thread;
    StreamCode other_thread;
  };
  const Case cases[] = {
      {CaptureMode::kGlobal, CaptureMode::kGlobal, kCaptureUnsupported, kCaptureUnsupported},
      {CaptureMode::kGlobal, CaptureMode::kThreadLocal, kCaptureUnsupported, kStreamOk},
      {CaptureMode::kGlobal, CaptureMode::kRelaxed, kStreamOk, kStreamOk},
      {CaptureMode::kThreadLocal, CaptureMode::kGlobal, kCaptureUnsupported, kStreamOk},
      {CaptureMode::kThreadLocal, CaptureMode::kRelaxed, kStreamOk, kStreamOk},
      {CaptureMode::kRelaxed, CaptureMode::kGlobal, kStreamOk, kStreamOk},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(static_cast<int>(c.capture)) + " and " +
                 std::to_string(static_cast<int>(c.thread)));
    const auto check = [&] {
      const CaptureMode before = Streams::ExchangeMode(c.thread);
      const StreamCode code = streams_.CheckUnsafeCall();
      Streams::ExchangeMode(before);
      return code;
    };
    ASSERT_EQ(Begin(c.capture), kStreamOk);
    EXPECT_EQ(check(), c.same_thread);
    EXPECT_EQ(End(), c.same_thread == kStreamOk ? kStreamOk : kCaptureInvalidated);
    ASSERT_EQ(Begin(c.capture), kStreamOk);
    StreamCode code = kStreamOk;
    std::thread([&] { code = check(); }).join();
    EXPECT_EQ(code, c.other_thread);
    EXPECT_EQ(End(), c.other_thread == kStreamOk ? kStreamOk : kCaptureInvalidated);
  }
  EXPECT_EQ(streams_.CheckUnsafeCall(), kStreamOk);
}

TEST_F(StreamsTest, ADestroyedStreamEndsItsCapture) {
  void* const short_lived = streams_.CreateStream(false, 0);
  ASSERT_EQ(streams_.BeginCapture(short_lived, CaptureMode::kGlobal), kStreamOk);
  streams_.Record(event_, short_lived, false);
  streams_.Wait(stream_, event_, false);
  streams_.DestroyStream(short_lived);
  EXPECT_EQ(Info(stream_).status, CaptureStatus::kNone);
  EXPECT_EQ(streams_.SynchronizeAll(), kStreamOk);
}

TEST_F(StreamsTest, PrioritiesAreMovedIntoTheirRange) {
  const std::pair<int, int> cases[] = {{0, 0}, {-1, -1}, {-9, -5}, {3, 0}};
  for (const auto& [wanted, given] : cases) {
    void* const stream = streams_.CreateStream(false, wanted);
    EXPECT_EQ(streams_.Priority(stream), given);
    EXPECT_FALSE(streams_.IsBlocking(stream));
    streams_.DestroyStream(stream);
  }
  EXPECT_EQ(streams_.Priority(kDefault), 0);
  streams_.DestroyStream(kDefault);
  EXPECT_EQ(Note(kDefault, "still there"), kStreamOk);
}

// A library does not say on which stream it computes: what it wrote is unknown in every replay.
TEST(LibraryWork, ForgetsValuesNowAndInEachReplay) {
  Streams& streams = Streams::Get();
  void* const stream = streams.CreateStream(false, 0);
  int memory = 0;  // only its address counts
  Remember(&memory, "abcd");
  ASSERT_EQ(streams.BeginCapture(stream, CaptureMode::kGlobal), kStreamOk);
  EXPECT_EQ(hpoEmulatedCompute("cublasSgemm_v2"), 0);
  EXPECT_FALSE(KnownBytes(&memory, 4).has_value());
  std::unique_ptr<Graph> graph;
  ASSERT_EQ(streams.EndCapture(stream, graph), kStreamOk);
  streams.DestroyStream(stream);
  Remember(&memory, "abcd");
  ExecutableGraph(*graph).Run();
  EXPECT_FALSE(KnownBytes(&memory, 4).has_value());
}

}  // namespace
}  // namespace hpo::emulator
