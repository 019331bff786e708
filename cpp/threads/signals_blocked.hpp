#pragma once

#include <pthread.h>

#include <csignal>

namespace fairlap::threads {

// Signals are for the program's own threads; a thread started while this lives takes none. A fault of the
// thread's own stays open: blocked, it would end the process before any handler could report where.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t from_outside;
    sigfillset(&from_outside);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
      sigdelset(&from_outside, fault);
    pthread_sigmask(SIG_SETMASK, &from_outside, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;  // Its life is the starting of threads.
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace fairlap::threads
