#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/sampling/sequence.hpp"
#include "tests/check.hpp"

// The order in which a sample is enqueued, written down without a device.

using namespace fairlap;
using cuda::GuardKind;
using cuda::Method;
using cuda::SampleEnd;
using cuda::SampleShape;
using cuda::Sequence;

namespace {

struct Story {
  std::string text;
  void add(const std::string& word) { text += (text.empty() ? "" : " ") + word; }
};

class WrittenSteps final : public cuda::SampleSteps {
 public:
  explicit WrittenSteps(Story& story) : story_(story) {}

  void reset_persisting_lines() override { note("reset"); }
  void flush_cache() override { note("flush"); }
  void close_gate() override { note("close"); }
  void open_gate(std::size_t) noexcept override { story_.add("open"); }
  void record_start(std::size_t slot) override { note("start" + std::to_string(slot)); }
  void record_stop(std::size_t) override { note("stop"); }
  void record_guard(std::size_t) override { note("guard"); }
  void begin_records(std::size_t) override { note("begin"); }
  void end_records(std::size_t) override { note("end"); }
  SampleEnd wait_for(std::size_t slot) override {
    note("wait" + std::to_string(slot));
    return waiting;
  }
  SampleEnd wait_until_idle() override {
    note("idle");
    return waiting;
  }
  bool is_finished(std::size_t) override { return finished; }
  void look_for_hidden_work(std::size_t) override { note("look"); }
  void store(std::size_t slot, const cuda::HostStamps& stamps) override {
    CHECK(stamps.issued >= stamps.started);
    note("store" + std::to_string(slot));
  }

  std::string fail_at;
  bool finished = false;
  SampleEnd waiting = SampleEnd::taken;

 private:
  void note(const std::string& word) {
    if (word == fail_at) throw std::runtime_error(word + " failed");
    story_.add(word);
  }

  Story& story_;
};

class WrittenWork final : public loop::Work {
 public:
  explicit WrittenWork(Story& story) : story_(story) {}

  void enter() noexcept override { story_.add("("); }
  bool leave() noexcept override {
    story_.add(")");
    return stop_on_leaving;
  }
  bool call() noexcept override {
    story_.add("call");
    return fine;
  }
  bool wait() noexcept override {
    story_.add("complete");
    return true;
  }
  bool drop() noexcept override {
    story_.add("drop");
    return true;
  }
  bool stop_requested() noexcept override { return stop; }
  [[nodiscard]] bool has_completion() const noexcept override { return completes; }

  bool fine = true;
  bool completes = false;
  bool stop = false;
  bool stop_on_leaving = false;

 private:
  Story& story_;
};

struct Scene {
  Story story;
  WrittenSteps steps{story};
  WrittenWork work{story};

  SampleEnd take(const SampleShape& shape, int samples = 1) {
    Sequence sequence(steps, work, clock::Clock::best(), shape);
    SampleEnd end = SampleEnd::taken;
    for (int sample = 0; sample < samples && end == SampleEnd::taken; ++sample) end = sequence.take_one();
    return end;
  }
};

}  // namespace

TEST(
    "a span is flush, gate, start, call, stop, guard, release, and nothing waits while the work is entered") {
  Scene scene;
  CHECK(scene.take({Method::device_span, true, true, GuardKind::context_event, 1, 4}) == SampleEnd::taken);
  CHECK_EQUAL(scene.story.text, "flush close ( start0 call stop drop ) guard open");
}

TEST(
    "lines that persist are reset when no earlier sample is in flight, which could make them persist again") {
  Scene scene;
  scene.take({Method::device_span, true, false, GuardKind::none, 1, 4, true}, 2);
  CHECK_EQUAL(scene.story.text,
              "reset flush ( start0 call stop drop ) wait0 store0 reset flush ( start1 call stop drop )");
}

TEST("a rotation resets lines that persist and flushes nothing") {
  Scene scene;
  scene.take({Method::device_span, false, false, GuardKind::none, 1, 4, true});
  CHECK_EQUAL(scene.story.text, "reset ( start0 call stop drop )");
}

TEST("a reset that waits for a device which does not answer is given up with the sample") {
  Scene scene;
  scene.steps.waiting = SampleEnd::out_of_patience;
  CHECK(scene.take({Method::device_span, true, false, GuardKind::none, 1, 4, true}, 2) ==
        SampleEnd::out_of_patience);
}

TEST("a sample may be many calls between one pair of events") {
  Scene scene;
  scene.take({Method::device_span, false, false, GuardKind::none, 3, 4});
  CHECK_EQUAL(scene.story.text, "( start0 call call call stop drop )");
}

TEST("a completion comes after the gate is open") {
  Scene scene;
  scene.work.completes = true;
  scene.take({Method::device_span, false, true, GuardKind::none, 1, 4});
  CHECK_EQUAL(scene.story.text, "close ( start0 call stop ) open ( complete drop )");
}

TEST("the oldest sample is stored when its slot is wanted again, and not before") {
  Scene scene;
  scene.take({Method::device_span, false, false, GuardKind::none, 1, 2}, 3);
  CHECK_EQUAL(scene.story.text,
              "( start0 call stop drop ) ( start1 call stop drop ) wait0 store0 ( start0 call stop drop )");
}

TEST("a sample that is finished is stored before the next one begins") {
  Scene scene;
  scene.steps.finished = true;
  scene.take({Method::device_span, false, false, GuardKind::none, 1, 4}, 2);
  CHECK_EQUAL(scene.story.text, "( start0 call stop drop ) wait0 store0 ( start1 call stop drop )");
}

TEST("a guard that waits looks after every sample") {
  Scene scene;
  scene.take({Method::device_span, false, true, GuardKind::context_sync, 1, 4}, 2);
  CHECK_EQUAL(scene.story.text,
              "close ( start0 call stop drop ) open wait0 look store0 close ( start1 call stop drop ) open "
              "wait1 look store1");
}

TEST("a guard that waits looks before a completion, which wakes the host late") {
  Scene scene;
  scene.work.completes = true;
  scene.take({Method::device_span, false, false, GuardKind::context_sync, 1, 4});
  CHECK_EQUAL(scene.story.text, "( start0 call stop ) wait0 look ( complete drop ) store0");
}

TEST("a span over the context begins when it is idle and ends when the completion returns") {
  Scene scene;
  scene.work.completes = true;
  scene.take({Method::context_span, true, false, GuardKind::context_sync, 1, 4});
  CHECK_EQUAL(scene.story.text, "flush idle ( start0 call complete stop drop ) wait0 look store0");
}

TEST("records are read between two moments at which the context is idle") {
  Scene scene;
  scene.take({Method::kernel_sum, true, false, GuardKind::none, 2, 4});
  CHECK_EQUAL(scene.story.text, "flush idle begin ( call call drop ) idle end store0");
}

TEST("issuing alone records nothing, and waits only afterwards") {
  Scene scene;
  scene.take({Method::host_issue, false, false, GuardKind::none, 1, 4});
  CHECK_EQUAL(scene.story.text, "( call drop ) idle store0");
}

TEST("after any failure the work is left and the gate is open") {
  const SampleShape shape{Method::device_span, true, true, GuardKind::context_event, 1, 4};
  for (const char* at : {"flush", "close", "start0", "stop", "guard"}) {
    Scene scene;
    scene.steps.fail_at = at;
    bool threw = false;
    try {
      scene.take(shape);
    } catch (const std::runtime_error&) {
      threw = true;
    }
    CHECK(threw);
    const auto count = [&](const std::string& word) {
      std::size_t found = 0;
      for (std::size_t i = scene.story.text.find(word); i != std::string::npos;
           i = scene.story.text.find(word, i + 1))
        ++found;
      return found;
    };
    CHECK_EQUAL(count("("), count(")"));
    CHECK_EQUAL(count("close"), count("open"));
  }
}

TEST("a work that raises opens the gate, is left, and is not stored") {
  Scene scene;
  scene.work.fine = false;
  CHECK(scene.take({Method::device_span, false, true, GuardKind::none, 3, 4}) == SampleEnd::raised);
  CHECK_EQUAL(scene.story.text, "close ( start0 call stop drop ) open");
}

TEST("a request to stop lets the sample be taken first, however it arrives") {
  for (const bool on_leaving : {false, true}) {
    for (const Method method :
         {Method::device_span, Method::context_span, Method::kernel_sum, Method::host_issue}) {
      Scene scene;
      (on_leaving ? scene.work.stop_on_leaving : scene.work.stop) = true;
      Sequence sequence(scene.steps, scene.work, clock::Clock::best(),
                        {method, false, false, GuardKind::none, 1, 4});
      CHECK(sequence.take_one() == SampleEnd::stop_requested);
      CHECK_EQUAL(sequence.in_flight(), method == Method::device_span ? 1U : 0U);
      CHECK(sequence.drain() == SampleEnd::taken);
      CHECK(scene.story.text.find("store0") != std::string::npos);
    }
  }
}

TEST("an abandoned wait leaves the sample unstored") {
  for (const Method method : {Method::context_span, Method::kernel_sum, Method::host_issue}) {
    for (const SampleEnd end : {SampleEnd::interrupted, SampleEnd::out_of_patience}) {
      Scene scene;
      scene.steps.waiting = end;
      CHECK(scene.take({method, false, false, GuardKind::none, 1, 4}) == end);
      CHECK(scene.story.text.find("store") == std::string::npos);
    }
  }
}

TEST("a ring is never larger than what there is room for") {
  Scene scene;
  scene.take({Method::device_span, false, false, GuardKind::none, 1, 1000}, 65);
  CHECK(scene.story.text.find("start63") != std::string::npos);
  CHECK(scene.story.text.find("start64") == std::string::npos);
}

TEST_MAIN()
