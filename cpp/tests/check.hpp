#pragma once

// The smallest test runner that does what we need: a test's name is the sentence it proves, a failed
// check reports where and what, and the program's exit status counts.

#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace fairlap::test {

struct Test {
  const char* sentence;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

// Done after every test, and fails it by throwing.
inline std::function<void()>& after_each() {
  static std::function<void()> check;
  return check;
}

struct Registration {
  Registration(const char* sentence, std::function<void()> body) {
    tests().push_back({sentence, std::move(body)});
  }
};

class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void fail(const char* file, int line, const std::string& what) {
  std::ostringstream text;
  text << file << ":" << line << ": " << what;
  throw Failure(text.str());
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream what;
  what << text << ": " << a << " is not " << b;
  fail(file, line, what.str());
}

inline void check_near(double a, double b, double tolerance, const char* text, const char* file, int line) {
  if (std::abs(a - b) <= tolerance) return;
  std::ostringstream what;
  what << text << ": " << a << " is not within " << tolerance << " of " << b;
  fail(file, line, what.str());
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline int run_all() {
  int failed = 0;
  for (const Test& test : tests()) {
    try {
      test.body();
      if (after_each()) after_each()();
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED: %s\n  %s\n", test.sentence, error.what());
    }
  }
  std::printf("%zu passed, %d failed\n", tests().size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace fairlap::test

#define FAIRLAP_JOIN_(a, b) a##b
#define FAIRLAP_JOIN(a, b) FAIRLAP_JOIN_(a, b)
#define TEST(sentence)                                                              \
  static void FAIRLAP_JOIN(test_body_, __LINE__)();                                 \
  static const ::fairlap::test::Registration FAIRLAP_JOIN(registration_, __LINE__)( \
      sentence, FAIRLAP_JOIN(test_body_, __LINE__));                                \
  static void FAIRLAP_JOIN(test_body_, __LINE__)()
#define CHECK(condition) \
  ((condition) ? void() : ::fairlap::test::fail(__FILE__, __LINE__, "not true: " #condition))
#define CHECK_EQUAL(a, b) ::fairlap::test::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance) \
  ::fairlap::test::check_near((a), (b), (tolerance), #a " near " #b, __FILE__, __LINE__)
#define TEST_MAIN() \
  int main() { return ::fairlap::test::run_all(); }
