#pragma once

#include "load/requests.hpp"

namespace fairlap::load {

// What one worker thread does with requests, seen by an engine that knows no interpreter. All is called by
// that thread. Only `serve` is part of a request's latency.
//
// Nothing here is noexcept, on purpose: an interpreter that is being finalized ends a thread that was left in
// a call by unwinding its stack (pthread_exit), which must find its way through.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;  // A thread holds on to it.
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  virtual void enter() {}
  virtual void leave() {}

  // Returns when the requests are answered; false when the service raised, which stays with it.
  virtual bool serve(const Group& group) = 0;

  // Follows every serve(), after the completion stamp. Results that are kept are looked at here, unless they
  // are of no request (warm-up) or came too late. False when looking raised.
  virtual bool settle(const Group& group, bool may_look) = 0;
};

}  // namespace fairlap::load
