#pragma once

#include <string>

#include "cuda/driver/cuda_error.hpp"
#include "feed/link.hpp"

namespace fairlap::cuda_link {

// A failed call of the driver in one line, with what the user can do about it.
std::string line_of(const cuda::CudaError& error);

// Does something with the driver; what fails is a failure of the link.
template <class Act>
auto or_link_failure(Act&& act) {
  try {
    return act();
  } catch (const cuda::CudaError& error) {
    throw feed::LinkFailed(line_of(error));
  } catch (const cuda::BadStream& error) {
    throw feed::LinkFailed(error.what());
  } catch (const cuda::Unavailable& error) {
    throw feed::LinkFailed(error.what());
  }
}

}  // namespace fairlap::cuda_link
